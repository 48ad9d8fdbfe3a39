"""What every node of a graph computes, in short: fingerprints of all values of a reference run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sardonyx.backends.onnx.names import node_name
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import SardonyxError
from sardonyx.frontend.naming import Names
from sardonyx.frontend.verify.identity import attributes_of, constant_digest, node_digest

Array = np.ndarray[Any, Any]
SAMPLES = 61
"""How many elements of a value a fingerprint keeps; a prime, so that its stride meets all residues."""


@dataclass(frozen=True)
class Fingerprint:
    """A value in short: its shape, some of its elements, its largest finite magnitude, and how many are not finite."""

    shape: tuple[int, ...]
    samples: Array
    largest: float
    mean: float
    odd: int

    @staticmethod
    def of(value: Any) -> Fingerprint | None:
        """None for what is no tensor of numbers."""
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
            return None
        flat = value.reshape(-1).astype(np.float64)
        places = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(np.int64)
        finite = np.isfinite(flat)
        good = flat if finite.all() else flat[finite]
        largest = float(np.abs(good).max()) if good.size else 0.0
        mean = float(good.mean()) if good.size else 0.0
        return Fingerprint(value.shape, flat[places], largest, mean, int(flat.size - good.size))

    def distance(self, other: Fingerprint) -> float:
        """How far apart two values are, as a share of the larger magnitude; 1 and more: not the same at all."""
        if self.shape != other.shape:
            return np.inf
        if self.odd != other.odd:
            return np.inf
        scale = max(self.largest, other.largest)
        if not self.samples.size or scale == 0:
            return 0.0
        a, b = self.samples, other.samples
        odd = ~np.isfinite(a)
        if odd.any() and not np.array_equal(a[odd], b[odd], equal_nan=True):
            return np.inf
        far = np.abs(a[~odd] - b[~odd])
        return max(float(far.max()) if far.size else 0.0, abs(self.mean - other.mean)) / scale

    def to_json(self) -> list[Any]:
        return [list(self.shape), [float(v) for v in self.samples], self.largest, self.mean, self.odd]

    @staticmethod
    def from_json(data: Sequence[Any]) -> Fingerprint:
        shape, samples, largest, mean, odd = data
        return Fingerprint(tuple(shape), np.asarray(samples, np.float64), float(largest), float(mean), int(odd))


@dataclass(frozen=True)
class Step:
    """A node of a run: its name, operator and origin, the values that it reads and makes.

    Values are numbered; inputs that are constants, or computed from constants alone, are left out. One that is read
    twice stands twice.
    `digest` is the hash of what it does with them, constants included; `attributes` are for people, `constants` tell
    whether a weight is another one, and `computed` are the values among them that nodes make of constants.
    """

    name: str
    operator: str
    location: str | None
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    digest: str = ""
    attributes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    computed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A reference run in short.

    Attributes:
        steps: The nodes in order.
        prints: The fingerprint of each value, by number; None for what has none.
        names: The value's name, by number.
        inputs: The numbers of the graph's inputs.
        outputs: The numbers of its outputs, by name.
        failed: The node that refused the data, where one did, and its error; it makes nothing.
        results: What the graph gave, by the outputs' names.
    """

    steps: tuple[Step, ...]
    prints: tuple[Fingerprint | None, ...]
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: dict[str, int]
    failed: tuple[Step, str] | None = None
    results: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)


@dataclass(frozen=True)
class Plan:
    """What a run of a graph will do, before it has inputs.

    Attributes:
        ops: The operations in order, each with its step; constants have none.
        steps, names, inputs, outputs: As in a `Trace`.
        results: The values that the graph returns.
        numbers: Each value's number.
    """

    ops: tuple[tuple[Operation, Step | None], ...]
    steps: tuple[Step, ...]
    names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: dict[str, int]
    results: Mapping[str, SSAValue]
    numbers: Mapping[SSAValue, int]

    @staticmethod
    def of(module: ModuleOp, output_names: Sequence[str]) -> Plan:
        """The plan of a module's main function."""
        block = main_function(module).body.block
        known = Names.of(module)
        numbers: dict[SSAValue, int] = {argument: i for i, argument in enumerate(block.args)}
        inputs = tuple(numbers.values())
        constant: dict[SSAValue, str] = {}  # what is computed without the inputs, with the hash of how
        ops: list[tuple[Operation, Step | None]] = []
        for op in block.ops:
            if isinstance(op, ConstantOp):
                constant[op.output] = constant_digest(op)
                ops.append((op, None))
            elif not isinstance(op, func.ReturnOp):
                step = _step(op, node_name(op.location) or known.nodes.get(op, op.name), numbers, constant)
                if not step.reads and op.operands and all(o in constant for o in _operands(op)):
                    constant.update((result, f"{step.digest} {i}") for i, result in enumerate(op.results))
                numbers.update({result: len(numbers) + i for i, result in enumerate(op.results)})
                ops.append((op, replace(step, makes=tuple(numbers[r] for r in op.results))))
        returned = dict(zip(output_names, _returned(block)))
        outputs = {name: numbers[value] for name, value in returned.items() if value in numbers}
        names = tuple(known.values.get(value, "") for value in numbers)
        steps = tuple(step for _, step in ops if step is not None)
        return Plan(tuple(ops), steps, names, inputs, outputs, returned, numbers)


