"""Quantised products against integers written out and onnxruntime; parameters per row, column and channel; errors."""

import numpy as np
import pytest
from op_case import op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import DTYPES
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

MATMUL, CONV = op("qlinear_matmul"), op("qlinear_conv")
RNG = np.random.default_rng(6)
F = np.float32


def sample(dtype, *dims, rng=RNG):
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, dims).astype(dtype)


@pytest.mark.parametrize(("left", "right", "out"), [("uint8", "int8", "uint8"), ("uint8", "uint8", "uint8"),
                                                    ("int8", "int8", "int8")])  # fmt: skip
def test_matmul_against_onnxruntime(left, right, out):
    rng = np.random.default_rng(6)
    # onnxruntime adds pairs of products in 16 bits on some CPUs: small right operands leave it room.
    a, b = sample(left, 5, 7, rng=rng), (sample(right, 7, 3, rng=rng) // 4).astype(right)
    zeros = sample(left, rng=rng), np.zeros((), right), sample(out, rng=rng)
    scales = F(0.037), F(0.11), F(7.3)
    slots = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]]
    check_steps(slots)
    slots[4], slots[5] = rng.uniform(0.01, 0.2, 3).astype(F), np.zeros(3, right)
    check_steps(slots)
    check_steps([sample(left, 2, 5, 7, rng=rng), *slots[1:]])


def check_steps(slots):
    """Within one step: the order in which scales are multiplied decides a tie."""
    got, want = run(MATMUL, *slots), run_node("QLinearMatMul", slots)[0]
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    assert (got == want).mean() > 0.9


def test_parameters_per_row_and_column():
    a, b = sample("int8", 2, 3, 4), sample("uint8", 4, 5)
    sa, za = RNG.uniform(0.1, 1, (2, 3, 1)).astype(F), sample("int8", 2, 3, 1)
    sb, zb = RNG.uniform(0.1, 1, 5).astype(F), sample("uint8", 5)
    got = run(MATMUL, a, sa, za, b, sb, zb, F(90), np.int8(3))
    sums = (a.astype(int) - za) @ (b.astype(int) - zb)
    want = np.clip(np.rint((sums.astype(F) * (sa * sb / F(90))).astype(float)) + 3, -128, 127)
    assert got.tolist() == want.astype(np.int8).tolist()
    row = run(MATMUL, a[0], sa[0, :, 0], za[0, :, 0], b[:, 0], sb[:1], zb[:1], F(90), np.int8(3))
    want = np.clip(np.rint((((a[0].astype(int) - za[0]) @ (b[:, 0].astype(int) - zb[0])).astype(F)
                            * (sa[0, :, 0] * sb[0] / F(90))).astype(float)) + 3, -128, 127)  # fmt: skip
    assert row.tolist() == want.astype(np.int8).tolist()
    assert run(MATMUL, a[0, 0], sa[0, 0, 0], za[0, 0, 0], b, sb, zb, F(90), np.int8(3)).tolist() == got[0, 0].tolist()
    assert run(MATMUL, a[:, :0], F(1), np.int8(0), b, F(1), np.uint8(0), F(1), np.int8(0)).shape == (2, 0, 5)


@pytest.mark.parametrize("name", [t.name for t in dtypes.FLOATS_8])
def test_matmul_of_floats(name):
    numpy = DTYPES[name].numpy
    a, b = np.array([[1, -2], [0.5, 4]]).astype(numpy), np.array([[2, 1], [1, 3]]).astype(numpy)
    zero = np.array(0).astype(numpy)
    got = run(MATMUL, a, F(2), zero, b, F(1), zero, F(4), zero)
    assert got.dtype == numpy and got.astype(float).tolist() == [[0, -2.5], [2.5, 6]]
    got = run(MATMUL, a, np.float16(2), zero, b, np.float16(1), zero, np.float16(4), np.uint8(1))
    assert got.tolist() == [[1, 0], [3, 7]]  # of 0, -2.5, 2.5 and 6.25: ties go to even numbers


def test_sums_wrap_around_in_32_bits():
    a, b = np.full((1, 40_000), 255, np.uint8), np.full((40_000, 1), 255, np.uint8)
    got = run(MATMUL, a, F(1), np.uint8(0), b, F(1), np.uint8(0), F(2.0**24), np.uint8(128))
    wrapped = (255 * 255 * 40_000 + 2**31) % 2**32 - 2**31
    assert got.item() == round(wrapped / 2**24) + 128


