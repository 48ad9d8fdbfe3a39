"""Activations, kept whole where the dialect has them."""

from __future__ import annotations

from typing import Any

from sardonyx.frontend.functions import activation as a, elementwise as e, gathering as g, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, axis_of


def _register(name: str, function: Any) -> None:
    @aten(f"{name}.default")
    def translated(n: Call, x: Tensor) -> Tensor:
        return function(n.to(x))

    translated.__name__ = name


@aten("relu.default")
def relu(n: Call, x: Tensor) -> Tensor:
    return a.relu(x) if x.dtype.is_float else e.maximum(x, n.to(0))  # runtimes know Relu of floats only


for _name, _function in {
    "relu6": a.relu6, "sigmoid": a.sigmoid, "silu": a.silu, "mish": a.mish, "hardswish": a.hard_swish,
    "softsign": a.softsign, "selu": a.selu,
}.items():  # fmt: skip
    _register(_name, _function)


@aten("hardsigmoid.default")
def hardsigmoid(n: Call, x: Tensor) -> Tensor:
    return a.hard_sigmoid(x, 1 / 6, 0.5)


@aten("leaky_relu.default")
def leaky_relu(n: Call, x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return a.leaky_relu(x, float(negative_slope))


@aten("elu.default")
def elu(n: Call, x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    if scale == 1 and input_scale == 1:
        return a.elu(x, float(alpha))
    low = e.multiply(e.expm1(e.multiply(x, n.to(float(input_scale)))), n.to(float(alpha) * float(scale)))
    return e.where(e.greater(x, n.to(0.0)), e.multiply(x, n.to(float(scale))), low)


@aten("celu.default")
def celu(n: Call, x: Tensor, alpha: Any = 1.0) -> Tensor:
    return a.celu(x, float(alpha))


@aten("gelu.default")
def gelu(n: Call, x: Tensor, *, approximate: str = "none") -> Tensor:
    return a.gelu(x, approximate)


@aten("softplus.default")
def softplus(n: Call, x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    scaled = x if beta == 1 else e.multiply(x, n.to(float(beta)))
    soft = a.softplus(scaled)
    soft = soft if beta == 1 else e.divide(soft, n.to(float(beta)))
    return e.where(e.greater(scaled, n.to(float(threshold))), x, soft)


@aten("log_sigmoid_forward.default", "log_sigmoid.default")
def log_sigmoid(n: Call, x: Tensor) -> tuple[Tensor, Tensor | None]:
    return e.negative(a.softplus(e.negative(x))), None


@aten("hardshrink.default")
def hardshrink(n: Call, x: Tensor, lambd: float = 0.5) -> Tensor:
    inside = e.logical_and(e.greater_equal(x, n.to(-float(lambd))), e.less_equal(x, n.to(float(lambd))))
    return e.where(inside, n.to(0), x)


@aten("softshrink.default")
def softshrink(n: Call, x: Tensor, lambd: float = 0.5) -> Tensor:
    edge = n.to(float(lambd))
    found = e.where(
        e.greater(x, edge), e.subtract(x, edge), e.where(e.less(x, e.negative(edge)), e.add(x, edge), n.to(0))
    )
    return e.where(e.isnan(x), x, found)


@aten("threshold.default")
def threshold(n: Call, x: Tensor, threshold: Any, value: Any) -> Tensor:
    return e.where(e.less_equal(x, n.to(threshold)), n.to(value), x)


@aten("prelu.default", "_prelu_kernel.default")
def prelu(n: Call, x: Tensor, weight: Tensor) -> Tensor:
    if "_prelu_kernel" not in n.name and weight.ndim == 1 and x.ndim > 1 and weight.shape[0] != 1:
        weight = s.reshape(weight, [-1 if axis == 1 else 1 for axis in range(x.ndim)])
    return e.where(e.greater(x, n.to(0)), x, e.multiply(x, weight))


@aten("rrelu.default")
def rrelu(n: Call, x: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> Tensor:
    if training:
        raise n.refuse("a slope that is drawn at random", "call model.eval() before exporting")
    return a.leaky_relu(x, (lower + upper) / 2)


@aten("glu.default")
def glu(n: Call, x: Tensor, dim: int = -1) -> Tensor:
    at = axis_of(dim, x.ndim)
    half = x.shape[at] // 2
    first, second = g.sliced(x, {at: (0, half)}), g.sliced(x, {at: (half, None)})
    return e.multiply(first, a.sigmoid(second))


@aten("_softmax.default", "softmax.int", "_safe_softmax.default")
def softmax(n: Call, x: Tensor, dim: int, *rest: Any, dtype: Any = None) -> Tensor:
    x = n.to(x)
    if not x.ndim:
        return e.exp(e.subtract(x, x))
    return a.softmax(x, axis_of(dim, x.ndim))


@aten("_log_softmax.default", "log_softmax.int")
def log_softmax(n: Call, x: Tensor, dim: int, *rest: Any, dtype: Any = None) -> Tensor:
    x = n.to(x)
    if not x.ndim:
        return e.subtract(x, x)
    return a.log_softmax(x, axis_of(dim, x.ndim))
