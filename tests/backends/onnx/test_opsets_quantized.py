"""Casts, quantisation and moved elements of 8 bits and fewer in every opset (see `opset_cases`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opset_cases import Entry, check_every_opset, entry, judged
from three_ways import sample

from sardonyx.backends.onnx.decompose import DECOMPOSITIONS
from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import DTYPES, DType

Array = np.ndarray[Any, Any]
X = sample("float32", 3, 6, low=-9, high=9)
SCALE, ROWS = np.array(0.5, "f4"), np.array([0.25, 0.5, 2], "f4")
BYTES = np.arange(-9, 9, dtype=np.int8).reshape(3, 6)
SINCE = {8: 19, 4: 21, 2: 25, 6: 28}


def since(dtype: DType) -> int:
    """The opset in which ONNX's Cast has a dtype."""
    return {"float4e2m1": 23, "float8e8m0": 24}.get(dtype.name, SINCE.get(dtype.bits, 13) if dtype.is_float or
                                                      dtype.bits < 8 else 13)  # fmt: skip


def small(dtype: DType, *shape: int) -> Array:
    codes = (np.arange(int(np.prod(shape))) * 5 % (1 << min(dtype.bits, 7))).astype(np.uint8).reshape(shape)
    return codes.view(dtype.numpy)


def zero(name: str, *values: int) -> Array:
    found = np.array(values, np.int8).astype(DTYPES[name].numpy)
    return found if found.size > 1 else found.reshape(())


