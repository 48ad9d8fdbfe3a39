"""cast and cast_like: every pair of dtypes has one defined result."""

import math

import ml_dtypes
import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node
from xdsl.dialects.builtin import IntegerType, i1, i64

from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import ANY, DTYPES
from sardonyx.errors import InferenceError

CAST, LIKE = op("cast"), op("cast_like")
INF, NAN = math.inf, math.nan
INTEGERS = [t.name for t in dtypes.INTEGERS]
FLOATS = [t.name for t in dtypes.FLOATS]
BF16 = np.dtype(ml_dtypes.bfloat16)


def cast(array, to):
    """By both ops, which agree."""
    got = run(CAST, array, to=DTYPES[to])
    like = run(LIKE, array, np.zeros((2, 0), DTYPES[to].numpy))
    assert got.dtype == like.dtype == DTYPES[to].numpy and got.tobytes() == like.tobytes()
    return got


@pytest.mark.parametrize("to", [t.name for t in ANY])
@pytest.mark.parametrize("source", [t.name for t in ANY if t.name != "float8e8m0"])  # which has no 0
def test_small_numbers_survive_every_pair(source, to):
    x = np.array([[0, 1], [1, 0]]).astype(DTYPES[source].numpy)
    got = cast(x, to)
    assert got.shape == (2, 2) and got.astype(int).tolist() == [[0, 1], [1, 0]]
    assert cast(x[0, 1], to).shape == ()
    assert cast(x[:0], to).shape == (0, 2)


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers_truncate_and_saturate(source, to):
    info = np.iinfo(to)
    values = [1.9, -1.9, 0.5, -0.5, 100.99, -0.0, NAN, INF, -INF, 3e4, -3e4]
    x = np.array(values if source == "float16" else [*values, 1e20, -1e20]).astype(DTYPES[source].numpy)

    def exact(v):
        if math.isnan(v):
            return 0
        if math.isinf(v):
            return info.max if v > 0 else info.min
        return max(info.min, min(info.max, math.trunc(v)))

    assert cast(x, to).tolist() == [exact(float(v)) for v in x]


@pytest.mark.parametrize("to", INTEGERS)
def test_floats_at_the_limits_of_integers(to):
    info = np.iinfo(to)
    edges = [float(info.max), float(info.min), float(info.max) + 0.5, float(info.min) - 0.5]
    x = np.array([w for v in edges for w in (np.nextafter(v, -INF), v, np.nextafter(v, INF))])
    assert cast(x, to).tolist() == [max(info.min, min(info.max, math.trunc(v))) for v in x.tolist()]


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_wrap(source, to):
    info, target = np.iinfo(source), np.iinfo(to)
    values = [v for v in (-1, 0, 1, 127, 128, 200, -200, 2**40 + 5, info.max, info.min) if info.min <= v <= info.max]
    want = [(v - target.min) % 2**target.bits + target.min for v in values]
    assert cast(np.array(values, source), to).tolist() == want


@pytest.mark.parametrize("source", FLOATS)
def test_bool_of_floats_is_not_zero(source):
    x = np.array([0, -0.0, 0.25, NAN, INF, 1e-6]).astype(DTYPES[source].numpy)
    assert cast(x, "bool").tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("source", INTEGERS)
def test_bool_of_integers_is_not_zero(source):
    info = np.iinfo(source)
    x = np.array([0, 1, 4, info.max, info.min], source)
    assert cast(x, "bool").tolist() == [False, True, True, True, info.min != 0]


def test_floats_to_narrower_floats():
    x = np.array([1e-9, 65504, 65519.99, 65520, 1e300, NAN, -INF, -0.0, 1 + 2**-11 + 2**-40])
    want = np.array([0, 65504, 65504, INF, INF, NAN, -INF, -0.0, 1 + 2**-10], np.float16)
    np.testing.assert_array_equal(cast(x, "float16"), want)
    assert np.signbit(cast(x, "float16"))[7]
    # The last one is above a tie by less than float32 can tell.
    assert cast(np.array([1 + 2**-8 + 2**-40, 1 + 2**-8]), "bfloat16").astype(float).tolist() == [1 + 2**-7, 1]
    assert cast(np.array([0.1, 1e300, 1e-300]), "float32").tolist() == [float(np.float32(0.1)), INF, 0]


def test_every_float16_survives_wider_dtypes():
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for to in ("float32", "float64"):
        back = cast(cast(x, to), "float16")
        np.testing.assert_array_equal(back, x)
    x = np.arange(2**16, dtype=np.uint16).view(BF16)
    for to in ("float32", "float64"):
        np.testing.assert_array_equal(cast(cast(x, to), "bfloat16").astype(np.float32), x.astype(np.float32))


def test_float32_to_bfloat16_keeps_a_nan_with_a_low_payload():
    x = np.array([0x7F800001, 0xFF800001, 0x3F808000, 0x3F818000], np.uint32).view(np.float32)
    got = cast(x, "bfloat16").astype(np.float32)
    assert np.isnan(got[:2]).all() and got[2:].tolist() == [1, 1.015625]


@pytest.mark.parametrize("source", ["float32", "float16", "float64", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("to", ["float32", "float16", "float64", "int32", "int64", "uint8", "bool"])
def test_against_onnxruntime(source, to):
    x = np.array([0, 1, 2.5, 7, 100]).astype(source)
    (want,) = run_node("Cast", [x], to=DTYPES[to].onnx)
    np.testing.assert_array_equal(cast(x, to), want)


def test_types_and_refusals():
    assert shape(CAST.make(value("int8", ["n", 3]), to=dtypes.float16)) == ["n", "3"]
    assert shape(CAST.make(value("int8", None), to=dtypes.float16)) is None
    assert shape(LIKE.make(value("int8", ["n", 3]), value("float16", None))) == ["n", "3"]
    for wrong in (IntegerType(7), IntegerType(128)):
        with pytest.raises(InferenceError, match=r"^\(C1\) i\d+ is not a dtype"):
            CAST.make(value("int8", [2]), to=wrong)
    with pytest.raises(InferenceError, match=r"^\(C1\)"):
        CAST.make(value("int8", [2]), to="float32 ")


def test_contents():
    dims = extents(["n", 300, 2**31])
    assert known(CAST.make(dims, to=dtypes.int32)) == ["n", "300", str(-(2**31))]
    assert known(LIKE.make(dims, value("int32", None))) == ["n", "300", str(-(2**31))]
    narrow = CAST.make(dims, to=dtypes.int32).output
    assert known(CAST.make(narrow, to=dtypes.int64)) == ["n", "300", str(-(2**31))]
    assert known(CAST.make(dims, to=dtypes.bool_)) == [None, "1", "1"]
    above = op("add").make(dims, constant([1, -300, 0])).output
    assert known(CAST.make(above, to=dtypes.bool_)) == ["1", "0", "1"]
    assert known(CAST.make(constant([True, False]), to=i64)) == ["1", "0"]
    assert known(CAST.make(dims, to=dtypes.float32)) is None
    assert known(CAST.make(CAST.make(dims, to=dtypes.int8).output, to=dtypes.int64)) is None


def test_text_round_trip():
    x = value("float32", ["n"])
    for to in ANY:
        line = round_trip(CAST.make(x, to=to))
        assert f"{{to = {to.ir}}}" in line
    assert round_trip(CAST.make(x, to=i1, saturate=False)).startswith("%0 = sx.cast %x0 {to = i1, saturate = false} :")
    assert round_trip(LIKE.make(x, value("float16", []))).startswith("%0 = sx.cast_like %x0, %x1 : (")
