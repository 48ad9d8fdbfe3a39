"""Activations: functions of each element that networks are made of. Integers become floats, but for `relu`."""

from __future__ import annotations

from sardonyx.dialects.dtypes import DType
from sardonyx.frontend.apply import op
from sardonyx.frontend.operands import TensorLike, apply_widened, floating, promoted, to_tensor
from sardonyx.frontend.tensor import Tensor


def relu(x: TensorLike) -> Tensor:
    """`max(x, 0)`."""
    x = to_tensor(x)
    return x if x.dtype.kind in "ub" else apply_widened("sx.relu", [x])


def relu6(x: TensorLike) -> Tensor:
    """`min(max(x, 0), 6)`."""
    x = to_tensor(x)
    return op("sx.clip", x, *promoted(0, 6, dtype=x.dtype))


def leaky_relu(x: TensorLike, alpha: float = 0.01) -> Tensor:
    """`x` where it is not negative, else `alpha * x`."""
    return op("sx.leaky_relu", floating(x), alpha=float(alpha))


def prelu(x: TensorLike, slope: TensorLike) -> Tensor:
    """`x` where it is not negative, else `slope * x`; the slope broadcasts to `x`."""
    return op("sx.prelu", *promoted(x, slope, floating=True))


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, else `alpha * (exp(x) - 1)`."""
    return op("sx.elu", floating(x), alpha=float(alpha))


def selu(x: TensorLike, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
    """`gamma * elu(x, alpha)`."""
    return op("sx.selu", floating(x), alpha=float(alpha), gamma=float(gamma))


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`."""
    return op("sx.celu", floating(x), alpha=float(alpha))


def gelu(x: TensorLike, approximate: str = "none") -> Tensor:
    """`x * Phi(x)`; with `approximate="tanh"` by the formula with tanh."""
    return op("sx.gelu", floating(x), approximate=approximate)


def sigmoid(x: TensorLike) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return op("sx.sigmoid", floating(x))


def hard_sigmoid(x: TensorLike, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """`alpha * x + beta`, limited to [0, 1]."""
    return op("sx.hard_sigmoid", floating(x), alpha=float(alpha), beta=float(beta))


def hard_swish(x: TensorLike) -> Tensor:
    """`x * hard_sigmoid(x, 1/6, 1/2)`."""
    return op("sx.hard_swish", floating(x))


def swish(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`x * sigmoid(alpha * x)`."""
    return op("sx.swish", floating(x), alpha=float(alpha))


def silu(x: TensorLike) -> Tensor:
    """`x * sigmoid(x)`."""
    return swish(x)


def mish(x: TensorLike) -> Tensor:
    """`x * tanh(softplus(x))`."""
    return op("sx.mish", floating(x))


def softplus(x: TensorLike) -> Tensor:
    """`log(1 + exp(x))`."""
    return op("sx.softplus", floating(x))


def softsign(x: TensorLike) -> Tensor:
    """`x / (1 + |x|)`."""
    return op("sx.softsign", floating(x))


def thresholded_relu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`x` where it is greater than `alpha`, else 0."""
    return op("sx.thresholded_relu", floating(x), alpha=float(alpha))


def shrink(x: TensorLike, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """`x + bias` below `-lambd`, `x - bias` above `lambd`, else 0."""
    return op("sx.shrink", to_tensor(x), lambd=float(lambd), bias=float(bias))


def _along(name: str, x: TensorLike, axis: int, dtype: object) -> Tensor:
    x = floating(x)
    if dtype is not None:
        x = to_tensor(x, DType.of(dtype))
    return op(name, x, axis=axis)


def softmax(x: TensorLike, axis: int = -1, *, dtype: object = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along an axis; with `dtype`, of `x` as that dtype."""
    return _along("sx.softmax", x, axis, dtype)


def log_softmax(x: TensorLike, axis: int = -1, *, dtype: object = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _along("sx.log_softmax", x, axis, dtype)


def hardmax(x: TensorLike, axis: int = -1) -> Tensor:
    """1 at the first greatest element along an axis, else 0."""
    return _along("sx.hardmax", x, axis, None)
