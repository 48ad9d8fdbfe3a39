"""Distances between rows."""

from __future__ import annotations

import numpy as np

from sardonyx.frontend.functions import elementwise as e, gathering as g, reductions as r, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.aten.reductions import norm_over
from sardonyx.frontend.torch.registry import Call, aten


@aten("_cdist_forward.default", "_euclidean_dist.default")
def cdist(n: Call, a: Tensor, b: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    apart = e.subtract(s.unsqueeze(a, -2), s.unsqueeze(b, -3))
    return _norm(n, apart, float(p))


def _norm(n: Call, apart: Tensor, p: float) -> Tensor:
    if p == float("inf") and isinstance(apart.shape[-1], int) and apart.shape[-1] == 0:
        return r.sum(apart, -1, dtype=apart.dtype)
    return norm_over(n, apart, p, [apart.ndim - 1], False)


@aten("_pdist_forward.default")
def pdist(n: Call, x: Tensor, p: float = 2.0) -> Tensor:
    rows = n.ints(x.shape[:1], "the number of rows")[0]
    first, second = np.triu_indices(rows, 1)
    apart = e.subtract(g.gather(x, first.astype(np.int64), 0), g.gather(x, second.astype(np.int64), 0))
    return _norm(n, apart, float(p))
