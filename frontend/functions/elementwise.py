"""Functions of each element: arithmetic, comparison, logic, bits, rounding, exponentials, trigonometry, casts, choice.

Operands are tensors, arrays or Python numbers, broadcast together; dtypes are promoted as `promotion.py` says.
Functions that need floats turn integers into the default float dtype. Names are the array API's; those of ONNX and of
other libraries (`add`/`sub`/`mul`/`div`, `neg`, `cast`) are the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sardonyx.dialects.dtypes import DType, bool_, int64, uint64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import op
from sardonyx.frontend.operands import (
    TensorLike,
    apply_widened,
    carrier_dtype,
    cast as _cast,
    common_dtype,
    floating,
    promoted,
    to_tensor,
)
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor, is_bool

Unary = Callable[[TensorLike], Tensor]

# ---- arithmetic


def _arithmetic(name: str, x1: TensorLike, x2: TensorLike) -> Tensor:
    a, b = promoted(x1, x2)
    return apply_widened(name, [a, b])


def add(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 + x2`; integers wrap around."""
    return _arithmetic("sx.add", x1, x2)


def subtract(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 - x2`; integers wrap around."""
    return _arithmetic("sx.sub", x1, x2)


def multiply(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 * x2`; integers wrap around."""
    return _arithmetic("sx.mul", x1, x2)


def divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 / x2` in floats: integers become the default float dtype."""
    return op("sx.div", *promoted(x1, x2, floating=True))


def floor_divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The quotient rounded down; integers divided by 0 give 0."""
    a, b = promoted(x1, x2)
    if a.dtype.is_float:
        return op("sx.floor", op("sx.div", a, b))
    quotient = apply_widened("sx.div", [a, b])
    if a.dtype.kind != "i" or (_never_negative(a) and _never_negative(b)):
        return quotient
    # The operation rounds towards zero; where that isn't down, the two remainders differ.
    down, zero = op("sx.mod", a, b), op("sx.mod", a, b, fmod=True)
    return op("sx.sub", quotient, _cast(op("sx.not", op("sx.equal", down, zero)), a.dtype))


def _never_negative(x: Tensor) -> bool:
    """Whether inference knows that no element is negative."""
    if not x.is_traced:
        return bool((x.numpy() >= 0).all())
    from sardonyx.dialects.values import contents

    known = contents(x.value)
    return known is not None and all(d is not None and d.bounds[0] is not None and d.bounds[0] >= 0 for d in known)


def remainder(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The remainder of `floor_divide`, with the sign of `x2`; integers modulo 0 give 0."""
    return _arithmetic("sx.mod", x1, x2)


def fmod(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The remainder of the quotient rounded towards zero, with the sign of `x1`."""
    return op("sx.mod", *promoted(x1, x2), fmod=True)


def pow(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 ** x2`; a negative power of an integer is 0, but for 1 and -1."""
    a, b = promoted(x1, x2)
    # Powers modulo 2 ** 64 have the same bits, signed or not.
    carrier = int64 if a.dtype == uint64 else carrier_dtype("sx.pow", a.dtype)
    return _cast(op("sx.pow", _cast(a, carrier), _cast(b, carrier)), a.dtype)


def maximum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The greater one; NaN where either is."""
    return op("sx.max", promoted(x1, x2))


def minimum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The smaller one; NaN where either is."""
    return op("sx.min", promoted(x1, x2))


def negative(x: TensorLike) -> Tensor:
    """`-x`; unsigned integers wrap around."""
    x = to_tensor(x)
    if x.dtype.kind == "u":
        return subtract(to_tensor(0, x.dtype), x)
    return apply_widened("sx.neg", [x])


def positive(x: TensorLike) -> Tensor:
    return to_tensor(x)


def abs(x: TensorLike) -> Tensor:
    """The absolute value; the least integer stays itself."""
    return apply_widened("sx.abs", [to_tensor(x)])


def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1; NaN stays."""
    return apply_widened("sx.sign", [to_tensor(x)])


def square(x: TensorLike) -> Tensor:
    """`x * x`."""
    x = to_tensor(x)
    return multiply(x, x)


def reciprocal(x: TensorLike) -> Tensor:
    """`1 / x` in floats."""
    return op("sx.reciprocal", floating(x))


# ---- rounding: integers are whole


def _rounding(name: str, x: TensorLike) -> Tensor:
    x = to_tensor(x)
    return op(name, x) if x.dtype.is_float else x


def ceil(x: TensorLike) -> Tensor:
    return _rounding("sx.ceil", x)


def floor(x: TensorLike) -> Tensor:
    return _rounding("sx.floor", x)


def round(x: TensorLike) -> Tensor:
    """The nearest whole number, the even one of two."""
    return _rounding("sx.round", x)


def trunc(x: TensorLike) -> Tensor:
    """The whole number towards zero."""
    x = to_tensor(x)
    if not x.dtype.is_float:
        return x
    return where(op("sx.less", x, to_tensor(0.0, x.dtype)), ceil(x), floor(x))


# ---- exponentials, logarithms, roots


def exp(x: TensorLike) -> Tensor:
    return op("sx.exp", floating(x))


def exp2(x: TensorLike) -> Tensor:
    return exp(multiply(floating(x), math.log(2.0)))


def expm1(x: TensorLike) -> Tensor:
    """`exp(x) - 1`, exact near 0 too: `2 sinh(x/2) exp(x/2)`."""
    x = floating(x)
    half = multiply(x, 0.5)
    near = multiply(multiply(op("sx.sinh", half), op("sx.exp", half)), 2.0)
    # exp(x/2) is finite where exp(x) is not, and 0 * inf far below would be NaN.
    return where(less(abs(x), 1.0), near, subtract(op("sx.exp", x), 1.0))


def log(x: TensorLike) -> Tensor:
    return op("sx.log", floating(x))


def log1p(x: TensorLike) -> Tensor:
    """`log(1 + x)`, exact near 0 too: `2 atanh(x / (x + 2))`."""
    x = floating(x)
    near = multiply(op("sx.atanh", divide(x, add(x, 2.0))), 2.0)
    return where(less(abs(x), 0.5), near, op("sx.log", add(x, 1.0)))


def log2(x: TensorLike) -> Tensor:
    return multiply(log(x), 1.0 / math.log(2.0))


def log10(x: TensorLike) -> Tensor:
    return multiply(log(x), 1.0 / math.log(10.0))


def logaddexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`log(exp(x1) + exp(x2))`, without overflow."""
    a, b = promoted(x1, x2, floating=True)
    top = op("sx.max", [a, b])
    difference = negative(abs(subtract(a, b)))
    # Equal infinities have no difference.
    return where(equal(a, b), add(a, math.log(2.0)), add(top, log1p(exp(difference))))


def sqrt(x: TensorLike) -> Tensor:
    return op("sx.sqrt", floating(x))


def rsqrt(x: TensorLike) -> Tensor:
    """`1 / sqrt(x)`."""
    return op("sx.reciprocal", sqrt(x))


def hypot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`sqrt(x1**2 + x2**2)`, without overflow; infinite where either is, even beside NaN."""
    a, b = (abs(x) for x in promoted(x1, x2, floating=True))
    top, low = op("sx.max", [a, b]), op("sx.min", [a, b])
    ratio = divide(low, where(equal(top, 0.0), to_tensor(1.0, top.dtype), top))
    length = multiply(top, sqrt(add(multiply(ratio, ratio), 1.0)))
    return where(logical_or(isinf(a), isinf(b)), to_tensor(math.inf, top.dtype), length)


def erf(x: TensorLike) -> Tensor:
    return op("sx.erf", floating(x))


# ---- trigonometry


def sin(x: TensorLike) -> Tensor:
    return op("sx.sin", floating(x))


def cos(x: TensorLike) -> Tensor:
    return op("sx.cos", floating(x))


def tan(x: TensorLike) -> Tensor:
    return op("sx.tan", floating(x))


def asin(x: TensorLike) -> Tensor:
    return op("sx.asin", floating(x))


def acos(x: TensorLike) -> Tensor:
    return op("sx.acos", floating(x))


def atan(x: TensorLike) -> Tensor:
    return op("sx.atan", floating(x))


def sinh(x: TensorLike) -> Tensor:
    return op("sx.sinh", floating(x))


def cosh(x: TensorLike) -> Tensor:
    return op("sx.cosh", floating(x))


def tanh(x: TensorLike) -> Tensor:
    return op("sx.tanh", floating(x))


def asinh(x: TensorLike) -> Tensor:
    return op("sx.asinh", floating(x))


def acosh(x: TensorLike) -> Tensor:
    return op("sx.acosh", floating(x))


def atanh(x: TensorLike) -> Tensor:
    return op("sx.atanh", floating(x))


# ---- comparison


def _compare(name: str, x1: TensorLike, x2: TensorLike) -> Tensor:
    a, b = promoted(x1, x2)
    carrier = carrier_dtype(name, a.dtype)
    return op(name, _cast(a, carrier), _cast(b, carrier))


def equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _compare("sx.equal", x1, x2)


def not_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    return op("sx.not", equal(x1, x2))


def less(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _compare("sx.less", x1, x2)


def less_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _compare("sx.less_equal", x1, x2)


def greater(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _compare("sx.greater", x1, x2)


def greater_equal(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _compare("sx.greater_equal", x1, x2)


def isnan(x: TensorLike) -> Tensor:
    """Whether each element is NaN; no integer is."""
    x = to_tensor(x)
    return op("sx.is_nan", x) if x.dtype.is_float else not_equal(x, x)


def isinf(x: TensorLike, detect_negative: bool = True, detect_positive: bool = True) -> Tensor:
    """Whether each element is infinite; no integer is."""
    x = to_tensor(x)
    if not x.dtype.is_float:
        return not_equal(x, x)
    carrier = carrier_dtype("sx.is_inf", x.dtype)
    return op("sx.is_inf", _cast(x, carrier), detect_negative=detect_negative, detect_positive=detect_positive)


def isfinite(x: TensorLike) -> Tensor:
    """Whether each element is neither NaN nor infinite."""
    return logical_not(logical_or(isnan(x), isinf(x)))


# ---- logic and bits


def _truth(x: TensorLike) -> Tensor:
    return _cast(to_tensor(x), bool_)


def logical_and(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Whether both are true; a number is where it isn't 0."""
    return op("sx.and", _truth(x1), _truth(x2))


def logical_or(x1: TensorLike, x2: TensorLike) -> Tensor:
    return op("sx.or", _truth(x1), _truth(x2))


def logical_xor(x1: TensorLike, x2: TensorLike) -> Tensor:
    return op("sx.xor", _truth(x1), _truth(x2))


def logical_not(x: TensorLike) -> Tensor:
    return op("sx.not", _truth(x))


def _bitwise(name: str, x1: TensorLike, x2: TensorLike) -> Tensor:
    a, b = promoted(x1, x2)
    return op(f"sx.{name}" if is_bool(a) else f"sx.bitwise_{name}", a, b)


def bitwise_and(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Bit by bit of integers; of bools the logical function."""
    return _bitwise("and", x1, x2)


def bitwise_or(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _bitwise("or", x1, x2)


def bitwise_xor(x1: TensorLike, x2: TensorLike) -> Tensor:
    return _bitwise("xor", x1, x2)


def bitwise_invert(x: TensorLike) -> Tensor:
    x = to_tensor(x)
    return op("sx.not" if is_bool(x) else "sx.bitwise_not", x)


def bitwise_left_shift(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 << x2`; a count of the width or more shifts all bits out."""
    return op("sx.bit_shift", *promoted(x1, x2), direction="LEFT")


def bitwise_right_shift(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1 >> x2`, with copies of the sign bit."""
    return op("sx.bit_shift", *promoted(x1, x2), direction="RIGHT")


# ---- choice and dtype


def where(condition: TensorLike, x1: TensorLike, x2: TensorLike) -> Tensor:
    """`x1` where the condition holds, else `x2`."""
    condition = to_tensor(condition)
    if not is_bool(condition):
        raise InvalidArgumentError(
            f"where() needs a bool condition, not {condition.dtype}; compare first: x != 0", location=user_line()
        )
    return op("sx.where", condition, *promoted(x1, x2))


def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`x` limited to [min, max]; a bound may be absent, a number or a tensor. Where the bounds cross, `max`."""
    dtype = common_dtype([v for v in (x, min, max) if v is not None])
    x = promoted(x, dtype=dtype)[0]
    low, high = (None if bound is None else promoted(bound, dtype=dtype)[0] for bound in (min, max))
    if any(bound is not None and bound.ndim for bound in (low, high)):
        if low is not None:
            x = op("sx.max", [x, low])
        return x if high is None else op("sx.min", [x, high])
    return op("sx.clip", x, low, high) if low is not None or high is not None else x


def astype(x: TensorLike, dtype: object, *, copy: bool = True, device: object = None) -> Tensor:
    """The elements as another dtype: floats truncate to integers, saturated; integers wrap; to bool is `!= 0`."""
    tensor, target = to_tensor(x), DType.of(dtype)
    return tensor.__copy__() if copy and tensor.dtype == target else _cast(tensor, target)


def cast(x: TensorLike, dtype: object, *, saturate: bool = True, round_mode: str = "up") -> Tensor:
    """`astype` as ONNX has it.

    Args:
        x: A tensor.
        dtype: The dtype of the result.
        saturate: Whether what is too large for a float of 8 bits becomes its largest number, not infinity or NaN.
        round_mode: For float8e8m0: 'up' (away from zero), 'down' or 'nearest'.
    """
    tensor, target = to_tensor(x), DType.of(dtype)
    if tensor.dtype == target:
        return tensor
    return op("sx.cast", tensor, to=target, saturate=bool(saturate), round_mode=round_mode)


def cast_like(x: TensorLike, target: TensorLike) -> Tensor:
    """The elements as the dtype of `target`."""
    return _cast(to_tensor(x), to_tensor(target).dtype)


def result_type(*values: Any) -> DType:
    """The dtype that tensors, dtypes and Python numbers have together."""
    from sardonyx.frontend.promotion import with_scalars

    plain = [v for v in values if isinstance(v, DType)]
    rest = [v for v in values if not isinstance(v, DType)]
    if not plain:
        return common_dtype(rest)
    tensors = [v for v in rest if not isinstance(v, bool | int | float)]
    return with_scalars(
        [*plain, *(to_tensor(v).dtype for v in tensors)],
        [type(v) for v in rest if isinstance(v, bool | int | float)],
    )


def identity(x: TensorLike) -> Tensor:
    """The tensor itself, as an op of its own in a trace."""
    return op("sx.identity", to_tensor(x))


def sum_of(*tensors: TensorLike) -> Tensor:
    """The elementwise sum of all tensors (ONNX's Sum)."""
    return op("sx.sum", promoted(*tensors, floating=True))


def mean_of(*tensors: TensorLike) -> Tensor:
    """The elementwise mean of all tensors (ONNX's Mean)."""
    return op("sx.mean", promoted(*tensors, floating=True))


# ---- the same under other names

sub, mul, div, neg = subtract, multiply, divide, negative
mod, power, true_divide = remainder, pow, divide
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
bitwise_not, invert = bitwise_invert, bitwise_invert
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
absolute, clamp = abs, clip
