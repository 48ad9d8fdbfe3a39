"""Bags of embeddings."""

from __future__ import annotations

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.frontend.functions import creation as c, elementwise as e, gathering as g, reductions as r, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.aten.scatter import _put, _reduced, _spread
from sardonyx.frontend.torch.registry import Call, aten, constant


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(
    n: Call,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor | None, ...]:
    """Rows of a table, those of each bag summed up (0), averaged (1) or their greatest taken (2)."""
    indices, offsets = e.cast(indices, int64), e.cast(offsets, int64)
    if include_last_offset:
        offsets = g.sliced(offsets, {0: (0, -1)})
    bags, count = offsets.shape[0], indices.shape[0]
    places = c.arange(count, dtype="int64")
    started = e.less_equal(s.unsqueeze(offsets, 0), s.unsqueeze(places, 1))
    bag = e.subtract(r.sum(started, 1), constant(1, int64))
    rows = g.gather(weight, indices, 0)
    if per_sample_weights is not None:
        rows = e.multiply(rows, s.unsqueeze(e.cast(per_sample_weights, rows.dtype), 1))
    counted = c.full([count], constant(1, int64))
    if padding_idx >= 0:
        kept = e.not_equal(indices, constant(padding_idx, int64))
        counted = e.cast(kept, int64)
        if mode != 2:
            rows = e.where(s.unsqueeze(kept, 1), rows, constant(0, rows.dtype))
    sizes = _put(c.full([bags], constant(0, int64)), 0, bag, counted, "add")
    zeros = c.full([bags, weight.shape[1]], constant(0, rows.dtype))
    if mode == 2:
        lowest = constant(-np.inf, rows.dtype)
        if padding_idx >= 0:
            rows = e.where(s.unsqueeze(e.greater(counted, 0), 1), rows, lowest)
        found = _reduced(n, e.add(zeros, lowest), 0, _spread(bag, rows, 0), rows, "amax", True)
        found = e.where(s.unsqueeze(e.equal(sizes, 0), 1), constant(0, rows.dtype), found)
    else:
        found = _put(zeros, 0, _spread(bag, rows, 0), rows, "add")
        if mode == 1:
            found = e.divide(found, e.cast(s.unsqueeze(e.maximum(sizes, constant(1, int64)), 1), rows.dtype))
    # torch leaves some of these empty in some modes: only what is read is stated.
    read = {user.args[1] for user in n.node.users}
    results = (found, bag, sizes, c.full([bags], constant(0, int64)))
    return tuple(r if place in read else None for place, r in enumerate(results))
