"""Sampling by grids, affine grids and regions of images, against onnxruntime and by hand."""

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

SAMPLE, AFFINE, ALIGN, MAX_ROI = op("grid_sample"), op("affine_grid"), op("roi_align"), op("max_roi_pool")
RNG = np.random.default_rng(31)
IMAGE = RNG.random((2, 3, 5, 6), np.float32)
# Places inside, on the edges and far outside.
GRID = (RNG.random((2, 4, 7, 2)) * 3 - 1.5).astype(np.float32)
VOLUME, GRID_3D = RNG.random((1, 2, 3, 4, 5), np.float32), (RNG.random((1, 2, 3, 4, 3)) * 3 - 1.5).astype("f4")


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_images_against_onnxruntime(mode, padding_mode, align_corners):
    attributes = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    agree(SAMPLE, IMAGE, GRID, opset=20, atol=1e-5, **attributes)
    if mode != "cubic":
        agree(SAMPLE, VOLUME, GRID_3D, opset=20, atol=1e-5, **attributes)


def test_one_and_four_axes_by_hand():
    line = np.array([[[1, 2, 4]]], np.float32)
    at = np.array([[[-1], [0], [0.5], [1]]], np.float32)
    assert run(SAMPLE, line, at, align_corners=True).tolist() == [[[1, 2, 3, 4]]]
    x = RNG.random((1, 1, 2, 2, 2, 2), np.float32)
    corners = np.stack(np.meshgrid(*[[-1, 1]] * 4, indexing="ij")[::-1], -1)[None].astype(np.float32)
    assert run(SAMPLE, x, corners, align_corners=True).tolist() == x.tolist()


def test_nan_and_far_places_are_outside():
    grid = np.array([[[[np.nan, 0], [1e30, 0], [-np.inf, 0], [0, 0]]]], np.float32)
    out = run(SAMPLE, np.ones((1, 1, 3, 3), "f4"), grid)
    assert out.tolist() == [[[[0, 0, 0, 1]]]]
    assert run(SAMPLE, np.ones((1, 1, 3, 3), "f4"), grid, padding_mode="reflection").tolist() == [[[[1] * 4]]]
    holed = np.array([[[[np.inf, 1]]]], np.float32)
    assert run(SAMPLE, holed, np.array([[[[1, 0]]]], "f4"), align_corners=True).item() == 1


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_nearest_takes_all_dtypes(dtype):
    x = np.array([[[[0, 1], [2, 3]]]]).astype(dtypes.DTYPES[dtype].numpy)
    grid = np.array([[[[-0.5, 0.5], [0.5, -0.5]]]], np.float32)
    assert run(SAMPLE, x, grid, mode="nearest").tolist() == x[:, :, [1, 0], [0, 1]][:, :, None].tolist()


def test_no_elements():
    assert run(SAMPLE, np.ones((0, 2, 3, 3), "f4"), np.zeros((0, 1, 1, 2), "f4")).shape == (0, 2, 1, 1)
    assert run(SAMPLE, np.ones((1, 2, 0, 3), "f4"), np.zeros((1, 0, 4, 2), "f4")).shape == (1, 2, 0, 4)


def test_grid_constraints():
    x, grid = value("float32", ["b", 3, "h", "w"]), value("float32", [2, "i", "j", 2])
    made = SAMPLE.make(x, grid, mode="cubic")
    assert shape(made) == ["2", "3", "i", "j"] and 'mode = "cubic"' in round_trip(made)
    refuses(SAMPLE, "C1", x, value("int64", [2, 1, 1, 2]))
    refuses(SAMPLE, "C1", value("bool", [2, 1, 1, 2]), grid)
    refuses(SAMPLE, "C2", x, value("float32", [2, 1, 1, 3]))
    refuses(SAMPLE, "C2", value("float32", [3, 1, 1, 2]), grid)
    refuses(SAMPLE, "C2", value("float32", [3, 1]), value("float32", [3, 0]))
    refuses(SAMPLE, "C3", x, grid, mode="bilinear")
    refuses(SAMPLE, "C3", x, grid, padding_mode="wrap")
    refuses(SAMPLE, "C4", value("float32", [1, 1, 0, 2]), value("float32", [1, 1, 1, 2]))
    for a, b in (((1, 1, 2, 2), (2, 1, 1, 2)), ((1, 1, 2, 0), (1, 1, 1, 2))):
        with pytest.raises(ExecutionError, match="doesn't fit|nothing to sample"):
            made.evaluate(EvalContext(), np.zeros(a, "f4"), np.zeros(b, "f4"))


# ---- affine_grid


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 1, 3, 2, 4]])
def test_affine_grid_against_onnxruntime(size, align_corners):
    rank = len(size) - 2
    theta = RNG.random((2, rank, rank + 1), np.float32)
    agree(AFFINE, theta, np.array(size), opset=20, align_corners=align_corners, atol=1e-5)


def test_affine_grid_of_one_element_and_symbols():
    theta = np.array([[[1, 0, 0.5], [0, 1, 0]]], np.float32)
    for corners in (True, False):
        assert run(AFFINE, theta, np.array([1, 1, 1, 1]), align_corners=corners).tolist() == [[[[0.5, 0]]]]
    assert run(AFFINE, theta, np.array([1, 1, 0, 3])).shape == (1, 0, 3, 2)
    t = value("float32", ["b", 2, 3])
    assert shape(AFFINE.make(t, extents(["n", 3, "h", "w"]))) == ["n", "h", "w", "2"]
    assert shape(AFFINE.make(t, value("int64", ["k"]))) == ["b", "?", "?", "2"]
    assert shape(AFFINE.make(value("float32", None), value("int64", ["k"]))) is None
    assert "align_corners = true" in round_trip(AFFINE.make(t, constant([2, 1, 2, 2]), align_corners=True))
    refuses(AFFINE, "C1", t, constant([2, 1, 2]))
    refuses(AFFINE, "C1", t, constant([2, 1, 2, -2]))
    refuses(AFFINE, "C2", value("float32", [2, 3, 4]), constant([2, 1, 2, 2]))
    refuses(AFFINE, "C3", value("float32", [3, 2, 3]), constant([2, 1, 2, 2]))
    built = AFFINE.make(value("float32", None), value("int64", ["k"]))
    with pytest.raises(ExecutionError, match="doesn't fit size"):
        built.evaluate(EvalContext(), theta, np.array([2, 1, 2, 2]))


