"""What a contraction does with its sums before it stores them, and which elementwise groups that is.

A contraction whose only user is an elementwise group over the same extents computes that group in its epilogue: bias,
activation, residual, scale. It is lowered where the group stands, so that all that the group reads is there.

A lowering joins by `@takes_epilogue(Op)` instead of `@lowers(Op)`: it is called with the plan, the op, and the
`Fused` group or None. It gives `result_of(op, fused)` its buffer and sends every sum through `chain(...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block, Operation, Region, SSAValue

from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, scalar_ir
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.registries import LOWERINGS
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.contract import epilogue_block
from sardonyx.dialects.kernel.ops import YieldOp

Point = Callable[[Body, SSAValue, IndexLike, IndexLike], SSAValue]
"""`point(body, sum, row, column)`: the row and column of the sum in the whole result, seen as a matrix."""
Stage = Callable[[Kernel], Point]
"""Says what a kernel reads, once, and gives what it does at each point."""

FUSIBLE: dict[type[Operation], Callable[[Any], int]] = {}
"""Contractions that take an epilogue: how many trailing dims of the result are the contraction's columns."""

Lowering = Callable[[Plan, Any, "Fused | None"], None]
_LOWERINGS: dict[type[Operation], Lowering] = {}


def takes_epilogue(*ops: type[SxOp], columns: Callable[[Any], int] = lambda op: 1) -> Callable[[Lowering], Lowering]:
    """Register the lowering of contractions that take a group into their epilogue.

    The result's leading dims are the rows, one flat number that `Point` sees; its last `columns(op)` dims are the
    columns. `columns` answers 0 for an op that takes none.
    """

    def register(lowering: Lowering) -> Lowering:
        for op in ops:
            FUSIBLE[op] = columns
            _LOWERINGS[op] = lowering
            LOWERINGS[op] = lambda plan, one: lowering(plan, one, None)
        return lowering

    return register


@dataclass(frozen=True)
class Fused:
    """An elementwise group in the epilogue of a contraction."""

    contraction: SxOp
    ops: list[Any]
    columns: int

    @property
    def result(self) -> SSAValue:
        """The tensor value that the contraction's kernel computes."""
        return self.ops[-1].results[0]

    def stage(self, kernel: Kernel) -> Point:
        """The group, from a sum in the compute dtype of the contraction's result to an element of `result`."""
        product, dims = self.contraction.results[0], dims_of(self.result)
        made = {product, *(op.results[0] for op in self.ops)}
        leaves = list(dict.fromkeys(s for m in self.ops for s in elementwise.read_slots(m) if s not in made))
        readers = {leaf: _reader(kernel, leaf, dims, self.columns) for leaf in leaves if leaf is not None}

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            dtype = dtype_of(product)
            wide = compute_dtype(dtype)
            values: dict[SSAValue, SSAValue] = {product: b.convert(b.convert(total, wide, dtype), dtype, wide)}
            for leaf, read in readers.items():
                own = dtype_of(leaf)
                values[leaf] = b.convert(read(b, row, column), own, compute_dtype(own))
            for op in self.ops:
                values[op.results[0]] = elementwise.element(b, op, values, last=op is self.ops[-1])
            return values[self.result]

        return point


def _reader(
    kernel: Kernel, leaf: SSAValue, dims: Sequence[Dim], columns: int
) -> Callable[[Body, IndexLike, IndexLike], SSAValue]:
    """Reads a leaf, broadcast to the result, at a row and column (see `_steps`)."""
    buffer = kernel.read(leaf)
    steps = _steps(dims_of(leaf), dims, columns)
    if steps is None:
        raise ValueError(f"a leaf of dims {dims_of(leaf)} does not lie in the rows and columns of {dims}")
    row_step, column_step, period = kernel.extent(steps.row), kernel.extent(steps.column), steps.period
    around = None if period is None else kernel.extent(period)

    def read(b: Body, row: IndexLike, column: IndexLike) -> SSAValue:
        turned = row if around is None else b.index_math("floormod", row, around)
        return b.load(buffer, b.plus(b.times(turned, row_step), b.times(column, column_step)))

    return read


@dataclass(frozen=True)
class Steps:
    """How a leaf lies in the rows and columns of a result; its rows repeat with a `period`, if it has one."""

    row: Dim
    column: Dim
    period: Dim | None


