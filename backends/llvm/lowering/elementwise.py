"""Elementwise ops: scalar bodies, and their fusion into one map kernel.

An op registers how one element of its result follows from one element of each operand (`@scalar(Op)`). A producer
whose only user is elementwise over the same extents is inlined into that user's kernel. The kernel's iteration space
is the result's, with neighbouring dims merged where every operand is either whole or broadcast over both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func
from xdsl.ir import Operation, OpResult, SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType

MAX_GROUP = 24
"""How many ops one kernel holds at most: beyond, registers spill and compile time grows."""


@dataclass(frozen=True)
class Scalar:
    """One element of an operand or result: its value, and the dtype in which it is computed."""

    value: SSAValue
    dtype: DType


ScalarBody = Callable[..., SSAValue]
"""`body(b, op, *operand scalars) -> SSAValue`: operands come in `compute_dtype` of their dtype, None where absent; the
result is in the compute dtype of the op's result and is rounded to the result's dtype by the caller."""

SCALARS: dict[type[Operation], ScalarBody] = {}


def scalar(*ops: type[SxOp]) -> Callable[[ScalarBody], ScalarBody]:
    """Register the scalar body of these ops."""

    def register(body: ScalarBody) -> ScalarBody:
        for op in ops:
            SCALARS[op] = body
        return body

    return register


def choose_inlined(function: func.FuncOp) -> set[Operation]:
    """The elementwise ops that are computed inside the kernel of their only user."""
    inlined: set[Operation] = set()
    size: dict[Operation, int] = {}
    for op in function.body.block.ops:
        if type(op) not in SCALARS:
            continue
        total = 1
        own = dims_of(op.results[0])
        for operand in dict.fromkeys(op.operands):
            producer = operand.owner
            if not isinstance(producer, Operation) or producer not in size:
                continue
            uses = list(operand.uses)
            alone = all(use.operation is op for use in uses) and len(producer.results) == 1
            if alone and total + size[producer] <= MAX_GROUP and _same_extents(dims_of(operand), own):
                inlined.add(producer)
                total += size[producer]
        size[op] = total
    return inlined


def _same_extents(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(equal(x, y) is Proof.PROVED for x, y in zip(a, b, strict=True))


def lower_group(plan: Plan, op: SxOp, inlined: set[Operation]) -> None:
    """Lower an elementwise op together with the producers that are inlined into it."""
    result = op.results[0]
    dims = dims_of(result)
    leaves = _leaves(op, inlined)
    for leaf in leaves:
        for own, full in zip(dims_of(leaf), dims[len(dims) - len(dims_of(leaf)) :], strict=True):
            if not own.is_static and own != full:
                plan.dim(full)  # a broadcast of symbols is checked where its extent is computed
    kernel = plan.kernel(op.name.removeprefix("sx."))
    buffers = {leaf: kernel.read(leaf) for leaf in leaves}
    target = kernel.write(result)
    extents, strides = merge_dims(dims, [dims_of(leaf) for leaf in leaves])
    table = dict(zip(leaves, (_plan_strides(plan, kernel, s) for s in strides), strict=True))
    bounds = [kernel.outer(_plan_extent(plan, e)) for e in extents]

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        computed: dict[SSAValue, SSAValue] = {}
        for leaf in leaves:
            offset = offset_of(b, indices, table[leaf])
            loaded = b.load(buffers[leaf], offset)
            dtype = dtype_of(leaf)
            computed[leaf] = b.convert(loaded, dtype, compute_dtype(dtype))
        value = _compute(b, op, inlined, computed)
        dtype = dtype_of(result)
        b.store(b.convert(value, compute_dtype(dtype), dtype), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


def _leaves(op: SxOp, inlined: set[Operation]) -> list[SSAValue]:
    """The values that the group reads from memory, each once, in order."""
    found: dict[SSAValue, None] = {}
    stack: list[Operation] = [op]
    while stack:
        at = stack.pop()
        for operand in reversed(at.operands):
            if isinstance(operand, OpResult) and operand.op in inlined and type(operand.op) in SCALARS:
                stack.append(operand.op)
            else:
                found.setdefault(operand)
    return list(found)


def _compute(b: Body, op: SxOp, inlined: set[Operation], computed: dict[SSAValue, SSAValue]) -> SSAValue:
    """The op's element from those of the leaves; every op of the group rounds to its own dtype, as it does alone."""
    args: list[SSAValue | None] = []
    for slot in op.slots:
        if slot is None:
            args.append(None)
            continue
        if slot not in computed:
            producer: Any = slot.owner
            value = _compute(b, producer, inlined, computed)
            dtype = dtype_of(slot)
            wide = compute_dtype(dtype)
            computed[slot] = b.convert(b.convert(value, wide, dtype), dtype, wide)
        args.append(computed[slot])
    return SCALARS[type(op)](b, op, *args)


