"""Random numbers: drawn in each run anew or, with a seed, the same ones in every run."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dialects.dtypes import DType
from sardonyx.frontend.apply import apply, op
from sardonyx.frontend.operands import TensorLike, floating
from sardonyx.frontend.promotion import DEFAULT_FLOAT
from sardonyx.frontend.tensor import Tensor


def _dtype(dtype: object) -> DType:
    return DEFAULT_FLOAT if dtype is None else DType.of(dtype)


def _seed(seed: float | None) -> float | None:
    return None if seed is None else float(seed)


def random_normal_like(
    x: TensorLike, mean: float = 0.0, scale: float = 1.0, *, seed: float | None = None, dtype: object = None
) -> Tensor:
    """Numbers of the normal distribution, in the shape of `x`."""
    target = None if dtype is None else DType.of(dtype)
    return op(
        "sx.random_normal_like", floating(x), mean=float(mean), scale=float(scale), seed=_seed(seed), dtype=target
    )


def random_uniform_like(
    x: TensorLike, low: float = 0.0, high: float = 1.0, *, seed: float | None = None, dtype: object = None
) -> Tensor:
    """Numbers of the uniform distribution over [low, high), in the shape of `x`."""
    target = None if dtype is None else DType.of(dtype)
    return op("sx.random_uniform_like", floating(x), low=float(low), high=float(high), seed=_seed(seed), dtype=target)


def random_normal(
    shape: Sequence[int], mean: float = 0.0, scale: float = 1.0, *, seed: float | None = None, dtype: object = None
) -> Tensor:
    """Numbers of the normal distribution; eager. In a trace `random_normal_like` draws anew in each run."""
    properties = {"mean": float(mean), "scale": float(scale), "seed": _seed(seed), "dtype": _dtype(dtype)}
    return op("sx.random_normal", shape=tuple(shape), **properties)


def random_uniform(
    shape: Sequence[int], low: float = 0.0, high: float = 1.0, *, seed: float | None = None, dtype: object = None
) -> Tensor:
    """Numbers of the uniform distribution over [low, high); eager. In a trace `random_uniform_like` draws anew."""
    properties = {"low": float(low), "high": float(high), "seed": _seed(seed), "dtype": _dtype(dtype)}
    return op("sx.random_uniform", shape=tuple(shape), **properties)


def bernoulli(x: TensorLike, *, seed: float | None = None, dtype: object = None) -> Tensor:
    """1 with the probability that each element states, else 0."""
    target = None if dtype is None else DType.of(dtype)
    return op("sx.bernoulli", floating(x), seed=_seed(seed), dtype=target)


def multinomial(x: TensorLike, sample_size: int = 1, *, seed: float | None = None, dtype: object = "int64") -> Tensor:
    """Classes drawn for each row of [rows, classes], which holds the logarithms of their weights."""
    return op("sx.multinomial", floating(x), sample_size=sample_size, seed=_seed(seed), dtype=DType.of(dtype))


def dropout_with_mask(x: Tensor, ratio: Tensor, training: Tensor, seed: int | None) -> tuple[Tensor, Tensor]:
    """The tensor with elements dropped at random in training, and which ones stayed."""
    out, mask = apply("sx.dropout", x, ratio, training, seed=seed)
    return out, mask
