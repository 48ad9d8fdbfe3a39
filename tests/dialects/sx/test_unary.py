"""Elementwise ops of one operand: against mpmath to half a unit in the last place, special values, inference, text."""

import mpmath
import numpy as np
import pytest
from exact import worst_ulp
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.errors import InferenceError

ANY = [0.0, -0.0, 0.3, -0.3, 1.0, -1.0, 2.5, -2.5, 3.5, 1e-4, -1e-4, 0.99, 7.3, -7.3, 11.2, 100.0, -100.0, 3e4, -3e4]
UNIT = [0.0, -0.0, 0.1, -0.1, 0.5, -0.5, 0.9, -0.9, 1e-4, 0.75]
POSITIVE = [0.01, 0.3, 1.0, 1.5, 2.0, 9.0, 77.0, 1e4, 3e4, 6e-5]

FUNCTIONS = {
    "ceil": (mpmath.ceil, ANY),
    "floor": (mpmath.floor, ANY),
    "round": (mpmath.nint, ANY),
    "sqrt": (mpmath.sqrt, POSITIVE),
    "exp": (mpmath.exp, [v for v in ANY if abs(v) < 80]),
    "log": (mpmath.log, POSITIVE),
    "reciprocal": (lambda v: 1 / v, [v for v in ANY if v]),
    "sin": (mpmath.sin, ANY),
    "cos": (mpmath.cos, ANY),
    "tan": (mpmath.tan, ANY),
    "asin": (mpmath.asin, [*UNIT, 1, -1]),
    "acos": (mpmath.acos, [*UNIT, 1, -1]),
    "atan": (mpmath.atan, ANY),
    "sinh": (mpmath.sinh, [v for v in ANY if abs(v) < 80]),
    "cosh": (mpmath.cosh, [v for v in ANY if abs(v) < 80]),
    "asinh": (mpmath.asinh, ANY),
    "acosh": (mpmath.acosh, [1.0, *[v for v in POSITIVE if v > 1]]),
    "atanh": (mpmath.atanh, UNIT),
    "erf": (mpmath.erf, ANY),
    "tanh": (mpmath.tanh, ANY),
}
FLOATS = [t.name for t in dtypes.FLOATS]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_rounded_once(name, dtype):
    function, values = FUNCTIONS[name]
    x = np.array(values).astype(dtypes.DTYPES[dtype].numpy)
    assert worst_ulp(function, x, run(op(name), x)) <= (4 if dtype == "float64" else 0.5001)


@pytest.mark.parametrize("name", [*FUNCTIONS, "abs", "neg", "sign", "identity"])
def test_shapes_are_kept(name):
    scalar = run(op(name), np.float32(1))
    assert scalar.shape == () and scalar.dtype == np.float32
    assert run(op(name), np.zeros((0, 3), np.float32)).shape == (0, 3)
    x = np.linspace(0.1, 0.9, 24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    np.testing.assert_array_equal(run(op(name), x), run(op(name), x.copy()))


INF, NAN = np.inf, np.nan
SPECIAL = {
    "ceil": ([NAN, INF, -INF, -0.5], [NAN, INF, -INF, -0.0]),
    "floor": ([NAN, INF, -INF, -0.0], [NAN, INF, -INF, -0.0]),
    "round": ([NAN, INF, 0.5, 1.5, 2.5, -0.5, -1.5], [NAN, INF, 0, 2, 2, -0.0, -2]),
    "sqrt": ([NAN, INF, -1, -0.0], [NAN, INF, NAN, -0.0]),
    "exp": ([NAN, INF, -INF, 1000, -1000], [NAN, INF, 0, INF, 0]),
    "log": ([NAN, INF, 0, -0.0, -1], [NAN, INF, -INF, -INF, NAN]),
    "reciprocal": ([NAN, INF, -INF, 0, -0.0], [NAN, 0, -0.0, INF, -INF]),
    "sin": ([NAN, INF, -0.0], [NAN, NAN, -0.0]),
    "cos": ([NAN, -INF, 0], [NAN, NAN, 1]),
    "tan": ([NAN, INF, -0.0], [NAN, NAN, -0.0]),
    "asin": ([NAN, 1.5, -0.0], [NAN, NAN, -0.0]),
    "acos": ([NAN, -1.5, 1], [NAN, NAN, 0]),
    "atan": ([NAN, -0.0], [NAN, -0.0]),
    "sinh": ([NAN, INF, -INF, -0.0], [NAN, INF, -INF, -0.0]),
    "cosh": ([NAN, INF, -INF, 0], [NAN, INF, INF, 1]),
    "asinh": ([NAN, INF, -INF, -0.0], [NAN, INF, -INF, -0.0]),
    "acosh": ([NAN, INF, 0.5, 1], [NAN, INF, NAN, 0]),
    "atanh": ([NAN, 1, -1, 2, -0.0], [NAN, INF, -INF, NAN, -0.0]),
    "erf": ([NAN, INF, -INF, -0.0], [NAN, 1, -1, -0.0]),
    "tanh": ([NAN, INF, -INF, -0.0], [NAN, 1, -1, -0.0]),
    "abs": ([NAN, -INF, -0.0, -2], [NAN, INF, 0, 2]),
    "neg": ([NAN, INF, 0.0, -0.0], [NAN, -INF, -0.0, 0]),
    "sign": ([NAN, INF, -INF, 0.0, -0.0, 1e-30], [NAN, 1, -1, 0, 0, 1]),
    "identity": ([NAN, INF, -0.0], [NAN, INF, -0.0]),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    x, want = (np.array(v).astype(dtypes.DTYPES[dtype].numpy) for v in SPECIAL[name])
    got = run(op(name), x).astype(np.float64)
    np.testing.assert_array_equal(got, want.astype(np.float64))
    numbers = ~np.isnan(got)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want.astype(np.float64))[numbers])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_signed_integers_wrap(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, -3, 0, 5], dtype)
    assert run(op("abs"), x).tolist() == [info.min, info.max, 3, 0, 5]
    assert run(op("neg"), x).tolist() == [info.min, -info.max, 3, 0, -5]
    assert run(op("sign"), x).tolist() == [-1, 1, -1, 0, 1]
    assert run(op("bitwise_not"), x).tolist() == [info.max, info.min, 2, -1, -6]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers(dtype):
    top = np.iinfo(dtype).max
    x = np.array([0, 5, top], dtype)
    assert run(op("abs"), x).tolist() == [0, 5, top]
    assert run(op("sign"), x).tolist() == [0, 1, 1]
    assert run(op("bitwise_not"), x).tolist() == [top, top - 5, 0]


