"""Elementwise groups that read through transposes, reshapes, slices and expansions; transposes by tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import Maker, check
from three_ways import sample
from tolerances import Tolerance

EXACT = Tolerance(ulps=4.0, of_largest=0.0, signed=False)
EQUAL = Tolerance(ulps=0.0, of_largest=0.0, signed=True)


def test_a_chain_of_transposes_composes() -> None:
    def net(make: Maker, x: Any, w: Any) -> Any:
        t = make.mul(make.transpose(x, perm=[0, 2, 1, 3]), make.constant(np.asarray(0.5, np.float32)))
        t = make.relu(make.add(make.transpose(t, perm=[0, 1, 3, 2]), make.constant(np.ones((3, 1, 1), np.float32))))
        t = make.reshape(make.transpose(t, perm=[0, 3, 1, 2]), make.ints(2, 5, 48))
        return make.transpose(make.add(t, w), perm=[1, 0, 2])

    check(net, [sample("float32", 2, 5, 3, 16), sample("float32", 48)], ["transpose"], EXACT, modes=(False,))


def test_dynamic_axes_keep_their_places() -> None:
    def net(make: Maker, x: Any, y: Any) -> Any:
        return make.mul(make.transpose(make.abs(x), perm=[1, 0, 2]), y)

    check(net, [sample("float32", 6, 5, 19), sample("float32", 19)], ["mul"], EXACT, modes=(True,))


def test_what_would_be_read_across_stays_apart() -> None:
    def net(make: Maker, x: Any) -> Any:
        return make.neg(make.transpose(make.exp(x), perm=[1, 0]))

    check(net, [sample("float32", 21, 19)], ["exp", "transpose", "neg"], EXACT)

    def both(make: Maker, x: Any) -> Any:
        e = make.exp(x)
        return make.add(e, make.transpose(e, perm=[1, 0]))

    check(both, [sample("float32", 18, 18)], ["exp", "transpose", "add"], EXACT, modes=(False,), guarded=False)


def test_slices_and_expansions_are_read_in_place() -> None:
    def net(make: Maker, x: Any, row: Any) -> Any:
        part = make.slice(x, make.ints(-2, 3), make.ints(-40, 24), make.ints(0, 1), make.ints(-2, 1))
        return make.sub(part, make.expand(row, make.ints(9, 21)))

    check(net, [sample("float32", 19, 30), sample("float32", 1, 21)], ["sub"], EXACT, modes=(False,))


def test_what_is_broadcast_is_computed_once() -> None:
    def net(make: Maker, x: Any, y: Any) -> Any:
        return make.add(make.transpose(y, perm=[1, 0, 2]), make.exp(x))

    arrays = [sample("float32", 1, 16), sample("float32", 3, 4, 16)]
    check(net, arrays, ["exp", "add"], EXACT, modes=(False,), guarded=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "bool"])
@pytest.mark.parametrize(
    ("shape", "perm"), [((17, 33), (1, 0)), ((3, 16, 35), (0, 2, 1)), ((4, 3, 9), (2, 1, 0)), ((0, 9), (1, 0))]
)
def test_transposes_by_tiles(dtype: str, shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    def net(make: Maker, x: Any) -> Any:
        return make.transpose(x, perm=list(perm))

    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    check(net, [x], ["transpose"], EQUAL, modes=(len(shape) == 2,), guarded=False)
    if len(shape) == 3 and dtype in ("float32", "uint8"):
        check(net, [x], ["transpose"], EQUAL, modes=(False,))
