"""Arrays to TensorProto and back, and the sizes that a tensor states held against what it holds."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.backends.onnx.tensors import array_from_proto, raw_view, tensor_from_array, type_string
from sardonyx.dialects.dtypes import ALL, ANY, NARROW
from sardonyx.dialects.packing import pack, unpack
from sardonyx.errors import InvalidArgumentError, UnsupportedError

SHAPES = [(), (3,), (2, 0, 3), (2, 2)]


@pytest.mark.parametrize("dtype", ANY, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_come_back(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 - (dtype.kind in "if")).astype(dtype.numpy)
    proto = tensor_from_array("t", array)
    assert proto.data_type == dtype.onnx and tuple(proto.dims) == shape
    assert numpy_helper.to_array(proto).tobytes() == array.tobytes()  # ONNX reads the same
    back = array_from_proto(proto, "t")
    assert back.dtype == array.dtype and back.shape == shape and back.tobytes() == array.tobytes()
    assert not back.flags.writeable
    assert bytes(raw_view(array)) == (pack(array, dtype).tobytes() if dtype.packed else array.tobytes())


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_every_code_is_packed_as_onnx_packs_it(dtype):
    for count in (1, 2, 3, 4, 5, 7, 1 << dtype.bits):
        codes = (np.arange(count) * 5 % (1 << dtype.bits)).astype(np.uint8)
        array = codes.view(dtype.numpy)
        proto = tensor_from_array("t", array)
        theirs = numpy_helper.from_array(array, "t")
        assert proto == theirs and len(proto.raw_data) == dtype.stored_size(count)
        assert array_from_proto(theirs, "t").tobytes() == array.tobytes()
        typed = onnx.TensorProto(data_type=dtype.onnx, dims=[count])
        shared = dtype.bits in (2, 4)
        typed.int32_data.extend(pack(array, dtype).tolist() if shared else codes.tolist())
        assert array_from_proto(typed, "t").tobytes() == array.tobytes() == numpy_helper.to_array(typed).tobytes()
    assert not dtype.packed or unpack(pack(array, dtype), dtype, count).tobytes() == array.tobytes()


def test_packed_sizes_that_disagree_are_refused():
    int4 = onnx.TensorProto.INT4
    with pytest.raises(InvalidArgumentError, match="take 2 bytes, but it holds 3"):
        array_from_proto(onnx.TensorProto(data_type=int4, dims=[3], raw_data=bytes(3)), "t")
    with pytest.raises(InvalidArgumentError, match="take 2 entries, but int32_data holds 3"):
        array_from_proto(onnx.TensorProto(data_type=int4, dims=[3], int32_data=[1, 2, 3]), "t")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_typed_fields_are_read(dtype):
    values = [1, 0, 1] if dtype.kind == "b" else [1, 0, 3] if dtype.kind == "u" else [1, 0, -3]
    proto = helper.make_tensor("t", dtype.onnx, [3], values)
    assert not proto.HasField("raw_data")
    back = array_from_proto(proto, "t")
    assert back.dtype == dtype.numpy and back.astype("f4").tolist() == values


def test_bytes_that_are_neither_0_nor_1_are_true():
    proto = onnx.TensorProto(data_type=onnx.TensorProto.BOOL, dims=[3], raw_data=bytes([0, 7, 255]))
    assert array_from_proto(proto, "t").tobytes() == bytes([0, 1, 1])


def test_type_strings():
    assert [type_string(d) for d in ALL][:2] == ["tensor(bool)", "tensor(int8)"]
    assert {type_string(d) for d in ALL} >= {"tensor(float)", "tensor(double)", "tensor(bfloat16)"}


@pytest.mark.parametrize(
    "fields, text",
    [
        ({"dims": [3], "raw_data": bytes(8)}, "12 bytes, but it holds 8"),
        ({"dims": [-1], "raw_data": b""}, "negative"),
        ({"dims": [2**32, 2**32], "raw_data": b""}, "overflow"),
        ({"dims": [2**61, 8, 0], "raw_data": b""}, "overflow"),
        ({"dims": [2]}, "2 entries"),
        ({"dims": [2], "int64_data": [1, 2]}, "2 entries"),
    ],
)
def test_sizes_that_disagree_are_refused(fields, text):
    proto = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, **fields)
    with pytest.raises(InvalidArgumentError, match=text):
        array_from_proto(proto, "initializer 'w'")


def test_types_that_are_not_there_are_refused():
    with pytest.raises(InvalidArgumentError, match="99 is no element type"):
        array_from_proto(onnx.TensorProto(data_type=99), "t")
    with pytest.raises(InvalidArgumentError, match="0 is no element type"):
        array_from_proto(onnx.TensorProto(), "t")
    with pytest.raises(UnsupportedError, match="complex64"):
        array_from_proto(onnx.TensorProto(data_type=onnx.TensorProto.COMPLEX64), "t")


def test_a_view_does_not_copy():
    array = np.arange(8, dtype=ml_dtypes.bfloat16)
    assert np.shares_memory(np.asarray(raw_view(array)), array)
