"""Fourier transforms. A complex tensor is one of reals here, with real and imaginary part along a last axis of 2."""

from __future__ import annotations

import math
from typing import Any

from sardonyx.frontend.functions import elementwise as e, gathering as g, sampling, shape as s
from sardonyx.frontend.functions.joining import concat, stack
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant


def _scaled(n: Call, x: Tensor, axes: list[int], normalization: int, sizes: list[Any], divided: bool) -> Tensor:
    """torch's normalization (0 none, 1 by the root of the size, 2 by the size) of a transform.

    An inverse transform of ours has divided by the size already.
    """
    total: Any = 1
    for size in sizes:
        total = total * size
    count = n.to(total, x.dtype)
    if divided:
        x = e.multiply(x, count)
    if normalization == 0:
        return x
    return e.divide(x, e.sqrt(count) if normalization == 1 else count)


@aten("_fft_r2c.default")
def r2c(n: Call, x: Tensor, dim: Any, normalization: int, onesided: bool) -> Tensor:
    axes = [d % x.ndim for d in dim]
    sizes = [x.shape[a] for a in axes]
    found = sampling.dft(s.unsqueeze(x, -1), None, axes[-1], onesided=onesided)
    for axis in axes[:-1]:
        found = sampling.dft(found, None, axis)
    return _scaled(n, found, axes, normalization, sizes, False)


@aten("_fft_c2c.default")
def c2c(n: Call, x: Tensor, dim: Any, normalization: int, forward: bool) -> Tensor:
    rank = x.ndim - 1
    axes = [d % rank for d in dim]
    for axis in axes:
        x = sampling.dft(x, None, axis, inverse=not forward)
    return _scaled(n, x, axes, normalization, [x.shape[a] for a in axes], not forward)


@aten("_fft_c2r.default")
def c2r(n: Call, x: Tensor, dim: Any, normalization: int, last_dim_size: Any) -> Tensor:
    rank = x.ndim - 1
    axes = [d % rank for d in dim]
    last = axes[-1]
    size = n.ints([last_dim_size], "the size of the result")[0]
    for axis in axes[:-1]:
        x = sampling.dft(x, None, axis, inverse=True)
        x = e.multiply(x, n.to(x.shape[axis], x.dtype))
    # The half that is left out mirrors the one that is there.
    half = g.sliced(x, {last: (0, size // 2 + 1)})
    mirrored = g.sliced(half, {last: ((size - 1) // 2, 0, -1)}) if (size - 1) // 2 > 0 else None
    if mirrored is not None:
        sign = Tensor.of_array(_signs(x.dtype.numpy))
        half = concat([half, e.multiply(mirrored, sign)], last)
    full = sampling.dft(half, None, last, inverse=True)
    real = g.gather(full, 0, -1)
    sizes = [*(x.shape[a] for a in axes[:-1]), size]
    real = e.multiply(real, constant(float(size), real.dtype))
    return _scaled(n, real, axes, normalization, sizes, False)


def _signs(dtype: Any) -> Any:
    import numpy as np

    return np.array([1, -1], dtype)


# ---- complex numbers


@aten("real.default")
def real(n: Call, x: Tensor) -> Tensor:
    return g.gather(x, 0, -1) if n.arg_meta(0).is_complex() else x


@aten("imag.default")
def imag(n: Call, x: Tensor) -> Tensor:
    return g.gather(x, 1, -1)


@aten("complex.default")
def complex_(n: Call, real: Tensor, imag: Tensor) -> Tensor:
    return stack(s.broadcast_arrays(real, imag), -1)


@aten("angle.default")
def angle(n: Call, x: Tensor) -> Tensor:
    from sardonyx.frontend.torch.aten.pointwise import atan2

    if n.arg_meta(0).is_complex():
        return atan2(n, g.gather(x, 1, -1), g.gather(x, 0, -1))
    x = n.to(x)
    found = e.where(e.less(x, n.to(0.0)), n.to(math.pi), n.to(0.0))
    return e.where(e.isnan(x), x, found)
