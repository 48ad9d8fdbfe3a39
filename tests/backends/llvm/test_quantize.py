"""Quantisation in native code against the reference: every dtype, scales of tensors, axes and blocks, saturation."""

from __future__ import annotations

import numpy as np
import pytest
from op_case import op
from three_ways import Array, Case, both_refuse, case, check_all, sample

from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.dialects.sx.quantize_linear import QUANTIZED

QUANTIZE, DEQUANTIZE = "quantize_linear", "dequantize_linear"
HARD = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 300.4, -77.7], "f4")


def zero_of(dtype: DType, *shape: int, number: float = 1.0) -> Array:
    return np.full(shape, number).astype(dtype.numpy)


def data_of(dtype: DType, *shape: int) -> Array:
    """Elements of all kinds of a quantised dtype, but no NaN and infinity."""
    if dtype.bits == 16:
        return sample(dtype.name, *shape, low=-30000, high=30000)
    bits = np.random.default_rng([7, *shape]).integers(0, 1 << dtype.bits, shape).astype(np.uint8)
    made = bits.view(dtype.numpy)
    return (
        np.where(np.isfinite(made.astype(np.float32)), made, np.zeros(shape, dtype.numpy)) if dtype.is_float else made
    )


@pytest.mark.parametrize("dtype", QUANTIZED, ids=str)
def test_every_dtype(dtype: DType) -> None:
    scale = np.array([0.25, 3.0, 0.017], np.float32)
    x = np.stack([HARD, HARD * np.float32(0.01), HARD * np.float32(0.7)])
    q = data_of(dtype, 3, 7)
    check_all(
        [
            case(op(QUANTIZE), x, np.float32(0.3), output_dtype=dtype.ir),
            case(op(QUANTIZE), x, scale, zero_of(dtype, 3), axis=0),
            case(op(DEQUANTIZE), q, np.float32(0.3)),
            case(op(DEQUANTIZE), q, scale, zero_of(dtype, 3), axis=0),
        ],
        ("shared",),
    )


def cases(dtype: str = "uint8") -> list[Case]:
    """Everywhere that a scale can stand."""
    of = DTYPES[dtype]
    x, zero = sample("float32", 3, 8, 5, low=-40, high=40), zero_of(of, number=3)
    q = data_of(of, 3, 8, 5)
    channels, rows = sample("float32", 8, low=0.1, high=1), sample("float32", 3, low=0.1, high=1)
    blocks, ragged = sample("float32", 3, 2, 5, low=0.1, high=1), sample("float32", 3, 3, 5, low=0.1, high=1)
    empty = np.zeros((0, 4), np.float32)
    out: list[Case] = []
    for name, data in ((QUANTIZE, x), (DEQUANTIZE, q)):
        out += [
            case(op(name), data, np.float32(0.5), zero),
            case(op(name), data, np.full(1, 0.5, "f4"), zero_of(of, 1)),
            case(op(name), data, channels, zero_of(of, 8)),
            case(op(name), data, channels, axis=-2),
            case(op(name), data, rows, zero_of(of, 3), axis=0),
            case(op(name), data, blocks, zero_of(of, 3, 2, 5), block_size=4),
            case(op(name), data, ragged, zero_of(of, 3, 3, 5), block_size=3),
            case(op(name), data, sample("float32", 1, 8, 5, low=0.1, high=1), axis=0, block_size=3),
            case(op(name), data[0, 0, 0], np.float32(0.5), zero),
            case(op(name), data[0, 0, :1], np.full(1, 0.5, "f4"), zero_of(of, 1), axis=0),
            case(op(name), empty.astype(data.dtype), sample("float32", 4)),
        ]
    return out


def test_scales_of_tensors_axes_and_blocks() -> None:
    check_all(cases(), ("static", "dynamic"))


def test_kinds_of_scales_and_results() -> None:
    half, brain, power = (DTYPES[t].numpy for t in ("float16", "bfloat16", "float8e8m0"))
    x = sample("float32", 4, 6, low=-300, high=300)
    wide = sample("int16", 4, 6, low=-30000, high=30000)
    small = np.array([1.5], half)
    check_all(
        [
            case(op(QUANTIZE), x.astype(half), small, np.array([7], np.int8)),
            case(op(QUANTIZE), x.astype(brain), small.astype(brain)),
            case(op(QUANTIZE), x, small, precision=DTYPES["float16"].ir),
            case(op(QUANTIZE), x.astype(half), np.float32(0.7), precision=DTYPES["bfloat16"].ir),
            case(op(QUANTIZE), x, np.array([2.0], np.float32).astype(power), output_dtype=DTYPES["int8"].ir),
            case(op(QUANTIZE), x.astype(np.int32), np.array([3], np.int32), np.array([-1], np.int8)),
            case(op(QUANTIZE), x, np.float32(3), saturate=False, output_dtype=DTYPES["float8e4m3fn"].ir),
            case(op(DEQUANTIZE), wide, small),
            case(op(DEQUANTIZE), wide, small.astype(brain), np.array([-30000], np.int16)),
            case(op(DEQUANTIZE), wide, np.float32(0.37), output_dtype=DTYPES["float16"].ir),
            case(op(DEQUANTIZE), wide.astype(np.int32) * 70000, np.float32(0.37)),
            case(op(DEQUANTIZE), wide.astype(np.int8), small.astype(power), output_dtype=DTYPES["bfloat16"].ir),
            case(op(DEQUANTIZE), wide.astype(np.int8), small, np.array([-128], np.int8)),
        ],
        ("static",),
    )


def test_dynamic_quantization() -> None:
    name = op("dynamic_quantize_linear")
    check_all(
        [
            case(name, x, results=None)
            for x in (
                sample("float32", 3, 17, low=-3, high=9), sample("float32", 5, low=2, high=3),
                sample("float32", 2, 1, low=-3, high=-2), np.zeros(4, "f4"), np.zeros((2, 0), "f4"),
                np.array(-2.5, "f4"),
            )
        ],
        ("static", "dynamic"),
    )  # fmt: skip


def test_what_does_not_fit_ends_with_an_error() -> None:
    x = np.zeros((3, 4), np.float32)
    for scale, block in (((5,), 0), ((2, 2), 3), ((3, 1), 2)):
        both_refuse(op(QUANTIZE), x, np.ones(scale, np.float32), block_size=block)
