"""Arithmetic of two operands: exact values in Python's integers and fractions, broadcasting, contents, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

INF, NAN = np.inf, np.nan
FLOATS = [t.name for t in dtypes.FLOATS]
INTEGERS = [t.name for t in dtypes.INTEGERS]
ARITHMETIC = ["add", "sub", "mul", "div", "mod"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]


def grid(values, dtype):
    """All pairs of the values that the dtype has."""
    info = np.iinfo(dtype)
    numbers = np.array([v for v in [*values, info.max, info.min, info.min + 1, info.max - 2] if v >= info.min], dtype)
    a, b = np.meshgrid(numbers, numbers)
    return a.reshape(-1), b.reshape(-1)


def wrap(number, dtype):
    info = np.iinfo(dtype)
    return (number - info.min) % (info.max - info.min + 1) + info.min


def truncated(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: truncated(a, b) if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", EXACT)
def test_integers_wrap_and_are_total(name, dtype):
    a, b = grid([7, -7, 3, -3, 6, 1, -1, 0, 100], dtype)
    got = run(op(name), a, b)
    assert got.dtype == np.dtype(dtype)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    assert got.tolist() == [wrap(EXACT[name](x, y), dtype) for x, y in pairs]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_fmod_of_integers_has_the_sign_of_the_dividend(dtype):
    a, b = grid([7, -7, 3, -3, 6, 1, -1, 0], dtype)
    want = [x - truncated(x, y) * y if y else 0 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert run(op("mod"), a, b, fmod=True).tolist() == want


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_floats_round_once(name, dtype):
    """The exact result lies within half a step: no other number of the dtype is nearer."""
    target = dtypes.DTYPES[dtype].numpy
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=200).astype(target) for _ in range(2))
    got = run(op(name), a, b)
    assert got.dtype == target
    function = (lambda x, y: x / y) if name == "div" else EXACT[name]
    up, down = np.nextafter(got, target.type(np.inf)), np.nextafter(got, target.type(-np.inf))
    for x, y, r, above, below in zip(a, b, got, up, down, strict=True):
        exact = function(Fraction(float(x)), Fraction(float(y)))
        error = abs(Fraction(float(r)) - exact)
        assert error <= abs(Fraction(float(above)) - exact) and error <= abs(Fraction(float(below)) - exact)


def test_special_floats():
    x = np.array([NAN, INF, -INF, 0, -0.0, 1], np.float32)
    zero = np.float32(0)
    np.testing.assert_array_equal(run(op("mul"), x, zero), [NAN, NAN, NAN, 0, -0.0, 0])
    np.testing.assert_array_equal(run(op("sub"), x, x), [NAN, NAN, NAN, 0, 0, 0])
    np.testing.assert_array_equal(run(op("div"), x, zero), [NAN, INF, -INF, NAN, NAN, INF])
    np.testing.assert_array_equal(run(op("div"), np.float32(1), x), [NAN, 0, -0.0, INF, -INF, 1])
    assert not np.signbit(run(op("add"), np.float32(-0.0), zero))
    assert np.signbit(run(op("add"), np.float32(-0.0), np.float32(-0.0)))
    assert np.signbit(run(op("sub"), np.float32(-0.0), zero))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floored_remainder_of_floats(dtype):
    """The table in the text of ONNX's Mod of opset 28."""
    target = dtypes.DTYPES[dtype].numpy
    a = np.array([7.5, -7.5, 7.5, -7.5, 0, -0.0, 0, INF, -INF, 1, 1, -1, 3, -3, NAN, 1], target)
    b = np.array([2, 2, -2, -2, 2, 2, -2, 2, 2, 0, INF, INF, -INF, -INF, 1, NAN], target)
    want = [1.5, 0.5, -0.5, -1.5, 0, 0, -0.0, NAN, NAN, NAN, 1, INF, -INF, -3, NAN, NAN]
    got = run(op("mod"), a, b).astype(np.float64)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(got)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", FLOATS)
