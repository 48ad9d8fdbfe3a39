"""Linear layers, embeddings, convolutions, pools, dropout and activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.frontend.functions import activation, elementwise
from sardonyx.frontend.functions.gathering import gather
from sardonyx.frontend.functions.linalg import linear
from sardonyx.frontend.functions.nn import average_pool, conv, conv_transpose, max_pool
from sardonyx.frontend.functions.shape import reshape
from sardonyx.frontend.nn.module import Module, Parameter, normal, uniform
from sardonyx.frontend.tensor import Tensor

Window = int | Sequence[int]


class Linear(Module):
    """`x W' + b`: x [..., inputs], W [outputs, inputs], b [outputs]."""

    bias: Parameter | None

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        self.weight = uniform(inputs**-0.5 if inputs else 0.0, outputs, inputs)
        self.bias = uniform(inputs**-0.5 if inputs else 0.0, outputs) if bias else None

    def forward(self, x: Any) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, bias={self.bias is not None}"


class Embedding(Module):
    """Rows of a table [count, size] by their number; indices out of range are an error of the run."""

    def __init__(self, count: int, size: int) -> None:
        self.weight = normal(1.0, count, size)

    def forward(self, indices: Any) -> Tensor:
        return gather(self.weight, indices, axis=0)

    def extra(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class _Conv(Module):
    """A convolution of x [N, inputs, D1, ...] over `RANK` spatial axes, W [outputs, inputs / groups, k1, ...]."""

    RANK = 2
    bias: Parameter | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: Window,
        stride: Window = 1,
        padding: Window = 0,
        dilation: Window = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        sizes = [kernel_size] * self.RANK if isinstance(kernel_size, int) else list(kernel_size)
        fan_in = inputs // groups
        for size in sizes:
            fan_in *= size
        bound = fan_in**-0.5 if fan_in else 0.0
        self.weight = uniform(bound, outputs, inputs // groups, *sizes)
        self.bias = uniform(bound, outputs) if bias else None
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def forward(self, x: Any) -> Tensor:
        return conv(x, self.weight, self.bias, strides=self.stride, pads=self.padding, dilations=self.dilation,
                    group=self.groups)  # fmt: skip

    def extra(self) -> str:
        return f"{list(self.weight.shape)}, stride={self.stride}, padding={self.padding}, groups={self.groups}"


class Conv1d(_Conv):
    """A convolution over one axis: x [N, C, L]."""

    RANK = 1


class Conv2d(_Conv):
    """A convolution over two axes: x [N, C, H, W]."""


class Conv3d(_Conv):
    """A convolution over three axes: x [N, C, D, H, W]."""

    RANK = 3


class ConvTranspose2d(Module):
    """A transposed convolution over two axes: W [inputs, outputs / groups, k1, k2]."""

    bias: Parameter | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: Window,
        stride: Window = 1,
        padding: Window = 0,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        first, second = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        fan = outputs // groups * first * second
        self.weight = uniform(fan**-0.5 if fan else 0.0, inputs, outputs // groups, first, second)
        self.bias = uniform(fan**-0.5 if fan else 0.0, outputs) if bias else None
        self.stride, self.padding, self.groups = stride, padding, groups

    def forward(self, x: Any) -> Tensor:
        return conv_transpose(x, self.weight, self.bias, strides=self.stride, pads=self.padding, group=self.groups)


class MaxPool2d(Module):
    """The largest element of each window."""

    def __init__(self, kernel_size: Window, stride: Window | None = None, padding: Window = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def forward(self, x: Any) -> Tensor:
        return max_pool(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Module):
    """The mean of each window, the padding counted."""

    def __init__(self, kernel_size: Window, stride: Window | None = None, padding: Window = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def forward(self, x: Any) -> Tensor:
        return average_pool(x, self.kernel_size, self.stride, self.padding, count_include_pad=True)


class Flatten(Module):
    """All axes from `start` on as one."""

    def __init__(self, start: int = 1) -> None:
        self.start = start

    def forward(self, x: Any) -> Tensor:
        return reshape(x, (*x.shape[: self.start], -1))


class Dropout(Module):
    """The input itself: nothing is dropped outside of training."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Any) -> Any:
        return x


class Identity(Module):
    """The input itself."""

    def forward(self, x: Any) -> Any:
        return x


class Lambda(Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def forward(self, *args: Any) -> Any:
        return self.fn(*args)


class ReLU(Module):
    """`max(x, 0)`."""

    def forward(self, x: Any) -> Tensor:
        return activation.relu(x)


class GELU(Module):
    """`x * Phi(x)`; with `approximate="tanh"` by the formula with tanh."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Tensor:
        return activation.gelu(x, self.approximate)


class SiLU(Module):
    """`x * sigmoid(x)`."""

    def forward(self, x: Any) -> Tensor:
        return activation.silu(x)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, x: Any) -> Tensor:
        return activation.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Any) -> Tensor:
        return elementwise.tanh(x)


class Softmax(Module):
    """`exp(x)` over its sum along an axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        return activation.softmax(x, axis=self.axis)
