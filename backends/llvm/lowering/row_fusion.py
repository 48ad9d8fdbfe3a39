"""Which ops share a row program: those over the rows of one tensor along the same axes.

An op over rows (softmax, a normalisation, a reduction) begins a region, and the region grows: by elementwise ops over
the whole rows or over one element a row, before, between and behind, and by further ops over the same rows. So a layer
normalisation that is written in primitives is one kernel. A region is lowered where its last op stands; what it
computes for ops outside, in front of which that place must lie, becomes a result of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.row_program import Node, Program
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx import activation, binary, select, unary

MAX_OPS = 40
"""How many ops a region holds at most."""
MAX_TENSORS = 20
"""How many tensors a region's kernel reads and writes at most."""
CHEAP: tuple[type[Any], ...] = (
    binary.AddOp, binary.SubOp, binary.MulOp, unary.NegOp, unary.AbsOp, activation.ReluOp, unary.NotOp,
    select.WhereOp,
)  # fmt: skip
"""Elementwise ops that are computed again rather than kept."""
SHORT: tuple[type[Any], ...] = (*CHEAP, binary.DivOp, binary.PowOp, unary.SqrtOp)
"""Those of a few instructions (powers mostly are squares)."""


@dataclass(frozen=True)
class RowSpace:
    """The extents of a tensor, and the axes that its rows span, in order."""

    dims: Sequence[Dim]
    axes: tuple[int, ...]

    def equals(self, other: RowSpace) -> bool:
        return sorted(self.axes) == sorted(other.axes) and elementwise.same_extents(self.dims, other.dims)

    def kept(self, keepdims: bool) -> list[Dim]:
        """The extents of a tensor with one element a row."""
        if keepdims:
            return [Dim.of(1) if a in self.axes else d for a, d in enumerate(self.dims)]
        return [d for a, d in enumerate(self.dims) if a not in self.axes]


Join = Callable[[Program, Any], None]
"""`join(program, op)` adds the op's results to `program.nodes`, each rounded as a tensor of its dtype is."""


@dataclass(frozen=True)
class RowOp:
    space: Callable[[Any], RowSpace | None]
    join: Join
    check: Callable[[Plan, Any], None] | None = None


ROW_OPS: dict[type[Operation], RowOp] = {}


def joins_rows(
    *ops: type[SxOp],
    space: Callable[[Any], RowSpace | None],
    check: Callable[[Plan, Any], None] | None = None,
) -> Callable[[Join], Join]:
    """Register how these ops join a row program.

    `space(op)` gives the rows, or None where only the run knows the axes; `check(plan, op)` requires what must hold.
    """

    def register(join: Join) -> Join:
        for op in ops:
            ROW_OPS[op] = RowOp(space, join, check)
        return join

    return register


@dataclass(frozen=True)
class Region:
    """Ops of one row program, in their order."""

    space: RowSpace
    ops: list[Any]

    @property
    def name(self) -> str:
        return next(op for op in self.ops if type(op) in ROW_OPS).name.removeprefix("sx.")

    def results(self) -> list[SSAValue]:
        """What ops outside read."""
        inside = set(self.ops)
        return [r for op in self.ops for r in op.results if any(use.operation not in inside for use in r.uses)]

    def reads(self) -> set[SSAValue]:
        made = {r for op in self.ops for r in op.results}
        return {v for op in self.ops for v in operands(op) if v not in made}


def operands(op: Any) -> list[SSAValue]:
    """What the program reads of an op's operands."""
    if type(op) in ROW_OPS:
        axes = getattr(op, "axes", None)
        return [v for v in op.operands if v is not axes]
    return [v for v in elementwise.read_slots(op) if v is not None]


def lower_alone(plan: Plan, op: Any) -> None:
    """Lower an op over rows by itself."""
    space = ROW_OPS[type(op)].space(op)
    if space is None:
        raise op.fail("the axes are not known before the run")
    lower(plan, Region(space, [op]), [r for r in op.results if next(iter(r.uses), None) is not None])


def lower(plan: Plan, region: Region, results: Sequence[SSAValue] | None = None) -> None:
    """Lower a region's ops as one kernel."""
    program = Program(plan, region.space.dims, sorted(region.space.axes))
    current = plan.current
    for op in region.ops:
        plan.current = op
        row_op = ROW_OPS.get(type(op))
        if row_op is None:
            _join_elementwise(plan, program, op)
            continue
        if row_op.check is not None:
            row_op.check(plan, op)
        row_op.join(program, op)
    plan.current = current
    program.emit(region.name, region.results() if results is None else results)


