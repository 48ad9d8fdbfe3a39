"""Pools against windows written out, and against onnxruntime: paddings, ceil_mode, NaN, indices, extents."""

import math

import numpy as np
import pytest
from op_case import round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

MAX, AVERAGE = op("max_pool"), op("average_pool")
GLOBAL_MAX, GLOBAL_AVERAGE = op("global_max_pool"), op("global_average_pool")
NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(5)
FLOATS = [t.name for t in dtypes.FLOATS]


def once(cls, x, **attributes):
    """The results without the checks of `run_all`, for many cases."""
    return cls.make(value("float64", x.shape), **attributes).evaluate(EvalContext(), x)


def windows(size, kernel, stride, dilation, before, after, ceil):
    """Per window of one axis: its cells, those within the data, those within data and padding."""
    out, start = [], -before
    while True:
        cells = [start + k * dilation for k in range(kernel)]
        beyond = cells[-1] >= size + after
        if beyond and not (ceil and start < size and start < size + after - (kernel - 1) * dilation - 1 + stride):
            return out
        out.append((cells, [c for c in cells if 0 <= c < size], [c for c in cells if -before <= c < size + after]))
        start += stride


CASES = [
    (size, kernel, stride, dilation, pads, ceil)
    for size in (1, 6)
    for kernel in (2, 3)
    for stride in (1, 2, 3)
    for dilation in (1, 2)
    for pads in ((0, 0), (1, 0), (0, 1), (1, 1))
    for ceil in (False, True)
    if max(pads) < kernel and (kernel - 1) * dilation + 1 <= size + sum(pads)
]


def test_every_window_of_one_axis():
    for size, kernel, stride, dilation, pads, ceil in CASES:
        x = RNG.permutation(size).astype(np.float64).reshape(1, 1, size)
        attributes = {
            "kernel_shape": [kernel],
            "strides": [stride],
            "dilations": [dilation],
            "pads": pads,
            "ceil_mode": ceil,
        }
        cells = windows(size, kernel, stride, dilation, *pads, ceil)
        case = (size, kernel, stride, dilation, pads, ceil)
        best, index = once(MAX, x, **attributes)
        assert index[0, 0].tolist() == [max(data, key=lambda c: x[0, 0, c]) if data else -1 for _, data, _ in cells], (
            case
        )
        assert best[0, 0].tolist() == [max((x[0, 0, c] for c in data), default=-INF) for _, data, _ in cells], case
        want = [sum(x[0, 0, c] for c in data) / max(len(data), 1) for _, data, _ in cells]
        np.testing.assert_allclose(once(AVERAGE, x, **attributes)[0][0, 0], want, err_msg=str(case))
        want = [sum(x[0, 0, c] for c in data) / max(len(all_), 1) for _, data, all_ in cells]
        np.testing.assert_allclose(
            once(AVERAGE, x, count_include_pad=True, **attributes)[0][0, 0], want, err_msg=str(case)
        )


