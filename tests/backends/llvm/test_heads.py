"""Heads of attention: transposes that only products of matrices read are read where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import Maker, check
from three_ways import sample
from tolerances import Tolerance

CLOSE = Tolerance(ulps=16.0, of_largest=16.0, signed=False)


def attention(make: Maker, q: Any, k: Any, v: Any) -> Any:
    """Of q, k and v as [batch, rows, heads, width]."""
    heads = [make.transpose(x, perm=[0, 2, 1, 3]) for x in (q, v)]
    scores = make.matmul(heads[0], make.transpose(k, perm=[0, 2, 3, 1]))
    return make.matmul(make.softmax(scores, axis=-1), heads[1])


@pytest.mark.parametrize(("rows", "columns"), [(1, 9), (3, 6), (21, 13)])
def test_heads_are_not_copied(rows: int, columns: int) -> None:
    """By dot products for few rows of queries, else packed; where only the run knows how many, it chooses."""
    arrays = [sample("float32", 2, n, 3, 20, seed=n) * np.float32(0.25) for n in (rows, columns, columns)]
    few = ["matmul", "softmax", "matmul"]
    known = few if rows < 5 else ["pack", "matmul", "softmax", "pack", "matmul"]
    either = ["dots", "pack", "matmul", "softmax", "matmul_few", "pack", "matmul"]
    check(attention, arrays, known, CLOSE, modes=(False,))
    check(attention, arrays, few if rows == 1 else either, CLOSE, modes=(True,))


def test_other_dtypes_and_what_else_reads_a_transpose() -> None:
    for dtype in ("float64", "int32"):

        def net(make: Maker, q: Any, k: Any) -> Any:
            return make.matmul(make.transpose(q, perm=[1, 0, 2]), make.transpose(k, perm=[1, 2, 0]))

        check(net, [sample(dtype, 7, 2, 5), sample(dtype, 10, 2, 5, seed=1)], ["pack", "matmul"], CLOSE, modes=(False,))

    def both(make: Maker, q: Any, k: Any) -> Any:
        turned = make.transpose(k, perm=[0, 2, 1])
        return make.matmul(q, turned), turned, make.matmul(make.transpose(q, perm=[0, 2, 1]), k)

    # A result of the graph is made; the left side's rows have to be runs.
    arrays = [sample("float32", 2, 6, 6), sample("float32", 2, 6, 6, seed=1)]
    check(both, arrays, ["transpose", "matmul", "transpose", "matmul"], CLOSE, modes=(False,))

    def weights(make: Maker, x: Any) -> Any:
        return make.matmul(make.transpose(x, perm=[1, 0, 2]), make.constant(sample("float32", 6, 8)))

    check(weights, [sample("float32", 5, 2, 6)], ["transpose", "matmul"], CLOSE, modes=(False,))


def test_batches_that_are_broadcast_and_sizes_of_0() -> None:
    def net(make: Maker, q: Any, k: Any) -> Any:
        return make.matmul(make.transpose(q, perm=[0, 2, 1, 3]), make.transpose(k, perm=[0, 2, 3, 1]))

    arrays = [sample("float32", 2, 7, 3, 8), sample("float32", 1, 6, 3, 8, seed=1)]
    check(net, arrays, ["pack", "matmul"], CLOSE, modes=(False,))
    for shapes in (((2, 7, 3, 0), (2, 6, 3, 0)), ((2, 7, 3, 8), (2, 0, 3, 8)), ((0, 7, 3, 8), (0, 6, 3, 8))):
        check(net, [sample("float32", *shape) for shape in shapes], None, CLOSE, guarded=False)


def test_heads_that_queries_share() -> None:
    def net(make: Maker, q: Any, k: Any) -> Any:
        groups = make.reshape(make.transpose(q, perm=[0, 2, 1, 3]), make.ints(1, 2, 3, 7, 8))
        keys = make.unsqueeze(make.transpose(k, perm=[0, 2, 3, 1]), make.ints(2))
        return make.matmul(groups, keys)

    arrays = [sample("float32", 1, 7, 6, 8), sample("float32", 1, 5, 2, 8, seed=1)]
    check(net, arrays, None, CLOSE, modes=(False,))
