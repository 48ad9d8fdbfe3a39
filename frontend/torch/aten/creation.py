"""Making tensors: filled ones, ranges, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import float64, int64
from sardonyx.frontend.apply import op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions import creation as c, elementwise as e
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten


@aten("full.default", "new_full.default")
def full(n: Call, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
    size, value = args[-2:]
    return c.full(list(size), n.to(value))


@aten("full_like.default")
def full_like(n: Call, x: Tensor, value: Any, dtype: Any = None) -> Tensor:
    return c.full(x.shape, n.to(value))


@aten("zeros.default", "empty.memory_format", "empty_permuted.default", "empty_strided.default")
def zeros(n: Call, size: Any, *rest: Any, dtype: Any = None, **options: Any) -> Tensor:
    return c.full(list(size), n.to(0))


@aten("new_zeros.default", "new_empty.default", "new_empty_strided.default")
def new_zeros(n: Call, x: Tensor, size: Any, *rest: Any, dtype: Any = None, **options: Any) -> Tensor:
    return c.full(list(size), n.to(0))


@aten("zeros_like.default", "empty_like.default")
def zeros_like(n: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return c.full(x.shape, n.to(0))


@aten("ones.default")
def ones(n: Call, size: Any, dtype: Any = None) -> Tensor:
    return c.full(list(size), n.to(1))


@aten("new_ones.default")
def new_ones(n: Call, x: Tensor, size: Any, dtype: Any = None) -> Tensor:
    return c.full(list(size), n.to(1))


@aten("ones_like.default")
def ones_like(n: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return c.full(x.shape, n.to(1))


@aten("scalar_tensor.default")
def scalar_tensor(n: Call, value: Any, dtype: Any = None) -> Tensor:
    return n.to(value)


@aten("arange.default")
def arange(n: Call, end: Any, dtype: Any = None) -> Tensor:
    return arange_step(n, 0, end, 1)


@aten("arange.start")
def arange_start(n: Call, start: Any, end: Any, dtype: Any = None) -> Tensor:
    return arange_step(n, start, end, 1)


@aten("arange.start_step", "prims::iota.default")
def arange_step(n: Call, start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    if n.dtype.is_integer:  # torch cuts fractions off before it counts
        start, step = (int(v) if isinstance(v, float) else v for v in (start, step))
    if not any(isinstance(v, Extent | Tensor) for v in (start, end, step)):
        count = n.meta.shape[0]
        if isinstance(count, int):
            kind = np.float64 if any(isinstance(v, float) for v in (start, end, step)) else np.int64
            values = np.asarray(start, kind) + np.arange(count).astype(kind) * np.asarray(step, kind)
            return Tensor.of_array(values.astype(n.dtype.numpy))
    carrier = int64 if n.dtype.is_integer else float64 if n.dtype == float64 else n.dtype
    if n.dtype.is_integer or not any(isinstance(v, float) for v in (start, end, step)):
        carrier = int64
    return e.cast(op("sx.range", *(n.to(v, carrier) for v in (start, end, step))), n.dtype)


@aten("linspace.default")
def linspace(n: Call, start: Any, end: Any, steps: Any, dtype: Any = None) -> Tensor:
    count = n.ints([steps], "the number of steps")[0]
    if isinstance(start, int | float) and isinstance(end, int | float):
        values = np.linspace(start, end, count)
        return Tensor.of_array(values.astype(n.dtype.numpy))
    a, b = n.both(start, end)
    parts = Tensor.of_array((np.arange(count) / max(count - 1, 1)).astype(n.dtype.numpy))
    return e.add(a, e.multiply(e.subtract(b, a), parts))


@aten("logspace.default")
def logspace(n: Call, start: Any, end: Any, steps: Any, base: float = 10.0, dtype: Any = None) -> Tensor:
    count = n.ints([steps], "the number of steps")[0]
    return Tensor.of_array((np.float64(base) ** np.linspace(start, end, count)).astype(n.dtype.numpy))


@aten("eye.default")
def eye(n: Call, rows: Any, dtype: Any = None) -> Tensor:
    return eye_m(n, rows, rows)


@aten("eye.m")
def eye_m(n: Call, rows: Any, columns: Any, dtype: Any = None) -> Tensor:
    if isinstance(rows, int) and isinstance(columns, int):
        return Tensor.of_array(np.eye(rows, columns).astype(n.dtype.numpy))
    from sardonyx.frontend.functions.shape import unsqueeze

    down, across = c.arange(rows, dtype="int64"), c.arange(columns, dtype="int64")
    return e.cast(e.equal(unsqueeze(down, 1), unsqueeze(across, 0)), n.dtype)


@aten("_local_scalar_dense.default", "item.default")
def item(n: Call, x: Tensor) -> Any:
    """The number in a tensor: an extent where it is an integer, else a tensor []."""
    from sardonyx.frontend.functions.shape import reshape

    if not x.dtype.is_integer:
        return reshape(x, ())
    return n.translator.extent_of(n.meta, e.cast(reshape(x, (1,)), int64))