def test_extents_of_symbols():
    for size, kernel, stride, dilation, pads, ceil in CASES:
        attributes = {
            "kernel_shape": [kernel],
            "strides": [stride],
            "dilations": [dilation],
            "pads": pads,
            "ceil_mode": ceil,
        }
        built = AVERAGE.make(value("float32", [1, 1, "n"]), **attributes)
        assert sizes(built, {"n": size})[2] == len(windows(size, kernel, stride, dilation, *pads, ceil))
    x = value("float32", ["b", 3, "h", "w"])
    built = MAX.make(x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    assert shape(built, 0) == shape(built, 1) == ["b", "3", "(h + 1) floordiv 2", "w floordiv 2"]
    built = MAX.make(x, kernel_shape=[2, 2], strides=[3, 1], ceil_mode=True)
    assert shape(built) == ["b", "3", "(h + 2) floordiv 3", "w - 1"]
    built = MAX.make(x, kernel_shape=[3, 3], strides=[2, 1], auto_pad="SAME_LOWER")
    assert shape(built) == ["b", "3", "(h + 1) floordiv 2", "w"]
    for at in every(b=(0, 2), h=(1, 4, 5), w=(3,)):
        data = np.zeros((at["b"], 3, at["h"], at["w"]), np.float32)
        found = run_all(MAX, data, kernel_shape=[3, 3], strides=[2, 1], auto_pad="SAME_LOWER")
        assert found[0].shape == found[1].shape == sizes(built, at)
    assert shape(MAX.make(value("float32", None), kernel_shape=[2])) is None


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_against_onnxruntime(rank, ceil):
    x = RNG.random((2, 3, *(7, 6, 5)[:rank]), np.float32)
    pads = (1, 0, 1, 1, 1, 0)[: 2 * rank]
    attributes = {"kernel_shape": (3, 2, 2)[:rank], "strides": (2, 3, 1)[:rank], "pads": pads, "ceil_mode": ceil}
    want = run_node("MaxPool", [x], outputs=2, **attributes, dilations=(2, 1, 1)[:rank])
    got = run_all(MAX, x, **attributes, dilations=(2, 1, 1)[:rank])
    assert got[0].tolist() == want[0].tolist() and got[1].tolist() == want[1].tolist()
    for include in (False, True):
        want = run_node("AveragePool", [x], **attributes, count_include_pad=int(include))[0]
        np.testing.assert_allclose(run(AVERAGE, x, **attributes, count_include_pad=include), want, rtol=1e-5)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad_against_onnxruntime(auto_pad):
    x = RNG.random((1, 2, 5, 6), np.float32)
    attributes = {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": auto_pad}
    assert run_all(MAX, x, **attributes)[0].tolist() == run_node("MaxPool", [x], **attributes)[0].tolist()
    want = run_node("AveragePool", [x], **attributes)[0]
    np.testing.assert_allclose(run(AVERAGE, x, **attributes), want, rtol=1e-5)
    # Pads beside auto_pad don't count.
    assert run_all(MAX, x, **attributes, pads=[1, 1, 1, 1])[0].tolist() == run_all(MAX, x, **attributes)[0].tolist()


def test_the_last_window_counts_only_cells_that_exist():
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 9)
    attributes = {"kernel_shape": [7], "strides": [3], "pads": [3, 3], "ceil_mode": True}
    np.testing.assert_allclose(
        run(AVERAGE, x, count_include_pad=True, **attributes), [[[10 / 7, 4, 39 / 7, 4]]], rtol=1e-6
    )
    np.testing.assert_allclose(run(AVERAGE, x, **attributes), [[[2.5, 4, 6.5, 8]]], rtol=1e-6)


def test_a_window_that_starts_in_the_padding_behind_is_dropped():
    x = np.array([[[5, 1, 2, 4, 3]]], np.float32)
    attributes = {"kernel_shape": [2], "strides": [3], "pads": [0, 1], "ceil_mode": True}
    best, index = run_all(MAX, x, **attributes)
    assert best.tolist() == [[[5, 4]]] and index.tolist() == [[[0, 3]]]
    assert run(AVERAGE, x, **attributes).tolist() == [[[3, 3.5]]]


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8"])
def test_max_dtypes_and_padding_that_never_wins(dtype):
    x = np.array([[[1, 3, 2, 0]]]).astype(dtypes.DTYPES[dtype].numpy)
    best, index = run_all(MAX, x, kernel_shape=[2], pads=[1, 1])
    assert best.astype(np.float64).tolist() == [[[1, 3, 3, 2, 0]]] and index.tolist() == [[[0, 1, 1, 2, 3]]]
    if dtype != "uint8":
        best, _ = run_all(MAX, (-x - 1).astype(x.dtype), kernel_shape=[2], pads=[1, 1])
        assert best.astype(np.float64).tolist() == [[[-2, -2, -3, -1, -1]]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_and_infinities_count(dtype):
    x = np.array([[[1, NAN, 3, -INF, -INF, NAN, NAN]]]).astype(dtypes.DTYPES[dtype].numpy)
    best, index = run_all(MAX, x, kernel_shape=[2])
    np.testing.assert_array_equal(best.astype(np.float64), [[[NAN, NAN, 3, -INF, NAN, NAN]]])
    assert index.tolist() == [[[1, 1, 2, 3, 5, 5]]]
    np.testing.assert_array_equal(
        run(AVERAGE, x, kernel_shape=[2]).astype(np.float64), [[[NAN, NAN, -INF, -INF, NAN, NAN]]]
    )
    assert math.isnan(float(run(GLOBAL_MAX, x)[0, 0, 0])) and math.isnan(float(run(GLOBAL_AVERAGE, x)[0, 0, 0]))


def test_the_first_of_equals_is_the_one():
    x = np.array([[[2, 2, 1, 2]]], np.float32)
    assert run_all(MAX, x, kernel_shape=[3])[1].tolist() == [[[0, 1]]]


def test_indices_count_over_all_elements():
    x = RNG.permutation(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(np.float32)
    for order in (0, 1):
        best, index = run_all(MAX, x, kernel_shape=[2, 3], storage_order=order)
        spatial = index % 20
        flat = index if not order else index - spatial + spatial % 4 * 5 + spatial // 4
        assert x.reshape(-1)[flat].tolist() == best.tolist()
    want = run_node("MaxPool", [x], outputs=2, kernel_shape=[2, 3], storage_order=1)
    assert want[1].tolist() == run_all(MAX, x, kernel_shape=[2, 3], storage_order=1)[1].tolist()
    volume = RNG.permutation(60).reshape(1, 1, 3, 4, 5).astype(np.float32)
    best, index = run_all(MAX, volume, kernel_shape=[2, 2, 2], storage_order=1)
    assert volume.transpose(0, 1, 4, 3, 2).reshape(-1)[index].tolist() == best.tolist()


def test_windows_of_padding_alone():
    x = np.array([[[7]]], np.float32)
    best, index = run_all(MAX, x, kernel_shape=[2], dilations=[3], pads=[2, 2])
    assert best.tolist() == [[[-INF, -INF]]] and index.tolist() == [[[-1, -1]]]
    assert run(AVERAGE, x, kernel_shape=[1], pads=[1, 1]).tolist() == [[[0, 7, 0]]]
    best, index = run_all(MAX, x.astype(np.int8), kernel_shape=[1], pads=[1, 1])
    assert best.tolist() == [[[-128, 7, -128]]] and index.tolist() == [[[-1, 0, -1]]]


@pytest.mark.parametrize("dims", [(0, 2, 3), (2, 0, 3), (1, 1, 0)])
def test_no_elements(dims):
    x = np.zeros(dims, np.float32)
    best, index = run_all(MAX, x, kernel_shape=[1])
    assert best.shape == index.shape == run(AVERAGE, x, kernel_shape=[1]).shape == dims
    assert run(GLOBAL_AVERAGE, x).shape == run(GLOBAL_MAX, x).shape == (*dims[:2], 1)
    if not dims[2]:
        assert math.isnan(run(GLOBAL_AVERAGE, x)[0, 0, 0]) and run(GLOBAL_MAX, x)[0, 0, 0] == -INF
        assert run(AVERAGE, x, kernel_shape=[2], pads=[1, 1]).tolist() == [[[0]]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_global_pools(dtype):
    x = RNG.integers(-8, 9, (2, 3, 4, 2)).astype(dtypes.DTYPES[dtype].numpy)
    exact = x.astype(np.float64)
    assert run(GLOBAL_MAX, x).astype(np.float64).tolist() == exact.max((2, 3), keepdims=True).tolist()
    assert run(GLOBAL_AVERAGE, x).astype(np.float64).tolist() == exact.mean((2, 3), keepdims=True).tolist()
    assert run(GLOBAL_AVERAGE, x[:, :, 0, 0]).tolist() == x[:, :, 0, 0].tolist()


def test_global_pools_of_symbols():
    assert shape(GLOBAL_MAX.make(value("float32", ["b", "c", "h", "w"]))) == ["b", "c", "1", "1"]
    assert shape(GLOBAL_AVERAGE.make(value("float32", None))) is None
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        GLOBAL_MAX.make(value("int32", [1, 1, 2]))
    with pytest.raises(InferenceError, match=r"\(C2\)"):
        GLOBAL_AVERAGE.make(value("float32", [2]))


@pytest.mark.parametrize("cls", [MAX, AVERAGE])
@pytest.mark.parametrize(
    ("dtype", "dims", "attributes", "constraint"),
    [
        ("int32", [1, 1, 4], {}, "C1"),
        ("float32", [1, 4], {}, "C2"),
        ("float32", [1, 1, 4], {"kernel_shape": [0]}, "C3"),
        ("float32", [1, 1, 4], {"kernel_shape": [2, 2]}, "C3"),
        ("float32", [1, 1, 4], {"strides": [-1]}, "C3"),
        ("float32", [1, 1, 4], {"pads": [1, -1]}, "C3"),
        ("float32", [1, 1, 4], {"dilations": [0]}, "C3"),
        ("float32", [1, 1, 4], {"auto_pad": "same"}, "C3"),
        ("float32", [1, 1, 4], {"kernel_shape": [6]}, "C4"),
    ],
)
def test_constraints(cls, dtype, dims, attributes, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(value(dtype, dims), **({"kernel_shape": [2]} | attributes))


@pytest.mark.parametrize("cls", [MAX, AVERAGE])
def test_channels_last(cls):
    x = np.arange(2 * 3 * 5 * 4, dtype=np.float32).reshape(2, 3, 5, 4)[:, ::-1]
    attributes = {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 1, 1], "ceil_mode": True}
    want, got = (
        run_all(cls, x, **attributes),
        run_all(cls, np.moveaxis(x, 1, -1), layout="NHWC", **attributes),
    )
    for a, b in zip(want, got, strict=True):
        assert np.array_equal(np.moveaxis(a, 1, -1), b)
    with pytest.raises(InferenceError, match=r"\(C6\)"):
        cls.make(value("float32", [1, 1, 4]), kernel_shape=[2], layout="NCHW->NHWC")


def test_c5_and_refused_runs():
    with pytest.raises(InferenceError, match=r"\(C5\)"):
        MAX.make(value("float32", [1, 1, 4]), kernel_shape=[2], storage_order=2)
    built = AVERAGE.make(value("float32", [1, 1, "n"]), kernel_shape=[4])
    with pytest.raises(ExecutionError, match="don't fit"):
        built.evaluate(EvalContext(), np.zeros((1, 1, 2), np.float32))
    with pytest.raises(ExecutionError, match="rank 2"):
        AVERAGE.make(value("float32", None), kernel_shape=[4]).evaluate(EvalContext(), np.zeros((1, 1), np.float32))


def test_text():
    x = value("float32", ["n", 2, 5])
    assert "-> (tensor<?x2x4xf32" in round_trip(MAX.make(x, kernel_shape=[2]))
    assert "count_include_pad = true" in round_trip(AVERAGE.make(x, kernel_shape=[2], count_include_pad=True))
    assert "sx.global_average_pool" in round_trip(GLOBAL_AVERAGE.make(x))
