"""Elementwise groups in the epilogues of contractions: the values, and which groups are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import nets
import numpy as np
import pytest
from nets import Maker, Net, graph, kernel_names
from three_ways import sample
from tolerances import Tolerance
from xdsl.dialects.builtin import ModuleOp

Array = np.ndarray[Any, Any]


def kernels(module: ModuleOp) -> int:
    """How many kernels the graph has, beside those that lay operands out."""
    return sum(not name.startswith(("pack", "widen")) for name in kernel_names(module))


def check(net: Net, arrays: Sequence[Array], count: int | None, guarded: bool = False) -> None:
    """Native against the reference, static and dynamic, and the number of kernels."""
    limit = Tolerance(ulps=16.0, of_largest=16.0, signed=False)
    if arrays[0].dtype.itemsize == 2:
        limit = Tolerance(ulps=2.0, of_largest=2.0, signed=False)
    for dynamic in (False, True):
        assert count is None or kernels(graph(net, arrays, dynamic)) == count, f"dynamic: {dynamic}"
    nets.check(net, arrays, None, limit, guarded=guarded)


def mlp(make: Maker, x: Any, w: Any, bias: Any, residual: Any, scale: Any) -> Any:
    """Bias, activation, residual and a scale per row."""
    hidden = make.tanh(make.add(make.matmul(x, w), bias))
    return make.mul(make.add(hidden, residual), scale)


GROUPS = [("float32", *s) for s in ((7, 33, 5), (1, 40, 3), (13, 16, 0), (3, 1, 4), (0, 3, 2))]
GROUPS += [("float64", 7, 17, 5), ("float16", 7, 33, 5), ("bfloat16", 1, 40, 3)]


@pytest.mark.parametrize(("dtype", "m", "n", "k"), GROUPS)
def test_groups_with_all_kinds_of_operands(dtype: str, m: int, n: int, k: int) -> None:
    arrays = [
        sample(dtype, m, k), sample(dtype, k, n, seed=1), sample(dtype, n, seed=2), sample(dtype, m, n, seed=3),
        sample(dtype, m, 1, seed=4),
    ]  # fmt: skip
    check(mlp, arrays, 1 if m > 1 else None, guarded=dtype == "float32")


def test_a_constant_weight_and_bias() -> None:
    w, bias = sample("float32", 9, 35, seed=1), sample("float32", 35, seed=2)

    def net(make: Maker, x: Any) -> Any:
        return make.gelu(make.add(make.matmul(x, make.constant(w)), make.constant(bias)))

    for m in (1, 4, 11, 40):
        check(net, [sample("float32", m, 9)], 1, guarded=True)
    check(net, [sample("float32", 2, 3, 9)], 1)


def test_gemm_scales_adds_and_takes_a_group() -> None:
    def net(make: Maker, a: Any, b: Any, c: Any) -> Any:
        return make.relu(make.gemm(a, b, c, alpha=0.5, beta=2.0))

    for c in ((5,), (3, 1), (1, 5), (3, 5), ()):
        check(net, [sample("float32", 3, 4), sample("float32", 4, 5, seed=1), sample("float32", *c, seed=2)], 1)


def test_batches_and_operands_that_repeat() -> None:
    """Rows are counted over all matrices; an operand may repeat over the leading ones."""

    def net(make: Maker, x: Any, y: Any, whole: Any, inner: Any) -> Any:
        return make.mul(make.sub(make.matmul(x, y), whole), inner)

    arrays = [
        sample("float32", 3, 2, 5, 4), sample("float32", 2, 4, 19, seed=1), sample("float32", 3, 2, 5, 19, seed=2),
        sample("float32", 2, 5, 1, seed=3),
    ]  # fmt: skip
    check(net, arrays, 1, guarded=True)


def test_results_of_another_type() -> None:
    def net(make: Maker, x: Any, y: Any) -> Any:
        return make.greater(make.matmul(x, y), make.constant(np.array(0.25, np.float32)))

    check(net, [sample("float32", 7, 4), sample("float32", 4, 21, seed=1)], 1, guarded=True)


def test_what_is_not_taken() -> None:
    """Another user, an operand broadcast across columns in part, a result that grows."""
    x, y = sample("float32", 3, 4), sample("float32", 4, 6, seed=1)

    def two_users(make: Maker, a: Any, b: Any) -> Any:
        product = make.matmul(a, b)
        return make.exp(product), make.transpose(product, perm=(1, 0))

    check(two_users, [x, y], 3)
    check(lambda make, a, b: (p := make.matmul(a, b), make.exp(p)), [x, y], 2)

    def grows(make: Maker, a: Any, b: Any, c: Any) -> Any:
        return make.add(make.matmul(a, b), c)

    check(grows, [x, y, sample("float32", 2, 3, 6, seed=2)], 2)
    check(grows, [sample("float32", 2, 3, 4), y, sample("float32", 2, 1, 6, seed=2)], 2)


def test_of_two_contractions_the_later_one_takes_the_sum() -> None:
    def net(make: Maker, a: Any, b: Any, c: Any) -> Any:
        return make.relu(make.add(make.matmul(a, b), make.matmul(a, c)))

    check(net, [sample("float32", 5, 4), sample("float32", 4, 17, seed=1), sample("float32", 4, 17, seed=2)], 2)
