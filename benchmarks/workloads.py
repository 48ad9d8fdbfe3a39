"""What is measured: name, the function, and the inputs' shapes. Weights and inputs are seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from models import Weights, bert_layer, mlp, mobilenet_v2, resnet

import sardonyx as sx
from sardonyx import ModelGraph, Tensor


@dataclass(frozen=True)
class Workload:
    """A function of float32 inputs; `make` builds it with its weights."""

    name: str
    group: str
    make: Callable[[], Callable[..., Tensor]]
    shapes: tuple[tuple[int, ...], ...]
    options: dict[str, Any] = field(default_factory=dict)

    def graph(self) -> ModelGraph:
        """The traced graph, not optimized."""
        signature = ", ".join(f"x{k}: f32[{','.join(map(str, s))}]" for k, s in enumerate(self.shapes))
        return sx.trace(self.make(), signature, name=self.name).graph

    def inputs(self) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(len(self.name))
        return [rng.standard_normal(s).astype(np.float32) for s in self.shapes]


def _product(m: int, k: int, n: int) -> Workload:
    def make() -> Callable[[Tensor], Tensor]:
        w = Weights(k).matrix(k, n)
        return lambda x: x @ w

    return Workload(f"matmul_{m}x{k}x{n}", "matmul, constant B", make, ((m, k),))


def _conv(
    name: str, c: int, o: int, size: int, kernel: int, stride: int = 1, group: int = 1, **options: Any
) -> Workload:
    def make() -> Callable[[Tensor], Tensor]:
        weights = Weights(c)
        w, b = weights.filters(o, c // group, kernel), weights.normal(o, scale=0.1)
        pads = [kernel // 2] * 4
        return lambda x: sx.relu(sx.conv(x, w, b, strides=[stride, stride], pads=pads, group=group))

    return Workload(name, "convolution", make, ((1, c, size, size),), options)


def _layer_norm() -> Callable[[Tensor], Tensor]:
    scale, shift = Weights(0).normal(768), Weights(1).normal(768)
    return lambda x: sx.layer_norm(x, scale, shift)


def _chain() -> Callable[[Tensor], Tensor]:
    w, b = Weights(0).normal(1024), Weights(1).normal(1024)
    return lambda x: sx.relu(x * w + b) * 0.3 + sx.tanh(x) * 0.7


def _turns() -> Callable[[Tensor], Tensor]:
    b = Weights(0).normal(768)

    def apply(x: Tensor) -> Tensor:  # [8, 128, 12, 64]
        y = sx.relu(sx.permute_dims(x, (0, 2, 1, 3)) * 0.125)
        y = sx.reshape(sx.permute_dims(y, (0, 2, 1, 3)), [8, 128, 768]) + b
        return sx.permute_dims(y, (1, 0, 2))

    return apply


WORKLOADS: tuple[Workload, ...] = (
    *(_product(n, n, n) for n in (256, 512, 1024, 2048)),
    *(_product(m, 768, 3072) for m in (1, 4, 16, 64)),
    _product(63, 511, 1023),
    _product(1000, 1000, 1000),
    _product(7, 100, 10),
    _conv("conv_3x3", 64, 64, 56, 3),
    _conv("conv_3x3_fast", 64, 64, 56, 3, fast_conv=True),
    _conv("conv_1x1", 256, 64, 56, 1),
    _conv("conv_7x7_stride_2", 3, 64, 224, 7, 2),
    _conv("conv_depthwise_3x3", 96, 96, 112, 3, group=96),
    Workload("elementwise_chain", "elementwise and rows", _chain, ((4096, 1024),)),
    Workload("elementwise_small", "elementwise and rows", lambda: lambda x: sx.relu(x * 0.5 + 1.0), ((8, 37),)),
    Workload("gelu", "elementwise and rows", lambda: sx.gelu, ((512, 3072),)),
    Workload("softmax", "elementwise and rows", lambda: lambda x: sx.softmax(x, axis=-1), ((64 * 12 * 128, 128),)),
    Workload("layer_norm", "elementwise and rows", _layer_norm, ((2048, 768),)),
    Workload("sum_rows", "elementwise and rows", lambda: lambda x: sx.sum(x, axis=1), ((4096, 4096),)),
    Workload("sum_columns", "elementwise and rows", lambda: lambda x: sx.sum(x, axis=0), ((4096, 4096),)),
    Workload("argmax", "elementwise and rows", lambda: lambda x: sx.argmax(x, axis=1), ((4096, 4096),)),
    Workload("transposes", "elementwise and rows", _turns, ((8, 128, 12, 64),)),
    Workload("resnet18", "models", lambda: resnet((2, 2, 2, 2), False), ((1, 3, 224, 224),)),
    Workload("resnet50", "models", lambda: resnet((3, 4, 6, 3), True), ((1, 3, 224, 224),)),
    Workload("mobilenet_v2", "models", mobilenet_v2, ((1, 3, 224, 224),)),
    Workload("bert_1l", "models", bert_layer, ((1, 128, 768),)),
    Workload("mlp_b1", "models", mlp, ((1, 784),)),
    Workload("mlp_b256", "models", mlp, ((256, 784),)),
)