# ---- regions


ROIS = np.array([[0, 0, 3, 4], [1.2, -0.7, 8, 3.3], [2, 2, 2, 2], [-9, -9, -5, -5], [4, 3, 1, 1]], np.float32)
BATCH = np.array([0, 1, 1, 0, 1])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_against_onnxruntime(mode, transformation, ratio):
    agree(
        ALIGN, IMAGE, ROIS[:4], BATCH[:4], mode=mode, coordinate_transformation_mode=transformation,
        sampling_ratio=ratio, output_height=3, output_width=2, spatial_scale=0.75, rtol=1e-4, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("pooled", [(1, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_max_roi_pool_against_onnxruntime(pooled, scale):
    rois = np.concatenate([BATCH[:, None], np.round(ROIS)], 1).astype(np.float32)
    agree(MAX_ROI, IMAGE, rois, pooled_shape=pooled, spatial_scale=scale)


def test_regions_of_other_dtypes_and_none():
    half = run(ALIGN, IMAGE.astype("f2"), ROIS[:1].astype("f2"), BATCH[:1], output_height=2, output_width=2)
    full = run(ALIGN, IMAGE.astype("f2").astype("f4"), ROIS[:1], BATCH[:1], output_height=2, output_width=2)
    assert half.tolist() == full.astype("f2").tolist()
    assert run(ALIGN, IMAGE, ROIS[:0], BATCH[:0], output_height=2).shape == (0, 3, 2, 1)
    assert run(MAX_ROI, IMAGE, np.zeros((0, 5), "f4"), pooled_shape=(2, 2)).shape == (0, 3, 2, 2)
    nan = np.where(np.arange(6) == 1, np.nan, IMAGE).astype("f4")
    assert np.isnan(run(MAX_ROI, nan, np.array([[0, 0, 0, 5, 4]], "f4"), pooled_shape=(1, 1))).all()


def test_region_constraints():
    x, rois, at = value("float32", ["b", "c", "h", "w"]), value("float32", ["r", 4]), value("int64", [7])
    made = ALIGN.make(x, rois, at, output_height=2, output_width=3)
    assert shape(made) == ["7", "c", "2", "3"] and "output_width = 3" in round_trip(made)
    refuses(ALIGN, "C1", x, value("float64", [1, 4]), at)
    refuses(ALIGN, "C1", x, rois, value("int32", [7]))
    refuses(ALIGN, "C2", value("float32", [1, 2, 3]), rois, at)
    refuses(ALIGN, "C2", x, value("float32", [1, 5]), at)
    refuses(ALIGN, "C3", x, value("float32", [6, 4]), at)
    refuses(ALIGN, "C4", x, rois, at, output_height=0)
    refuses(ALIGN, "C4", x, rois, at, sampling_ratio=-1)
    refuses(ALIGN, "C5", x, rois, at, mode="min")
    refuses(ALIGN, "C5", x, rois, at, coordinate_transformation_mode="half")
    numbered = value("float32", ["r", 5])
    pooled = MAX_ROI.make(x, numbered, pooled_shape=(2, 3))
    assert shape(pooled) == ["r", "c", "2", "3"] and "sx.max_roi_pool" in round_trip(pooled)
    refuses(MAX_ROI, "C1", x, value("float16", [1, 5]), pooled_shape=(2, 3))
    refuses(MAX_ROI, "C2", x, rois, pooled_shape=(2, 3))
    refuses(MAX_ROI, "C3", x, numbered, pooled_shape=(2,))
    refuses(MAX_ROI, "C3", x, numbered, pooled_shape=(2, 0))


def test_regions_that_are_refused():
    made = ALIGN.make(*(value(d, ["n"] * r) for d, r in (("float32", 4), ("float32", 2), ("int64", 1))))
    for index in (2, -1):
        with pytest.raises(ExecutionError, match=f"batch index {index}"):
            made.evaluate(EvalContext(), IMAGE, ROIS[:1], np.array([index]))
    for region, text in ((np.nan, "not finite"), (1e9, "more than")):
        with pytest.raises(ExecutionError, match=text):
            made.evaluate(EvalContext(), IMAGE, np.array([[0, 0, region, region]], "f4"), np.array([0]))
    pool = MAX_ROI.make(value("float32", ["n"] * 4), value("float32", ["r", 5]), pooled_shape=(1, 1))
    for number in (2, -1, np.inf):
        with pytest.raises(ExecutionError, match="of no image of 2"):
            pool.evaluate(EvalContext(), IMAGE, np.array([[number, 0, 0, 1, 1]], "f4"))


def test_old_opsets_of_onnxruntime_agree():
    old = run_node("RoiAlign", [IMAGE, ROIS[:2], BATCH[:2]], opset=15, output_height=2, output_width=2)[0]
    new = run(
        ALIGN, IMAGE, ROIS[:2], BATCH[:2], output_height=2, output_width=2,
        coordinate_transformation_mode="output_half_pixel",
    )  # fmt: skip
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
