"""Products of 8-bit integers against Python's integers and against onnxruntime; zero points, extents, errors."""

import itertools
from typing import Any

import numpy as np
import pytest
from op_case import constant, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

MATMUL, CONV = op("matmul_integer"), op("conv_integer")
RNG = np.random.default_rng(9)
PAIRS = list(itertools.product(["int8", "uint8"], repeat=2))


def sample(dtype, *dims):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, dims).astype(dtype)


def plain(a, b, a_zero: Any = 0, b_zero: Any = 0):
    """The product in Python's integers, for matrices; zero points broadcast."""
    a = a.astype(object) - np.broadcast_to(np.asarray(a_zero).astype(object), a.shape)
    b = b.astype(object) - np.broadcast_to(np.asarray(b_zero).astype(object), b.shape)
    out = [[sum(x * y for x, y in zip(row, column, strict=True)) for column in b.T] for row in a]
    return np.array([[(v + 2**31) % 2**32 - 2**31 for v in row] for row in out], np.int32).reshape(len(a), b.shape[1])


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_matrices(left, right):
    a, b = sample(left, 5, 7), sample(right, 7, 3)
    assert run(MATMUL, a, b).tolist() == plain(a, b).tolist() == run_node("MatMulInteger", [a, b])[0].tolist()
    for a_zero in (sample(left), sample(left, 1), sample(left, 5), sample(left, 5, 1)):
        for b_zero in (sample(right), sample(right, 1), sample(right, 3), sample(right, 1, 3)):
            rows = a_zero[:, None] if a_zero.shape == (5,) else a_zero
            assert run(MATMUL, a, b, a_zero, b_zero).tolist() == plain(a, b, rows, b_zero).tolist()
    got = run_node("MatMulInteger", [a, b, sample(left) * 0 + 3, sample(right, 3) * 0 + 5])[0]
    assert got.tolist() == plain(a, b, 3, 5).tolist()


def test_ranks_and_empty_operands():
    a, b = sample("uint8", 2, 1, 4, 3), sample("int8", 5, 3, 2)
    zero = sample("uint8", 2, 1, 4, 1)
    got = run(MATMUL, a, b, zero, np.int8(1))
    assert got.shape == (2, 5, 4, 2) and got.dtype == np.int32
    assert got[1, 3].tolist() == plain(a[1, 0], b[3], zero[1, 0], 1).tolist()
    per_column = sample("int8", 5, 1, 2)
    assert run(MATMUL, a, b, None, per_column)[0, 2].tolist() == plain(a[0, 0], b[2], 0, per_column[2]).tolist()
    assert run(MATMUL, sample("uint8", 3), b, np.array([2], "u1")).shape == (5, 2)
    assert run(MATMUL, sample("uint8", 3), sample("uint8", 3)).shape == ()
    assert run(MATMUL, np.zeros((2, 0), "u1"), np.zeros((0, 3), "u1"), np.uint8(4)).tolist() == [[0, 0, 0]] * 2
    assert run(MATMUL, np.zeros((0, 4), "i1"), np.zeros((4, 3), "u1")).shape == (0, 3)


def test_sums_wrap_around():
    a, b = np.full((1, 40_000), 255, np.uint8), np.full((40_000, 1), 255, np.uint8)
    assert run(MATMUL, a, b).item() == (255 * 255 * 40_000 + 2**31) % 2**32 - 2**31


def test_inferred_extents_and_text():
    a, b = value("uint8", ["batch", "m", 4]), value("int8", [4, "n"])
    made = MATMUL.make(a, b, value("uint8", []), value("int8", ["n"]))
    assert shape(made) == ["batch", "m", "n"]
    assert round_trip(made).startswith("%2 = sx.matmul_integer") or "sx.matmul_integer" in round_trip(made)
    assert shape(MATMUL.make(a, b, None, value("int8", []))) == ["batch", "m", "n"]
    assert shape(MATMUL.make(value("uint8", None), b)) is None
    conv = CONV.make(
        value("uint8", ["n", 2, "h", 5]), value("int8", [4, 2, 3, 3]), value("uint8", []), pads=(1, 1, 1, 1)
    )
    assert shape(conv) == ["n", "4", "h", "5"]
    assert "sx.conv_integer" in round_trip(conv)


@pytest.mark.parametrize(
    ("message", "slots"),
    [
        ("(C1) a has dtype int16", (value("int16", [2, 2]), value("int8", [2, 2]))),
        ("(C1) a_zero_point has dtype int8", (value("uint8", [2, 2]), value("int8", [2, 2]), value("int8", []))),
        ("(C2)", (value("uint8", []), value("int8", [2, 2]))),
        ("(C3)", (value("uint8", [2, 3]), value("int8", [2, 2]))),
        ("(C4)", (value("uint8", [2, 3, 3]), value("int8", [4, 3, 2]))),
        ("(C5) a_zero_point", (value("uint8", [2, 3]), value("int8", [3, 2]), value("uint8", [3]))),
        ("(C5) a_zero_point", (value("uint8", [2, 3]), value("int8", [3, 2]), value("uint8", [1, 2]))),
        ("(C5) b_zero_point", (value("uint8", [2, 3]), value("int8", [3, 2]), None, value("int8", [2, 1]))),
        ("(C5) b_zero_point", (value("uint8", [2, 3]), value("int8", [3]), None, value("int8", [3]))),
    ],
)
def test_constraints_of_matmul(message, slots):
    with pytest.raises(InferenceError) as caught:
        MATMUL.make(*slots)
    assert str(caught.value).startswith(message) or message in str(caught.value)


