"""The dtypes of 8 bits and fewer in native code: conversions bit by bit, and what only moves their elements."""

from __future__ import annotations

import numpy as np
import pytest
from op_case import op
from three_ways import Array, Case, case, check_all

from sardonyx.dialects.dtypes import DTYPES, NARROW, DType

WIDE = ("bool", "int8", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")
ONE = ("shared",)  # all modes emit the same scalar code


def codes(dtype: DType) -> Array:
    """Every element of a narrow dtype."""
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def around_ties(dtype: DType) -> Array:
    """float32 at, just below and just above every number of a dtype and the middle between any two neighbours."""
    with np.errstate(all="ignore"):
        numbers = codes(dtype).astype(np.float32)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    spaced = np.unique(np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, numbers[[0, -1]] * np.float32(1.07)]))
    with np.errstate(over="ignore"):
        spaced = np.concatenate([spaced, spaced * np.float32(2), spaced / np.float32(2)]).astype(np.float32)
    infinity = np.float32(np.inf)
    near = [spaced, np.nextafter(spaced, infinity), np.nextafter(spaced, -infinity)]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e30]
    return np.concatenate([*near, np.array(special)]).astype(np.float32)


def integers(dtype: str) -> Array:
    """Numbers around the edges of the narrow dtypes and of their own."""
    limits = np.iinfo(dtype)
    near = [sign * (1 << bit) + off for bit in range(64) for sign in (-1, 1) for off in (-1, 0, 1)]
    return np.array(sorted({n for n in [*range(-300, 300), *near] if limits.min <= n <= limits.max}), dtype)


def wide_values(dtype: str, target: DType) -> Array:
    if dtype == "bool":
        return np.array([False, True, True])
    if dtype.startswith(("int", "uint")):
        return integers(dtype)
    values = around_ties(target) if target.is_float else np.concatenate(
        [np.arange(-300, 300, 0.75), [1e10, -1e10, 3e38, np.inf, -np.inf, np.nan, 2.0**31, 2.0**33 + 16]]
    ).astype(np.float32)  # fmt: skip
    if dtype == "float64":
        values = values.astype(np.float64)
        near = [np.nextafter(values, np.inf), np.nextafter(values, -np.inf), np.array([1e300, -1e300, 5e-324])]
        return np.concatenate([values, *near])
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[dtype].numpy)


def casts(array: Array, target: DType) -> list[Case]:
    """The casts to a narrow dtype with every setting that matters for it."""
    if target.name == "float8e8m0":
        modes = [(saturate, mode) for saturate in (True, False) for mode in ("up", "down", "nearest")]
        return [case(op("cast"), array, to=target.ir, saturate=s, round_mode=m) for s, m in modes]
    return [case(op("cast"), array, to=target.ir, saturate=s) for s in ((True, False) if target.is_float else (True,))]


@pytest.mark.parametrize("target", NARROW, ids=str)
def test_into_every_narrow_dtype(target: DType) -> None:
    cases: list[Case] = []
    sources = WIDE if target.name in ("int4", "float8e4m3fn") else WIDE[-2:]
    for source in sources:
        cases += casts(wide_values(source, target), target)
    check_all(cases, ONE)


def test_out_of_every_narrow_dtype() -> None:
    """To float32 and float64 from each, to the others from some."""
    pairs = [(s, t) for s in NARROW for t in ("float32", "float64")]
    some = ("uint2", "float8e5m2fnuz", "float8e8m0")
    pairs += [(DTYPES[s], t) for s in some for t in WIDE if t not in ("float32", "float64")]
    check_all([case(op("cast"), codes(s), to=DTYPES[t].ir) for s, t in pairs], ONE)


def test_between_narrow_dtypes() -> None:
    """From each to one of each kind; all go through float32 or an integer of 8 bits."""
    targets = ("int4", "float6e3m2", "float8e5m2fnuz")
    cases = [case(op("cast"), codes(s), to=DTYPES[t].ir) for s in NARROW for t in targets if s.name != t]
    check_all(cases, ONE)


