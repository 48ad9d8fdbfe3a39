"""Resizing: every mode and transformation against onnxruntime, extents of symbols, what is refused."""

from typing import Any

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, round_trip, run, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.sx.resample import scaled
from sardonyx.errors import ExecutionError, InferenceError

RESIZE = op("resize")
RNG = np.random.default_rng(21)
IMAGE = RNG.random((1, 2, 6, 7), np.float32)


def scales(*factors):
    return np.array(factors, np.float32)


SMOOTH = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transformation", SMOOTH)
def test_scales_against_onnxruntime(transformation, mode):
    # Scales that the extents are multiples of: elsewhere onnxruntime's align_corners differs from ONNX's.
    for given in (scales(1, 1, 2, 2), scales(1, 1, 0.5, 3)):
        agree(
            RESIZE, IMAGE, None, given, None, mode=mode, coordinate_transformation_mode=transformation, rtol=1e-4,
            atol=1e-5,
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transformation", SMOOTH)
def test_sizes_against_onnxruntime(transformation, mode):
    for sizes in ([1, 2, 4, 13], [1, 2, 9, 3], [1, 2, 1, 1]):
        attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
        agree(RESIZE, IMAGE, None, None, np.array(sizes), rtol=1e-4, atol=1e-5, **attributes)


@pytest.mark.parametrize("nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("transformation", ["half_pixel", "asymmetric", "align_corners"])
def test_nearest_modes_against_onnxruntime(transformation, nearest_mode):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    for given in (scales(1, 1, 2, 2), scales(1, 1, 0.5, 0.25), scales(1, 1, 1.5, 0.75)):
        if transformation == "align_corners" and given[2] == 1.5:
            continue
        agree(RESIZE, x, None, given, None, nearest_mode=nearest_mode, coordinate_transformation_mode=transformation)


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_nearest_takes_all_dtypes(dtype):
    x = np.arange(1, 5).reshape(2, 2).astype(dtypes.DTYPES[dtype].numpy)
    assert run(RESIZE, x, None, scales(2, 2)).tolist() == x.repeat(2, 0).repeat(2, 1).tolist()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_against_onnxruntime(mode):
    for sizes in ([1, 2, 3, 2], [1, 2, 2, 7], [1, 2, 12, 3]):
        agree(RESIZE, IMAGE, None, None, np.array(sizes), mode=mode, antialias=1, rtol=1e-4, atol=1e-5)


def test_excluding_the_outside_and_other_coefficients():
    for factors in (scales(1, 1, 2, 3), scales(1, 1, 0.5, 0.5)):
        agree(
            RESIZE, IMAGE, None, factors, None, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1, rtol=1e-4,
            atol=1e-5,
        )  # fmt: skip


def test_crops_against_onnxruntime():
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8], np.float32)
    attributes: Any = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    agree(RESIZE, IMAGE, roi, None, np.array([1, 2, 3, 3]), atol=1e-5, **attributes)
    wide = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    agree(RESIZE, IMAGE, wide, None, np.array([1, 2, 3, 3]), extrapolation_value=10.0, atol=1e-5, **attributes)
    agree(RESIZE, IMAGE, wide[[2, 3, 6, 7]], None, np.array([3, 3]), axes=[2, 3], atol=1e-5, **attributes)
    one = run(RESIZE, IMAGE, roi, None, np.array([1, 2, 1, 1]), **attributes)
    assert one.shape == (1, 2, 1, 1) and (IMAGE.min() <= one).all() and (one <= IMAGE.max()).all()


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_proportions_against_onnxruntime(policy):
    for sizes in ([9, 5], [3, 12], [6, 7]):
        attributes = {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}
        agree(RESIZE, IMAGE, None, None, np.array(sizes), **attributes)
        agree(RESIZE, IMAGE, None, None, np.array(sizes), mode="linear", atol=1e-5, **attributes)


def test_axes_in_any_order():
    agree(RESIZE, IMAGE, None, scales(2, 3), None, axes=[3, 2], mode="linear", atol=1e-5)
    same = run(RESIZE, IMAGE, None, scales(3, 2), axes=[-2, -1], mode="linear")
    assert same.tolist() == run(RESIZE, IMAGE, None, scales(2, 3), axes=[3, 2], mode="linear").tolist()


def test_other_ranks_and_no_elements():
    assert run(RESIZE, np.arange(3, dtype="f4"), None, scales(2), mode="linear").tolist() == [
        0,
        0.25,
        0.75,
        1.25,
        1.75,
        2,
    ]
    assert run(RESIZE, np.array(5.0, "f4"), None, scales()).tolist() == 5
    assert run(RESIZE, np.zeros((0, 2), "f4"), None, scales(3, 2)).shape == (0, 4)
    assert run(RESIZE, np.zeros((2, 2), "f4"), None, scales(0.1, 1), mode="cubic").shape == (0, 2)
    assert run(RESIZE, np.arange(4, dtype="f4"), None, None, np.array([0])).shape == (0,)


def test_integers_truncate_and_infinities_stay_where_they_are():
    assert run(RESIZE, np.array([0, 3], np.uint8), None, scales(2), mode="linear").tolist() == [0, 0, 2, 3]
    over = run(RESIZE, np.array([0, 255, 255, 0, 0], np.uint8), None, scales(4), mode="cubic")
    assert over.max() == 255 and over.min() == 0
    x = np.array([1, np.inf, 2], np.float32)
    np.testing.assert_array_equal(run(RESIZE, x, None, scales(1), mode="linear"), x)


