"""Native resizing against the reference: modes, dtypes, extents and scales of the run or known before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from families import hold_weights
from three_ways import both_refuse, build, case, check_all, compare, sample
from xdsl.ir import BlockArgument

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.dtypes import ALL
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.resample import NEAREST_MODES, POLICIES, TRANSFORMATIONS
from sardonyx.dialects.sx.resize import ResizeOp


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = sample("float32", 2, 3, 5, 7)


def transformed(transformation: str) -> list:
    roi = floats(0.1, -0.2, 0.8, 1.3) if transformation == "tf_crop_and_resize" else None
    common = {"coordinate_transformation_mode": transformation, "extrapolation_value": 3.5}
    return [
        case(ResizeOp, X, roi, floats(2, 1.7), None, axes=(2, 3), **common),
        case(ResizeOp, X, roi, floats(2, 0.4), None, axes=(3, 2), mode="linear", **common),
        case(ResizeOp, X, roi, None, ints(3, 16), axes=(2, -1), mode="linear", antialias=True, **common),
        case(ResizeOp, X, roi, None, ints(9, 4), axes=(2, -1), mode="cubic", exclude_outside=True, **common),
    ]


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_modes(transformation: str) -> None:
    cases = transformed(transformation)
    check_all(cases, ("dynamic",))
    graph = build(cases, "constant")
    hold_weights(graph)  # scales and regions are constants
    expected = evaluate_function(main_function(graph.module), graph.feeds)
    got = compile_module(graph.module).run(graph.feeds)
    for (one, _), a, b in zip(graph.outputs, got, expected, strict=True):
        assert compare("resize", a, np.asarray(b)) is None, str(one)


def test_nearest_and_proportions() -> None:
    cases = [case(ResizeOp, X, None, floats(1, 1, 2.3, 0.6), None, nearest_mode=n) for n in NEAREST_MODES]
    for policy in POLICIES:
        cases += [
            case(ResizeOp, X, None, None, ints(9, 8), axes=(2, 3), mode="linear", keep_aspect_ratio_policy=policy),
            case(ResizeOp, X, None, None, ints(2, 9), axes=(2, 3), mode="nearest", keep_aspect_ratio_policy=policy),
        ]
    check_all(cases, ("dynamic",))


def test_dtypes() -> None:
    cases = []
    for dtype in ALL:
        x = sample(dtype.name, 2, 4, 5, low=-100, high=100)
        mode = "nearest" if dtype.name == "bool" else "cubic" if dtype.bits == 32 else "linear"
        cases.append(case(ResizeOp, x, None, None, ints(2, 8, 12), mode=mode))
    check_all(cases, ("constant",))
    check_all(cases[:3], ("dynamic",))


def test_ranks_and_no_elements() -> None:
    x = sample("float32", 2, 4, 5)
    check_all(
        [
            case(ResizeOp, sample("float32", 0, 4, 5), None, floats(1, 2, 2.5), None, mode="linear"),
            case(ResizeOp, x, None, None, ints(2, 0, 5), mode="linear"),
            case(ResizeOp, x, None, None, ints(2, 4, 5), mode="cubic"),
            case(ResizeOp, sample("float32", 7), None, None, ints(20), mode="cubic"),
            case(ResizeOp, sample("float32", 7), None, None, ints(3)),
            case(ResizeOp, sample("float32", 1, 5, 7, 3), None, None, ints(4, 12), axes=(1, 2), mode="linear"),
            case(ResizeOp, sample("uint8", 1, 5, 7, 3), None, None, ints(4, 14), axes=(1, 2)),
            case(ResizeOp, sample("float32", 2, 3, 4, 3, 4), None, floats(1, 2, 2, 2, 2), None, mode="linear"),
            case(ResizeOp, sample("float32", 2, 3, 4, 3, 4), None, floats(1, 2, 1, 2, 1), None),
        ],
        ("dynamic", "constant"),
    )


def test_infinities_stay_where_they_are() -> None:
    x = np.array([[1.0, np.inf, 2.0, np.nan, 3.0]], np.float32)
    check_all(
        [case(ResizeOp, x, None, floats(1, 2), None, mode="linear", coordinate_transformation_mode="asymmetric")],
        ("static",),
    )


def test_refusals() -> None:
    for slots in (
        (np.zeros((2, 0), np.float32), None, None, ints(2, 3)),
        (X, None, floats(1, 1, -1, 1), None),
        (X, None, None, ints(1, 1, -2, 1)),
    ):
        both_refuse(ResizeOp, *slots)


def test_elements_that_repeat() -> None:
    cases = []
    for transformation, nearest in (("asymmetric", "floor"), ("half_pixel", "round_prefer_ceil")):
        for scale, width, dtype in ((2, 37, "float32"), (3, 16, "int8"), (5, 3, "float64")):
            x, scales = sample(dtype, 2, 2, 3, width), floats(1, 1, 2, scale)
            common: dict[str, Any] = {"coordinate_transformation_mode": transformation, "nearest_mode": nearest}
            cases.append(case(ResizeOp, x, None, scales, None, **common))
    for mode in ("static", "dynamic"):
        graph = build(cases, mode)
        for op in main_function(graph.module).body.block.ops:
            if isinstance(op, ResizeOp) and isinstance(op.scales, BlockArgument):
                scales = graph.feeds[op.scales.index]
                constant = ConstantOp.dense(scales)
                main_function(graph.module).body.block.insert_op_before(constant, op)
                op.operands[1] = constant.output
        expected = evaluate_function(main_function(graph.module), graph.feeds)
        for (one, _), a, b in zip(graph.outputs, compile_module(graph.module).run(graph.feeds), expected, strict=True):
            assert compare("resize", a, np.asarray(b)) is None, str(one)
