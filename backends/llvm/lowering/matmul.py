"""Lowerings of matmul and gemm onto the contraction kernel, and onto dot products where one side is a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import FEW_ROWS, panel_width, tallest_rows, tile_columns
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import merge_dims
from sardonyx.backends.llvm.lowering.epilogue import Fused, Point, Stage, chain, region, result_of, takes_epilogue
from sardonyx.backends.llvm.lowering.pack import Source, pack_columns, pack_matrices, panel_block
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.lowering.region import broadcast_axes, inside
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp

ROWS_PER_BLOCK = 144
"""Rows of A that one chunk works on at most: a block of A stays in the second-level cache while B's panels pass by."""
CACHE_WAY, WAYS = 1 << 16, 5
"""Bytes after which addresses fall on the same lines of the second-level cache, and how many of a block's rows may."""
GATHERED_COLUMNS = (512, 1024)
"""The columns of a unit that copies its rows of A: the first where there would be too few units, else the second."""
SHORT = 32
"""Rows: below, and where the columns are not known, units are blocks of columns."""
PANELS_PER_BLOCK = 8
PACK_ROWS, PACK_COLUMNS, PACK_SIZE = 24, 192, 4096
"""From so many rows of A, columns of B (where there are several matrices) and elements of B on, B is packed by a
kernel: as it is, its rows lie far apart, often in the same sets of the cache."""
UNITS = 32
"""As many units of work as a product is cut into at least, if it is large enough."""
SMALLEST_UNIT = 1 << 19
"""Multiplications of a unit: some 10 µs."""


@dataclass(frozen=True)
class Matrix:
    """A matrix in a plan-level buffer, with its strides in elements; `packed` is the width of its panels, if any.

    `together` neighbouring columns of A and rows of B count as one: pairs of int16, quads of bytes, which may be
    `bounded` (see `kernel.contract`).
    """

    buffer: SSAValue
    row: Dim
    column: Dim
    packed: int | None = None
    together: int = 1
    bounded: bool = False