# ---- iteration spaces



def merge_dims(
    dims: Sequence[Dim], operands: Sequence[Sequence[Dim]]
) -> tuple[list[list[Dim]], list[list[tuple[str, Dim | None, list[Dim]]]]]:
    """Merge neighbouring dims of an iteration space.

    Returns the merged extents, outermost first, each as the dims it multiplies, and per operand and merged extent
    `(mode, extent, dims below)`: mode is 'full', 'one' (broadcast) or 'maybe' (broadcast if the operand's `extent` is
    1 at run time); the stride of a full one is the product of the operand's own dims below it.
    """
    rank = len(dims)
    modes: list[list[str]] = []
    for shape in operands:
        padded = [Dim.of(1)] * (rank - len(shape)) + list(shape)
        row: list[str] = []
        for own, full in zip(padded, dims, strict=True):
            if own.static_value == 1:
                row.append("one")
            elif equal(own, full) is Proof.PROVED:
                row.append("full")
            else:
                row.append("maybe")
        modes.append(row)
    groups: list[list[int]] = []
    for axis in range(rank):
        if dims[axis].static_value == 1 and all(m[axis] != "maybe" for m in modes):
            continue
        column = [m[axis] for m in modes]
        if groups and "maybe" not in column and column == [m[groups[-1][-1]] for m in modes]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    extents = [[dims[a] for a in group] for group in groups]
    strides: list[list[tuple[str, Dim | None, list[Dim]]]] = []
    for shape, row in zip(operands, modes, strict=True):
        padded = [Dim.of(1)] * (rank - len(shape)) + list(shape)
        line: list[tuple[str, Dim | None, list[Dim]]] = []
        for group in groups:
            last = group[-1]
            line.append((row[last], padded[last], padded[last + 1 :]))
        strides.append(line)
    return extents, strides


def _plan_extent(plan: Plan, dims: Sequence[Dim]) -> SSAValue:
    return plan.count(list(dims))


def _plan_strides(plan: Plan, kernel: Kernel, line: Sequence[tuple[str, Dim | None, list[Dim]]]) -> list[SSAValue]:
    """The strides of one operand as indices inside the kernel."""
    out: list[SSAValue] = []
    for mode, extent, below in line:
        if mode == "one":
            out.append(kernel.index(0))
            continue
        stride = plan.count(below)
        if mode == "maybe" and extent is not None:
            one = plan.body.compare("eq", plan.dim(extent), 1)
            stride = plan.body.select(one, plan.body.index(0), stride)
        out.append(kernel.outer(stride))
    return out


def offset_of(b: Body, indices: Sequence[SSAValue], strides: Sequence[IndexLike]) -> SSAValue:
    """The flat offset of a point."""
    total: IndexLike = 0
    for index, stride in zip(indices, strides, strict=True):
        total = b.plus(total, b.times(index, stride))
    return b.index(total)


def nest(
    kernel: Kernel,
    bounds: Sequence[IndexLike],
    point: Callable[[Body, Sequence[SSAValue], IndexLike], None],
) -> None:
    """Loops over a contiguous result: the outermost parallel, the innermost over vector lanes.

    `point(b, indices, flat)` is called in the innermost body with the flat offset of the point.
    """
    if not bounds:
        point(kernel, [], 0)
        return

    def level(b: Body, depth: int, indices: list[SSAValue], base: IndexLike) -> None:
        last = depth == len(bounds) - 1
        bound = _inside(b, bounds[depth])

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            flat = inner.plus(base, index) if last else inner.times(inner.plus(base, index), bounds[depth + 1])
            if last:
                point(inner, [*indices, index], flat)
            else:
                level(inner, depth + 1, [*indices, index], flat)

        b.loop(bound, body, vector=last, parallel=depth == 0)

    level(kernel, 0, [], 0)


def _inside(b: Body, bound: IndexLike) -> IndexLike:
    number = number_of(bound)
    return b.index(number) if number is not None else bound