def test_bools():
    x = np.array([[True, False]])
    assert run(op("not"), x).tolist() == [[False, True]]
    assert run(op("identity"), x).tolist() == [[True, False]]
    assert run(op("not"), np.array(True)).tolist() is False


@pytest.mark.parametrize("dtype", FLOATS)
def test_tests_of_floats(dtype):
    x = np.array([NAN, INF, -INF, 0, 1]).astype(dtypes.DTYPES[dtype].numpy)
    assert run(op("is_nan"), x).tolist() == [True, False, False, False, False]
    assert run(op("is_inf"), x).tolist() == [False, True, True, False, False]
    assert run(op("is_inf"), x, detect_negative=False).tolist() == [False, True, False, False, False]
    assert run(op("is_inf"), x, detect_positive=False).tolist() == [False, False, True, False, False]
    assert not run(op("is_inf"), x, detect_positive=False, detect_negative=False).any()


@pytest.mark.parametrize(
    "name",
    ["abs", "neg", "sign", "ceil", "floor", "round", "sqrt", "exp", "log", "sin", "erf", "atan", "is_nan", "is_inf"],
)
def test_against_onnxruntime(name):
    x = np.array([-2.5, -0.5, 0.0, 0.5, 1.5, 2.5, NAN, INF, -INF], np.float32)
    (want,) = run_node(op(name).ONNX.name, [x])
    np.testing.assert_allclose(run(op(name), x), want, rtol=1e-6)


# ---- inference


def test_types_follow_the_operand():
    assert shape(op("exp").make(value("float16", ["batch", 3]))) == ["batch", "3"]
    found = op("is_nan").make(value("bfloat16", ["batch", 3]))
    assert shape(found) == ["batch", "3"] and "i1" in str(found.output.type)
    assert shape(op("abs").make(value("int8", None))) is None


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("neg", "uint8"),
        ("exp", "int32"),
        ("not", "int32"),
        ("bitwise_not", "bool"),
        ("is_nan", "int8"),
        ("abs", "bool"),
    ],
)
def test_c1_refuses_other_dtypes(name, dtype):
    with pytest.raises(InferenceError, match=r"^\(C1\) .*allowed") as caught:
        op(name).make(value(dtype, [2]))
    assert caught.value.op == f"sx.{name}"


def test_contents_are_followed():
    dims = extents(["batch", 3])
    assert known(op("identity").make(dims)) == ["batch", "3"]
    assert known(op("neg").make(dims)) == ["-batch", "-3"]
    assert known(op("abs").make(dims)) == ["batch", "3"]
    assert known(op("abs").make(op("neg").make(dims).output)) == [None, "3"]
    assert known(op("sign").make(dims)) == [None, "1"]
    assert known(op("bitwise_not").make(dims)) == ["-batch - 1", "-4"]
    assert known(op("not").make(constant([True, False]))) == ["0", "1"]
    assert known(op("exp").make(value("float32", [2]))) is None


def test_contents_wrap_in_their_dtype():
    assert known(op("neg").make(constant([-(2**31), 5], "int32"))) == [str(-(2**31)), "-5"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "abs", "neg", "sign", "identity", "is_nan", "is_inf"])
def test_text_round_trip(name):
    line = round_trip(op(name).make(value("float32", ["n", 3])))
    assert line.startswith(f"%0 = sx.{name} %x0 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3x")


def test_text_of_properties():
    line = round_trip(op("is_inf").make(value("float32", [3]), detect_negative=False, detect_positive=True))
    assert line == "%0 = sx.is_inf %x0 {detect_negative = false} : (tensor<3xf32>) -> tensor<3xi1>"