def test_extents_of_symbols():
    x = value("float32", ["b", 3, "h", "w"])
    assert shape(RESIZE.make(x, None, constant(scales(1, 1, 2, 0.5)))) == ["b", "3", "2*h", "w floordiv 2"]
    assert shape(RESIZE.make(x, None, None, extents(["b", 3, "n", 8]))) == ["b", "3", "n", "8"]
    assert shape(RESIZE.make(x, None, constant(scales(1.5, 0.3)), axes=(2, 3))) == ["b", "3", "h + h floordiv 2", "?"]
    assert shape(RESIZE.make(x, None, value("float32", [4]))) == ["?", "?", "?", "?"]
    assert shape(RESIZE.make(x, None, value("float32", [1]), axes=(-1,))) == ["b", "3", "h", "?"]
    fits = RESIZE.make(value("float32", [4, 6]), None, None, constant([8, 3]), keep_aspect_ratio_policy="not_larger")
    assert shape(fits) == ["2", "3"]
    assert shape(RESIZE.make(value("float32", None), None, value("float32", [2]))) is None


def test_scaled_extents_are_products_of_float32():
    assert scaled(Dim.of(10), float(np.float32(0.7))) == 7  # 6.99999988 rounds up as float32
    assert scaled(Dim.of(3), float(np.float32(1 / 3))) == 1
    assert scaled(Dim.of(2**40 + 1), 0.5) == 2**39
    assert scaled(Dim.symbol("n"), float(np.float32(0.7))) is None


def test_text():
    x = value("float32", ["b", "n"])
    made = RESIZE.make(x, None, None, value("int64", [2]), mode="cubic", antialias=True, axes=(0, 1))
    text = round_trip(made)
    assert "sx.resize %x0, _, _, %x1" in text and 'mode = "cubic"' in text and "antialias = true" in text


@pytest.mark.parametrize(
    ("dtype", "slots", "properties", "constraint"),
    [
        ("bool", [None, value("float32", [2])], {"mode": "linear"}, "C1"),
        ("float32", [None, value("float64", [2])], {}, "C1"),
        ("float32", [None, value("float32", [2, 1])], {}, "C1"),
        ("float32", [None, None, value("int32", [2])], {}, "C1"),
        ("float32", [value("int64", [4]), value("float32", [2])], {}, "C1"),
        ("float32", [], {}, "C2"),
        ("float32", [None, value("float32", [2]), value("int64", [2])], {}, "C2"),
        ("float32", [None, value("float32", [3])], {}, "C3"),
        ("float32", [None, value("float32", [2])], {"axes": (0,)}, "C3"),
        ("float32", [None, value("float32", [2])], {"axes": (0, 0)}, "C4"),
        ("float32", [None, value("float32", [1])], {"axes": (2,)}, "C4"),
        ("float32", [None, constant(scales(0, 1))], {}, "C5"),
        ("float32", [None, None, constant([-1, 1])], {}, "C5"),
        ("float32", [None, None, constant([2**40, 2**40])], {}, "C5"),
        ("float32", [None, value("float32", [2])], {"mode": "bilinear"}, "C6"),
        ("float32", [None, value("float32", [2])], {"nearest_mode": "up"}, "C6"),
        ("float32", [None, value("float32", [2])], {"keep_aspect_ratio_policy": "fit"}, "C6"),
        ("float32", [None, value("float32", [2])], {"coordinate_transformation_mode": "half"}, "C6"),
        ("float32", [None, value("float32", [2])], {"antialias": True}, "C7"),
        ("float32", [None, value("float32", [2])], {"coordinate_transformation_mode": "tf_crop_and_resize"}, "C7"),
    ],
)
def test_constraints(dtype, slots, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        RESIZE.make(value(dtype, [4, 6]), *slots, **properties)


def test_runs_are_refused():
    with pytest.raises(InferenceError, match=r"\(C8\)"):
        RESIZE.make(value("float32", [0]), None, None, constant([2]))
    x = value("float32", ["n", "m"])
    by_size, by_scale = RESIZE.make(x, None, None, value("int64", ["k"])), RESIZE.make(x, None, value("float32", ["k"]))
    ones = np.ones((2, 2), np.float32)
    for sizes in ([-1, 2], [2], [2**40, 2**40]):
        with pytest.raises(ExecutionError):
            by_size.evaluate(EvalContext(), ones, None, None, np.array(sizes))
    for factors in (scales(0, 1), scales(1, np.nan), scales(np.inf, 1), scales(1)):
        with pytest.raises(ExecutionError, match="not all positive|entries of 2 axes"):
            by_scale.evaluate(EvalContext(), ones, None, factors, None)
    with pytest.raises(ExecutionError, match="axis 0 has no element to take"):
        by_size.evaluate(EvalContext(), ones[:0], None, None, np.array([1, 2]))


def test_too_little_memory_is_an_error_of_the_run(monkeypatch):
    built = RESIZE.make(value("float32", ["n"]), None, None, value("int64", [1]))
    ctx = EvalContext({built.x: np.ones(1, "f4"), built.sizes: np.array([3])})

    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 16.0 GiB")

    monkeypatch.setattr("sardonyx.dialects.sx.resize.resampled", full)
    with pytest.raises(ExecutionError, match="there is not enough memory: Unable to allocate 16.0 GiB"):
        evaluate_op(built, ctx)
