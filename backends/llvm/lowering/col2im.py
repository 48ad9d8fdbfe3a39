"""Lowerings of col2im and deform_conv, both by the elements of their results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, float64
from sardonyx.dialects.sx.col2im import Col2ImOp


@lowers(Col2ImOp)
def _col2im(plan: Plan, op: Col2ImOp) -> None:
    """Every element of the image adds up the cells of blocks that fall on it, in the order of the block's cells."""
    dims, out, dtype, body = dims_of(op.input), dims_of(op.output), dtype_of(op.input), plan.body
    rank = len(out) - 2
    wide = float64 if dtype.is_float else dtype
    for given in (op.image_shape, op.block_shape):
        plan.require_equal(dims_of(given)[0], Dim.of(rank), "a shape has {0} entries, not {1}")
    image, block = plan.read_ints(op.image_shape, rank), plan.read_ints(op.block_shape, rank)
    strides, dilations = op._ints("strides", rank, 1, 1), op._ints("dilations", rank, 1, 1)
    pads = op._ints("pads", 2 * rank, 0, 0)
    volume: IndexLike = 1
    columns: IndexLike = 1
    counts: list[SSAValue] = []
    small = 1 << 48
    for a in range(rank):
        fits = body.both(body.compare("sge", block[a], 1), body.compare("sle", block[a], small))
        body.require(fits, plan.failure("a block has {0} cells along an axis"), block[a])
        plan.bind(out[2 + a], image[a], f"entry {a} of image_shape")
        reach = body.plus(body.times(body.minus(block[a], 1), dilations[a]), 1)
        room = body.minus(body.plus(image[a], pads[a] + pads[rank + a]), reach)
        body.require(
            body.compare("sge", room, 0), plan.failure("no block of {0} cells fits {1} elements"), reach, image[a]
        )
        counts.append(body.plus(body.index_math("floordiv", room, strides[a]), 1))
        volume, columns = plan.product(volume, block[a]), plan.product(columns, counts[-1])
    have = plan.dim(dims[2])
    ok = body.compare("eq", have, columns)
    body.require(ok, plan.failure("there are {0} columns for {1} blocks"), have, columns)
    rest = body.index_math("floormod", plan.dim(dims[1]), volume)
    body.require(
        body.compare("eq", rest, 0), plan.failure("{0} doesn't divide {1} channels"), volume, plan.dim(dims[1])
    )
    plan.bind(out[0], plan.dim(dims[0]), "the batch")
    plan.bind(out[1], body.index_math("floordiv", plan.dim(dims[1]), volume), "the number of channels")
    kernel = plan.kernel("col2im")
    read, write = kernel.read(op.input), kernel.write(op.output)
    cells = [Number.index(kernel, kernel.outer(n)) for n in block]
    blocks = [Number.index(kernel, kernel.outer(n)) for n in counts]
    per_channel, per_cell = (Number.index(kernel, kernel.outer(n)) for n in (volume, columns))
    bounds: list[IndexLike] = [kernel.outer(plan.product(plan.dim(out[0]), plan.dim(out[1]))), *kernel.extents(out[2:])]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        first = Number.index(b, where[0]) * per_channel

        def walk(at: Body, a: int, cell: Number, column: Number, valid: Number | None, carried: SSAValue) -> SSAValue:
            if a == rank:
                value = Number.load(at, read, (first + cell) * per_cell + column, dtype, wide)
                total = Number(at, carried, wide)
                added = total | value if dtype == bool_ else total + value
                return added.value if valid is None else valid.where(added, total).value

            def step(inner: Body, o: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                own = Number.index(inner, o)
                place = Number.index(inner, where[1 + a]) + pads[a] - own * dilations[a]
                number = place // strides[a]
                fits = place.ge(0) & number.lt(blocks[a]) & (place - number * strides[a]).eq(0)
                clipped = number.max(0).min(blocks[a] - 1)  # a block there is, whatever is done with its element
                both = fits if valid is None else valid & fits
                return [walk(inner, a + 1, cell * cells[a] + own, column * blocks[a] + clipped, both, values[0])]

            return at.loop(cells[a].value, step, [("serial", carried)])[0]

        zero = Number.index(b, 0)
        total = Number(b, walk(b, 0, zero, zero, None, kernel.const(wide, 0)), wide)
        total.store(write, flat, dtype, b)

    nest(kernel, bounds, point)
    kernel.launch()
