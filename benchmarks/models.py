"""Whole models with seeded weights, as functions of Sardonyx: resnet18, resnet50, mobilenet_v2, bert_1l, mlp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sardonyx as sx
from sardonyx import Tensor

Function = Callable[[Tensor], Tensor]


class Weights:
    """Seeded weights, scaled so that activations keep their size."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return Tensor((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def filters(self, out: int, inner: int, kernel: int) -> Tensor:
        return self.normal(out, inner, kernel, kernel, scale=(2.0 / (inner * kernel * kernel)) ** 0.5)

    def matrix(self, rows: int, columns: int) -> Tensor:
        return self.normal(rows, columns, scale=rows**-0.5)


def _conv_norm(w: Weights, inner: int, out: int, kernel: int, stride: int = 1, group: int = 1) -> Function:
    """Convolution and batch normalisation, as a trained model has them."""
    filters = w.filters(out, inner // group, kernel)
    scale, shift, mean = (Tensor(w.rng.uniform(0.5, 1.5, out).astype(np.float32)) for _ in range(3))
    variance = Tensor(w.rng.uniform(0.5, 1.5, out).astype(np.float32))
    pads = [kernel // 2] * 4

    def apply(x: Tensor) -> Tensor:
        y = sx.conv(x, filters, None, strides=[stride, stride], pads=pads, group=group)
        return sx.batch_norm(y, scale, shift, mean, variance)

    return apply


def resnet(layers: tuple[int, ...], bottleneck: bool) -> Function:
    """ResNet (He et al. 2015) for x [1, 3, 224, 224]: blocks per stage, plain or bottleneck blocks."""
    w = Weights(1)
    grow = 4 if bottleneck else 1
    stem = _conv_norm(w, 3, 64, 7, 2)
    blocks: list[tuple[list[Function], Function | None]] = []
    inner = 64
    for stage, count in enumerate(layers):
        width = 64 << stage
        for number in range(count):
            stride = 2 if stage and not number else 1
            if bottleneck:
                steps = [_conv_norm(w, inner, width, 1), _conv_norm(w, width, width, 3, stride)]
                steps.append(_conv_norm(w, width, width * 4, 1))
            else:
                steps = [_conv_norm(w, inner, width, 3, stride), _conv_norm(w, width, width, 3)]
            other = inner != width * grow or stride != 1
            blocks.append((steps, _conv_norm(w, inner, width * grow, 1, stride) if other else None))
            inner = width * grow
    head, bias = w.matrix(inner, 1000), w.normal(1000, scale=0.1)

    def apply(x: Tensor) -> Tensor:
        x = sx.max_pool(sx.relu(stem(x)), [3, 3], [2, 2], [1, 1, 1, 1])
        for steps, shortcut in blocks:
            y = x
            for step in steps[:-1]:
                y = sx.relu(step(y))
            x = sx.relu(steps[-1](y) + (x if shortcut is None else shortcut(x)))
        return sx.reshape(sx.global_average_pool(x), [-1, inner]) @ head + bias

    return apply


def mobilenet_v2() -> Function:
    """MobileNetV2 (Sandler et al. 2018) for x [1, 3, 224, 224]."""
    w = Weights(2)
    stem = _conv_norm(w, 3, 32, 3, 2)
    blocks: list[tuple[Function | None, Function, Function, bool]] = []
    inner = 32
    for expand, out, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for number in range(count):
            stride, wide = (first if number == 0 else 1), inner * expand
            widen = _conv_norm(w, inner, wide, 1) if expand > 1 else None
            depthwise = _conv_norm(w, wide, wide, 3, stride, group=wide)
            blocks.append((widen, depthwise, _conv_norm(w, wide, out, 1), stride == 1 and inner == out))
            inner = out
    last = _conv_norm(w, inner, 1280, 1)
    head, bias = w.matrix(1280, 1000), w.normal(1000, scale=0.1)

    def apply(x: Tensor) -> Tensor:
        x = sx.clip(stem(x), 0.0, 6.0)
        for widen, depthwise, narrow, keeps in blocks:
            y = x if widen is None else sx.clip(widen(x), 0.0, 6.0)
            y = narrow(sx.clip(depthwise(y), 0.0, 6.0))
            x = x + y if keeps else y
        x = sx.clip(last(x), 0.0, 6.0)
        return sx.reshape(sx.global_average_pool(x), [-1, 1280]) @ head + bias

    return apply


def bert_layer(width: int = 768, heads: int = 12, inner: int = 3072) -> Function:
    """One encoder layer (Vaswani et al. 2017, as in BERT base) for x [batch, seq, width]."""
    w = Weights(3)
    query, key, value, out = (w.matrix(width, width) for _ in range(4))
    biases = [w.normal(width, scale=0.1) for _ in range(4)]
    up, down = w.matrix(width, inner), w.matrix(inner, width)
    up_bias, down_bias = w.normal(inner, scale=0.1), w.normal(width, scale=0.1)
    scales = [Tensor(w.rng.uniform(0.5, 1.5, width).astype(np.float32)) for _ in range(2)]
    shifts = [w.normal(width, scale=0.1) for _ in range(2)]
    size = width // heads

    def apply(x: Tensor) -> Tensor:
        batch, seq, _ = x.shape

        def split(y: Tensor) -> Tensor:
            return sx.permute_dims(sx.reshape(y, [batch, seq, heads, size]), (0, 2, 1, 3))

        q, k, v = (split(x @ m + b) for m, b in zip((query, key, value), biases))
        weights = sx.softmax((q @ sx.permute_dims(k, (0, 1, 3, 2))) * size**-0.5, axis=-1)
        mixed = sx.reshape(sx.permute_dims(weights @ v, (0, 2, 1, 3)), [batch, seq, width])
        x = sx.layer_norm(x + (mixed @ out + biases[3]), scales[0], shifts[0])
        y = sx.gelu(x @ up + up_bias) @ down + down_bias
        return sx.layer_norm(x + y, scales[1], shifts[1])

    return apply


def mlp(sizes: tuple[int, ...] = (784, 1024, 1024, 10)) -> Function:
    """Linear layers with ReLU in between for x [batch, sizes[0]]."""
    w = Weights(4)
    layers = [(w.matrix(a, b), w.normal(b, scale=0.1)) for a, b in zip(sizes, sizes[1:])]

    def apply(x: Tensor) -> Tensor:
        for number, (matrix, bias) in enumerate(layers):
            x = x @ matrix + bias
            if number + 1 < len(layers):
                x = sx.relu(x)
        return x

    return apply