def _steps(shape: Sequence[Dim], dims: Sequence[Dim], columns: int) -> Steps | None:
    """None where the leaf is broadcast in some other way, or only the run knows how."""
    padded = [Dim.of(1)] * (len(dims) - len(shape)) + list(shape)
    split = len(dims) - columns
    inner = _whole_or_one(padded[split:], dims[split:])
    if inner is None:
        return None
    stride = Dim.product(padded[split:])
    column = Dim.of(1 if inner else 0)
    outer = _whole_or_one(padded[:split], dims[:split])
    if outer is not None:
        return Steps(stride if outer else Dim.of(0), column, None)
    for at in range(1, split):
        if _whole_or_one(padded[:at], dims[:at]) is False and _whole_or_one(padded[at:split], dims[at:split]):
            return Steps(stride, column, Dim.product(dims[at:split]))
    return None


def _whole_or_one(shape: Sequence[Dim], dims: Sequence[Dim]) -> bool | None:
    """Whether a part of a shape is that of the result, or all ones (False); None for anything else."""
    if all(equal(own, full) is Proof.PROVED for own, full in zip(shape, dims, strict=True)):
        return True
    return False if all(own.static_value == 1 for own in shape) else None


def choose(block: Block, inlined: set[Operation]) -> dict[Operation, Fused]:
    """The groups, by their last op, that a contraction computes."""
    chosen: dict[Operation, Fused] = {}
    for root in block.ops:
        if type(root) not in elementwise.SCALARS or root in inlined:
            continue
        ops = elementwise.members(root, inlined)  # pyright: ignore[reportArgumentType]
        for contraction in _candidates(ops):
            columns = FUSIBLE[type(contraction)](contraction)
            if columns and _fits(contraction, ops, columns):
                chosen[root] = Fused(contraction, ops, columns)
                break
    return chosen


def _candidates(ops: Sequence[Any]) -> list[Any]:
    """The contractions that only these ops use, the last one first."""
    found: dict[Any, None] = {}
    for op in ops:
        for slot in elementwise.read_slots(op):
            if slot is None:
                continue
            owner = slot.owner
            if type(owner) in FUSIBLE and all(use.operation in ops for use in slot.uses):
                if owner.parent_block() is op.parent_block():  # else the product is made once, around a loop
                    found[owner] = None
    return list(found)[::-1]


def _fits(contraction: Any, ops: Sequence[Any], columns: int) -> bool:
    """Whether all that the group reads lies in the contraction's rows and columns."""
    product, dims = contraction.results[0], dims_of(ops[-1].results[0])
    if len(dims) <= columns or not elementwise.same_extents(dims_of(product), dims):
        return False
    made = {product, *(op.results[0] for op in ops)}
    leaves = {s for op in ops for s in elementwise.read_slots(op) if s is not None and s not in made}
    return all(_steps(dims_of(leaf), dims, columns) is not None for leaf in leaves)


def lower(plan: Plan, fused: Fused) -> None:
    """Lower a contraction together with the group of its epilogue."""
    for op in fused.ops:
        elementwise.check_extents(plan, op)
    plan.current = fused.contraction
    _LOWERINGS[type(fused.contraction)](plan, fused.contraction, fused)


def result_of(op: Any, fused: Fused | None) -> SSAValue:
    """The tensor value that the contraction's kernel computes."""
    return op.results[0] if fused is None else fused.result


def chain(dtype: DType, own: Stage | None, fused: Fused | None) -> Stage | None:
    """What the sums of a contraction whose result is of `dtype` go through: a stage of its own, which keeps the compute
    dtype, then the group. None where a sum is stored as it is."""
    if own is None and fused is None:
        return None

    def stage(kernel: Kernel) -> Point:
        first = None if own is None else own(kernel)
        last = None if fused is None else fused.stage(kernel)

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            value = total if first is None else first(b, total, row, column)
            if last is None:
                return b.convert(value, compute_dtype(dtype), dtype)
            return last(b, value, row, column)

        return point

    return stage


def region(outer: Body, dtype: DType, point: Point | None, row: IndexLike = 0, column: IndexLike = 0) -> Region | None:
    """The epilogue's region for a `ContractOp` that stands in `outer` and begins at this row and column; `dtype` is
    that of the operands."""
    if point is None:
        return None
    made, block = epilogue_block(scalar_ir(compute_dtype(dtype)))
    body = Body(block, outer)
    total, m, n = block.args
    block.add_op(YieldOp([point(body, total, body.plus(row, m), body.plus(column, n))]))
    return made
