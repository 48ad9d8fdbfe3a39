"""Changes of dtype: cast, cast_like. Every case is defined; see `numeric.convert`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import convert, given
from sardonyx.dialects.sx.support import broadcast_type
from sardonyx.dialects.values import Contents, contents
from sardonyx.errors import InvalidArgumentError


def _facts(source: SSAValue, target: DType) -> Contents | None:
    """What is known of an integer or bool tensor after a cast to another integer dtype or bool."""
    known = contents(source)
    return None if known is None else tuple(None if d is None else _element(d, target) for d in known)


def _element(d: Dim, target: DType) -> Dim | None:
    if target.kind != "b":
        return facts.wrapped(d, target)
    number = d.static_value
    if number is not None:
        return Dim.of(int(number != 0))
    return Dim.of(1) if facts.at_least(d, 1) else None


def _check_round_mode(op: SxOp) -> None:
    if op.attr("round_mode") not in ("up", "down", "nearest"):
        raise op.fail(f"(C2) round_mode '{op.attr('round_mode')}' is none of up, down, nearest")


@irdl_op_definition
class CastOp(SxOp):
    """The elements as dtype `to`.

    Float to integer truncates, saturates when out of range, and NaN becomes 0; integer to a narrower integer wraps
    around, and so does a float to an integer of fewer than 8 bits; anything to bool is `!= 0` (NaN is true); to float
    rounds once, to nearest even, and overflows to infinity.

    `saturate` matters for 8-bit floats only: what is too large, infinities too, becomes the largest number; without it
    infinity, or NaN where the dtype has no infinity. float4 and float6 have neither: they saturate, and NaN becomes -0.
    `round_mode` matters for float8e8m0 only, which has powers of two: 'up' (away from zero), 'down' or 'nearest' (ties
    go up); negative numbers become NaN.

    (C1) `to` is a dtype. (C2) `round_mode` is one of these three.
    """

    name = "sx.cast"
    ONNX: ClassVar = OnnxForm("Cast", since=9)
    input = operand_def()
    to = prop_def(Attribute)
    saturate = opt_prop_def(IntegerAttr)
    round_mode = opt_prop_def(StringAttr)
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DEFAULTS: ClassVar = {"saturate": True, "round_mode": "up"}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        _check_round_mode(self)
        return [broadcast_type(self, self.target(), [self.input], "(C1)")]

    def target(self) -> DType:
        """The dtype that is cast to."""
        try:
            return DType.of(self.to)
        except InvalidArgumentError:
            raise self.fail(f"(C1) {self.to} is not a dtype") from None

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [convert(x, self.target(), self.attr("saturate"), self.attr("round_mode"))]

    def infer_values(self) -> Sequence[Contents | None]:
        return [_facts(self.input, dtype_of(self.output))]


@irdl_op_definition
class CastLikeOp(SxOp):
    """The elements of `input` as the dtype of `target_type`, whose contents and shape do not matter; see `sx.cast`.

    (C1) Both operands are tensors. (C2) `round_mode` is 'up', 'down' or 'nearest'.
    """

    name = "sx.cast_like"
    ONNX: ClassVar = OnnxForm("CastLike", since=15)
    input = operand_def()
    target_type = operand_def()
    saturate = opt_prop_def(IntegerAttr)
    round_mode = opt_prop_def(StringAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"saturate": True, "round_mode": "up"}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        _check_round_mode(self)
        return [broadcast_type(self, dtype_of(self.target_type), [self.input], "(C1)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, target = given(arrays)
        return [convert(x, DType.of(target.dtype), self.attr("saturate"), self.attr("round_mode"))]

    def infer_values(self) -> Sequence[Contents | None]:
        return [_facts(self.input, dtype_of(self.output))]
