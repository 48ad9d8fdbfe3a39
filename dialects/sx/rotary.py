"""Positions stated by turning pairs of elements: `sx.rotary_embedding`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, equal, less_equal
from sardonyx.dialects.dtypes import DType, bfloat16, float16, float32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, same_dtype


@irdl_op_definition
class RotaryEmbeddingOp(SxOp):
    """Pairs `(a, b)` of the first R elements of each head turned: `(a * cos - b * sin, b * cos + a * sin)`.

    `x` is [B, N, S, D], `cos` and `sin` are [B, S, R / 2], for all heads alike; the result has the shape of `x`. R is
    `rotary_embedding_dim`, or D where that is 0. A pair are the elements i and i + R / 2, or neighbours if
    `interleaved`. What follows the first R stays. In float64, rounded once.

    ONNX's RotaryEmbedding is imported as the body by which ONNX defines it; `recognize-rotary` makes this op.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) `x` has rank 4, `cos` and `sin` rank 3. (C3) B and S
    agree. (C4) R is even and at most D; `cos` and `sin` have R / 2 columns.
    """

    name = "sx.rotary_embedding"
    x = operand_def()
    cos = operand_def()
    sin = operand_def()
    interleaved = opt_prop_def(IntegerAttr)
    rotary_embedding_dim = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("RotaryEmbedding", since=23)
    IS_IMPORTED: ClassVar = False
    DEFAULTS: ClassVar = {"interleaved": False, "rotary_embedding_dim": 0}
    DTYPES: ClassVar[Sequence[DType]] = (float16, bfloat16, float32)

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        stated = self.attr("rotary_embedding_dim")
        if stated < 0 or stated % 2:
            raise self.fail(f"(C4) {stated} elements are no pairs")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        shape = dims_of(self.x)
        if len(shape) != 4:
            raise self.fail(f"(C2) x has shape {format_dims(shape)}, where rank 4 is wanted")
        if stated and less_equal(stated, shape[3]) is Proof.REFUTED:
            raise self.fail(f"(C4) {stated} elements of {shape[3]} are turned")
        for table, name in ((self.cos, "cos"), (self.sin, "sin")):
            if is_unranked(table):
                continue
            dims = dims_of(table)
            if len(dims) != 3:
                raise self.fail(f"(C2) {name} has shape {format_dims(dims)}, where rank 3 is wanted")
            if any(equal(own, other) is Proof.REFUTED for own, other in ((dims[0], shape[0]), (dims[1], shape[2]))):
                raise self.fail(f"(C3) {name} has shape {format_dims(dims)}, x {format_dims(shape)}")
            if equal(dims[2] * 2, stated or shape[3]) is Proof.REFUTED:
                raise self.fail(f"(C4) {name} has {dims[2]} columns for {stated or shape[3]} elements")
        return [tensor_type(dtype, shape)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, cos, sin = slots(arrays)
        count = self.attr("rotary_embedding_dim") or x.shape[-1]
        wanted = (x.shape[0], x.shape[2] if x.ndim == 4 else -1, count // 2)
        if x.ndim != 4 or cos.shape != wanted or sin.shape != wanted or count % 2 or count > x.shape[3]:
            raise refuse(self, f"{list(cos.shape)} and {list(sin.shape)} do not turn {list(x.shape)}")
        turned = double(x[..., :count])
        c, s = (double(table)[:, None] for table in (cos, sin))
        pairs = (slice(0, None, 2), slice(1, None, 2)) if self.attr("interleaved") else (
            slice(None, count // 2), slice(count // 2, None))  # fmt: skip
        a, b = (turned[..., part] for part in pairs)
        out = np.array(x)
        with np.errstate(all="ignore"):
            out[..., :count][..., pairs[0]] = narrow(a * c - b * s, x.dtype)
            out[..., :count][..., pairs[1]] = narrow(b * c + a * s, x.dtype)
        return [out]
