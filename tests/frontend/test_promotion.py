"""Promotion: the array API's table, weak Python scalars, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import ANY, DType, bool_, float16, float32, float64, int8, int32, int64, uint8, uint64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.promotion import (
    can_cast,
    check_scalar,
    integer_range,
    is_of_kind,
    promote,
    promote_all,
    scalar_key,
    with_scalars,
)

# The tables of the standard (2024.12, "Type Promotion Rules"), each row and column in the order of the heading.
SIGNED = """
     i1 i2 i4 i8
i1   i1 i2 i4 i8
i2   i2 i2 i4 i8
i4   i4 i4 i4 i8
i8   i8 i8 i8 i8
"""
UNSIGNED = """
     u1 u2 u4 u8
u1   u1 u2 u4 u8
u2   u2 u2 u4 u8
u4   u4 u4 u4 u8
u8   u8 u8 u8 u8
"""
MIXED = """
     u1 u2 u4
i1   i2 i4 i8
i2   i2 i4 i8
i4   i4 i4 i8
i8   i8 i8 i8
"""
FLOATS = """
     f4 f8
f4   f4 f8
f8   f8 f8
"""


def cells() -> list[tuple[DType, DType, DType]]:
    out = []
    for table in (SIGNED, UNSIGNED, MIXED, FLOATS):
        head, *rows = table.strip().splitlines()
        for row in rows:
            left, *results = row.split()
            for right, result in zip(head.split(), results, strict=True):
                out.append(tuple(DType.of(np.dtype(name)) for name in (left, right, result)))
    return out


@pytest.mark.parametrize(("left", "right", "result"), cells())
def test_the_standards_table(left: DType, right: DType, result: DType):
    assert promote(left, right) == promote(right, left) == result


def test_what_the_standard_leaves_open():
    for other in ANY:
        assert promote(bool_, other) == promote(other, bool_) == other
    for integer, floating in itertools.product(dtypes.INTEGERS, dtypes.FLOATS):
        assert promote(integer, floating) == promote(floating, integer) == floating
    assert promote(float16, dtypes.bfloat16) == float32
    assert promote(dtypes.bfloat16, float32) == float32 and promote(float16, float64) == float64


@pytest.mark.parametrize("signed", dtypes.SIGNED_INTEGERS)
def test_uint64_and_signed_integers_have_nothing_in_common(signed: DType):
    with pytest.raises(InvalidArgumentError, match=f"no integer dtype holds both uint64 and {signed}"):
        promote(uint64, signed)
    assert promote_all([uint64, signed, float32]) == float32


def test_promotion_is_a_join_where_it_is_defined():
    for a, b, c in itertools.product(ANY, repeat=3):
        try:
            left, right = promote(promote(a, b), c), promote(a, promote(b, c))
        except InvalidArgumentError:
            continue
        assert left == right, (a, b, c)


@pytest.mark.parametrize(
    ("dtypes_", "scalars", "result"),
    [
        ([float32], [float], float32), ([float16], [int, float], float16), ([int8], [int], int8),
        ([int8], [float], float32), ([bool_], [int], int64), ([bool_], [bool], bool_), ([bool_], [float], float32),
        ([uint8], [bool], uint8), ([], [int], int64), ([], [float], float32), ([], [bool], bool_),
        ([], [int, float], float32), ([int8, float64], [int], float64),
    ],
)  # fmt: skip
def test_scalars_are_weak(dtypes_: list[DType], scalars: list[type], result: DType):
    assert with_scalars(dtypes_, scalars) == result


def test_nothing_to_promote():
    with pytest.raises(InvalidArgumentError, match="nothing to promote"):
        promote_all([])


def test_integers_that_do_not_fit():
    check_scalar(255, uint8)
    check_scalar(1 << 70, float32)
    for value in (-1, 256):
        with pytest.raises(
            InvalidArgumentError, match=f"the integer {value} does not fit uint8: its values are 0 to 255"
        ):
            check_scalar(value, uint8)
    assert integer_range(int32) == (-(2**31), 2**31 - 1) and integer_range(uint64) == (0, 2**64 - 1)


def test_scalars_as_keys():
    keys = [scalar_key(v) for v in (1, 1.0, True, 0.0, -0.0, float("nan"), 0)]
    assert len(set(keys)) == len(keys)
    assert scalar_key(float("nan")) == scalar_key(float("nan"))


def test_kinds():
    assert is_of_kind(int8, "integral") and is_of_kind(int8, ("bool", "signed integer"))
    assert is_of_kind(float16, "real floating") and not is_of_kind(float16, "complex floating")
    assert is_of_kind(int8, "int8") and is_of_kind(int8, np.int8) and not is_of_kind(bool_, "numeric")
    with pytest.raises(InvalidArgumentError, match="'nonsense' is no kind of dtype"):
        is_of_kind(int8, "nonsense")


def test_the_array_apis_functions_on_dtypes():
    assert sx.can_cast(sx.int8, sx.int16) and not sx.can_cast(sx.int16, sx.int8)
    assert not sx.can_cast(sx.int8, sx.uint64) and can_cast(int8, float32)
    assert sx.isdtype(sx.float32, "real floating") and sx.bool == sx.bool_
    assert sx.result_type(sx.int8, sx.ones(2), 3.5) == sx.float32
    assert sx.result_type(sx.ones(2, dtype=sx.int8), 3) == sx.int8 and sx.result_type(1, 2.0) == sx.float32
    assert sx.iinfo(sx.int16).max == 32767 and sx.iinfo(sx.ones(1, dtype=sx.uint8)).min == 0
    assert sx.finfo(sx.float32).eps == np.finfo(np.float32).eps and sx.finfo(sx.bfloat16).bits == 16
    with pytest.raises(InvalidArgumentError, match=r"finfo\(\) takes a float dtype, not int8"):
        sx.finfo(sx.int8)
    with pytest.raises(InvalidArgumentError, match=r"iinfo\(\) takes an integer dtype, not float32"):
        sx.iinfo(sx.float32)


def test_tensors_promote():
    i8, f16, f32 = (sx.ones(2, dtype=d) for d in (sx.int8, sx.float16, sx.float32))
    assert (i8 + 1).dtype == sx.int8 and (i8 + 1.5).dtype == sx.float32 and (i8 + f16).dtype == sx.float16
    assert (f16 + sx.ones(2, dtype=sx.bfloat16)).dtype == sx.float32
    assert (f32 * np.float64(2)).dtype == sx.float32, "np.float64 is a Python float"
    assert (f32 * np.ones(2)).dtype == sx.float64, "an array keeps its dtype"
    assert (np.ones(2, np.float32) + f16).dtype == sx.float32
    assert (sx.ones(2, dtype=sx.bool) + 1).dtype == sx.int64
    with pytest.raises(InvalidArgumentError, match=r"test_promotion\.py:\d+: the integer 300 does not fit int8"):
        _ = i8 + 300
    with pytest.raises(InvalidArgumentError, match=r"test_promotion\.py:\d+: no integer dtype holds both"):
        _ = i8 + sx.ones(2, dtype=sx.uint64)


def test_dtypes_that_are_for_storage():
    assert promote(dtypes.int4, dtypes.uint4) == int8 and promote(dtypes.uint2, dtypes.int2) == dtypes.int4
    assert promote(dtypes.int4, uint8) == dtypes.int16 and promote(dtypes.uint4, float16) == float16
    assert with_scalars([dtypes.float8e5m2], [float]) == dtypes.float8e5m2
    for small, other in itertools.product(dtypes.SMALL_FLOATS, dtypes.NUMERIC):
        with pytest.raises(InvalidArgumentError, match="don't mix; cast one"):
            promote(small, other)
