"""Elementwise arithmetic and functions."""

from __future__ import annotations

import math
from typing import Any

from sardonyx.dialects.dtypes import bool_, float64, int64
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import elementwise as e
from sardonyx.frontend.operands import apply_widened
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant

# ---- arithmetic


def _scaled(n: Call, value: Any, factor: Any) -> Tensor:
    """An operand times torch's `alpha`."""
    tensor = n.to(value)
    return tensor if isinstance(factor, int | float) and factor == 1 else e.multiply(tensor, n.to(factor))


@aten("add.Tensor", "add.Scalar")
def add(n: Call, x: Any, other: Any, alpha: Any = 1) -> Tensor:
    return e.add(n.to(x), _scaled(n, other, alpha))


@aten("sub.Tensor", "sub.Scalar")
def sub(n: Call, x: Any, other: Any, alpha: Any = 1) -> Tensor:
    return e.subtract(n.to(x), _scaled(n, other, alpha))


@aten("rsub.Tensor", "rsub.Scalar")
def rsub(n: Call, x: Any, other: Any, alpha: Any = 1) -> Tensor:
    return e.subtract(n.to(other), _scaled(n, x, alpha))


@aten("mul.Tensor", "mul.Scalar")
def mul(n: Call, x: Any, other: Any) -> Tensor:
    return e.multiply(*n.both(x, other))


