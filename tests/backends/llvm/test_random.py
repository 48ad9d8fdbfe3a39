"""Native random numbers: those of the reference for equal seeds, others in every run without a seed."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import both_refuse, build, case, check_all, sample

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.dtypes import bfloat16, float16, float64, int32, int64
from sardonyx.dialects.sx.random import (
    BernoulliOp,
    DropoutOp,
    MultinomialOp,
    RandomNormalLikeOp,
    RandomNormalOp,
    RandomUniformLikeOp,
    RandomUniformOp,
)
from sardonyx.dialects.sx.tfidf import TfIdfVectorizerOp


def test_draws() -> None:
    p = sample("float32", 3, 11, low=0, high=1)
    cases = [
        case(RandomUniformOp, shape=(3, 37), seed=1.5),
        case(RandomUniformOp, shape=(200,), seed=2.0, dtype=bfloat16, low=1.0, high=1.25),
        case(RandomUniformLikeOp, p.astype(np.int8), dtype=float64, seed=3.0),
        case(RandomNormalOp, shape=(5, 9), seed=4.0, mean=1.0, scale=0.5, dtype=float64),
        case(RandomNormalLikeOp, p, seed=5.0, dtype=float16),
        case(RandomNormalOp, shape=(0, 4), seed=4.0),
        case(BernoulliOp, p, seed=6.0),
        case(BernoulliOp, p, seed=7.0, dtype=int32),
        case(MultinomialOp, sample("float32", 3, 7), seed=8.0, sample_size=20, dtype=int64),
        case(DropoutOp, p, np.float32(0.25), np.array(True), seed=9),
        case(DropoutOp, p, np.float32(0.25), np.array(False), seed=9),
        case(DropoutOp, p, None, None),
    ]
    check_all(cases, ("static", "dynamic"))


def test_refusals() -> None:
    p = sample("float32", 2, 3)
    both_refuse(DropoutOp, p, np.float32(1.0), np.array(True))
    both_refuse(MultinomialOp, np.full((2, 3), -np.inf, np.float32), seed=1.0)


def test_without_a_seed_every_run_differs() -> None:
    graph = build([case(RandomUniformOp, shape=(64,))], "static")
    compiled = compile_module(graph.module)
    first, second = compiled.run([])[0], compiled.run([])[0]
    assert not np.array_equal(first, second) and 0 <= first.min() and first.max() < 1


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_n_grams(mode: str) -> None:
    common = {
        "max_gram_length": 2, "max_skip_count": 5, "min_gram_length": 1, "mode": mode, "ngram_counts": (0, 4),
        "ngram_indexes": (0, 1, 2, 3, 4, 5, 6), "pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7),
        "weights": (0.5, 1.0, 2.0, 3.0, 0.25, 1.5, 1.0),
    }  # fmt: skip
    rows = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    cases = [case(TfIdfVectorizerOp, rows, **common), case(TfIdfVectorizerOp, rows[0].astype(np.int32), **common)]
    check_all([*cases, case(TfIdfVectorizerOp, rows[:, :0], **common)], ("dynamic",))
