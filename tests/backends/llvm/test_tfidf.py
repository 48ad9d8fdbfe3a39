"""Native counts of n-grams against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import Case, case, check_all

from sardonyx.dialects.sx.tfidf import MODES, TfIdfVectorizerOp

POOL: dict[str, Any] = {
    "ngram_counts": (0, 4), "ngram_indexes": tuple(range(7)), "pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7),
}  # fmt: skip
SEQUENCES = [
    np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], np.int32), np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]]),
    np.zeros((0, 3), np.int64), np.zeros((2, 0), np.int32), np.array([5], np.int64), np.array([-1, 1 << 40, 7, 8]),
]  # fmt: skip


def counted(x: np.ndarray[Any, Any], mode: str, least: int, most: int, skips: int, **properties: Any) -> Case:
    weights = {} if mode == "TF" else {"weights": (1.0, 2.0, 0.5, 0.1, 3.0, 4.0, 5.0)}
    lengths = {"min_gram_length": least, "max_gram_length": most, "max_skip_count": skips}
    return case(TfIdfVectorizerOp, x, mode=mode, **lengths, **(properties or {**POOL, **weights}))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_pools_of_the_standard(mode: str) -> None:
    kinds = [(2, 2, 0), (1, 2, 5), (1, 1, 3)]
    cases = [counted(x, MODES[k % 3], *kinds[(k + n) % 3]) for n in (0, 1) for k, x in enumerate(SEQUENCES)]
    check_all(cases, (mode,))


def test_weights_are_optional() -> None:
    cases = [counted(SEQUENCES[1], mode, 1, 2, 1, **POOL) for mode in MODES]
    check_all(cases, ("static",))


def test_a_large_pool() -> None:
    rng = np.random.default_rng(0)
    pool = rng.integers(-20, 20, 300 + 2 * 500 + 3 * 200)
    properties = {
        "pool_int64s": tuple(map(int, pool)), "ngram_counts": (0, 300, 1300), "ngram_indexes": tuple(range(1000)),
    }  # fmt: skip
    x = rng.integers(-25, 25, (3, 200))
    check_all([counted(x, "TF", least, 3, skips, **properties) for least, skips in ((1, 0), (2, 4))], ("static",))
