"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.frontend.functions.nn import batch_norm, group_norm, layer_norm, rms_norm
from sardonyx.frontend.nn.module import Module, Parameter, filled
from sardonyx.frontend.tensor import Tensor


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axes, of this shape, then a scale and a bias."""

    bias: Parameter | None

    def __init__(self, shape: int | Sequence[int], eps: float = 1e-5, bias: bool = True) -> None:
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        self.weight = filled(1.0, *extents)
        self.bias = filled(0.0, *extents) if bias else None
        self.eps = eps

    def forward(self, x: Any) -> Tensor:
        return layer_norm(x, self.weight, self.bias, axis=-self.weight.ndim, epsilon=self.eps)

    def extra(self) -> str:
        return f"{list(self.weight.shape)}, eps={self.eps}"


class RMSNorm(Module):
    """The last axis divided by the root of its mean square, then a scale."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        self.weight = filled(1.0, size)
        self.eps = eps

    def forward(self, x: Any) -> Tensor:
        return rms_norm(x, self.weight, epsilon=self.eps)


class BatchNorm(Module):
    """The channels of x [N, C, ...] by the running mean and variance, then a scale and a bias."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        self.weight, self.bias = filled(1.0, channels), filled(0.0, channels)
        self.running_mean = Tensor.of_array(filled(0.0, channels).numpy())
        self.running_var = Tensor.of_array(filled(1.0, channels).numpy())
        self.eps = eps

    def forward(self, x: Any) -> Tensor:
        return batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, epsilon=self.eps)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels of x [N, C, ...], then a scale and a bias a channel."""

    def __init__(self, groups: int, channels: int, eps: float = 1e-5) -> None:
        self.weight, self.bias = filled(1.0, channels), filled(0.0, channels)
        self.groups, self.eps = groups, eps

    def forward(self, x: Any) -> Tensor:
        return group_norm(x, self.groups, self.weight, self.bias, epsilon=self.eps)
