"""Ops over the same rows in one kernel: the values, which ops join, and which must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import Maker, check
from three_ways import sample
from tolerances import Tolerance

LIMIT = Tolerance(ulps=32.0, of_largest=16.0, signed=False)
HALF = Tolerance(ulps=4.0, of_largest=4.0, signed=False)


def normalised(axis: int) -> Any:
    """A residual, its layer normalisation in primitives, and an activation."""

    def net(make: Maker, x: Any, r: Any, w: Any) -> Any:
        axes = make.ints(axis)
        h = make.add(x, r)
        d = make.sub(h, make.reduce_mean(h, axes))
        power = make.pow(d, make.constant(np.asarray(2.0, np.float32)))
        spread = make.sqrt(make.add(make.reduce_mean(power, axes), make.constant(np.asarray(1e-3, np.float32))))
        return make.relu(make.mul(make.div(d, spread), w))

    return net


@pytest.mark.parametrize(("axis", "shape"), [(-1, (5, 77)), (-1, (3, 4)), (1, (2, 19, 70)), (0, (9, 5))])
def test_a_normalisation_in_primitives_is_one_kernel(axis: int, shape: tuple[int, ...]) -> None:
    arrays = [sample("float32", *shape), sample("float32", *shape, seed=1), sample("float32", shape[-1], seed=2)]
    check(normalised(axis), arrays, ["reduce_mean"], LIMIT)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_with_neighbours(dtype: str, axis: int) -> None:
    """Costly producers wait with their values; a result of a row beside the whole ones; rounding as without fusion."""

    def net(make: Maker, x: Any, mask: Any) -> Any:
        e = make.exp(make.add(x, mask))
        s = make.softmax(e, axis=axis)
        y = make.mul(make.tanh(s), e)
        return y, make.sqrt(make.reduce_sum_square(y, make.ints(axis))), make.arg_max(y, axis=axis, keepdims=False)

    limit = LIMIT if dtype == "float32" else HALF
    check(net, [sample(dtype, 6, 37, high=1.0), sample(dtype, 37, seed=1, high=1.0)], ["softmax"], limit)


def test_layer_norm_keeps_its_residual_for_later() -> None:
    """The sum is read again behind the normalisation's user, so it is a result of the same kernel."""

    def net(make: Maker, x: Any, r: Any, w: Any, m: Any) -> Any:
        h = make.add(x, r)
        normal = make.gelu(make.layer_norm(h, w, axis=-1))
        return make.add(make.matmul(normal, m), h)

    arrays = [sample("float32", 5, 24, seed=k) for k in (0, 1)] + [sample("float32", 24), sample("float32", 24, 24)]
    check(net, arrays, ["layer_norm", "matmul"], LIMIT, modes=(False,))


def test_what_must_not_join() -> None:
    """A mean without its axis meets other axes; a value that is read between the ends of a region ends it."""

    def other_axes(make: Maker, x: Any) -> Any:
        return make.sub(x, make.reduce_mean(x, make.ints(1), keepdims=False))

    check(other_axes, [sample("float32", 12, 12)], ["reduce_mean", "sub"], LIMIT, guarded=False)

    def read_between(make: Maker, x: Any, w: Any) -> Any:
        mean = make.reduce_mean(x, make.ints(1))
        return make.sub(x, make.matmul(mean, w))

    check(read_between, [sample("float32", 12, 7), sample("float32", 1, 1)], None, LIMIT, guarded=False)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1100])
def test_long_and_short_columns(rows: int) -> None:
    """Sums down columns: groups, their rest, and sums of sums."""

    def net(make: Maker, x: Any) -> Any:
        return make.reduce_sum(x, make.ints(0)), make.reduce_log_sum_exp(x, make.ints(0), keepdims=False)

    check(net, [sample("float32", rows, 13)], None, LIMIT, guarded=rows == 9, modes=(rows > 100,))
