"""Native code against the reference: ops on arrays, compiled with static dims, dynamic dims and constant operands.

`check(Op, *slots, **properties)` tests one op; `check_all([case(Op, …), …])` many in one graph (one compile a mode, so
prefer it). A slot is an array, None, or a list of arrays for a variadic group, as for `SxOp.make`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tolerances
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import SardonyxError

Array = np.ndarray[Any, Any]
Slot = Any

MODES = ("static", "dynamic", "shared", "constant")
"""static: the dims are numbers. dynamic: each dim is a symbol of its own. shared: a symbol per size, so that equal
sizes are known to be equal. constant: static, and small integer operands (shapes, axes, indices) are constants.
There is also mixed: shared, but small integer vectors and scalars are constants, as real graphs have their axes."""
MAX_CONSTANT = 64


@dataclass
class Case:
    """One op on arrays."""

    op: type[SxOp]
    slots: tuple[Slot, ...]
    properties: dict[str, Any] = field(default_factory=dict)
    results: int | None = None

    def __str__(self) -> str:
        def shown(slot: Slot) -> str:
            if slot is None:
                return "_"
            if isinstance(slot, list | tuple):
                return f"({', '.join(map(shown, slot))})"
            array = np.asarray(slot)
            return f"{array.dtype.name}{list(array.shape)}"

        given = [shown(s) for s in self.slots] + [f"{k}={v}" for k, v in self.properties.items()]
        return f"{self.op.name}({', '.join(given)})"


def case(op: type[SxOp], *slots: Slot, results: int | None = None, **properties: Any) -> Case:
    """A case for `check_all`."""
    return Case(op, slots, properties, results)


@dataclass
class Graph:
    """The graph of some cases under a mode: its inputs' contents, and which outputs belong to which case."""

    module: ModuleOp
    feeds: list[Array]
    outputs: list[tuple[Case, int]]


def build(cases: Sequence[Case], mode: str) -> Graph:
    """A graph in which every case is one op on inputs (or constants) of its own."""
    types: list[tuple[str, Attribute, None]] = []
    feeds: list[Array] = []
    plans: list[list[Any]] = []

    def enter(slot: Slot) -> Any:
        if slot is None:
            return None
        if isinstance(slot, list | tuple):
            return [enter(s) for s in slot]
        array = np.ascontiguousarray(slot).reshape(np.shape(slot))
        small = array.dtype.name in ("int64", "int32", "bool") and array.size <= MAX_CONSTANT
        if small and (mode == "constant" or (mode == "mixed" and array.ndim < 2)):
            return array
        number = len(types)
        if mode == "dynamic":
            dims: Sequence[int | str] = [f"d{number}_{axis}" for axis in range(array.ndim)]
        elif mode in ("shared", "mixed"):
            dims = [f"n{size}" for size in array.shape]
        else:
            dims = array.shape
        types.append((f"x{number}", tensor_type(DType.of(array.dtype), dims), None))
        feeds.append(array)
        return number

    plans = [[enter(slot) for slot in one.slots] for one in cases]
    module, block = create_module("cases", types)

    def operand(planned: Any) -> SSAValue | list[Any] | None:
        if planned is None:
            return None
        if isinstance(planned, list):
            return [operand(p) for p in planned]
        if isinstance(planned, int):
            return block.args[planned]
        constant = ConstantOp.dense(planned)
        block.add_op(constant)
        return constant.output

    outputs: list[tuple[Case, int]] = []
    values: list[SSAValue] = []
    for one, planned in zip(cases, plans, strict=True):
        op = one.op.make(*[operand(p) for p in planned], results=one.results, **one.properties)
        block.add_op(op)
        for number, result in enumerate(op.results):
            outputs.append((one, number))
            values.append(result)
    set_outputs(module, values, [f"y{i}" for i in range(len(values))])
    module.verify()
    return Graph(module, feeds, outputs)


def check(
    op: type[SxOp], *slots: Slot, modes: Sequence[str] = MODES, results: int | None = None, **properties: Any
) -> None:
    """Compile one op in each mode, run it, and compare with the reference under `tolerances`."""
    check_all([Case(op, slots, properties, results)], modes)


