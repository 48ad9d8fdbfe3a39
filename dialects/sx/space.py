"""Blocks of space and channels: `sx.depth_to_space`, `sx.space_to_depth`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides
from sardonyx.dialects.dtypes import ANY, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked

MODES = ("DCR", "CRD")


class BlockOp(SxOp):
    """Moves blocks of `blocksize` x `blocksize` between axis 1 (channels) and the axes 2 and 3 of [N, C, H, W].

    (C1) The dtype is one of `DTYPES`. (C2) The rank is 4. (C3) `blocksize` is positive, `mode` 'DCR' or 'CRD'.
    (C4) The extents that shrink are multiples of what divides them.
    """

    data = operand_def()
    blocksize = prop_def(IntegerAttr)
    mode = opt_prop_def(StringAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"mode": "DCR"}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def _operand(self) -> tuple[DType, tuple[Dim, ...], int]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        dims = tuple(fresh_dim() for _ in range(4)) if is_unranked(self.data) else dims_of(self.data)
        if len(dims) != 4:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, not 4")
        block = self.attr("blocksize")
        if block <= 0 or self.attr("mode") not in MODES:
            raise self.fail(f"(C3) blocksize is {block} and mode '{self.attr('mode')}'")
        return dtype, dims, block

    def _part(self, extent: Dim, parts: int, what: str) -> Dim:
        proof = divides(parts, extent)
        if proof is Proof.REFUTED:
            raise self.fail(f"(C4) {what} {extent} is no multiple of {parts}")
        # A run checks that it is a multiple, so the quotient is exact wherever the op is defined.
        return extent // parts

    def _check_run(self, data: Array, height: int, width: int, channels: int) -> None:
        if data.ndim != 4 or data.shape[1] % channels or data.shape[2] % height or data.shape[3] % width:
            raise refuse(self, f"shape {list(data.shape)} has no blocks of {self.attr('blocksize')}")


@irdl_op_definition
class DepthToSpaceOp(BlockOp):
    """Channels become blocks of space. `DCR`: the block's row and column lead in the channels; `CRD`: they come last.

    The constraints are those of `BlockOp`.
    """

    name = "sx.depth_to_space"
    ONNX: ClassVar = OnnxForm("DepthToSpace", since=11)

    def infer(self) -> Sequence[Attribute]:
        dtype, (n, c, h, w), block = self._operand()
        return [tensor_type(dtype, [n, self._part(c, block * block, "the number of channels"), h * block, w * block])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = slots(arrays)
        block = self.attr("blocksize")
        self._check_run(data, 1, 1, block * block)
        n, c, h, w = data.shape
        c //= block * block
        if self.attr("mode") == "DCR":
            parts = data.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            parts = data.reshape(n, c, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
        return [parts.reshape(n, c, h * block, w * block)]


@irdl_op_definition
class SpaceToDepthOp(BlockOp):
    """Blocks of space become channels: the reverse of `sx.depth_to_space` with the same `mode`.

    The constraints are those of `BlockOp`.
    """

    name = "sx.space_to_depth"
    ONNX: ClassVar = OnnxForm("SpaceToDepth", since=1)

    def infer(self) -> Sequence[Attribute]:
        dtype, (n, c, h, w), block = self._operand()
        height, width = self._part(h, block, "the height"), self._part(w, block, "the width")
        return [tensor_type(dtype, [n, c * (block * block), height, width])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = slots(arrays)
        block = self.attr("blocksize")
        self._check_run(data, block, block, 1)
        n, c, h, w = data.shape
        parts = data.reshape(n, c, h // block, block, w // block, block)
        order = (0, 3, 5, 1, 2, 4) if self.attr("mode") == "DCR" else (0, 1, 3, 5, 2, 4)
        return [parts.transpose(order).reshape(n, c * block * block, h // block, w // block)]