def test_cast_like_takes_the_dtype_of_its_second_operand() -> None:
    x = np.array([[-500.0, 0.3, 7.6], [np.nan, 1e9, -2.0]], np.float32)
    targets = ("int4", "float4e2m1", "float8e5m2", "float8e8m0")
    check_all(
        [case(op("cast_like"), x, codes(DTYPES[t])[:1], saturate=False) for t in targets], ("dynamic", "constant")
    )


SAME_WIDTH = (
    ("float32", "int32"), ("int32", "float32"), ("float64", "uint64"), ("float16", "int16"), ("uint16", "bfloat16"),
    ("bfloat16", "float16"), ("bool", "uint8"), ("uint8", "bool"), ("int8", "float8e4m3fn"), ("float8e5m2", "uint8"),
    ("float8e8m0", "float8e4m3fnuz"), ("int4", "uint4"), ("uint4", "float4e2m1"), ("uint2", "int2"),
    ("float6e2m3", "float6e3m2"), ("float8e5m2", "bool"),
)  # fmt: skip


def test_bit_casts_keep_every_bit() -> None:
    cases: list[Case] = []
    for source, target in SAME_WIDTH:
        dtype = DType.of(source)
        if dtype in NARROW:
            array = codes(dtype)
        elif dtype.kind == "b":
            array = np.array([True, False, True])
        else:
            bits = np.random.default_rng(5).integers(0, 256, 48 * dtype.itemsize, np.uint8)
            array = bits.view(dtype.numpy)
            if dtype.is_float:  # a NaN that signals stays one
                array.reshape(-1).view(f"u{dtype.itemsize}")[3] = {2: 0x7C01, 4: 0x7F800001, 8: 0x7FF0000000000001}[
                    dtype.itemsize
                ] if dtype.name != "bfloat16" else 0x7F81  # fmt: skip
        cases.append(case(op("bit_cast"), array.reshape(1, -1), to=DType.of(target).ir))
    check_all([*cases, case(op("bit_cast"), np.zeros((0, 3), np.float32), to=DType.of("int32").ir)])


def test_a_signalling_nan_passes_a_bit_cast() -> None:
    array = np.array([0x7C01, 0xFC01, 0x7DFF], np.uint16)
    half = op("bit_cast")
    check_all(
        [case(half, array, to=DType.of("float16").ir), case(half, array.view(np.float16), to=DType.of("int16").ir)]
    )


@pytest.mark.parametrize("dtype", [DTYPES[t] for t in ("int4", "float4e2m1", "float8e5m2", "float8e8m0")], ids=str)
def test_elements_are_moved(dtype: DType) -> None:
    x = np.resize(codes(dtype), (2, 3, 5))
    other = x[:, ::-1].copy()
    indices = np.array([[1, -1], [0, 2]])
    wanted = np.resize(np.array([True, False, False]), (2, 3, 5))
    check_all(
        [
            case(op("transpose"), x, perm=[2, 0, 1]),
            case(op("reshape"), x, np.array([5, -1])),
            case(op("concat"), [x, other], axis=1),
            case(op("slice"), x, np.array([4, 0]), np.array([0, 2]), np.array([2, 1]), np.array([-2, 1])),
            case(op("gather"), x, indices, axis=1),
            case(op("identity"), x),
            case(op("where"), wanted, x, other[:1]),
            case(op("expand"), x[:, :1], np.array([2, 3, 5])),
            case(op("pad"), x, np.array([0, 1, 0, 1, 0, 2])),
            case(op("tile"), x, np.array([1, 2, 1])),
            case(op("split"), x, None, axis=1, num_outputs=2, results=2),
            case(op("transpose"), x[:, :0], perm=[2, 0, 1]),
            case(op("identity"), x[0, 0, 1]),
        ],
        ("mixed",),
    )