def check_all(
    cases: Sequence[Case], modes: Sequence[str] = MODES, tolerance: tolerances.Tolerance | None = None
) -> None:
    """The same for many ops in one graph. `tolerance` stands in for the table's."""
    for mode in modes:
        graph = build(cases, mode)
        expected = evaluate_function(main_function(graph.module), graph.feeds)
        before = [array.tobytes() for array in graph.feeds]
        got = compile_module(graph.module).run(graph.feeds)
        problems: list[str] = []
        for (one, number), a, b in zip(graph.outputs, got, expected, strict=True):
            problem = compare(one.op.name, a, np.asarray(b), tolerance)
            if problem is not None:
                problems.append(f"{mode}: {one} result {number}: {problem}")
        assert not problems, "\n".join(problems[:20])
        for array, data in zip(graph.feeds, before, strict=True):
            assert array.tobytes() == data, f"{mode}: the run changed an input"


def compare(op: str, got: Array, expected: Array, tolerance: tolerances.Tolerance | None = None) -> str | None:
    """What is wrong with a result, or None."""
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype}, expected {expected.dtype}"
    if got.shape != expected.shape:
        return f"shape {list(got.shape)}, expected {list(expected.shape)}"
    found = tolerances.worst(got, expected, tolerance or tolerances.tolerance(op, expected.dtype.name))
    return None if found is None else f"off by {found[0]:.3g} ulps: {found[1]}"


def both_refuse(
    op: type[SxOp], *slots: Slot, modes: Sequence[str] = ("dynamic",), results: int | None = None, **properties: Any
) -> list[str]:
    """Require that reference and native run both end with an error; returns the native messages, one a mode."""
    messages: list[str] = []
    for mode in modes:
        graph = build([Case(op, slots, properties, results)], mode)
        reference = _refusal(lambda g: evaluate_function(main_function(g.module), g.feeds), graph)
        assert reference is not None, f"{mode}: the reference of {op.name} took what it has to refuse"
        native = _refusal(lambda g: compile_module(g.module).run(g.feeds), graph)
        assert native is not None, f"{mode}: native {op.name} took what it has to refuse ({reference})"
        messages.append(native)
    return messages


def _refusal(run: Callable[[Graph], Any], graph: Graph) -> str | None:
    try:
        run(graph)
    except SardonyxError as error:
        return str(error)
    return None


# ---- data


def sample(dtype: str, *shape: int, seed: int = 0, low: float = -4.0, high: float = 4.0) -> Array:
    """Random elements: floats in [low, high), integers in that range (from 0 where unsigned), bools."""
    rng = np.random.default_rng([seed, *shape])
    target = DType.of(dtype)
    if target.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if target.is_float:
        return np.asarray(rng.uniform(low, high, shape)).astype(target.numpy)
    start = 0 if target.kind == "u" else int(low)
    return np.asarray(rng.integers(start, max(int(high), start + 1) + 1, shape)).astype(target.numpy)


def specials(dtype: str) -> Array:
    """The values at which functions break: zeros, infinities, NaN, subnormals, limits (31 or so of them)."""
    target = DType.of(dtype)
    if target.kind == "b":
        return np.array([False, True, True])
    if not target.is_float:
        limits = np.iinfo(target.numpy)
        numbers = [0, 1, 2, 3, 7, 8, 31, 63, limits.max, limits.max - 1, limits.max // 2]
        if target.kind == "i":
            numbers += [-1, -2, -3, -7, -8, limits.min, limits.min + 1, limits.min // 2]
        return np.array(numbers, target.numpy)
    bits, lowest = tolerances.FORMATS[target.name]
    numbers = [0.0, np.inf, np.nan, 1.0, 0.5, 1.5, 2.5, 3.5, 1e-3, 0.1, 3.0, 10.0, 88.0, 100.0, 1000.0, 2.0**lowest]
    numbers += [2.0 ** (lowest - bits), 2.0 ** (lowest - 1), 1.0 - 2.0 ** -(bits + 1), 65504.0, 0.49999, 127.5, 255.5]
    out = np.array([*numbers, *[-n for n in numbers]]).astype(target.numpy)
    largest = np.array([(2.0 - 2.0**-bits) * 2.0 ** (-lowest + 1)]).astype(target.numpy)
    return np.concatenate([out, largest, -largest])