def test_truncated_remainder_of_floats(dtype):
    target = dtypes.DTYPES[dtype].numpy
    a = np.array([7.5, -7.5, 7.5, -7.5, INF, 1, 1, -1, NAN], target)
    b = np.array([2, 2, -2, -2, 2, 0, INF, INF, 1], target)
    got = run(op("mod"), a, b, fmod=True).astype(np.float64)
    np.testing.assert_array_equal(got, [1.5, -1.5, 1.5, -1.5, NAN, NAN, 1, -1, NAN])


# ---- pow


@pytest.mark.parametrize("exponents", ["int8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_powers_wrap(dtype, exponents):
    base = np.array([0, 1, -1, 2, -2, 3, 10, -7, np.iinfo(dtype).min], dtype)
    exponent = np.array([0, 1, 2, 3, 5, 31, 64, 127, -1, -2, -128], exponents)
    got = run(op("pow"), base[:, None], exponent[None, :])

    def exact(a, e):
        return a**e if e >= 0 else a ** (-e) if a in (1, -1) else 0

    want = [[wrap(exact(a, e), dtype) for e in exponent.tolist()] for a in base.tolist()]
    assert got.dtype == np.dtype(dtype) and got.tolist() == want


def test_powers_with_unsigned_exponents():
    top = np.array([2**64 - 1, 5, 0], np.uint64)
    assert run(op("pow"), np.array([-1, 2, 7]), top).tolist() == [-1, 32, 1]
    assert run(op("pow"), np.array([3], np.int32), np.array([40], np.uint8)).tolist() == [wrap(3**40, "int32")]


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_floats(dtype):
    target = dtypes.DTYPES[dtype].numpy
    a = np.array([2, -2, -2, 0, -0.0, 4, NAN, 1, INF, 0.5], target)
    b = np.array([3, 3, 0.5, -1, -1, 0.5, 0, NAN, -1, -2], target)
    got = run(op("pow"), a, b)
    assert got.dtype == target
    np.testing.assert_array_equal(got.astype(np.float64), [8, -8, NAN, INF, -INF, 2, 1, 1, 0, 4])


def test_powers_keep_the_dtype_of_the_base():
    f4, i4, i8 = np.float32, np.int32, np.int64
    assert run(op("pow"), np.array([2, 3], f4), np.array([2, -1], i8)).tolist() == [4, float(f4(1 / 3))]
    assert run(op("pow"), np.array([2, 3], i4), np.array([0.5, 2], f4)).tolist() == [1, 9]
    got = run(op("pow"), np.array([2, -2, 0], i4), np.array([100, 0.5, -1], f4))
    assert got.dtype == i4 and got.tolist() == [2**31 - 1, 0, 2**31 - 1]
    odd = np.array([2**53 + 1, 2**53], i8)
    assert run(op("pow"), np.array([-1.0, -1.0]), odd).tolist() == [-1, 1]
    np.testing.assert_array_equal(
        run(op("pow"), np.array([-0.0, -0.0, -INF]), np.array([-1, -2, 3])), [-INF, INF, -INF]
    )


# ---- bit_shift


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_are_total(dtype, direction):
    info = np.iinfo(dtype)
    counts = np.array(
        [c for c in (0, 1, 3, info.bits - 1, info.bits, info.bits + 1, 100, -1, info.min) if c >= info.min]
    )
    numbers = np.array([v for v in (1, 5, 77, -1, -5, info.max, info.min) if v >= info.min], dtype)
    got = run(op("bit_shift"), numbers[:, None], counts.astype(dtype)[None, :], direction=direction)

    def exact(x, count):
        if direction == "LEFT":
            return wrap(x << count, dtype) if 0 <= count < info.bits else 0
        return x >> count if 0 <= count < info.bits else (-1 if x < 0 else 0)

    assert got.tolist() == [[exact(x, c) for c in counts.tolist()] for x in numbers.tolist()]


# ---- shapes


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow"])
@pytest.mark.parametrize(
    "a, b", [((), ()), ((), (3,)), ((2, 1), (3,)), ((0, 3), (1, 3)), ((0,), ()), ((2, 3), (4, 1, 1))]
)
def test_shapes_broadcast(name, a, b):
    x, y = np.full(a, 7, np.float32), np.full(b, 2, np.float32)
    got = run(op(name), x, y)
    assert got.shape == np.broadcast_shapes(a, b)
    assert (got == {"add": 9, "sub": 5, "mul": 14, "div": 3.5, "mod": 1, "pow": 49}[name]).all()


def test_types_broadcast():
    add = op("add")
    assert shape(add.make(value("float32", ["n", 1, 4]), value("float32", ["m", 1]))) == ["n", "m", "4"]
    assert shape(add.make(value("float32", ["n"]), value("float32", ["n"]))) == ["n"]
    assert shape(add.make(value("float32", ["n"]), value("float32", [5]))) == ["5"]
    assert shape(add.make(value("float32", ["n"]), value("float32", ["m"]))) == ["broadcast(m, n)"]
    assert shape(add.make(value("float32", None), value("float32", [5]))) is None
    assert shape(op("pow").make(value("float32", ["n", 1]), value("int8", [3]))) == ["n", "3"]


@pytest.mark.parametrize("name", [*ARITHMETIC, *BITWISE])
def test_c1_refuses_dtypes_that_differ_or_do_not_fit(name):
    with pytest.raises(InferenceError, match=r"^\(C1\) the operands have different dtypes: int32, int64"):
        op(name).make(value("int32", [2]), value("int64", [2]))
    with pytest.raises(InferenceError, match=r"^\(C1\) .* bool; allowed"):
        op(name).make(value("bool", [2]), value("bool", [2]))
    with pytest.raises(InferenceError, match=r"^\(C2\) shapes \[2, 3\] and \[2\] do not broadcast"):
        op(name).make(value("int64", [2, 3]), value("int64", [2]))


@pytest.mark.parametrize("name", BITWISE)
def test_c1_refuses_bits_of_floats(name):
    with pytest.raises(InferenceError, match=r"^\(C1\) .* float32"):
        op(name).make(value("float32", [2]), value("float32", [2]))


def test_refusals_of_pow_and_bit_shift():
    with pytest.raises(InferenceError, match=r"^\(C1\) the base has dtype int8"):
        op("pow").make(value("int8", [2]), value("int8", [2]))
    with pytest.raises(InferenceError, match=r"^\(C1\) the exponent has dtype bool"):
        op("pow").make(value("int32", [2]), value("bool", [2]))
    with pytest.raises(InferenceError, match=r"^\(C2\) "):
        op("pow").make(value("int32", [2]), value("int8", [3]))
    with pytest.raises(InferenceError, match=r"^\(C3\) direction is 'UP'; allowed: LEFT, RIGHT"):
        op("bit_shift").make(value("int32", [2]), value("int32", [2]), direction="UP")


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow"])
def test_c2_is_checked_in_a_run(name):
    made = op(name).make(value("float32", ["n"]), value("float32", ["m"]))
    with pytest.raises(ExecutionError, match=r"\(C2\) shapes \[3\] and \[2\] do not broadcast"):
        evaluate_op(made, EvalContext({made.lhs: np.ones(3, np.float32), made.rhs: np.ones(2, np.float32)}))


# ---- contents


def facts(name, a, b, **properties):
    return known(op(name).make(a, b, **properties))


def test_contents_of_sums_and_products():
    dims = extents(["n", 6])
    assert facts("add", dims, constant([1, 2])) == ["n + 1", "8"]
    assert facts("sub", dims, constant(2)) == ["n - 2", "4"]
    assert facts("mul", dims, constant([3])) == ["3*n", "18"]
    assert facts("add", extents([]), constant(3)) == []
    assert facts("add", dims, value("int64", [2])) is None
    assert facts("add", value("int64", ["k"]), constant(1)) is None


def test_contents_of_quotients():
    dims = extents(["n", 7])
    assert facts("div", dims, constant(2)) == ["n floordiv 2", "3"]
    assert facts("mod", dims, constant(2)) == ["n mod 2", "1"]
    assert facts("mod", dims, constant(2), fmod=True) == ["n mod 2", "1"]
    doubled = op("mul").make(dims, constant(-4)).output
    assert facts("div", doubled, constant(2)) == ["-2*n", "-14"]  # exact, so the rounding does not matter
    below = op("sub").make(dims, constant(9)).output
    assert facts("div", below, constant(2)) == [None, "-1"]  # towards zero: no floordiv where it may be negative
    assert facts("mod", below, constant(2)) == ["(n + 1) mod 2", "0"]
    assert facts("mod", below, constant(2), fmod=True) == [None, "0"]
    assert facts("div", constant([7, 7]), dims) == [None, "1"]  # n may be 0
    assert facts("div", constant([7, -7]), constant([0, 2])) == ["0", "-3"]


def test_contents_of_powers_and_bits():
    dims = extents(["n", 3])
    assert facts("pow", dims, constant(2)) == ["n*n", "9"]
    assert facts("pow", dims, constant(-1)) == [None, "0"]
    assert facts("bit_shift", dims, constant(2), direction="LEFT") == ["4*n", "12"]
    assert facts("bit_shift", dims, constant(1), direction="RIGHT") == ["n floordiv 2", "1"]
    assert facts("bitwise_and", dims, constant(2)) == [None, "2"]


def test_numbers_wrap_as_in_a_run():
    top = constant([2**31 - 1, 1], "int32")
    assert facts("add", top, constant(1, "int32")) == [str(-(2**31)), "2"]
    assert facts("mul", constant([2**62]), constant([4])) == ["0"]
    assert facts("sub", constant([[1, 2]]), constant([[1], [5]])) == ["0", "1", "-4", "-3"]


# ---- others


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "float16"])
def test_against_onnxruntime(name, dtype):
    rng = np.random.default_rng(2)
    a = rng.integers(-50, 50, (3, 4)).astype(dtype)
    b = np.where((d := rng.integers(-9, 9, 4)) == 0, 1, d).astype(dtype)
    np.testing.assert_array_equal(run(op(name), a, b), run_node(op(name).ONNX.name, [a, b])[0])


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_mod_and_pow_against_onnxruntime(dtype):
    a, b = np.array([7, -7, 7, -7, 6], dtype), np.array([3, 3, -3, -3, -3], dtype)
    flags = [True] if dtype == "float32" else [False, True]
    for fmod in flags:
        np.testing.assert_array_equal(run(op("mod"), a, b, fmod=fmod), run_node("Mod", [a, b], fmod=int(fmod))[0])
    np.testing.assert_allclose(run(op("pow"), a, np.int64(3)), run_node("Pow", [a, np.int64(3)])[0], rtol=1e-6)


def test_negative_zero_and_nan_in_float16():
    a = np.array([65504, 6e-8, NAN], np.float16)
    np.testing.assert_array_equal(run(op("add"), a, a), [INF, np.float16(1.2e-7), NAN])
    assert math.isinf(run(op("mul"), a[:1], a[:1])[0])


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow"])
def test_text_round_trip(name):
    line = round_trip(op(name).make(value("float32", ["n", 3]), value("float32", [3])))
    assert line.startswith(f"%0 = sx.{name} %x0, %x1 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<3xf32>) -> ")


def test_text_of_properties():
    a, b = value("int32", ["n"]), value("int32", ["n"])
    assert "{fmod = true}" in round_trip(op("mod").make(a, b, fmod=True))
    assert '{direction = "LEFT"}' in round_trip(op("bit_shift").make(a, b, direction="LEFT"))
    for name in BITWISE:
        round_trip(op(name).make(a, b))
