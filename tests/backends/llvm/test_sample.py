"""Native sampling at stated places against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import both_refuse, case, check_all, sample

from sardonyx.dialects.dtypes import ALL
from sardonyx.dialects.sx.grid_sample import MODES, PADDING_MODES, AffineGridOp, GridSampleOp


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def grid(dtype: str, *shape: int) -> np.ndarray:
    """Places inside and outside, with some that are not finite."""
    out = sample(dtype, *shape, low=-1.7, high=1.7)
    flat = out.reshape(-1)
    flat[::37] = np.nan
    flat[5::41] = np.inf
    return out


@pytest.mark.parametrize("padding", PADDING_MODES)
def test_modes(padding: str) -> None:
    cases = []
    for mode, align in zip(MODES, (False, False, True), strict=True):
        common = {"mode": mode, "padding_mode": padding, "align_corners": align}
        cases.append(case(GridSampleOp, sample("float32", 2, 3, 5, 7), grid("float32", 2, 4, 9, 2), **common))
    cases.append(case(GridSampleOp, sample("float32", 1, 2, 9), grid("float64", 1, 21, 1), **common))
    cases.append(case(GridSampleOp, sample("float32", 1, 1, 1, 1), grid("float32", 1, 3, 3, 2), padding_mode=padding))
    check_all(cases, ("static",))
    check_all(cases[:1], ("dynamic",))


def test_volumes() -> None:
    x, places = sample("float64", 1, 2, 3, 4, 5), grid("float32", 1, 2, 3, 4, 3)
    check_all([case(GridSampleOp, x, places, align_corners=True)], ("static",))


def test_four_axes() -> None:
    x, places = sample("float32", 1, 2, 3, 3, 3, 3), grid("float32", 1, 1, 2, 2, 3, 4)
    check_all([case(GridSampleOp, x, places, mode="cubic")], ("static",))


def test_dtypes_and_no_elements() -> None:
    cases = []
    for dtype in (d for d in ALL if d.bits != 32):
        mode = "nearest" if dtype.name == "bool" else "linear"
        x = sample(dtype.name, 1, 2, 4, 5, low=-90, high=90)
        cases.append(case(GridSampleOp, x, grid("float16", 1, 3, 3, 2), mode=mode))
    x = sample("float32", 2, 3, 5, 7)
    cases += [
        case(GridSampleOp, x, grid("float32", 2, 0, 4, 2)),
        case(GridSampleOp, x[:0], grid("float32", 0, 3, 4, 2)),
        case(GridSampleOp, x[:, :, :0], grid("float32", 2, 0, 4, 2)),
    ]
    check_all(cases, ("static",))
    check_all(cases[-4:], ("dynamic",))
    both_refuse(GridSampleOp, x[:, :, :0], grid("float32", 2, 3, 4, 2))
    both_refuse(GridSampleOp, x[:1], grid("float32", 2, 3, 4, 2))


def test_affine_grids() -> None:
    cases = []
    for align in (False, True):
        theta = sample("float32", 2, 2, 3)
        cases += [
            case(AffineGridOp, theta, ints(2, 3, 5, 9), align_corners=align),
            case(AffineGridOp, theta, ints(2, 3, 1, 0), align_corners=align),
            case(AffineGridOp, sample("float64", 1, 3, 4), ints(1, 2, 4, 3, 1), align_corners=align),
            case(AffineGridOp, sample("float16", 0, 2, 3), ints(0, 2, 4, 3), align_corners=align),
        ]
    check_all(cases, ("static", "constant"))
    both_refuse(AffineGridOp, theta, ints(3, 3, 5, 9), modes=("static",))
    both_refuse(AffineGridOp, theta, ints(2, 3, -5, 9), modes=("static",))