def _join_elementwise(plan: Plan, program: Program, op: Any) -> None:
    elementwise.check_extents(plan, op)
    result = op.results[0]
    slots = elementwise.read_slots(op)
    inputs = [program.value(slot) for slot in slots if slot is not None]

    def make(b: Body, *scalars: SSAValue) -> SSAValue:
        given = iter(scalars)
        return elementwise.SCALARS[type(op)](b, op, *(None if slot is None else next(given) for slot in slots))

    divisor = slots[1].owner if isinstance(op, binary.DivOp) and slots[1] is not None else None
    if isinstance(divisor, unary.SqrtOp) and inputs[0].full and not inputs[1].full:
        value = _by_reciprocal(program, *inputs)
        program.nodes[result] = program.rounded(value, dtype_of(result))
        return
    is_costly, is_long = not isinstance(op, CHEAP), not isinstance(op, SHORT)
    value = program.map(compute_dtype(dtype_of(result)), make, *inputs, is_costly=is_costly, is_long=is_long)
    rounded = program.rounded(value, dtype_of(result))
    rounded.is_costly = value.is_costly
    program.nodes[result] = rounded


def _by_reciprocal(program: Program, x: Node, root: Node) -> Node:
    """Elements of a row divided by a root that they share, as products with its reciprocal: off by one rounding more. A
    root is far from where reciprocals lose their digits or overflow, whatever it is of."""
    dtype = x.dtype
    inverse = program.map(dtype, lambda b, r: b.arithmetic("div", dtype, b.const(dtype, 1), r), root)
    return program.map(dtype, lambda b, v, i: b.arithmetic("mul", dtype, v, i), x, inverse)


# ---- choosing


def choose(block: Block, taken: Collection[Operation]) -> list[Region]:
    """The regions of more than one op; ops in `taken` stay where they are."""
    order = {op: k for k, op in enumerate(block.ops)}
    used: set[Operation] = set(taken)
    regions: list[Region] = []
    for seed in order:
        rule = ROW_OPS.get(type(seed))
        space = rule.space(seed) if rule is not None and seed not in used else None
        if space is None or not space.axes:
            continue
        ops = _grow(space, seed, order, used)
        if len(ops) > 1:
            regions.append(Region(space, sorted(ops, key=order.__getitem__)))
            used |= ops
    return regions


def _grow(space: RowSpace, seed: Operation, order: dict[Operation, int], used: Collection[Operation]) -> set[Operation]:
    ops = {seed}
    refused: set[Operation] = set()
    changed = True
    while changed:
        changed = False
        for candidate in sorted((c for c in _neighbours(ops) if c in order), key=order.__getitem__):
            if candidate in ops or candidate in used or candidate in refused:
                continue
            if _belongs(space, candidate, ops) and _is_legal(space, ops | {candidate}, order):
                ops.add(candidate)
                changed = True
            elif not _belongs(space, candidate, ops):
                refused.add(candidate)
    return ops


def _neighbours(ops: Collection[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:
        for result in op.results:
            found.update(use.operation for use in result.uses)
        found.update(v.owner for v in operands(op) if isinstance(v.owner, Operation))
    return {op for op in found if type(op) in ROW_OPS or type(op) in elementwise.SCALARS}


def _belongs(space: RowSpace, op: Any, ops: Collection[Operation]) -> bool:
    """Whether the op is over the same rows, or over one element of each."""
    rule = ROW_OPS.get(type(op))
    if rule is not None:
        own = rule.space(op)
        return own is not None and own.equals(space)
    dims = dims_of(op.results[0])
    if elementwise.same_extents(dims, space.dims) or elementwise.same_extents(dims, space.kept(True)):
        # A tensor with one element a row and fewer axes would meet other axes here.
        return all(_lies_in(space, v) for v in operands(op) if v.owner in ops)
    if not elementwise.same_extents(dims, space.kept(False)):
        return False
    inside = [v for v in operands(op) if v.owner in ops]
    outside = [v for v in operands(op) if v.owner not in ops]
    if not inside or any(not elementwise.same_extents(dims_of(v), dims) for v in inside):
        return False
    return all(d.static_value == 1 for v in outside for d in dims_of(v))


def _lies_in(space: RowSpace, value: SSAValue) -> bool:
    dims = dims_of(value)
    return not dims or len(dims) == len(space.dims)


def _is_legal(space: RowSpace, ops: Collection[Any], order: dict[Operation, int]) -> bool:
    """Whether one kernel at the place of the last op can stand for all of them."""
    region = Region(space, sorted(ops, key=order.__getitem__))
    last = max(order[op] for op in ops)
    results = region.results()
    if len(ops) > MAX_OPS or len(region.reads()) + len(results) > MAX_TENSORS:
        return False
    return all(order.get(use.operation, -1) > last for r in results for use in r.uses if use.operation not in ops)
