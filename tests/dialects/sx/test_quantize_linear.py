"""Quantisation against Python's arithmetic and onnxruntime; where scales stand; errors."""

import math

import ml_dtypes
import numpy as np
import pytest
from op_case import op, round_trip, run, run_all, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import DTYPES
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

QUANTIZE, DEQUANTIZE, DYNAMIC = op("quantize_linear"), op("dequantize_linear"), op("dynamic_quantize_linear")
RNG = np.random.default_rng(5)
INTEGERS = [*map(str, dtypes.SMALL_INTEGERS), "int8", "uint8", "int16", "uint16"]


def limits(name):
    dtype = DTYPES[name]
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    return low, low + (1 << dtype.bits) - 1


@pytest.mark.parametrize("name", INTEGERS)
def test_ties_go_to_even_and_limits_saturate(name):
    low, high = limits(name)
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e5, -1e5, np.inf, -np.inf, np.nan, 0.25], np.float32)
    for zero in (0, 1):
        at = np.array(zero, np.int8).astype(DTYPES[name].numpy)
        want = [min(high, max(low, r + zero)) for r in (0, 2, 2, 0, -2, 10**6, -(10**6), 10**6, -(10**6), 0, 0)]
        assert run(QUANTIZE, x, np.float32(1), at).astype(int).tolist() == want
    got = run(QUANTIZE, x[:3], np.float32(0.5), output_dtype=DTYPES[name])
    assert got.dtype == DTYPES[name].numpy and got.astype(int).tolist() == [min(high, v) for v in (1, 3, 5)]


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_against_onnxruntime(name, axis):
    x = RNG.normal(0, 40, (3, 4, 5)).astype(np.float32)
    count = x.shape[axis]
    scale = RNG.uniform(0.1, 3, count).astype(np.float32)
    zero = RNG.integers(*limits(name), count).astype(name)
    for s, z in ((scale, zero), (scale[0], zero[0]), (scale[:1], zero[:1])):
        got = run(QUANTIZE, x, s, z, axis=axis)
        np.testing.assert_array_equal(got, run_node("QuantizeLinear", [x, s, z], axis=axis)[0])
        back = run(DEQUANTIZE, got, s, z, axis=axis)
        np.testing.assert_array_equal(back, run_node("DequantizeLinear", [got, s, z], axis=axis)[0])
    np.testing.assert_array_equal(
        run(QUANTIZE, x, scale, axis=axis), run_node("QuantizeLinear", [x, scale], axis=axis)[0]
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("block", [1, 2, 3, 9])
def test_blocks(axis, block):
    x = RNG.normal(0, 40, (3, 4, 5)).astype(np.float32)
    dims = [-(-n // block) if i == axis % 3 else n for i, n in enumerate(x.shape)]
    scale, zero = RNG.uniform(0.1, 3, dims).astype(np.float32), RNG.integers(-99, 99, dims).astype(np.int8)
    places = np.arange(x.shape[axis]) // block
    full, zeros = np.take(scale, places, axis), np.take(zero, places, axis)
    got = run(QUANTIZE, x, scale, zero, axis=axis, block_size=block)
    assert got.tolist() == np.clip(np.rint(x / full) + zeros, -128, 127).astype(np.int8).tolist()
    back = run(DEQUANTIZE, got, scale, zero, axis=axis, block_size=block)
    assert back.tolist() == ((got.astype("f4") - zeros) * full).tolist()


@pytest.mark.parametrize("name", [t.name for t in dtypes.SMALL_FLOATS if t != dtypes.float8e8m0])
def test_floats_are_cast(name):
    x = np.array([1, -3.3, 1000, -1e9, np.inf, np.nan, 0.3], np.float32)
    target = DTYPES[name]
    for saturate in (True, False):
        got = run(QUANTIZE, x, np.float32(0.5), output_dtype=target, saturate=saturate)
        want = run(op("cast"), x * 2, to=target, saturate=saturate)
        assert got.tobytes() == want.tobytes()
    zero = np.array(1).astype(target.numpy)
    assert run(QUANTIZE, x[:1], np.float32(0.5), zero).astype(float).tolist() == [3]
    assert run(DEQUANTIZE, np.array([3]).astype(target.numpy), np.float32(0.5), zero).tolist() == [1]


def test_precision_of_the_division_and_of_the_result():
    x, scale = np.array([np.float32(2049)], np.float32), np.float32(2)
    assert run(QUANTIZE, x, scale, np.int16(0)).tolist() == [1024]  # 1024.5
    assert run(QUANTIZE, x + 2, scale, np.int16(0)).tolist() == [1026]  # 1025.5
    assert run(QUANTIZE, x + 2, scale, np.int16(0), precision=dtypes.float16).tolist() == [1026]
    assert run(QUANTIZE, x + 2, np.float16(2), np.int16(0)).tolist() == [1026]  # 2051 is 2052 in float16
    assert run(QUANTIZE, np.array([7, -7], np.int32), np.int32(2), np.int8(0)).tolist() == [4, -4]
    power = np.array(4).astype(ml_dtypes.float8_e8m0fnu)
    assert run(QUANTIZE, np.array([10.0], "f4"), power, np.int8(0)).tolist() == [2]
    assert run(DEQUANTIZE, np.array([3], np.int8), power, output_dtype=dtypes.bfloat16).astype(float).tolist() == [12]
    for target in ("float16", "bfloat16", "float32"):
        got = run(DEQUANTIZE, np.array([127], np.int8), np.float32(0.1), output_dtype=DTYPES[target])
        exact = 127 * float(np.float32(0.1))
        assert got.dtype == DTYPES[target].numpy and got.tobytes() == np.array([exact]).astype(got.dtype).tobytes()
    large = np.array([2**31 - 1, -(2**31)], np.int32)
    assert run(DEQUANTIZE, large, np.float32(1)).tolist() == [2.0**31, -(2.0**31)]


def test_dynamic_quantisation_against_onnxruntime():
    for x in (RNG.normal(3, 2, (4, 5)), RNG.uniform(1, 2, 7), -RNG.uniform(1, 2, 7), np.zeros(3), np.array(2.5)):
        x = np.asarray(x, np.float32)
        got, want = run_all(DYNAMIC, x), run_node("DynamicQuantizeLinear", [x], 3)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    y, scale, zero = run_all(DYNAMIC, np.zeros((0, 2), np.float32))
    assert y.shape == (0, 2) and (scale.item(), zero.item()) == (1, 0)


def test_sizes_of_0_and_1_and_types():
    empty = np.zeros((0, 3), np.float32)
    assert run(QUANTIZE, empty, np.ones(3, "f4")).shape == (0, 3)
    assert run(QUANTIZE, np.float32(3), np.float32(2)).shape == ()
    assert run(QUANTIZE, np.ones(1, "f4"), np.ones(1, "f4")).tolist() == [1]  # axis 1 doesn't matter
    made = QUANTIZE.make(value("float32", ["n", 6]), value("float32", ["n", 2]), axis=1, block_size=3)
    assert shape(made) == ["n", "6"] and "block_size = 3" in round_trip(made)
    made = DEQUANTIZE.make(value("int4", ["n"]), value("float16", []), output_dtype=dtypes.float32)
    assert shape(made) == ["n"] and "output_dtype = f32" in round_trip(made)
    assert shape(DEQUANTIZE.make(value("int8", None), value("float32", [3]))) is None
    assert [shape(DYNAMIC.make(value("float32", ["n"])), i) for i in range(3)] == [["n"], [], []]


X, S, Z = value("float32", [2, 6]), value("float32", [6]), value("int8", [6])


@pytest.mark.parametrize(
    ("message", "slots", "attributes"),
    [
        (r"\(C1\) x", (value("float64", [2]), S), {}), (r"\(C1\) y_scale", (X, value("float64", [])), {}),
        (r"\(C1\) y_zero_point", (X, S, value("int32", [6])), {}),
        (r"\(C1\) output_dtype is uint8", (X, S, Z), {"output_dtype": dtypes.uint8}),
        (r"\(C1\) output_dtype is int32", (X, S), {"output_dtype": dtypes.int32}),
        (r"\(C1\) precision", (X, S), {"precision": dtypes.float64}), (r"\(C2\)", (X, S, value("int8", [5])), {}),
        (r"\(C2\)", (X, S, value("int8", [])), {}), (r"\(C3\)", (X, value("float32", [5])), {}),
        (r"\(C3\)", (X, value("float32", [2, 3])), {}),
        (r"\(C3\)", (X, value("float32", [2, 3])), {"block_size": 3}),
        (r"\(C3\)", (X, value("float32", [2])), {"block_size": 3}), (r"\(C4\)", (X, S), {"block_size": -1}),
        (r"\(C5\)", (X, S), {"axis": 2}),
    ],
)  # fmt: skip
def test_constraints(message, slots, attributes):
    with pytest.raises(InferenceError, match=message):
        QUANTIZE.make(*slots, **attributes)


def test_constraints_of_dequantize():
    for message, slots, attributes in [
        (r"\(C1\) x has", (value("float32", [2]), S), {}), (r"\(C1\) x_zero", (Z, S, value("uint8", [6])), {}),
        (r"\(C1\) x_scale", (Z, value("int32", [])), {}),
        (r"\(C1\) with a scale", (Z, value("float8e8m0", [])), {}),
        (r"\(C1\) output_dtype", (Z, S), {"output_dtype": dtypes.float64}), (r"\(C5\)", (Z, S), {"axis": 1}),
    ]:  # fmt: skip
        with pytest.raises(InferenceError, match=message):
            DEQUANTIZE.make(*slots, **attributes)
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        DYNAMIC.make(value("float16", [2]))


def test_scales_that_do_not_fit_are_refused_in_a_run():
    made = QUANTIZE.make(value("float32", ["a", "b"]), value("float32", ["c"]))
    for count in (2, 4):
        with pytest.raises(ExecutionError, match="y_scale"):
            made.evaluate(EvalContext(), np.ones((2, 3), "f4"), np.ones(count, "f4"), None)
    assert not math.isnan(float(run(DEQUANTIZE, np.int8(1), np.float32(2))))