@aten("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(n: Call, x: Any, other: Any) -> Tensor:
    return e.divide(*n.both(x, other))


@aten("div.Tensor_mode", "div.Scalar_mode")
def div_mode(n: Call, x: Any, other: Any, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return div(n, x, other)
    a, b = n.both(x, other)
    if rounding_mode == "floor":
        return floor_divide(n, x, other)
    if a.dtype.is_float:
        return e.trunc(e.divide(a, b))
    return apply_widened("sx.div", [a, b])


@aten("floor_divide.default", "floor_divide.Scalar")
def floor_divide(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    if not a.dtype.is_float:
        return e.floor_divide(a, b)
    # As torch: the quotient of what the remainder leaves, so that it agrees with the remainder.
    left = e.fmod(a, b)
    quotient = e.divide(e.subtract(a, left), b)
    apart = e.logical_and(e.not_equal(left, 0), e.not_equal(e.less(left, 0), e.less(b, 0)))
    quotient = e.where(apart, quotient - 1, quotient)
    whole = e.floor(quotient)
    whole = e.where(e.greater(quotient - whole, 0.5), whole + 1, whole)
    # Of a quotient that rounds to zero the sign stays; by zero it is the plain quotient.
    plain = e.divide(a, b)
    zero = e.where(e.less(plain, 0), constant(-0.0, a.dtype), constant(0.0, a.dtype))
    return e.where(e.equal(b, 0), plain, e.where(e.equal(quotient, 0), zero, whole))


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    if not a.dtype.is_float:
        return e.remainder(a, b)
    left = e.fmod(a, b)
    apart = e.logical_and(e.not_equal(left, 0), e.not_equal(e.less(left, 0), e.less(b, 0)))
    return e.where(apart, left + b, left)


@aten("fmod.Tensor", "fmod.Scalar")
def fmod(n: Call, x: Any, other: Any) -> Tensor:
    return e.fmod(*n.both(x, other))


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", "float_power.Tensor_Tensor", "float_power.Tensor_Scalar")
def power(n: Call, x: Any, exponent: Any) -> Tensor:
    if isinstance(exponent, int | float) and n.dtype.is_float:
        base = n.to(x)
        if exponent == 2:
            return e.multiply(base, base)
        if exponent == 0.5:
            return e.sqrt(base)
        if exponent == -0.5:
            return e.rsqrt(base)
        if exponent == -1:
            return e.reciprocal(base)
        if exponent == 1:
            return base
        if exponent == 3:
            return e.multiply(e.multiply(base, base), base)
    a, b = n.both(x, exponent)
    if not a.dtype.is_float and isinstance(exponent, int) and 0 <= exponent <= 8:
        found = e.multiply(a, constant(0, a.dtype)) + constant(1, a.dtype) if exponent == 0 else a
        for _ in range(exponent - 1):
            found = e.multiply(found, a)
        return found
    return e.pow(a, b)


@aten("addcmul.default")
def addcmul(n: Call, x: Any, a: Any, b: Any, value: Any = 1) -> Tensor:
    return e.add(n.to(x), e.multiply(_scaled(n, a, value), n.to(b)))


@aten("addcdiv.default")
def addcdiv(n: Call, x: Any, a: Any, b: Any, value: Any = 1) -> Tensor:
    return e.add(n.to(x), e.divide(_scaled(n, a, value), n.to(b)))


@aten("lerp.Tensor", "lerp.Scalar")
def lerp(n: Call, start: Any, end: Any, weight: Any) -> Tensor:
    a, b = n.both(start, end)
    w = n.to(weight)
    near = e.add(a, e.multiply(w, e.subtract(b, a)))
    far = e.subtract(b, e.multiply(e.subtract(b, a), e.subtract(constant(1, w.dtype), w)))
    return e.where(e.less(e.abs(w), 0.5), near, far)


@aten("maximum.default")
def maximum(n: Call, x: Any, other: Any) -> Tensor:
    return _extreme(n, x, other, e.maximum, e.logical_or)


@aten("minimum.default")
def minimum(n: Call, x: Any, other: Any) -> Tensor:
    return _extreme(n, x, other, e.minimum, e.logical_and)


def _extreme(n: Call, x: Any, other: Any, numbers: Any, truths: Any) -> Tensor:
    a, b = n.both(x, other)
    return truths(a, b) if a.dtype == bool_ else numbers(a, b)


@aten("fmax.default")
def fmax(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    return e.where(e.isnan(a), b, e.where(e.isnan(b), a, _extreme(n, x, other, e.maximum, e.logical_or)))


@aten("fmin.default")
def fmin(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    return e.where(e.isnan(a), b, e.where(e.isnan(b), a, _extreme(n, x, other, e.minimum, e.logical_and)))


@aten("hypot.default")
def hypot(n: Call, x: Any, other: Any) -> Tensor:
    return e.hypot(*n.both(x, other))


@aten("logaddexp.default")
def logaddexp(n: Call, x: Any, other: Any) -> Tensor:
    return e.logaddexp(*n.both(x, other))


@aten("atan2.default", "atan2.out")
def atan2(n: Call, y: Any, x: Any, out: Any = None) -> Tensor:
    a, b = n.both(y, x)
    # The angle in the first quadrant, from a quotient that is at most 1; then mirrored into place.
    high, wide = e.abs(a), e.abs(b)
    steep = e.greater(high, wide)
    low, great = e.where(steep, wide, high), e.where(steep, high, wide)
    same = e.logical_or(e.equal(great, 0), e.logical_and(e.isinf(low), e.isinf(great)))
    quotient = e.divide(
        e.where(same, e.where(e.equal(great, 0), n.to(0.0), n.to(1.0)), low), e.where(same, n.to(1.0), great)
    )
    angle = e.atan(quotient)
    angle = e.where(steep, e.subtract(n.to(math.pi / 2), angle), angle)
    angle = e.where(_negative(b), e.subtract(n.to(math.pi), angle), angle)
    angle = e.where(_negative(a), e.negative(angle), angle)
    return e.where(e.logical_or(e.isnan(a), e.isnan(b)), e.add(a, b), angle)


def _negative(x: Tensor) -> Tensor:
    """Whether the sign is set, of a zero too."""
    return e.logical_or(e.less(x, 0), e.logical_and(e.equal(x, 0), e.less(e.divide(constant(1, x.dtype), x), 0)))


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    size = e.abs(a)
    return e.where(_negative(b), e.negative(size), size)


@aten("signbit.default")
def signbit(n: Call, x: Tensor) -> Tensor:
    return _negative(x) if x.dtype.is_float else e.less(n.to(x, int64), 0)


@aten("heaviside.default")
def heaviside(n: Call, x: Tensor, values: Tensor) -> Tensor:
    a, b = n.both(x, values)
    return e.where(e.equal(a, 0), b, e.where(e.logical_or(e.less(a, 0), e.isnan(a)), n.to(0), n.to(1)))


# ---- one operand

_PLAIN = {
    "exp": e.exp, "exp2": e.exp2, "expm1": e.expm1, "log": e.log, "log2": e.log2, "log10": e.log10, "log1p": e.log1p,
    "sqrt": e.sqrt, "rsqrt": e.rsqrt, "sin": e.sin, "cos": e.cos, "tan": e.tan, "asin": e.asin, "acos": e.acos,
    "atan": e.atan, "sinh": e.sinh, "cosh": e.cosh, "tanh": e.tanh, "asinh": e.asinh, "acosh": e.acosh,
    "atanh": e.atanh, "erf": e.erf, "reciprocal": e.reciprocal,
}  # fmt: skip


def _register(name: str, function: Any) -> None:
    @aten(f"{name}.default")
    def translated(n: Call, x: Tensor) -> Tensor:
        return function(n.to(x))

    translated.__name__ = name


for _name, _function in _PLAIN.items():
    _register(_name, _function)

for _name, _function in {
    "abs": e.abs, "neg": e.negative, "floor": e.floor, "ceil": e.ceil, "trunc": e.trunc, "square": e.square,
}.items():  # fmt: skip
    _register(_name, _function)


@aten("erfc.default", "special_erfc.default")
def erfc(n: Call, x: Tensor) -> Tensor:
    return e.subtract(n.to(1.0), e.erf(n.to(x)))


@aten("sign.default", "sgn.default")
def sign(n: Call, x: Tensor) -> Tensor:
    if x.dtype == bool_:
        return x
    found = e.sign(x)
    return e.where(e.isnan(x), n.to(0), found) if x.dtype.is_float else found


@aten("positive.default")
def positive(n: Call, x: Tensor) -> Tensor:
    return x


@aten("round.default")
def round_(n: Call, x: Tensor) -> Tensor:
    return e.round(x)


@aten("round.decimals")
def round_decimals(n: Call, x: Tensor, decimals: int) -> Tensor:
    if not x.dtype.is_float or decimals == 0:
        return (
            e.round(x) if decimals >= 0 else n.to(e.round(e.divide(n.to(x, float64), 10.0**-decimals)) * 10**-decimals)
        )
    factor = n.to(10.0 ** abs(decimals))
    if decimals > 0:
        return e.divide(e.round(e.multiply(x, factor)), factor)
    return e.multiply(e.round(e.divide(x, factor)), factor)


@aten("frac.default")
def frac(n: Call, x: Tensor) -> Tensor:
    return e.subtract(x, e.trunc(x))


@aten("deg2rad.default")
def deg2rad(n: Call, x: Tensor) -> Tensor:
    return e.multiply(n.to(x), n.to(math.pi / 180))


@aten("rad2deg.default")
def rad2deg(n: Call, x: Tensor) -> Tensor:
    return e.multiply(n.to(x), n.to(180 / math.pi))


@aten("logit.default")
def logit(n: Call, x: Tensor, eps: float | None = None) -> Tensor:
    x = n.to(x)
    if eps is not None:
        x = e.clip(x, n.to(eps), n.to(1 - eps))
    return e.log(e.divide(x, e.subtract(n.to(1.0), x)))


@aten("sinc.default")
def sinc(n: Call, x: Tensor) -> Tensor:
    scaled = e.multiply(n.to(x), n.to(math.pi))
    zero = e.equal(scaled, 0)
    return e.where(zero, n.to(1.0), e.divide(e.sin(scaled), e.where(zero, n.to(1.0), scaled)))


@aten("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", "special_xlogy.default")
def xlogy(n: Call, x: Any, other: Any) -> Tensor:
    a, b = n.both(x, other)
    found = e.where(e.equal(a, 0), n.to(0.0), e.multiply(a, e.log(b)))
    return e.where(e.isnan(b), b, found)


@aten("nan_to_num.default")
def nan_to_num(
    n: Call, x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if not x.dtype.is_float:
        return x
    import ml_dtypes

    limits = ml_dtypes.finfo(x.dtype.numpy)
    zero = n.to(0.0 if nan is None else nan)
    x = e.where(e.isnan(x), zero, x)
    x = e.where(e.equal(x, n.to(math.inf)), n.to(float(limits.max) if posinf is None else posinf), x)
    return e.where(e.equal(x, n.to(-math.inf)), n.to(float(limits.min) if neginf is None else neginf), x)


# ---- limits, choice


@aten("clamp.default", "clamp.Tensor", "clip.default", "clip.Tensor")
def clamp(n: Call, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    found = n.to(x)
    if found.dtype.is_float and all(isinstance(v, int | float) for v in (min, max)) and min <= max:
        return e.clip(found, min, max)
    if min is not None:
        found = _extreme(n, found, min, e.maximum, e.logical_or)
    return found if max is None else _extreme(n, found, max, e.minimum, e.logical_and)


@aten("clamp_min.default", "clamp_min.Tensor")
def clamp_min(n: Call, x: Tensor, min: Any) -> Tensor:
    return clamp(n, x, min)


@aten("clamp_max.default", "clamp_max.Tensor")
def clamp_max(n: Call, x: Tensor, max: Any) -> Tensor:
    return clamp(n, x, None, max)


@aten("hardtanh.default")
def hardtanh(n: Call, x: Tensor, min_val: Any = -1, max_val: Any = 1) -> Tensor:
    return clamp(n, x, min_val, max_val)


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(n: Call, condition: Tensor, x: Any, other: Any) -> Tensor:
    return e.where(e.cast(condition, bool_), n.to(x), n.to(other))


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(n: Call, x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return e.where(mask, n.to(value), x)


# ---- dtypes


@aten("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as.default")
def to_copy(n: Call, x: Tensor, *rest: Any, **options: Any) -> Tensor:
    return cast_as_torch(x, n.dtype)


def cast_as_torch(x: Tensor, dtype: Any) -> Tensor:
    """A cast; of floats to small integers by way of int64, as torch's wraps around instead of clamping."""
    if x.dtype.is_float and dtype.is_integer and dtype.bits < 64:
        return e.cast(e.cast(x, int64), dtype)
    return e.cast(x, dtype)


@aten("prims::convert_element_type.default")
def convert_element_type(n: Call, x: Tensor, dtype: Any) -> Tensor:
    return cast_as_torch(x, n.dtype)


@aten("view.dtype")
def view_dtype(n: Call, x: Tensor, dtype: Any) -> Tensor:
    if n.dtype.bits != x.dtype.bits or bool_ in (n.dtype, x.dtype):
        raise n.refuse(f"a view of {x.dtype} as {n.dtype}, which is of another size")
    return op("sx.bit_cast", x, to=n.dtype)


# ---- bits


def _bitwise(n: Call, x: Any, other: Any, truths: Any, bits: Any) -> Tensor:
    a, b = n.both(x, other)
    return truths(a, b) if a.dtype == bool_ else bits(a, b)


@aten("bitwise_and.Tensor", "bitwise_and.Scalar", "bitwise_and.Scalar_Tensor", "__and__.Tensor", "__and__.Scalar")
def bitwise_and(n: Call, x: Any, other: Any) -> Tensor:
    return _bitwise(n, x, other, e.logical_and, e.bitwise_and)


@aten("bitwise_or.Tensor", "bitwise_or.Scalar", "bitwise_or.Scalar_Tensor", "__or__.Tensor", "__or__.Scalar")
def bitwise_or(n: Call, x: Any, other: Any) -> Tensor:
    return _bitwise(n, x, other, e.logical_or, e.bitwise_or)


@aten("bitwise_xor.Tensor", "bitwise_xor.Scalar", "bitwise_xor.Scalar_Tensor")
def bitwise_xor(n: Call, x: Any, other: Any) -> Tensor:
    return _bitwise(n, x, other, e.logical_xor, e.bitwise_xor)


@aten("bitwise_not.default")
def bitwise_not(n: Call, x: Tensor) -> Tensor:
    return e.logical_not(x) if x.dtype == bool_ else e.bitwise_not(x)


@aten("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Tensor", "__lshift__.Scalar")
def left_shift(n: Call, x: Any, other: Any) -> Tensor:
    return e.bitwise_left_shift(*n.both(x, other))


@aten("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Tensor", "__rshift__.Scalar")
def right_shift(n: Call, x: Any, other: Any) -> Tensor:
    return e.bitwise_right_shift(*n.both(x, other))