@pytest.mark.parametrize("weights", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_conv_against_onnxruntime(weights, channels, bias):
    x, w = sample("uint8", 2, 4, 6, 5), sample(weights, 6, 2, 3, 2)
    w = w if weights == "uint8" else w // 2  # onnxruntime adds pairs of products in 16 bits, where they may saturate
    scale = RNG.uniform(0.01, 0.1, 6).astype(F) if channels else F(0.05)
    zero = np.zeros(6, weights) if channels else np.array(3, weights)
    slots = [x, F(0.02), np.uint8(7), w, scale, zero, F(1.7), np.uint8(120)]
    slots += [RNG.integers(-9999, 9999, 6).astype(np.int32)] if bias else []
    attributes = {"group": 2, "strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2)}
    got = run(CONV, *slots, **attributes)
    assert got.dtype == np.uint8
    assert got.tolist() == run_node("QLinearConv", slots, **attributes)[0].tolist()


def test_types_and_text():
    one, zero = value("float32", []), value("int8", [])
    made = MATMUL.make(
        value("int8", ["b", "m", 4]), one, zero, value("uint8", [4, "n"]), one, value("uint8", []), one, zero
    )
    assert shape(made) == ["b", "m", "n"] and "sx.qlinear_matmul" in round_trip(made)
    conv = CONV.make(
        value("int8", ["n", 2, "h"]), one, zero, value("int8", [4, 2, 3]), one, zero, one, zero, pads=(1, 1)
    )
    assert shape(conv) == ["n", "4", "h"] and "sx.qlinear_conv" in round_trip(conv)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (r"\(C1\) a has", {0: value("int16", [2, 3])}), (r"\(C1\) b_zero_point", {5: value("uint8", [])}),
        (r"\(C1\) b_scale", {4: value("float16", [])}), (r"\(C1\) y_zero_point", {7: value("int32", [])}),
        (r"\(C2\)", {0: value("int8", [])}), (r"\(C3\)", {0: value("int8", [2, 2])}),
        (r"\(C5\) a_scale", {1: value("float32", [3])}), (r"\(C5\) b_scale", {4: value("float32", [3])}),
        (r"\(C5\) y_scale", {6: value("float32", [2])}),
    ],
)  # fmt: skip
def test_constraints_of_matmul(message, change):
    one, zero = value("float32", []), value("int8", [])
    slots = [value("int8", [2, 3]), one, zero, value("int8", [3, 4]), one, zero, one, zero]
    for index, wrong in change.items():
        slots[index] = wrong
    with pytest.raises(InferenceError, match=message):
        MATMUL.make(*slots)


def test_constraints_of_conv_and_runs():
    one, zero = value("float32", []), value("int8", [])
    slots = [value("int8", [1, 2, 5]), one, zero, value("int8", [4, 2, 3]), one, zero, one, zero, value("int32", [4])]
    for message, index, wrong in [
        (r"\(C1\) x_scale", 1, value("float16", [])), (r"\(C1\) b has", 8, value("int64", [4])),
        (r"\(C4\)", 0, value("int8", [1, 3, 5])), (r"\(C5\) b", 8, value("int32", [3])),
        (r"\(C5\) w_scale", 4, value("float32", [3])), (r"\(C5\) x_scale", 1, value("float32", [2])),
    ]:  # fmt: skip
        with pytest.raises(InferenceError, match=message):
            CONV.make(*[wrong if i == index else s for i, s in enumerate(slots)])
    made = CONV.make(*slots[:8], value("int32", ["m"]))
    x, w, scale, none = sample("int8", 1, 2, 5), sample("int8", 4, 2, 3), np.array(1, F), np.array(0, np.int8)
    with pytest.raises(ExecutionError, match="b of shape"):
        made.evaluate(EvalContext(), x, scale, none, w, scale, none, scale, none, np.zeros(3, np.int32))
    with pytest.raises(ExecutionError, match="y_scale of shape"):
        made.evaluate(EvalContext(), x, scale, none, w, scale, none, np.ones(2, F), none, None)
