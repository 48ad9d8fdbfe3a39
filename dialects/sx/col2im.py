"""Columns put back into an image: `sx.col2im`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides, equal
from sardonyx.dialects.dtypes import ALL, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    refuse,
    slots,
)
from sardonyx.dialects.sx.numeric import double, is_float, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked
from sardonyx.dialects.values import known_ints


@irdl_op_definition
class Col2ImOp(SxOp):
    """Blocks of an image from their columns [N, C * block elements, blocks]: what overlaps is added up.

    The image [N, C, *image_shape*] is the inverse of cutting blocks of `block_shape` out of it by `strides`,
    `dilations` and `pads`. Floats add in float64 and round once, integers wrap around, bools are `or`.

    (C1) The dtype is one of `DTYPES`; `image_shape` and `block_shape` are vectors of int64 of one length. (C2) The
    operand has rank 3. (C3) Its second extent is a multiple of the block's elements, its third the number of blocks.
    (C4) Strides, dilations and extents are positive, pads not negative, one (for pads two) per spatial axis. (C5) A
    block fits into the padded image.
    """

    name = "sx.col2im"
    input = operand_def()
    image_shape = operand_def()
    block_shape = operand_def()
    dilations = opt_prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Col2Im", since=18)
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def _ints(self, name: str, count: int, default: int, least: int) -> tuple[int, ...]:
        given = self.attr(name)
        found = (default,) * count if given is None else tuple(given)
        if len(found) != count or any(v < least for v in found):
            raise self.fail(f"(C4) {name} {list(found)}: {count} integers of at least {least} are needed")
        return found

    def _blocks(self, image: Sequence[int], block: Sequence[int]) -> list[int]:
        """The number of blocks along each spatial axis; not positive where none fits."""
        rank = len(image)
        strides, dilations = self._ints("strides", rank, 1, 1), self._ints("dilations", rank, 1, 1)
        pads = self._ints("pads", 2 * rank, 0, 0)
        return [
            (size + pads[i] + pads[rank + i] - (dilations[i] * (block[i] - 1) + 1)) // strides[i] + 1
            for i, size in enumerate(image)
        ]

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        counts = [check_vector(self, v, "(C1)", "a shape") for v in (self.image_shape, self.block_shape)]
        if None not in counts and counts[0] != counts[1]:
            raise self.fail(f"(C1) image_shape has {counts[0]} entries, block_shape {counts[1]}")
        dims = None if is_unranked(self.input) else dims_of(self.input)
        if dims is not None and len(dims) != 3:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, not 3")
        rank = counts[0] if counts[0] is not None else counts[1]
        if rank is None:
            return [unranked_type(dtype)]
        block, image = known_ints(self.block_shape), known_ints(self.image_shape)
        if block is not None and min(block, default=1) < 1:
            raise self.fail(f"(C4) block_shape {list(block)} is not positive")
        self._blocks([0] * rank, [1] * rank)  # checks strides, dilations and pads
        if block is not None and image is not None:
            blocks = self._blocks(image, block)
            if min(blocks, default=1) < 1:
                raise self.fail(f"(C5) a block {list(block)} doesn't fit into the image {list(image)}")
            if dims is not None and equal(dims[2], math.prod(blocks)) is Proof.REFUTED:
                raise self.fail(f"(C3) {dims[2]} columns for {math.prod(blocks)} blocks")
        channels = None
        if block is not None and dims is not None:
            if divides(math.prod(block), dims[1]) is Proof.REFUTED:
                raise self.fail(f"(C3) {format_dims(dims)}: {math.prod(block)} doesn't divide {dims[1]}")
            channels = dims[1] // math.prod(block)
        sizes = [fresh_dim() if d is None else d for d in elements(self.image_shape, rank)]
        out: list[Dim] = [fresh_dim() if dims is None else dims[0], fresh_dim() if channels is None else channels]
        check_allocation(self, dtype, [*out, *sizes], "(C4)")
        return [tensor_type(dtype, [*out, *sizes])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, image_shape, block_shape = slots(arrays)
        image, block = image_shape.tolist(), block_shape.tolist()
        if x.ndim != 3 or len(image) != len(block) or min(block, default=1) < 1 or min(image, default=1) < 0:
            raise refuse(self, f"columns {list(x.shape)}, image {image} and block {block} don't fit")
        blocks, rank = self._blocks(image, block), len(image)
        volume = math.prod(block)
        if min(blocks, default=1) < 1 or x.shape[1] % volume or x.shape[2] != math.prod(blocks):
            raise refuse(self, f"columns {list(x.shape)} are not those of an image {image} in blocks {block}")
        shape = (x.shape[0], x.shape[1] // volume, *image)
        check_run_allocation(self, x, shape)
        strides, dilations = self._ints("strides", rank, 1, 1), self._ints("dilations", rank, 1, 1)
        pads = self._ints("pads", 2 * rank, 0, 0)
        padded = [n + pads[i] + pads[rank + i] for i, n in enumerate(image)]
        check_run_allocation(self, np.dtype(np.float64), [*shape[:2], *padded])
        columns = (double(x) if is_float(x) else x).reshape(*shape[:2], *block, *blocks)
        out = np.zeros([*shape[:2], *padded], columns.dtype)
        for offset in np.ndindex(*block):
            at = tuple(
                slice(o * d, o * d + (n - 1) * s + 1, s)
                for o, d, n, s in zip(offset, dilations, blocks, strides, strict=True)
            )
            out[(slice(None), slice(None), *at)] += columns[(slice(None), slice(None), *offset)]
        inside = tuple(slice(pads[i], pads[i] + n) for i, n in enumerate(image))
        found = out[(slice(None), slice(None), *inside)]
        return [narrow(found, x.dtype) if is_float(x) else np.ascontiguousarray(found)]
