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


# ---- other operators on complex tensors

_COMPLEX: dict[str, Any] = {}


def complex_rule(name: str) -> Any:
    """The translation of an operator where a tensor is complex; None where there is none."""
    return _COMPLEX.get(name)


def _for_complex(*names: str) -> Any:
    def register(function: Any) -> Any:
        for name in names:
            _COMPLEX[f"aten.{name}"] = function
        return function

    return register


_for_complex("_fft_r2c.default")(r2c)
_for_complex("_fft_c2c.default")(c2c)
_for_complex("_fft_c2r.default")(c2r)
_for_complex("real.default")(real)
_for_complex("imag.default")(imag)
_for_complex("complex.default")(complex_)
_for_complex("angle.default")(angle)


@_for_complex(
    "clone.default", "alias.default", "detach.default", "view_as_real.default", "view_as_complex.default",
    "resolve_conj.default", "contiguous.default",
)  # fmt: skip
def _same(n: Call, x: Tensor, *rest: Any, **options: Any) -> Tensor:
    return x


@_for_complex("polar.default")
def _polar(n: Call, size: Tensor, turn: Tensor) -> Tensor:
    return stack(s.broadcast_arrays(e.multiply(size, e.cos(turn)), e.multiply(size, e.sin(turn))), -1)


@_for_complex("_to_copy.default")
def _of_real(n: Call, x: Tensor, *rest: Any, **options: Any) -> Tensor:
    """A real tensor as a complex one."""
    if n.arg_meta(0).is_complex():
        if not n.meta.is_complex() or n.meta.dtype != n.arg_meta(0).dtype:
            raise n.refuse("a cast of complex numbers")
        return x
    wide = e.cast(x, n.translator.dtype(n.meta.real.dtype))
    return stack([wide, e.multiply(wide, constant(0, wide.dtype))], -1)


def _parts(n: Call, index: int, x: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    """Real and imaginary part of an operand."""
    meta = n.arg_meta(index)
    if hasattr(meta, "is_complex") and meta.is_complex():
        return g.gather(x, 0, -1), g.gather(x, 1, -1)
    plain = n.to(x, dtype)
    return plain, e.multiply(plain, constant(0, dtype))


@_for_complex("mul.Tensor")
def _product(n: Call, a: Any, b: Any) -> Tensor:
    dtype = n.translator.dtype(n.meta.real.dtype)
    (ar, ai), (br, bi) = _parts(n, 0, a, dtype), _parts(n, 1, b, dtype)
    low = e.subtract(e.multiply(ar, br), e.multiply(ai, bi))
    high = e.add(e.multiply(ar, bi), e.multiply(ai, br))
    return stack([low, high], -1)


@_for_complex("abs.default")
def _size(n: Call, x: Tensor) -> Tensor:
    return e.hypot(g.gather(x, 0, -1), g.gather(x, 1, -1))


@_for_complex("_conj.default", "_conj_physical.default", "conj_physical.default")
def _conjugate(n: Call, x: Tensor) -> Tensor:
    return e.multiply(x, Tensor.of_array(_signs(x.dtype.numpy)))


@_for_complex("view.default", "reshape.default", "_unsafe_view.default")
def _reshaped(n: Call, x: Tensor, size: Any) -> Tensor:
    return s.reshape(x, [*size, 2])


@_for_complex("unsqueeze.default")
def _unsqueezed(n: Call, x: Tensor, dim: int) -> Tensor:
    return s.unsqueeze(x, dim % x.ndim)


@_for_complex("slice.Tensor")
def _cut(n: Call, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Tensor:
    from sardonyx.frontend.torch.aten.indexing import slice_

    return slice_(n, x, dim % (x.ndim - 1), start, end, step)
