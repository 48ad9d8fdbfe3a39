"""Rounding once, casts and integer division, against exact rational arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dialects import dtypes
from sardonyx.dialects.sx.numeric import convert, maximum, minimum, narrow, sigmoid, softplus, truncated_quotient

BF16 = np.dtype(ml_dtypes.bfloat16)


def nearest_even(values, dtype):
    """Each exact value rounded to the nearest number of a 16-bit dtype, ties to the even bit pattern."""
    bits = np.arange(0x7C00 if dtype == np.float16 else 0x7F80, dtype=np.uint16)
    grid = [Fraction(float(v)) for v in bits.view(dtype)]
    beyond = 2 * grid[-1] - grid[-2]  # what would follow the largest finite number
    out = []
    for exact in values:
        size = abs(exact)
        low, high = 0, len(grid)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if grid[middle] <= size else (low, middle)
        above = grid[low + 1] if low + 1 < len(grid) else beyond
        distance = 2 * size - grid[low] - above
        index = low + int(distance > 0 or (distance == 0 and low % 2 == 1))
        out.append(np.copysign(float(grid[index]) if index < len(grid) else np.inf, -1.0 if exact < 0 else 1.0))
    return np.array(out)


def hard_cases(dtype):
    """float64 numbers next to the ties of a 16-bit dtype, closer than float32 can tell."""
    rng = np.random.default_rng(3)
    bits = rng.integers(1, 0x7BFF if dtype == np.float16 else 0x7F7F, 300).astype(np.uint16)
    low, high = bits.view(dtype).astype(np.float64), (bits + np.uint16(1)).view(dtype).astype(np.float64)
    tie = (low + high) / 2
    x = np.concatenate([tie, np.nextafter(tie, np.inf), np.nextafter(tie, -np.inf), low, tie * (1 + 2.0**-40)])
    return np.concatenate([x, -x, [1e300, -1e300, 1e-300, 0.0]])


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_float64_to_16_bits_rounds_once(dtype):
    x = hard_cases(dtype)
    with np.errstate(over="ignore"):
        got = narrow(x, dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float64), nearest_even([Fraction(float(v)) for v in x], dtype))


def test_narrowing_keeps_nan_infinity_and_signed_zero():
    x = np.array([np.nan, np.inf, -np.inf, -0.0])
    for dtype in (BF16, np.dtype(np.float16), np.dtype(np.float32)):
        got = narrow(x, dtype).astype(np.float64)
        np.testing.assert_array_equal(got, x)
        assert np.signbit(got[3])
    assert narrow(np.array(1.5), BF16).shape == ()


def test_float32_to_bfloat16_is_to_nearest_even_for_every_high_half():
    high = np.arange(0x7F80, dtype=np.uint32) << 16
    for low, up in ((0x7FFF, False), (0x8001, True), (0x8000, None)):
        x = (high | np.uint32(low)).view(np.float32)
        got = convert(x, dtypes.bfloat16).view(np.uint16).astype(np.uint32)
        step = (high >> 16) & 1 if up is None else np.uint32(up)
        np.testing.assert_array_equal(got, (high >> 16) + step)


INTEGERS = [
    2**62 + 2**54 + 1,
    2**62 + 2**54,
    2**62 + 3 * 2**54,
    2**53 + 1,
    2**24 + 1,
    -(2**62) - 2**54 - 1,
    257,
    259,
    -3,
    0,
]


@pytest.mark.parametrize("source", ["int64", "uint64", "int32", "uint8"])
@pytest.mark.parametrize("target", ["bfloat16", "float16"])
def test_integers_to_16_bit_floats_round_once(source, target):
    info = np.iinfo(source)
    values = [v for v in [*INTEGERS, info.max, info.min, info.max - 1] if info.min <= v <= info.max]
    dtype = dtypes.DTYPES[target]
    with np.errstate(over="ignore"):
        got = convert(np.array(values, source), dtype)
    np.testing.assert_array_equal(got.astype(np.float64), nearest_even([Fraction(v) for v in values], dtype.numpy))


def test_integers_to_float32_round_once():
    values = [2**60 + 2**36 + 1, 2**60 + 2**36, 2**24 + 1, 2**24 + 3]
    assert convert(np.array(values), dtypes.float32).tolist() == [2**60 + 2**37, 2**60, 2**24, 2**24 + 4]


@pytest.mark.parametrize("name", [t.name for t in dtypes.INTEGERS])
def test_integer_division_truncates_and_is_total(name):
    info = np.iinfo(name)
    numbers = [v for v in (7, 6, 3, 1, 0, -1, -3, -7, info.max, info.min, info.min + 1) if info.min <= v]
    a, b = (x.reshape(-1) for x in np.meshgrid(np.array(numbers, name), np.array(numbers, name)))

    def exact(x, y):
        if y == 0:
            return 0
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return (quotient - info.min) % (info.max - info.min + 1) + info.min

    with np.errstate(all="ignore"):
        got = truncated_quotient(a, b)
    assert got.dtype == np.dtype(name)
    assert got.tolist() == [exact(int(x), int(y)) for x, y in zip(a, b, strict=True)]


def test_extremes_are_commutative_to_the_sign_of_zero():
    a = np.array([0.0, -0.0, -0.0, np.nan, 1, 2], np.float32)
    b = np.array([-0.0, 0.0, -0.0, 1, np.nan, -2], np.float32)
    for x, y in ((a, b), (b, a)):
        np.testing.assert_array_equal(maximum(x, y), np.array([0, 0, 0, np.nan, np.nan, 2], np.float32))
        assert np.signbit(maximum(x, y))[:3].tolist() == [False, False, True]
        np.testing.assert_array_equal(minimum(x, y), np.array([0, 0, 0, np.nan, np.nan, -2], np.float32))
        assert np.signbit(minimum(x, y))[:3].tolist() == [True, True, True]


def test_sigmoid_and_softplus_at_the_ends():
    x = np.array([-np.inf, -745.0, 0.0, 745.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        low, high = sigmoid(x), softplus(x)
    np.testing.assert_array_equal(low, [0, np.exp(-745.0), 0.5, 1, 1, np.nan])
    np.testing.assert_array_equal(high, [0, np.exp(-745.0), np.log(2), 745, np.inf, np.nan])
