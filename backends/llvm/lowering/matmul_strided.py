"""Matrix products one side of which lies in a larger buffer, such as a cache, or is a transpose, such as heads: nothing
of it is copied.

With the rows of A known to be few, or not known, B is read where it lies: a transposed one (its columns lie apart, as K
in q K') by dot products. Where the run has more rows, a B that is transposed, or whose rows lie apart, is packed first,
as panels. Both are kernels with an empty loop where the other one is due.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import compute_dtype
from sardonyx.backends.llvm.lowering.epilogue import Stage
from sardonyx.backends.llvm.lowering.matmul import PACK_COLUMNS, PACK_ROWS, Matrix, contract
from sardonyx.backends.llvm.lowering.pack import Source, pack_matrices, panel_block
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.backends.llvm.lowering.strided import Strided, find
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.sx.matmul import MatMulOp

FEW = 4
"""So many rows of A at most are multiplied by dot products."""

Line = tuple[Dim, Dim, Dim]
"""A batch axis: its extent, and the strides of A and B."""


def lower_strided(plan: Plan, op: MatMulOp, result: SSAValue, stage: Stage | None) -> bool:
    """Lower the product if one side is strided and both have the same batch axes; whether that was so.

    `result` is the tensor value that the kernel computes, once the sums went through `stage`.
    """
    a, b = dims_of(op.lhs), dims_of(op.rhs)
    found = find(plan, op.lhs), find(plan, op.rhs)
    if found == (None, None) or len(a) < 2 or len(b) < 2:
        return False
    out = dims_of(op.output)
    left, right = (
        Strided(plan.buffer(value), tuple(row_major(dims_of(value)))) if there is None else there
        for value, there in zip((op.lhs, op.rhs), found, strict=True)
    )
    lines = _lines(out[:-2], a[:-2], b[:-2], left, right)
    if lines is None:
        return False
    dtype = dtype_of(op.output)
    target = plan.new_buffer(result)
    extents = a[-2], b[-1], a[-1]
    one = Matrix(left.buffer, left.strides[-2], left.strides[-1])
    two = Matrix(right.buffer, right.strides[-2], right.strides[-1])
    batch = [(plan.dim(e), plan.dim(s), plan.dim(t)) for e, s, t in lines]
    m, transposed = extents[0].static_value, right.strides[-1].static_value != 1
    packs = (
        transposed or equal(right.strides[-2], b[-1]) is not Proof.PROVED or (found[1] is None and _is_large(extents))
    )
    if not packs or dtype.bits < 32 or (m is not None and m <= FEW):
        contract(plan, "matmul", dtype, one, two, target, extents, batch, stage, dots=transposed and dtype.bits >= 32)
        return True
    many = None
    if m is None:
        few = plan.body.compare("sle", plan.dim(extents[0]), FEW)
        many = plan.body.negate(few)
        some, name = _only_if(plan, few, batch), "dots" if transposed else "matmul_few"
        contract(plan, name, dtype, one, two, target, extents, some, stage, dots=transposed)
    _by_panels(plan, op, (one, two), target, lines, stage, many)
    return True


def _is_large(extents: tuple[Dim, Dim, Dim]) -> bool:
    """Whether B is worth a pass over it before the product, though its rows are close together."""
    m, n = extents[0].static_value, extents[1].static_value
    return (m is None or m >= PACK_ROWS) and (n is None or n >= PACK_COLUMNS)


def _by_panels(
    plan: Plan,
    op: MatMulOp,
    matrices: tuple[Matrix, Matrix],
    target: SSAValue,
    lines: Sequence[Line],
    stage: Stage | None,
    many: SSAValue | None,
) -> None:
    """Pack B, whatever the order of its axes, then multiply; if `many`, where that is given."""
    m, n, k = dims_of(op.lhs)[-2], dims_of(op.rhs)[-1], dims_of(op.lhs)[-1]
    one, two = matrices
    dtype = dtype_of(op.output)
    wide = compute_dtype(dtype)
    width = panel_width(plan.target, wide.bits, m.static_value, n.static_value)
    own = [line for line in lines if line[2].static_value != 0]
    count = Dim.product([e for e, _, _ in own])
    matrix = own[-1][2] if own else Dim.of(0)
    outer: list[tuple[SSAValue, SSAValue]] = []
    inside: SSAValue = plan.body.index(1)
    for line, within in zip(own[-2::-1], own[::-1], strict=False):
        inside = plan.product(inside, plan.dim(within[0]))
        outer.insert(0, (inside, plan.dim(line[2])))
    source = Source(two.buffer, plan.dim(matrix), plan.dim(two.row), plan.dim(two.column), wide, tuple(outer))
    panels = pack_matrices(plan, source, dtype, (count, k, n), width, many)
    block = panel_block(plan, k, n, width)
    batch: list[tuple[SSAValue, SSAValue, SSAValue]] = []
    step = block
    for e, s, t in reversed(lines):
        batch.insert(0, (plan.dim(e), plan.dim(s), plan.body.index(0) if t.static_value == 0 else step))
        if t.static_value != 0:
            step = plan.product(step, plan.dim(e))
    packed = Matrix(panels, Dim.of(width), Dim.of(1), width)
    contract(
        plan,
        "matmul",
        dtype,
        one,
        packed,
        target,
        (m, n, k),
        batch if many is None else _only_if(plan, many, batch),
        stage,
    )


def _only_if(
    plan: Plan, condition: SSAValue, batch: Sequence[tuple[SSAValue, SSAValue, SSAValue]]
) -> list[tuple[SSAValue, SSAValue, SSAValue]]:
    """The batch, or none of it."""
    zero = plan.body.index(0)
    first = batch[0] if batch else (plan.body.index(1), zero, zero)
    return [(plan.body.select(condition, first[0], zero), first[1], first[2]), *batch[1:]]


def _lines(out: Sequence[Dim], a: Sequence[Dim], b: Sequence[Dim], left: Strided, right: Strided) -> list[Line] | None:
    """The batch axes, merged as far as can be proved; None where one is broadcast in a way that only the run knows."""
    lines: list[Line] = []
    for at, extent in enumerate(out):
        steps: list[Dim] = []
        for dims, there in ((a, left), (b, right)):
            place = at - (len(out) - len(dims))
            if place < 0 or dims[place].static_value == 1:
                steps.append(Dim.of(0))
            elif equal(dims[place], extent) is Proof.PROVED:
                steps.append(there.strides[place])
            else:
                return None
        if extent.static_value == 1:
            continue
        if lines and all(
            equal(before, own * extent) is Proof.PROVED for before, own in zip(lines[-1][1:], steps, strict=True)
        ):
            lines[-1] = (lines[-1][0] * extent, steps[0], steps[1])
        else:
            lines.append((extent, steps[0], steps[1]))
    return lines