def test_data_that_do_not_fit_are_refused_in_a_run():
    a, b = value("uint8", ["m", "k"]), value("int8", ["j", "n"])
    made = MATMUL.make(a, b, value("uint8", ["z"]))
    with pytest.raises(ExecutionError, match="cannot be multiplied"):
        made.evaluate(EvalContext(), sample("uint8", 2, 3), sample("int8", 4, 2), None, None)
    with pytest.raises(ExecutionError, match="a_zero_point of shape"):
        made.evaluate(EvalContext(), sample("uint8", 2, 3), sample("int8", 3, 2), sample("uint8", 3), None)
    conv = CONV.make(value("uint8", ["n", "c", "h"]), value("int8", ["m", "d", "k"]), None, value("int8", ["z"]))
    with pytest.raises(ExecutionError, match="w_zero_point of shape"):
        conv.evaluate(EvalContext(), sample("uint8", 1, 2, 3), sample("int8", 4, 2, 1), None, sample("int8", 3))
    with pytest.raises(ExecutionError, match="don't fit group"):
        conv.evaluate(EvalContext(), sample("uint8", 1, 3, 3), sample("int8", 4, 2, 1), None, None)
    with pytest.raises(ExecutionError, match="x_zero_point of shape"):
        conv.evaluate(EvalContext(), sample("uint8", 1, 2, 3), sample("int8", 4, 2, 1), sample("uint8", 2), None)


@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER"])
def test_convolution_against_onnxruntime(weights, auto_pad):
    x, w = sample("uint8", 2, 4, 6, 5), sample(weights, 6, 2, 3, 2)
    attributes = {
        "group": 2, "strides": (2, 1), "auto_pad": auto_pad, "kernel_shape": (3, 2),
        "pads": (1, 0, 2, 1) if auto_pad == "NOTSET" else None, "dilations": (1, 2) if auto_pad == "NOTSET" else None,
    }  # fmt: skip
    zeros = [np.uint8(7), np.array(3, weights)]
    got = run(CONV, x, w, *zeros, **attributes)
    assert got.dtype == np.int32
    assert got.tolist() == run_node("ConvInteger", [x, w, *zeros], **attributes)[0].tolist()
    assert run(CONV, x, w, **attributes).tolist() == run_node("ConvInteger", [x, w], **attributes)[0].tolist()


@pytest.mark.parametrize(("data", "weights"), PAIRS)
def test_convolution_is_a_product_per_window(data, weights):
    x, w = sample(data, 1, 3, 8), sample(weights, 4, 3, 2)
    x_zero, w_zero = sample(data), sample(weights, 4)
    got = run(CONV, x, w, x_zero, w_zero, strides=(2,))
    columns = np.stack([x[0, :, i : i + 2].reshape(-1) for i in range(0, 7, 2)], 1)
    assert got[0].tolist() == plain(w.reshape(4, 6), columns, w_zero[:, None], x_zero).tolist()
    # The padding counts as the zero point: where the data are it, the result is 0.
    assert not run(CONV, np.full((1, 3, 8), x_zero), w, x_zero, w_zero, pads=(1, 1)).any()
    assert run(CONV, np.zeros((0, 3, 8), data), w).shape == (0, 4, 7)


def test_constraints_of_conv():
    x, w = value("uint8", [1, 4, 5]), value("int8", [6, 2, 3])
    for message, slots, attributes in [
        (r"\(C1\) w has dtype int32", (x, value("int32", [6, 2, 3])), {"group": 2}),
        (r"\(C1\) w_zero_point", (x, w, None, value("uint8", [])), {"group": 2}),
        (r"\(C2\)", (x, value("int8", [6, 2, 3, 1])), {"group": 2}),
        (r"\(C3\)", (x, w), {"group": 2, "strides": (0,)}),
        (r"\(C4\)", (x, w), {}),
        (r"\(C5\) x_zero_point", (x, w, value("uint8", [4])), {"group": 2}),
        (r"\(C5\) w_zero_point", (x, w, None, value("int8", [4])), {"group": 2}),
        (r"\(C6\)", (value("uint8", [1, 4, 1]), w), {"group": 2}),
    ]:
        with pytest.raises(InferenceError, match=message):
            CONV.make(*slots, **attributes)


def test_zero_points_that_are_constants():
    made = MATMUL.make(value("uint8", [2, 3]), value("int8", [3, 2]), constant(np.uint8(3)), constant(np.int8(0)))
    assert made.python_properties() == {} and shape(made) == ["2", "2"]