FEW = [DTYPES[n] for n in ("int4", "uint2", "float4e2m1", "float8e5m2", "float8e8m0")]
CASTS = [
    *(entry("cast", np.abs(X), to=d, since=since(d)) for d in dtypes.NARROW),
    *(entry("cast", np.abs(X) * 1e5, to=d, saturate=False, since=19) for d in dtypes.FLOATS_8),
    entry("cast", X, to=dtypes.float16, saturate=False),
    entry("cast", np.abs(X), to=dtypes.float8e8m0, round_mode="nearest", since=24),
    *(entry("cast_like", X, small(d, 2), since=since(d)) for d in (dtypes.float8e5m2, dtypes.int4)),
    entry("cast_like", X * 100, small(dtypes.float8e4m3fn, 2), saturate=False, since=19),
]
MOVES = [
    *(entry("transpose", small(d, 2, 3), since=since(d)) for d in FEW),
    *(entry("concat", [small(d, 3), small(d, 2)], axis=0, since=since(d)) for d in FEW),
    entry("slice", small(dtypes.float8e5m2, 128), np.array([3]), np.array([100]), since=19),
    entry("gather", small(dtypes.int4, 9), np.array([3, -1]), since=21),
    entry("where", X > 0, small(dtypes.uint4, 3, 6), small(dtypes.uint4, 6), since=21),
    entry("pad", small(dtypes.uint4, 2, 2), np.array([0, 1, 1, 0]), since=21),
    entry("reshape", small(dtypes.float8e4m3fn, 4), np.array([2, 2]), since=19),
    entry("identity", small(dtypes.int4, 4), since=21),
]
QUANTIZE = [
    entry("quantize_linear", X, SCALE),
    entry("quantize_linear", X, SCALE, zero("int8", -3)),
    entry("quantize_linear", X, ROWS, zero("uint8", 1, 2, 3), axis=0),
    entry("quantize_linear", X, SCALE, output_dtype=dtypes.int8),
    entry("quantize_linear", X, ROWS, output_dtype=dtypes.int16, axis=-2),
    entry("quantize_linear", X, SCALE, np.array(7, np.uint16)),
    entry("quantize_linear", X, np.abs(X[:, ::4]) + 0.5, BYTES[:, ::4], axis=1, block_size=4),
    entry("quantize_linear", X[0], np.abs(X[0, ::4]) + 0.5, axis=0, block_size=4),
    entry("quantize_linear", X.astype("f2"), SCALE.astype("f2"), zero("int8", 3)),
    entry("quantize_linear", X, SCALE.astype("f2"), zero("int8", 3)),
    entry("quantize_linear", X, SCALE, zero("int8", 3), precision=dtypes.float16),
    entry("quantize_linear", np.arange(-9, 9, dtype="i4"), np.array(2, "f4")),
    *(entry("quantize_linear", X * 99, SCALE, zero(d.name, 0), since=19) for d in dtypes.FLOATS_8),
    entry("quantize_linear", X * 999, SCALE, output_dtype=dtypes.float8e5m2, saturate=False, since=19),
    entry("quantize_linear", X, SCALE, zero("int4", 1), since=21),
    entry("quantize_linear", X, ROWS, axis=0, output_dtype=dtypes.float4e2m1, since=23),
    entry("quantize_linear", X, np.array(0.5).astype(DTYPES["float8e8m0"].numpy), since=24),
    entry("quantize_linear", X, SCALE, zero("uint2", 1), since=25),
    entry("quantize_linear", X, SCALE, output_dtype=dtypes.float6e2m3, since=28),
]
DEQUANTIZE = [
    entry("dequantize_linear", BYTES, SCALE, zero("int8", 5)),
    entry("dequantize_linear", BYTES, ROWS, axis=0),
    entry("dequantize_linear", BYTES.astype("i4"), SCALE),
    entry("dequantize_linear", BYTES, np.abs(X[:, ::4]), BYTES[:, ::4], axis=-1, block_size=4),
    entry("dequantize_linear", BYTES.astype("i2"), SCALE, np.array(300, "i2")),
    entry("dequantize_linear", BYTES, SCALE.astype("f2"), zero("int8", 5)),
    entry("dequantize_linear", BYTES, SCALE, zero("int8", 5), output_dtype=dtypes.float16),
    entry("dequantize_linear", BYTES, SCALE, output_dtype=dtypes.float32),
    *(entry("dequantize_linear", small(d, 2, 6), SCALE, since=19) for d in dtypes.FLOATS_8),
    entry("dequantize_linear", small(dtypes.uint4, 2, 6), SCALE, zero("uint4", 3), since=21),
    entry("dequantize_linear", small(dtypes.float4e2m1, 2, 6), SCALE, since=23),
    entry("dequantize_linear", small(dtypes.int2, 2, 6), SCALE, zero("int2", 1), since=25),
    entry("dequantize_linear", BYTES, np.array(0.5).astype(DTYPES["float8e8m0"].numpy), output_dtype=dtypes.float32,
          since=24),
]  # fmt: skip
PRODUCTS = [
    entry("dynamic_quantize_linear", X, results=None),
    entry("matmul_integer", BYTES, BYTES.T.copy(), zero("int8", 1), zero("int8", 2)),
    entry("conv_integer", np.arange(40, dtype=np.uint8).reshape(1, 2, 4, 5), np.ones((3, 2, 2, 2), np.uint8),
          np.uint8(3), pads=(1, 0, 1, 0)),
    entry("qlinear_matmul", BYTES, SCALE, zero("int8", 1), BYTES.T.copy(), SCALE, zero("int8", 0), np.float32(9),
          zero("int8", 4)),
    entry("qlinear_matmul", BYTES, SCALE.astype("f2"), zero("int8", 1), BYTES.T.copy(), SCALE.astype("f2"),
          zero("int8", 0), np.float16(9), zero("int8", 4)),
    entry("qlinear_conv", np.arange(40, dtype=np.uint8).reshape(1, 2, 4, 5), np.float32(0.5), np.uint8(3),
          np.ones((3, 2, 2, 2), np.int8), ROWS, zero("int8", 0, 0, 0), np.float32(2), np.uint8(9),
          np.array([5, -5, 9], np.int32)),
]  # fmt: skip
ALL = [*CASTS, *MOVES, *QUANTIZE, *DEQUANTIZE, *PRODUCTS]


@pytest.mark.parametrize("one", ALL, ids=str)
def test_opsets_compute_the_same_or_refuse(one: Entry):
    check_every_opset(one, opsets=sorted({13, 19, 21, 28, one.since - 1, one.since} - {12}))


@pytest.mark.parametrize("one", [*QUANTIZE, *DEQUANTIZE], ids=str)
def test_dynamic_dims(one: Entry):
    for opset in sorted({one.since, 28}):
        assert judged(one, "dynamic", opset) is None


def test_all_decompositions_are_tested():
    mine = {name for name, made in DECOMPOSITIONS.items() if made.__module__.endswith(".decompose_quantized")}
    assert mine == {e.case.op.name for e in [*QUANTIZE, *DEQUANTIZE]} | {"sx.qlinear_matmul"}
