"""What products of 8-bit integers share: zero points of rows and columns, and loops over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.lowering.region import broadcast_axes, inside
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import int16
from sardonyx.dialects.sx.quantized import COLUMNS, ROWS


def line_reader(
    plan: Plan, kernel: Kernel, zero_point: SSAValue | None, dims: Sequence[Dim], axis: int
) -> Callable[[Body, Sequence[IndexLike]], SSAValue] | None:
    """Reads the zero point, as int16, of a line of an operand: a row (of A) or a column (of B). `dims` are the
    operand's without the axis that a line runs along."""
    if zero_point is None:
        return None
    own = list(dims_of(zero_point))
    if len(own) > 1:
        del own[ROWS + COLUMNS - axis]
    buffer, dtype = kernel.read(zero_point), dtype_of(zero_point)
    strides = [inside(plan, kernel, a.source) for a in broadcast_axes(plan, own, dims)]

    def read(b: Body, indices: Sequence[IndexLike]) -> SSAValue:
        offset: IndexLike = 0
        for index, stride in zip(indices, strides, strict=True):
            offset = b.plus(offset, b.times(index, stride))
        return b.convert(b.load(buffer, offset), dtype, int16)

    return read


def over_rows(body: Body, extents: Sequence[SSAValue], work: Callable[[Body, list[SSAValue], IndexLike], None]) -> None:
    """Loops over a shape, the first one parallel: `work(body, indices, flat index)`."""

    def level(at: Body, depth: int, indices: list[SSAValue], flat: IndexLike) -> None:
        if depth == len(extents):
            work(at, indices, flat)
            return

        def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            level(inner, depth + 1, [*indices, index], inner.plus(inner.times(flat, extents[depth]), index))

        at.loop(extents[depth], step, parallel=depth == 0)

    level(body, 0, [], 0)
