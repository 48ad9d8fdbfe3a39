"""What is drawn at random: anew in each run of the graph, as torch does."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import bool_, float32, int64
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import creation as c, elementwise as e, random as d
from sardonyx.frontend.functions.selecting import argsort
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant, is_static


def _drawn(n: Call, size: Any, name: str, **properties: Any) -> Tensor:
    """Numbers of a distribution in a shape, as an op of the graph: never while exporting."""
    from sardonyx.frontend.apply import op_class

    recorder = n.translator.recorder
    extents = list(size)
    dtype = n.dtype if n.dtype.is_float else float32
    if is_static(extents):
        made = op_class(name).make(location=recorder.location(), shape=tuple(extents), dtype=dtype, **properties)
        recorder.append(made)
        return Tensor.of_value(recorder, made.results[0])
    like = c.full(extents, constant(0.0, dtype))
    return op(f"{name}_like", like, dtype=dtype, **properties)


@aten("rand.default", "rand_like.default")
def rand(n: Call, size: Any, dtype: Any = None) -> Tensor:
    return _drawn(n, size.shape if isinstance(size, Tensor) else size, "sx.random_uniform")


@aten("randn.default", "randn_like.default")
def randn(n: Call, size: Any, dtype: Any = None) -> Tensor:
    return _drawn(n, size.shape if isinstance(size, Tensor) else size, "sx.random_normal")


@aten("randint.low", "randint_like.low_dtype")
def randint_low(n: Call, low: Any, high: Any, size: Any = None, dtype: Any = None) -> Tensor:
    if isinstance(low, Tensor):
        return _integers(n, low.shape, high, size)
    return _integers(n, size, low, high)


@aten("randint.default", "randint_like.default")
def randint(n: Call, high: Any, size: Any, dtype: Any = None) -> Tensor:
    if isinstance(high, Tensor):
        return _integers(n, high.shape, 0, size)
    return _integers(n, size, 0, high)


def _integers(n: Call, size: Any, low: Any, high: Any) -> Tensor:
    drawn = _drawn(n, size, "sx.random_uniform", low=float(low), high=float(high))
    return e.cast(e.floor(drawn), n.dtype)


@aten("randperm.default")
def randperm(n: Call, count: Any, dtype: Any = None) -> Tensor:
    return e.cast(argsort(_drawn(n, [count], "sx.random_uniform")), n.dtype)


@aten("bernoulli.default")
def bernoulli(n: Call, x: Tensor) -> Tensor:
    return d.bernoulli(x, dtype=n.dtype)


@aten("bernoulli.p")
def bernoulli_p(n: Call, x: Tensor, p: float = 0.5) -> Tensor:
    return e.cast(e.less(_drawn(n, x.shape, "sx.random_uniform"), constant(p, n.dtype)), n.dtype)


@aten("multinomial.default")
def multinomial(n: Call, x: Tensor, count: int, replacement: bool = False) -> Tensor:
    if not replacement and count > 1:
        raise n.refuse("drawing without replacement", "draw one at a time, or with replacement=True")
    from sardonyx.frontend.functions.shape import squeeze, unsqueeze

    rows = x if x.ndim == 2 else unsqueeze(x, 0)
    found = d.multinomial(e.log(rows), count, dtype=int64)
    return found if x.ndim == 2 else squeeze(found, 0)


def dropout(n: Call, x: Tensor, p: Any) -> Tensor:
    """The tensor with elements dropped at random."""
    return d.dropout_with_mask(x, constant(float(p), x.dtype), constant(True, bool_), None)[0]


@aten("native_dropout.default")
def native_dropout(n: Call, x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x, c.full(x.shape, constant(True, bool_))
    if p == 1:
        zeros = e.multiply(x, constant(0.0, x.dtype))
        return zeros, c.full(x.shape, constant(False, bool_))
    return d.dropout_with_mask(x, constant(float(p), x.dtype), constant(True, bool_), None)
