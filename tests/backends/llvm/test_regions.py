"""Native regions, windows and columns against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import both_refuse, case, check_all, sample

from sardonyx.dialects.dtypes import ALL, FLOATS
from sardonyx.dialects.sx.col2im import Col2ImOp
from sardonyx.dialects.sx.deform_conv import DeformConvOp
from sardonyx.dialects.sx.lp_pool import GlobalLpPoolOp, LpPoolOp, MaxUnpoolOp
from sardonyx.dialects.sx.roi import MaxRoiPoolOp, RoiAlignOp


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ROIS = np.array([[0, 0, 6, 4], [-3, 1, 20, 3.5], [2, 2, 2, 2], [5, 4, 1, 0]], np.float32)
X = sample("float32", 2, 3, 5, 7)


def test_roi_align() -> None:
    cases = []
    for half in ("half_pixel", "output_half_pixel"):
        for mode in ("avg", "max"):
            common = {"coordinate_transformation_mode": half, "mode": mode, "output_height": 2, "output_width": 9}
            cases.append(case(RoiAlignOp, X, ROIS, ints(0, 1, 1, 0), spatial_scale=0.75, **common))
            cases.append(case(RoiAlignOp, X, ROIS, ints(0, 1, 1, 0), sampling_ratio=2, **common))
    cases.append(case(RoiAlignOp, X[:, :0], ROIS, ints(0, 9, 1, 0)))
    cases.append(case(RoiAlignOp, X[:0], ROIS[:0], ints()))
    cases.append(case(RoiAlignOp, X.astype(np.float64), ROIS.astype(np.float64), ints(0, 1, 1, 0), output_width=3))
    cases.append(case(RoiAlignOp, X.astype(np.float16), ROIS.astype(np.float16), ints(0, 1, 1, 0), sampling_ratio=1))
    check_all(cases, ("dynamic",))
    check_all(cases[::4], ("static",))
    both_refuse(RoiAlignOp, X, ROIS, ints(0, 2, 0, 0))
    both_refuse(RoiAlignOp, X, np.where(ROIS == 6, np.float32(np.inf), ROIS), ints(0, 1, 0, 0))
    both_refuse(RoiAlignOp, X, ROIS * np.float32(1e6), ints(0, 1, 0, 0), output_height=4, modes=("static",))
    both_refuse(RoiAlignOp, X[:, :, :0], ROIS, ints(0, 1, 0, 0))


def test_max_roi_pool() -> None:
    cases = []
    for dtype in FLOATS:
        rois = np.concatenate([np.array([[0], [1], [1], [0]]), ROIS], 1).astype(dtype.numpy)
        cases.append(case(MaxRoiPoolOp, sample(dtype.name, 2, 3, 5, 7), rois, pooled_shape=(2, 3), spatial_scale=0.8))
    cases.append(case(MaxRoiPoolOp, X[:, :, :0], rois.astype(np.float32), pooled_shape=(2, 3)))
    check_all(cases, ("static", "dynamic"))
    rois = rois.astype(np.float32)
    both_refuse(MaxRoiPoolOp, X[:1], rois, pooled_shape=(1, 1))


def test_lp_pools() -> None:
    cases = []
    for p in (1, 2, 3, 11):
        cases.append(case(LpPoolOp, X, kernel_shape=(2, 3), p=p, pads=(1, 0, 1, 2), strides=(1, 2), dilations=(2, 1)))
        cases.append(case(GlobalLpPoolOp, X, p=p))
    for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        cases.append(case(LpPoolOp, X, kernel_shape=(2, 3), auto_pad=auto, strides=(2, 2)))
    cases.append(case(LpPoolOp, X, kernel_shape=(3, 3), ceil_mode=True, strides=(2, 2)))
    cases.append(case(LpPoolOp, sample("float16", 1, 2, 9), kernel_shape=(4,)))
    cases.append(case(LpPoolOp, X[:0], kernel_shape=(3, 3)))
    cases.append(case(GlobalLpPoolOp, X[:, :, :0]))
    check_all(cases, ("dynamic",))
    check_all(cases[:3], ("static",))
    both_refuse(LpPoolOp, X, kernel_shape=(9, 3))


def test_max_unpool() -> None:
    x, places = sample("float32", 1, 2, 2, 2), ints(5, 7, 5, 15, 16, 18, 30, 31).reshape(1, 2, 2, 2)
    common: dict[str, Any] = {"kernel_shape": (2, 2), "strides": (2, 2)}
    cases = [
        case(MaxUnpoolOp, x, places, None, **common),
        case(MaxUnpoolOp, x, places, ints(1, 2, 5, 6), **common),
        case(MaxUnpoolOp, x[:0], places[:0], None, **common),
    ]
    check_all(cases, ("static", "dynamic", "constant"))
    both_refuse(MaxUnpoolOp, x, places + 1, None, **common)
    both_refuse(MaxUnpoolOp, x, places, ints(1, 2, 3, 4), **common)


def test_col2im() -> None:
    cases = []
    for dtype in ALL:
        cases.append(case(Col2ImOp, sample(dtype.name, 2, 12, 16), ints(5, 6), ints(2, 3)))
    common: dict[str, Any] = {"pads": (1, 0, 1, 2), "strides": (2, 1), "dilations": (1, 2)}
    cases.append(case(Col2ImOp, sample("float32", 1, 8, 21), ints(5, 7), ints(2, 2), **common))
    cases.append(case(Col2ImOp, sample("float32", 1, 3, 4), ints(6), ints(3)))
    cases.append(case(Col2ImOp, sample("float32", 0, 3, 4), ints(6), ints(3)))
    check_all([cases[0], cases[-3]], ("static",))
    check_all(cases, ("constant",))
    both_refuse(Col2ImOp, sample("float32", 1, 3, 5), ints(6), ints(3), modes=("static",))
    both_refuse(Col2ImOp, sample("float32", 1, 3, 4), ints(6), ints(0), modes=("static",))
    both_refuse(Col2ImOp, sample("float32", 1, 3, 4), ints(2), ints(3), modes=("static",))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_deform_conv(mode: str) -> None:
    x, w = sample("float32", 2, 4, 5, 7), sample("float32", 6, 2, 2, 3)
    offset, mask = sample("float32", 2, 24, 4, 5), sample("float32", 2, 12, 4, 5)
    offset.reshape(-1)[::17] = np.nan
    cases = [
        case(DeformConvOp, x, w, offset, sample("float32", 6), mask, group=2, offset_group=2),
        case(DeformConvOp, x[:, :2], w, offset[:, :12], None, None),
        case(
            DeformConvOp, x[:, :2], w, sample("float32", 2, 12, 3, 4), None, None,
            pads=(1, 1, 1, 1), strides=(2, 2), dilations=(2, 1), kernel_shape=(2, 3),
        ),
        case(DeformConvOp, x[:0, :2], w, offset[:0, :12], None, None),
        case(DeformConvOp, x[:, :2, :0], w, sample("float32", 2, 12, 1, 5), None, None, pads=(1, 0, 1, 0)),
        case(DeformConvOp, *(a.astype(np.float64) for a in (x[:, :2], w, offset[:, :12])), None, None),
        case(DeformConvOp, *(a.astype(np.float16) for a in (x[:, :2], w, offset[:, :12])), None, None),
    ]  # fmt: skip
    check_all(cases, (mode,))
