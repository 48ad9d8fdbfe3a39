"""Convolutions against sums written out, and against onnxruntime; extents, paddings, errors."""

import itertools

import numpy as np
import pytest
from op_case import round_trip, run, shape, value
from ort_oracle import run_node
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

CONV, TRANSPOSED = op("conv"), op("conv_transpose")
RNG = np.random.default_rng(4)
FLOATS = [t.name for t in dtypes.FLOATS]


def plain_conv(x, w, stride, dilation, before, after, group=1):
    """A convolution along one axis, element by element."""
    x = np.pad(x, ((0, 0), (0, 0), (before, after)))
    n, (m, channels, kernel) = x.shape[0], w.shape
    count = (x.shape[2] - (kernel - 1) * dilation - 1) // stride + 1
    out = np.zeros((n, m, count))
    for i, o, at, c, k in itertools.product(range(n), range(m), range(count), range(channels), range(kernel)):
        out[i, o, at] += x[i, o // (m // group) * channels + c, at * stride + k * dilation] * w[o, c, k]
    return out


def plain_transposed(x, w, stride, dilation, before, after, extra=0, group=1):
    n, (channels, per_group, kernel) = x.shape[0], w.shape
    full = (x.shape[2] - 1) * stride + (kernel - 1) * dilation + 1 + extra
    out = np.zeros((n, per_group * group, full))
    for i, c, o, at, k in itertools.product(
        range(n), range(channels), range(per_group), range(x.shape[2]), range(kernel)
    ):
        out[i, c // (channels // group) * per_group + o, at * stride + k * dilation] += x[i, c, at] * w[c, o, k]
    return out[:, :, before : full - after]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pads", [(0, 0), (1, 2), (3, 0)])
@pytest.mark.parametrize("group", [1, 2, 4])
def test_one_axis(stride, dilation, pads, group):
    x, w = RNG.integers(-5, 6, (2, 4, 7)).astype(np.float64), RNG.integers(-5, 6, (8, 4 // group, 3)).astype(np.float64)
    attributes = {"strides": [stride], "dilations": [dilation], "pads": pads, "group": group}
    assert (
        run(CONV, x, w, **attributes).tolist() == plain_conv(x, w, stride, dilation, pads[0], pads[1], group).tolist()
    )
    w = RNG.integers(-5, 6, (4, 3, 3)).astype(np.float64)
    want = plain_transposed(x, w, stride, dilation, pads[0], pads[1], 0, group)
    assert run(TRANSPOSED, x, w, **attributes).tolist() == want.tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_and_one_rounding(dtype):
    numpy = dtypes.DTYPES[dtype].numpy
    large = {"float16": 2.0**12, "bfloat16": 2.0**12, "float32": 2.0**26, "float64": 2.0**50}[dtype]
    x = np.array([[[large], [1], [-large]]]).astype(numpy)
    assert run(CONV, x, np.ones((1, 3, 1), numpy)).astype(np.float64).tolist() == [[[1.0]]]
    assert run(TRANSPOSED, x, np.ones((3, 1, 1), numpy)).astype(np.float64).tolist() == [[[1.0]]]
    assert run(CONV, x, np.zeros((1, 3, 1), numpy), np.array([3], numpy)).astype(np.float64).tolist() == [[[3.0]]]


@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_against_onnxruntime(auto_pad, rank):
    x = RNG.random((2, 4, *(6, 5, 4)[:rank]), np.float32)
    attributes = {
        "auto_pad": auto_pad, "strides": (2, 1, 3)[:rank], "kernel_shape": (3, 2, 3)[:rank], "group": 2,
        "pads": (1, 0, 2, 0, 1, 1)[: 2 * rank] if auto_pad == "NOTSET" else None,
        "dilations": (1, 2, 1)[:rank] if auto_pad == "NOTSET" else None,
    }  # fmt: skip
    w, b = RNG.random((6, 2, *(3, 2, 3)[:rank]), np.float32), RNG.random(6, np.float32)
    np.testing.assert_allclose(
        run(CONV, x, w, b, **attributes), run_node("Conv", [x, w, b], **attributes)[0], rtol=1e-5
    )
    w = RNG.random((4, 3, *(3, 2, 3)[:rank]), np.float32)
    if auto_pad in ("NOTSET", "VALID"):
        got = run(TRANSPOSED, x, w, b, **attributes)
        np.testing.assert_allclose(got, run_node("ConvTranspose", [x, w, b], **attributes)[0], rtol=1e-5)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_same_padding(auto_pad, stride, size):
    x, w = RNG.random((1, 1, size)), RNG.random((1, 1, 4))
    count = -(-size // stride)
    total = max(0, (count - 1) * stride + 4 - size)
    small = total // 2
    before, after = (small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)
    want = plain_conv(x, w, stride, 1, before, after)
    np.testing.assert_allclose(run(CONV, x, w, auto_pad=auto_pad, strides=[stride]), want, rtol=1e-14)
    full = (size - 1) * stride + 4
    total = full - size * stride
    small = total // 2
    before, after = (small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)
    want = plain_transposed(x, w, stride, 1, before, after)
    np.testing.assert_allclose(run(TRANSPOSED, x, w, auto_pad=auto_pad, strides=[stride]), want, rtol=1e-14)


def test_output_padding_and_output_shape():
    x, w = RNG.random((1, 2, 3)), RNG.random((2, 1, 3))
    got = run(TRANSPOSED, x, w, strides=[3], output_padding=[1])
    np.testing.assert_allclose(got, plain_transposed(x, w, 3, 1, 0, 0, 1), rtol=1e-14)
    assert got.shape[2] == 10 and got[0, 0, 9] == 0
    # A full extent of 9 cropped to 8: the odd cell is cropped in front, unless SAME_UPPER.
    full = plain_transposed(x, w, 3, 1, 0, 0)
    np.testing.assert_allclose(run(TRANSPOSED, x, w, strides=[3], output_shape=[8]), full[:, :, 1:], rtol=1e-14)
    got = run(TRANSPOSED, x, w, strides=[3], output_shape=[8], auto_pad="SAME_UPPER")
    np.testing.assert_allclose(got, full[:, :, :8], rtol=1e-14)
    # A wider result is zeros behind the full extent.
    got = run(TRANSPOSED, x, w, np.array([5.0]), strides=[3], output_shape=[11])
    np.testing.assert_allclose(got, np.pad(full, ((0, 0), (0, 0), (0, 2))) + 5, rtol=1e-14)
    ort = run_node("ConvTranspose", [x.astype(np.float32), w.astype(np.float32)], strides=[3], output_shape=[8])[0]
    np.testing.assert_allclose(full[:, :, 1:], ort, rtol=1e-5)


@pytest.mark.parametrize("dims", [(0, 2, 5), (1, 2, 2), (1, 0, 5)])
def test_no_elements(dims):
    w = np.ones((3, dims[1], 2), np.float32)
    want = (dims[0], 3, dims[2] - 1)
    assert run(CONV, np.ones(dims, np.float32), w, np.array([1, 2, 3], np.float32)).shape == want
    x = np.ones(dims, np.float32)
    got = run(TRANSPOSED, x, np.ones((dims[1], 3, 2), np.float32), np.array([1, 2, 3], np.float32))
    assert got.shape == (dims[0], 3, dims[2] + 1)
    if not dims[1]:
        assert (got == np.array([1, 2, 3]).reshape(1, 3, 1)).all()


def test_a_window_as_long_as_the_data_and_none():
    x, w = np.ones((1, 1, 3)), np.ones((1, 1, 3))
    assert run(CONV, x, w).tolist() == [[[3]]]
    assert run(CONV, x[:, :, :2], w, strides=[2]).shape == (1, 1, 0)
    with pytest.raises(InferenceError, match=r"\(C6\)"):
        CONV.make(value("float32", [1, 1, 1]), value("float32", [1, 1, 3]))
    built = CONV.make(value("float64", [1, 1, "n"]), value("float64", [1, 1, 3]))
    with pytest.raises(ExecutionError, match="don't fit"):
        built.evaluate(EvalContext(), np.ones((1, 1, 1)), w, None)


@pytest.mark.parametrize(
    ("attributes", "want", "transposed"),
    [
        ({}, "h - 2", "h + 2"),
        ({"pads": [1, 1]}, "h", "h"),
        ({"pads": [1, 1], "strides": [2]}, "(h + 1) floordiv 2", "2*h - 1"),
        ({"auto_pad": "SAME_UPPER", "strides": [2]}, "(h + 1) floordiv 2", "2*h"),
        ({"auto_pad": "VALID", "strides": [3]}, "h floordiv 3", "3*h"),
        ({"dilations": [2]}, "h - 4", "h + 4"),
    ],
)
def test_symbols(attributes, want, transposed):
    x = value("float32", ["b", 4, "h"])
    built = CONV.make(x, value("float32", [8, 4, 3]), **attributes)
    assert shape(built) == ["b", "8", want]
    back = TRANSPOSED.make(x, value("float32", [4, 8, 3]), **attributes)
    assert shape(back) == ["b", "8", transposed]
    for at in every(b=(0, 2), h=(5, 6, 7)):
        data = np.zeros((at["b"], 4, at["h"]), np.float32)
        assert run(CONV, data, np.zeros((8, 4, 3), np.float32), **attributes).shape == sizes(built, at)
        assert run(TRANSPOSED, data, np.zeros((4, 8, 3), np.float32), **attributes).shape == sizes(back, at)


def test_unknown_extents():
    x = value("float32", ["b", "c", "h"])
    assert shape(CONV.make(x, value("float32", ["m", "c", "k"]))) == ["b", "m", "h - k + 1"]
    assert shape(CONV.make(x, value("float32", None))) is None
    assert shape(TRANSPOSED.make(x, value("float32", ["c", 2, 3]), group=2)) == ["b", "4", "h + 2"]
    assert shape(CONV.make(x, value("float32", ["m", "c", "k"]), kernel_shape=[3])) == ["b", "m", "h - 2"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW->NHWC", "NHWC->NCHW"])
def test_layouts(layout):
    x, w = RNG.random((2, 4, 6, 5)), RNG.random((6, 2, 3, 2))
    attributes = {"group": 2, "pads": [1, 0, 0, 1], "strides": [2, 1]}
    want = run(CONV, x, w, **attributes)
    before, after = layout.startswith("NHWC"), layout.endswith("NHWC")
    got = run(CONV, np.moveaxis(x, 1, -1) if before else x, w, layout=layout, **attributes)
    assert np.array_equal(np.moveaxis(got, -1, 1) if after else got, want)
    dims = ["n", "h", "v", 4] if before else ["n", 4, "h", "v"]
    built = CONV.make(value("float32", dims), value("float32", [6, 2, 3, 2]), layout=layout, **attributes)
    extents = shape(built) or []
    assert extents[3 if after else 1] == "6" and extents[2 if after else 3] == "v"
    assert f'layout = "{layout}"' in round_trip(built)


def test_layouts_are_transposed_for_onnx():
    onnx = pytest.importorskip("onnx")
    from sardonyx.backends.onnx.legalize import LegalizeForOpsetPass
    from sardonyx.dialects.evaluate import evaluate_function
    from sardonyx.dialects.module import create_module, main_function, set_outputs

    assert onnx.__version__
    data, weights = value("float32", [1, 5, 6, 4]), value("float32", [3, 4, 2, 2])
    module, block = create_module("g", [("x", data.type, None), ("w", weights.type, None)])
    conv = CONV.make(*block.args, layout="NHWC", dilations=[2, 1])
    pool = op("max_pool").make(conv.output, kernel_shape=[2, 2], layout="NHWC")
    average = op("average_pool").make(pool.output, kernel_shape=[2, 1], layout="NHWC")
    block.add_ops([conv, pool, average])
    set_outputs(module, [average.output, pool.indices], ["y", "i"])
    arrays = [RNG.random((1, 5, 6, 4), np.float32), RNG.random((3, 4, 2, 2), np.float32)]
    want = evaluate_function(main_function(module), arrays)
    LegalizeForOpsetPass(version=13).execute(module)
    module.verify()
    assert not any("layout" in one.properties for one in module.walk())
    for a, b in zip(evaluate_function(main_function(module), arrays), want, strict=True):
        assert np.array_equal(a, b)


def test_text():
    x, w = value("float32", ["n", 2, 5]), value("float32", [3, 2, 2])
    line = round_trip(CONV.make(x, w, value("float32", [3]), pads=[1, 0], auto_pad="NOTSET"))
    assert "sx.conv %x0, %x1, %x2 {pads = array<i64: 1, 0>}" in line
    assert "output_padding" in round_trip(
        TRANSPOSED.make(x, value("float32", [2, 3, 2]), strides=[2], output_padding=[1])
    )


@pytest.mark.parametrize(
    ("x", "w", "b", "attributes", "constraint"),
    [
        (("float32", [1, 2, 5]), ("float64", [3, 2, 2]), None, {}, "C1"),
        (("int32", [1, 2, 5]), ("int32", [3, 2, 2]), None, {}, "C1"),
        (("float32", [1, 2]), ("float32", [3, 2]), None, {}, "C2"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2, 2]), None, {}, "C2"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), ("float32", [3, 1]), {}, "C2"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"kernel_shape": [3]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"kernel_shape": [2, 2]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"strides": [0]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"dilations": [1, 1]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"pads": [1]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"pads": [-1, 0]}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"auto_pad": "SAME"}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 0]), None, {}, "C3"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"group": 0}, "C4"),
        (("float32", [1, 2, 5]), ("float32", [3, 3, 2]), None, {}, "C4"),
        (("float32", [1, 2, 5]), ("float32", [3, 1, 2]), None, {"group": 2}, "C4"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), ("float32", [2]), {}, "C5"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 7]), None, {}, "C6"),
        (("float32", [1, 5, 2]), ("float32", [3, 2, 7]), None, {"layout": "NHWC"}, "C6"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"layout": "NHWC"}, "C4"),
        (("float32", [1, 2, 5]), ("float32", [3, 2, 2]), None, {"layout": "NWC"}, "C7"),
    ],
)
def test_conv_constraints(x, w, b, attributes, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        CONV.make(value(*x), value(*w), None if b is None else value(*b), **attributes)


@pytest.mark.parametrize(
    ("w", "b", "attributes", "constraint"),
    [
        ([3, 2, 2], None, {}, "C4"),
        ([4, 2, 2], None, {"group": 3}, "C4"),
        ([4, 2, 2], [3], {}, "C5"),
        ([4, 2, 2], None, {"output_padding": [1, 1]}, "C6"),
        ([4, 2, 2], None, {"output_shape": [-1]}, "C6"),
        ([4, 2, 2], None, {"pads": [5, 5]}, "C6"),
    ],
)
def test_conv_transpose_constraints(w, b, attributes, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        TRANSPOSED.make(
            value("float32", [1, 4, 5]), value("float32", w), None if b is None else value("float32", b), **attributes
        )


def test_runs_that_are_refused():
    ctx, x = EvalContext(), np.ones((1, 3, 5))
    built = CONV.make(value("float64", ["n", "c", "h"]), value("float64", ["m", "d", "k"]), value("float64", ["i"]))
    with pytest.raises(ExecutionError, match="group"):
        built.evaluate(ctx, x, np.ones((2, 2, 2)), None)
    with pytest.raises(ExecutionError, match="no operands"):
        built.evaluate(ctx, x, np.ones((2, 3, 2)), np.ones(3))
    built = TRANSPOSED.make(value("float64", ["n", "c", "h"]), value("float64", ["m", "d", "k"]))
    with pytest.raises(ExecutionError, match="group"):
        built.evaluate(ctx, x, np.ones((2, 2, 2)), None)