@dataclass
class Memory:
    """What one run computed, by hashes of how, for another run on the same inputs.

    Attributes:
        wanted: The hashes of the values to be kept; None: of all.
        complete: Whether a run has filled it; then it is only read.
        prints, values: What is known.
    """

    wanted: set[str] | None = None
    complete: bool = False
    prints: dict[str, Fingerprint | None] = field(default_factory=dict[str, Fingerprint | None])
    values: dict[str, Any] = field(default_factory=dict[str, Any])


def observe(
    plan: Plan, arrays: Sequence[Any], hashes: Sequence[str] | None = None, memory: Memory | None = None
) -> Trace:
    """Run a graph by the reference on its inputs in order, and note every value. A value is dropped after its last use.

    What goes wrong in a node ends the run; the trace says where.

    Args:
        plan: Of the graph.
        arrays: The inputs, in order.
        hashes: Of the values by number, with which `memory` is read and filled.
        memory: What is known of other runs on these inputs: nodes whose results are in it are not run again.
    """
    prints: list[Fingerprint | None] = [None] * len(plan.names)
    ctx = EvalContext()
    by_number = {number: value for value, number in plan.numbers.items()}
    for number, array in zip(plan.inputs, arrays, strict=True):
        ctx.values[by_number[number]] = array
        prints[number] = Fingerprint.of(array)
    last_use = _last_uses([op for op, _ in plan.ops])
    kept = set(plan.results.values())
    failed: tuple[Step, str] | None = None
    ran: list[Step] = []
    for op, step in plan.ops:
        made = () if step is None or hashes is None or memory is None else [hashes[n] for n in step.makes]
        if memory is not None and memory.complete and made and all(h in memory.prints for h in made):
            for result, number, digest in zip(op.results, step.makes if step is not None else (), made):
                prints[number] = memory.prints[digest]
                if digest in memory.values:
                    ctx.values[result] = memory.values[digest]
        else:
            try:
                evaluate_op(op, ctx)
            except SardonyxError as error:
                culprit = Step(op.name, op.name, _origin(op), (), ()) if step is None else replace(step, makes=())
                failed = culprit, error.message
                break
            for place, number in enumerate(step.makes if step is not None else ()):
                content = ctx.values[op.results[place]]
                prints[number] = Fingerprint.of(content)
                if memory is not None and made and not memory.complete:
                    memory.prints[made[place]] = prints[number]
                    if memory.wanted is None or made[place] in memory.wanted:
                        memory.values[made[place]] = content
        if step is not None:
            ran.append(step)
        for value in last_use.get(op, ()):
            if value not in kept:
                ctx.values.pop(value, None)
    if memory is not None and failed is None:
        memory.complete = True
    results = {} if failed is not None else {n: ctx.values[v] for n, v in plan.results.items()}
    outputs = {} if failed is not None else plan.outputs
    return Trace(tuple(ran), tuple(prints), plan.names, plan.inputs, outputs, failed, results)


def _step(op: Operation, name: str, numbers: Mapping[SSAValue, int], constant: Mapping[SSAValue, str]) -> Step:
    """A node of the plan, without what it makes."""
    taken: list[int] = []

    def describe(value: SSAValue) -> str:
        if value in constant:
            return constant[value]
        taken.append(numbers[value])
        return f"<{len(taken) - 1}>"

    digest = node_digest(op, describe)
    weights = tuple(constant[o] for o in op.operands if o in constant)
    computed = tuple(numbers[o] for o in dict.fromkeys(_operands(op)) if o in constant and o in numbers)
    return Step(name, op.name, _origin(op), tuple(taken), (), digest, tuple(attributes_of(op)), weights, computed)


def _returned(block: Any) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if isinstance(last, func.ReturnOp) else ()


def _operands(op: Operation) -> list[SSAValue]:
    """What an op reads, in its regions included."""
    found = list(op.operands)
    for region in op.regions:
        for inner in region.walk():
            found.extend(o for o in inner.operands)
    return found


def _last_uses(ops: Any) -> dict[Operation, list[SSAValue]]:
    """By op, the values that nothing behind it reads."""
    last: dict[SSAValue, Operation] = {}
    for op in ops:
        for operand in _operands(op):
            last[operand] = op
    found: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        found.setdefault(op, []).append(value)
    return found


def _origin(op: Operation) -> str | None:
    from sardonyx.dialects import locations

    return locations.describe(op.location)