def contract(
    plan: Plan,
    name: str,
    dtype: DType,
    a: Matrix,
    b: Matrix,
    target: SSAValue,
    extents: tuple[Dim, Dim, Dim],
    batch: Sequence[tuple[SSAValue, SSAValue, SSAValue]] = (),
    stage: Stage | None = None,
    dots: bool = False,
) -> None:
    """Launch C = stage(A * B) over a batch; `extents` are m, n and k, `dtype` that of the operands.

    `batch` holds per batch axis its extent and the strides of A and B, as indices of the plan; C is contiguous. With
    `dots` every element is a dot product of its own, as where A or B is a vector.
    """
    m, n, k = extents
    kernel = plan.kernel(name)
    reads = [kernel.read_buffer(a.buffer), kernel.read_buffer(b.buffer)]
    write = kernel.write_buffer(target)
    point = None if stage is None else stage(kernel)
    sizes = [kernel.extent(d) for d in (m, n, k)]
    strides = [kernel.extent(d) for d in (a.row, a.column, b.row, b.column)]
    axes = [tuple(kernel.outer(v) for v in line) for line in batch]
    by_dot = dots or b.packed is None and (n.static_value == 1 or (m.static_value == 1 and b.column.static_value != 1))

    def tiles(
        at: Body,
        extents: Sequence[SSAValue],
        a_at: IndexLike,
        b_at: IndexLike,
        row: IndexLike,
        column: IndexLike,
        least: int = 0,
        gathered: int = 0,
    ) -> None:
        """A block of the result that begins at a row (of all matrices of the batch) and column."""
        offsets = [at.index(o) for o in (a_at, b_at, at.plus(at.times(row, sizes[1]), column))]
        made = region(at, dtype, point, row, column)
        pairs, quads = b.together == 2, b.together == 4
        at.add(ContractOp((reads[0], reads[1], write), extents, offsets, [*strides, sizes[1]], packed=b.packed,
                          epilogue=made, least_rows=least, pairs=pairs, quads=quads,
                          bounded=b.bounded, gathered=gathered))  # fmt: skip

    def product(at: Body, a_at: IndexLike, b_at: IndexLike, row: IndexLike) -> None:
        if by_dot:
            _dots(at, dtype, reads, write, sizes, strides, (a_at, b_at), row, point)
        elif axes:  # the batch is what is cut into chunks
            tiles(at, sizes, a_at, b_at, row, 0)
        else:
            grid(at, a_at, b_at)

    def grid(at: Body, a_at: IndexLike, b_at: IndexLike) -> None:
        """One matrix, cut into blocks of rows and columns."""
        tall = tallest_rows(plan.target, compute_dtype(dtype).bits, b.packed)
        copies = b.packed is not None and b.together == 1 and a.column.static_value == 1
        bits = compute_dtype(dtype).bits
        width = None if b.packed is None else tile_columns(plan.target, bits, m.static_value, b.packed)
        shape = cut(m.static_value, n.static_value, k.static_value, width, tall, dtype.bits // 8, copies)
        across = at.index_math("ceildiv", sizes[1], shape.columns) if shape.columns else at.index(1)
        height: IndexLike = shape.rows
        if m.static_value is None:  # blocks of about one size
            blocks = plan.body.index_math("ceildiv", plan.dim(m), shape.rows)
            count = plan.body.index_math("ceildiv", plan.dim(m), tall)
            each = plan.body.index_math("ceildiv", count, plan.body.index_math("max", blocks, 1))
            height = kernel.outer(plan.body.index_math("max", plan.body.times(each, tall), tall))
        down = at.index_math("ceildiv", sizes[0], height) if shape.rows else at.index(1)

        def unit(inner: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            # Blocks of columns follow each other, so that a thread finds its rows of A in its cache.
            row = inner.index_math("floordiv", number, across) if shape.columns and shape.rows else number
            column = inner.minus(number, inner.times(row, across)) if shape.columns and shape.rows else number
            top, rows = _block(inner, row, height, sizes[0], m)
            left, columns = _block(inner, column, shape.columns, sizes[1], n)
            tiles(
                inner,
                [rows, columns, sizes[2]],
                inner.plus(a_at, inner.times(top, strides[0])),
                inner.plus(b_at, inner.times(left, sizes[2] if b.packed else strides[3])),
                top,
                left,
                shape.least,
                shape.gathered,
            )

        if not shape.rows and not shape.columns:
            tiles(at, sizes, a_at, b_at, 0, 0, m.static_value or 0)
        else:
            at.loop(at.times(across, down), unit, parallel=True)

    def level(at: Body, depth: int, a_at: IndexLike, b_at: IndexLike, number: IndexLike) -> None:
        if depth == len(axes):
            product(at, a_at, b_at, at.times(number, sizes[0]))
            return
        extent, a_step, b_step = axes[depth]

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            a_next, b_next = inner.times(index, a_step), inner.times(index, b_step)
            following = inner.plus(inner.times(number, extent), index)
            level(inner, depth + 1, inner.plus(a_at, a_next), inner.plus(b_at, b_next), following)

        at.loop(extent, body, parallel=depth == 0)

    level(kernel, 0, 0, 0, 0)
    kernel.launch()


def _block(at: Body, number: SSAValue, size: IndexLike, extent: SSAValue, dim: Dim) -> tuple[IndexLike, SSAValue]:
    """The start and length of a block; all of the extent where size is 0."""
    if size == 0:
        return 0, extent
    start = at.times(number, size)
    if isinstance(size, int) and dim.static_value is not None and dim.static_value % size == 0:
        return start, at.index(size)
    return start, at.index_math("min", size, at.minus(extent, start))


@dataclass(frozen=True)
class Cut:
    """How a product is cut into units of work: rows and columns of a block, 0 for all of them. No block has less than
    `least` rows. Where `gathered` is not 0, a unit copies its rows of A, which are so many at most."""

    rows: int
    columns: int
    least: int = 0
    gathered: int = 0


def cut(
    m: int | None, n: int | None, k: int | None, columns: int | None, tall: int, bytes_: int, copies: bool = False
) -> Cut:
    """The grid follows from the shape alone; extents that only the run knows are None. A tile has `tall` rows and, of a
    packed B, so many `columns`, an element of A `bytes_`. Where m is not known, the rows are those of a block at
    most. `copies`: A's rows may be copied."""
    width = columns or 16
    panels = None if n is None else max(1, -(-n // width))
    most = _most_rows(k, tall, bytes_)
    gathered = _gathered_rows(m, n, k, most, tall, bytes_) if copies else 0
    most = gathered or most
    if m is None:
        across = 1 if panels is None else min(panels, max(UNITS // 2, (n or 0) * (k or 0) // SMALLEST_UNIT))
        columns = -(-(panels or 1) // across) * width
        return Cut(most, columns if n is not None and columns < n else 0)
    # Blocks of whole tiles; only the last one may have tiles of fewer rows.
    down = max(1, -(-m // most))
    count = -(-m // tall)
    rows = max(1, -(-count // down)) * tall
    down = max(1, -(-m // rows))
    least = m - (down - 1) * rows
    if n is None or panels is None:
        return Cut(rows if down > 1 else 0, PANELS_PER_BLOCK * width if m < SHORT else 0, least)
    # Enough units for all threads to end at about the same time, none of them too small to be worth it.
    work = max(m, 4) * n * (k or 512)  # few rows wait for B
    across = -(-UNITS // down)
    if gathered:  # each unit copies its rows of A, so it is to have many columns
        across = max(n // GATHERED_COLUMNS[1], min(n // GATHERED_COLUMNS[0], UNITS // 2 // down))
    across = max(1, min(panels, across + down * across % 2, work // (down * SMALLEST_UNIT)))
    columns = -(-panels // across) * width
    return Cut(rows if down > 1 else 0, columns if columns < n else 0, least, gathered)


def _most_rows(k: int | None, tall: int, bytes_: int) -> int:
    """The rows of a block at most: less where they lie so far apart that they would take each other's place in the
    cache."""
    apart = CACHE_WAY // gcd(CACHE_WAY, k * bytes_) if k else CACHE_WAY
    return max(tall, min(ROWS_PER_BLOCK, max(ROWS_PER_BLOCK // 3, WAYS * apart)) // tall * tall)


def _gathered_rows(m: int | None, n: int | None, k: int | None, most: int, tall: int, bytes_: int) -> int:
    """The rows of a block whose rows are copied to lie close together, 0 where that does not pay: it does where they
    would be few otherwise, and many columns use the copy. A block of k of these rows is as large as for float32."""
    rows = ROWS_PER_BLOCK * 4 // max(bytes_, 4) // tall * tall
    pays = None not in (m, n, k) and (m or 0) > most and (n or 0) >= GATHERED_COLUMNS[1]
    return rows if pays and most <= rows // 2 else 0


def panels_of(plan: Plan, value: SSAValue, dtype: DType, m: Dim, transpose: bool = False) -> Matrix | None:
    """The right-hand matrices of a tensor in the panels that the tiles read, for products of m rows each: packed now
    for a constant, else by a kernel where that pays. 16-bit floats are widened, but where few rows wait for a constant
    to come from memory. None where B is better read as it is.
    """
    dims = dims_of(value)
    k, n = (dims[-1], dims[-2]) if transpose else (dims[-2], dims[-1])
    wide = compute_dtype(dtype)
    width = panel_width(plan.target, wide.bits, m.static_value, n.static_value)
    if isinstance(value.owner, ConstantOp):
        array = value.owner.array()
        array = array.swapaxes(-1, -2) if transpose else array
        if not array.size or dtype.bits < 16:
            return None
        few = m.static_value is not None and m.static_value <= FEW_ROWS
        held = dtype if few else wide
        array = array.astype(held.numpy, copy=False).reshape(-1, *array.shape[-2:])
        packed = pack_columns(array, width)
        return Matrix(plan.constant_array(packed, held), Dim.of(width), Dim.of(1), width)
    if dtype.bits < 16 or not _pays(dtype, m, n, k, len(dims) > 2, transpose):
        return None
    strides = (Dim.of(1), k) if transpose else (n, Dim.of(1))
    count = Dim.product(dims[:-2])
    block = plan.count([k, n])
    source = Source(plan.buffer(value), block, plan.dim(strides[0]), plan.dim(strides[1]), wide)
    return Matrix(pack_matrices(plan, source, dtype, (count, k, n), width), Dim.of(width), Dim.of(1), width)


def _pays(dtype: DType, m: Dim, n: Dim, k: Dim, batched: bool, transpose: bool) -> bool:
    """Whether B, which is not known now, is worth a pass over it before the product."""
    rows, columns, depth = m.static_value, n.static_value, k.static_value
    if transpose or dtype.bits == 16:
        return rows is None or rows > 4
    if rows is not None and rows < PACK_ROWS:
        return False
    if batched:  # the rows of a narrow matrix are close together as they are
        return columns is None or columns >= PACK_COLUMNS
    return None in (columns, depth) or (columns or 0) * (depth or 0) >= PACK_SIZE


def widened(plan: Plan, value: SSAValue, dtype: DType) -> SSAValue:
    """The buffer of a tensor in its compute dtype."""
    wide = compute_dtype(dtype)
    if wide == dtype:
        return plan.buffer(value)
    target = plan.workspace(wide, [plan.dim(d) for d in dims_of(value)])
    kernel = plan.kernel("widen")
    read, write = kernel.read(value), kernel.write_buffer(target)

    def element(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.convert(b.load(read, at), dtype, wide), write, at)

    kernel.loop(kernel.outer(plan.count(dims_of(value))), element, vector=True, parallel=True)
    kernel.launch()
    return target


def _dots(
    at: Body,
    dtype: DType,
    reads: Sequence[SSAValue],
    write: SSAValue,
    sizes: Sequence[SSAValue],
    strides: Sequence[SSAValue],
    starts: tuple[IndexLike, IndexLike],
    first: IndexLike,
    point: Point | None,
) -> None:
    """Every element as a dot product over k, widened along k; the block begins at row `first` of the result."""
    wide = compute_dtype(dtype)

    def row(outer: Body, m: SSAValue, _: Sequence[SSAValue]) -> None:
        a_start = outer.plus(starts[0], outer.times(m, strides[0]))
        number = outer.plus(first, m)

        def column(inner: Body, n: SSAValue, _: Sequence[SSAValue]) -> None:
            b_start = inner.plus(starts[1], inner.times(n, strides[3]))

            def term(b: Body, k: SSAValue, sums: Sequence[SSAValue]) -> list[SSAValue]:
                x = b.convert(b.load(reads[0], b.plus(a_start, b.times(k, strides[1]))), dtype, wide)
                y = b.convert(b.load(reads[1], b.plus(b_start, b.times(k, strides[2]))), dtype, wide)
                return [b.arithmetic("add", wide, sums[0], b.arithmetic("mul", wide, x, y))]

            (total,) = inner.loop(sizes[2], term, [("add", inner.const(wide, 0))], vector=True)
            value = inner.convert(total, wide, dtype) if point is None else point(inner, total, number, n)
            inner.store(value, write, inner.plus(inner.times(number, sizes[1]), n))

        outer.loop(sizes[1], column)

    at.loop(sizes[0], row)


@takes_epilogue(MatMulOp, columns=lambda op: 1 if min(len(dims_of(op.lhs)), len(dims_of(op.rhs))) > 1 else 0)
def _matmul(plan: Plan, op: MatMulOp, fused: Fused | None) -> None:
    a, b = dims_of(op.lhs), dims_of(op.rhs)
    one = Dim.of(1)
    a = a if len(a) > 1 else (one, *a)
    b = b if len(b) > 1 else (*b, one)
    plan.require_equal(a[-1], b[-2], "matmul: the inner extents {0} and {1} differ")
    m, k, n = a[-2], a[-1], b[-1]
    dtype = dtype_of(op.output)
    stage = chain(dtype, None, fused)
    if op.lhs in plan.strided or op.rhs in plan.strided:
        from sardonyx.backends.llvm.lowering.matmul_strided import lower_strided

        if lower_strided(plan, op, result_of(op, fused), stage):
            return
    together = all(d.static_value == 1 for d in b[:-2])  # A's matrices are one long matrix
    rows = Dim.product(a[:-1]) if together else m
    panels = None if n.static_value == 1 or len(dims_of(op.rhs)) < 2 else panels_of(plan, op.rhs, dtype, rows)
    right = panels or Matrix(plan.buffer(op.rhs), n, one)
    left = Matrix(plan.buffer(op.lhs) if panels is None else widened(plan, op.lhs, dtype), k, one)
    target = plan.new_buffer(result_of(op, fused))
    if together:
        contract(plan, "matmul", dtype, left, right, target, (rows, n, k), stage=stage)
        return
    lead = dims_of(op.output)[: max(len(a), len(b)) - 2]
    extents, lines = merge_dims(lead, [a[:-2], b[:-2]])
    blocks = [plan.count([m, k]), panel_block(plan, k, n, panels.packed or 1) if panels else plan.count([k, n])]
    batch: list[tuple[SSAValue, SSAValue, SSAValue]] = []
    for at, dims in enumerate(extents):
        steps = [batch_stride(plan, line[at], block) for line, block in zip(lines, blocks, strict=True)]
        batch.append((plan.count(dims), steps[0], steps[1]))
    contract(plan, "matmul", dtype, left, right, target, (m, n, k), batch, stage)


def batch_stride(plan: Plan, line: Any, block: SSAValue) -> SSAValue:
    """The stride of one operand along a merged batch axis (see `merge_dims`)."""
    mode, extent, below = line
    if mode == "one":
        return plan.body.index(0)
    stride = plan.product(plan.count(below), block)
    if mode == "maybe":
        return plan.body.select(plan.body.compare("eq", plan.dim(extent), 1), plan.body.index(0), stride)
    return plan.body.index(stride)


@takes_epilogue(GemmOp)
def _gemm(plan: Plan, op: GemmOp, fused: Fused | None) -> None:
    a, b = dims_of(op.a), dims_of(op.b)
    one = Dim.of(1)
    dtype = dtype_of(op.output)
    trans_a, trans_b = op.attr("transA"), op.attr("transB")
    inner = a[0] if trans_a else a[1]
    plan.require_equal(inner, b[1] if trans_b else b[0], "gemm: the inner extents {0} and {1} differ")
    m, n = dims_of(op.output)
    panels = None if n.static_value == 1 else panels_of(plan, op.b, dtype, m, trans_b)
    right = panels or (Matrix(plan.buffer(op.b), one, inner) if trans_b else Matrix(plan.buffer(op.b), n, one))
    source = plan.buffer(op.a) if panels is None else widened(plan, op.a, dtype)
    left = Matrix(source, one, a[1]) if trans_a else Matrix(source, a[1], one)
    stage = chain(dtype, _scale_and_add(plan, op), fused)
    contract(plan, "gemm", dtype, left, right, plan.new_buffer(result_of(op, fused)), (m, n, inner), stage=stage)


def _scale_and_add(plan: Plan, op: GemmOp) -> Stage | None:
    """alpha * sum + beta * C in the compute dtype; None where that is the sum."""
    alpha, beta, c = op.attr("alpha"), op.attr("beta"), op.c
    if alpha == 1 and c is None:
        return None
    dtype, out = dtype_of(op.output), dims_of(op.output)
    wide = compute_dtype(dtype)
    axes = [] if c is None else broadcast_axes(plan, dims_of(c), out)

    def stage(kernel: Kernel) -> Point:
        added = None if c is None else kernel.read(c)
        strides = [inside(plan, kernel, a.source) for a in axes]

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            value = total if alpha == 1 else b.arithmetic("mul", wide, total, b.const(wide, alpha))
            if added is None:
                return value
            there = b.plus(b.times(row, strides[0]), b.times(column, strides[1]))
            term = b.convert(b.load(added, there), dtype, wide)
            if beta != 1:
                term = b.arithmetic("mul", wide, term, b.const(wide, beta))
            return b.arithmetic("add", wide, value, term)

        return point

    return stage
