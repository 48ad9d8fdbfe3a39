"""Linear attention in native code against the reference: update rules, shared heads, dtypes, sizes of 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from three_ways import Case, case, check_all

from sardonyx.dialects.sx.linear_attention import LinearAttentionOp

GENERATOR = np.random.default_rng(3)


def attention(
    rule: str,
    shape: tuple[int, int, int, int, int, int],
    past: bool = True,
    decay: int = 0,
    beta: int = 0,
    dtype: Any = np.float32,
    **more: Any,
) -> Case:
    """`shape` is (batch, time, heads of queries, heads of keys, d_k, d_v); last extents of decay and beta."""
    batch, time, q_heads, heads, d_k, d_v = shape

    def random(*sizes: int) -> Any:
        return (0.5 * GENERATOR.standard_normal(sizes)).astype(dtype)

    slots = [
        random(batch, time, q_heads * d_k), random(batch, time, heads * d_k), random(batch, time, heads * d_v),
        random(batch, heads, d_k, d_v) if past else None,
        -np.abs(random(batch, time, decay)) if decay else None, random(batch, time, beta) if beta else None,
    ]  # fmt: skip
    return case(LinearAttentionOp, *slots, q_num_heads=q_heads, kv_num_heads=heads, update_rule=rule, **more)


def test_rules_heads_and_states():
    cases = [
        attention("linear", (2, 3, 2, 2, 4, 5)),
        attention("gated", (1, 3, 4, 2, 3, 9), decay=6),
        attention("gated_delta", (2, 2, 3, 3, 3, 11), decay=3, beta=3, scale=0.3),
    ]
    check_all(cases, modes=("static", "shared"))


def test_other_dtypes_and_sizes_of_0():
    cases = [
        attention("delta", (2, 4, 2, 1, 5, 3), past=False, beta=1),
        attention("linear", (1, 3, 2, 2, 4, 8), dtype=np.float16),
        attention("linear", (2, 0, 2, 2, 4, 5)),
        attention("gated", (0, 3, 2, 2, 4, 5), decay=2),
    ]
    check_all(cases, modes=("static",))
