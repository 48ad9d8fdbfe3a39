"""`kernel.contract`: the register-tiled contraction that matrix products, convolutions and attention share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, UnitAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_region_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from sardonyx.dialects.kernel.ops import INDEX, BufferType, YieldOp

MOST_TURNED = 1024
"""The rows of a turned result at most: they lie on the stack."""


@irdl_op_definition
class ContractOp(IRDLOperation):
    """C[m, n] = epilogue(sum over k of A[m, k] * B[k, n], m, n), over flat buffers, in register tiles.

    All operands are `index` except the buffers. `extents` are m, n and k, `offsets` those of A, B and C, `strides`
    (a_m, a_k, b_k, b_n, c_m), all in elements; C's n-stride is 1. Element (m, k) of A lies at
    `a_offset + m * a_m + k * a_k`, likewise (k, n) of B and (m, n) of C. K of 0 gives zeros. Fastest where a_k is 1 and
    B is packed. C must not overlap A or B.

    **Rows as a pair** (`rows`): with (first, inner, a_outer, c_outer), row m stands for the pair
    (mo, mi) = divmod(first + m, inner); it lies in A at `a_offset + mo * a_outer + mi * a_m`, in C at
    `c_offset + mo * c_outer + mi * c_m`. Tiles run over the ends of inner rows. A convolution's output pixels of one
    image are (oy, ox) with inner = the output's width, a_outer = stride_h * padded row, a_m = stride_w * channels. The
    number of rows stays `m`, so a block of them is `first` and a smaller `m`.

    **K as segments** (`segments`): pairs (count, a_stride), outermost first. k counts inside one segment; from segment
    to segment A moves on by `a_stride`, B runs on: its row number is `(s0 * count1 + s1) * k + kk`. A convolution over
    padded channels-last images has one level, (kernel rows, dilation_h * padded row), and k = kernel width * channels;
    one that is dilated along the width has two, the second (kernel width, dilation_w * channels), and k = channels.

    **Clipped segments** (`clipped` = level, `clip` = (stride, before, step, size)): for a row whose outer number is mo,
    segment s of that level lies at `mo * stride - before + s * step`; where that is below 0 or not below `size`, A
    holds zeros, and the segment may be left out. So it is with the rows of a window in a convolution's padding.

    **Turned C** (`turned` = R): C's m-stride is 1, and `c_m` the stride of its columns: element (m, n) of C lies at
    `c_offset + n * c_m + m`, with pairs of rows too (`c_outer` is not looked at). m is at most R. A panel's sums go
    through the epilogue into memory on the stack first, and into their order from there.

    **Packed B** (`packed` = W): B lies in panels of W columns, [ceil(n / W)][all of k][W], the last one filled up with
    zeros; its strides are not looked at, its offset is that of the first panel. W is a multiple of the lanes of a sum
    (`panel_width` in codegen/contract_shape.py gives the best one).

    `accumulate` starts the sums from what C holds. `least_rows` promises that m is at least so much, which spares code
    for small remainders of rows.

    **Gathered A** (`gathered` = R): each block of k of A's rows, of which there are R at most, is copied first to where
    they lie close together. That pays where A's rows lie so that they would take each other's place in a cache, and
    many columns use the copy. B is packed and a_k is 1.

    **Pairs** (`pairs`): A and B hold int16, or pairs of them as int32, and C int32. k counts pairs of neighbouring
    elements, as do the offsets and strides of A and B: B lies in panels [ceil(n / W)][k][W][2]. A step adds both
    products of a pair, in one instruction where the target has one. Sums wrap around.

    **Quads** (`quads`): likewise four neighbouring bytes at a time, read as unsigned in A and as signed in B. `bounded`
    promises that the products of a quad's first two bytes add up to an int16, whatever A holds, and those of its last
    two.

    **Types.** Integers wrap around; i1 multiplies by `and` and adds by `or`; 16-bit floats are summed in float32, and
    C then holds float32 or that 16-bit type (rounded once).

    **Epilogue.** A region of one block (sum, m, n) that yields what is stored, of C's element type; `sum` has the type
    in which sums are kept (float32 for 16-bit floats), m and n are `index` and count from 0 within this op: in a block
    of a larger product, add the block's start. The body is scalar (`arith`, `kernel.math`, `kernel.load`, `kernel.if`
    on conditions that do not depend on n; no stores, loops or requirements) and is widened over the lanes; it may use
    any value from outside, and load C's own old element only by way of `accumulate`. Loads of lanes that are no columns
    are masked off, so that nothing is read beyond the columns; a load at an offset that grows with n by 1 is one vector
    load, one that does not depend on n a scalar load. Light bodies work on the accumulators, heavy ones on a copy of
    the tile in the first-level cache.

    (C1) Three extents, three offsets, five strides; `rows` has none or four operands, `segments` pairs. (C2) An
    epilogue has the arguments above and yields one value of C's element type. (C3) With `pairs` or `quads`, of which
    there is one at most, the types are those. (C4) `gathered` goes with `packed` alone. (C5) A turned C has at most
    1,024 rows, and is not accumulated. (C6) `clip` has four operands with `clipped`, a level of the segments, and rows
    that are pairs; else none.
    """

    name = "kernel.contract"
    a = operand_def(BufferType)
    b = operand_def(BufferType)
    c = operand_def(BufferType)
    extents = var_operand_def(INDEX)
    offsets = var_operand_def(INDEX)
    strides = var_operand_def(INDEX)
    rows = var_operand_def(INDEX)
    segments = var_operand_def(INDEX)
    clip = var_operand_def(INDEX)
    clipped = opt_prop_def(IntegerAttr)
    accumulate = opt_prop_def(UnitAttr)
    packed = opt_prop_def(IntegerAttr)
    least_rows = opt_prop_def(IntegerAttr)
    pairs = opt_prop_def(UnitAttr)
    quads = opt_prop_def(UnitAttr)
    bounded = opt_prop_def(UnitAttr)
    gathered = opt_prop_def(IntegerAttr)
    turned = opt_prop_def(IntegerAttr)
    epilogue = opt_region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    EXTENTS: ClassVar[tuple[str, ...]] = ("m", "n", "k")
    STRIDES: ClassVar[tuple[str, ...]] = ("a_m", "a_k", "b_k", "b_n", "c_m")

    def __init__(
        self,
        buffers: tuple[SSAValue, SSAValue, SSAValue],
        extents: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        accumulate: bool = False,
        packed: int | None = None,
        *,
        rows: Sequence[SSAValue] = (),
        segments: Sequence[SSAValue] = (),
        epilogue: Region | None = None,
        least_rows: int = 0,
        pairs: bool = False,
        quads: bool = False,
        bounded: bool = False,
        gathered: int = 0,
        turned: int | None = None,
        clip: Sequence[SSAValue] = (),
        clipped: int | None = None,
    ) -> None:
        super().__init__(
            operands=[*buffers, list(extents), list(offsets), list(strides), list(rows), list(segments), list(clip)],
            properties={
                "accumulate": UnitAttr() if accumulate else None,
                "packed": None if packed is None else IntegerAttr(packed, i64),
                "least_rows": IntegerAttr(least_rows, i64) if least_rows else None,
                "pairs": UnitAttr() if pairs else None,
                "quads": UnitAttr() if quads else None,
                "bounded": UnitAttr() if bounded else None,
                "gathered": IntegerAttr(gathered, i64) if gathered else None,
                "clipped": None if clipped is None else IntegerAttr(clipped, i64),
                "turned": None if turned is None else IntegerAttr(turned, i64),
            },
            regions=[[] if epilogue is None else [epilogue]],
        )

    def verify_(self) -> None:
        counts = (len(self.extents), len(self.offsets), len(self.strides))
        if counts != (3, 3, 5) or len(self.rows) not in (0, 4) or len(self.segments) % 2:
            raise VerifyException(
                "(C1) a contraction has 3 extents, 3 offsets, 5 strides, 0 or 4 rows, and segments in pairs"
            )
        elements = [buffer.type.element for buffer in (self.a, self.b)]  # pyright: ignore[reportAttributeAccessIssue]
        if self.pairs is not None and elements not in ([IntegerType(16)] * 2, [IntegerType(32)] * 2):
            raise VerifyException("(C3) the operands of a contraction of pairs hold integers of 16 bits, or 32")
        if self.quads is not None and (self.pairs is not None or elements != [IntegerType(8)] * 2):
            raise VerifyException("(C3) the operands of a contraction of quads hold integers of 8 bits")
        if self.bounded is not None and self.quads is None:
            raise VerifyException("(C3) only quads are bounded")
        others = (self.rows, self.segments, self.pairs is not None, self.quads is not None, self.turned is not None)
        if self.gathered is not None and (self.packed is None or any(others)):
            raise VerifyException("(C4) a contraction that gathers A has a packed B, no rows, segments, pairs or quads")
        if self.turned is not None and (self.accumulate is not None or not 0 < self.turned.value.data <= MOST_TURNED):
            raise VerifyException(f"(C5) a turned result has at most {MOST_TURNED} rows, and is not accumulated")
        level = -1 if self.clipped is None else self.clipped.value.data
        if len(self.clip) != 4 * (self.clipped is not None) or (
            self.clipped is not None and not (0 <= level < len(self.segments) // 2 and self.rows)
        ):
            raise VerifyException("(C6) clipped segments have a level, four operands, and rows that are pairs")
        if self.epilogue is None:
            return
        block = self.epilogue.block
        types = [a.type for a in block.args]
        wanted = self.c.type.element  # pyright: ignore[reportAttributeAccessIssue]
        last = block.last_op
        indices = len(types) == 3 and all(isinstance(t, IndexType) for t in types[1:])
        if not indices or not isinstance(last, YieldOp) or [v.type for v in last.values] != [wanted]:
            raise VerifyException(f"(C2) an epilogue has the arguments (sum, index, index) and yields one {wanted}")


def epilogue_block(total: Attribute) -> tuple[Region, Block]:
    """The region of an epilogue with its empty block (sum, m, n); `total` is the type of a sum."""
    block = Block(arg_types=[total, INDEX, INDEX])
    return Region(block), block
