"""Weights whose elements have 8 bits or fewer: in stores, in files of both kinds, pickled, and as users see them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dialects.dtypes import NARROW, DType
from sardonyx.dialects.packing import pack
from sardonyx.dialects.weights import FileSlice, WeightStore
from sardonyx.dialects.weights_file import read_weights, write_weights
from sardonyx.errors import InvalidArgumentError, MissingWeightError


def codes(dtype: DType, count: int = 37) -> np.ndarray:
    return (np.arange(count) * 3 % (1 << dtype.bits)).astype(np.uint8).view(dtype.numpy)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_bytes_of_a_file_are_unpacked_when_they_are_needed(dtype: DType, tmp_path: Path):
    array = codes(dtype)
    stored = pack(array, dtype).tobytes() if dtype.packed else array.tobytes()
    path = tmp_path / "w.bin"
    path.write_bytes(b"###" + stored)
    store = WeightStore()
    weight = store.add_file(FileSlice(path, 3, len(stored), dtype.packed), dtype, (37,), "w")
    assert weight.nbytes == weight.size == 37 and weight.stored().tobytes() == stored
    assert weight.array().dtype == dtype.numpy and weight.array().tobytes() == array.tobytes()
    assert not weight.array().flags.writeable
    again = pickle.loads(pickle.dumps(weight))
    assert again.array().tobytes() == array.tobytes() and isinstance(again.content, FileSlice)
    with pytest.raises(InvalidArgumentError, match="takes"):
        store.add_file(FileSlice(path, 3, len(stored) + 1, dtype.packed), dtype, (37,), "w")
    path.write_bytes(b"")
    with pytest.raises(MissingWeightError, match="cannot be read"):
        pickle.loads(pickle.dumps(weight)).array()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_safetensors(dtype: DType, tmp_path: Path):
    store = WeightStore()
    weight = store.add(codes(dtype).reshape(1, 37), "w")
    assert store.add(codes(dtype).reshape(1, 37), "other") is weight
    out = io.BytesIO()
    write_weights({"w": weight, "x": store.add(np.arange(3), "x")}, out)
    path = tmp_path / "w.safetensors"
    path.write_bytes(out.getvalue())
    back = read_weights(path)
    assert back["w"].dtype == dtype and back["w"].shape == (1, 37)
    assert back["w"].array().tobytes() == codes(dtype).tobytes() and back["x"].dtype == sx.int64


def test_a_dtype_stated_beside_a_code_of_its_own_is_refused(tmp_path: Path):
    header = b'{"__metadata__":{"sardonyx.dtype:w":"float64"},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(InvalidArgumentError, match="no safetensors file"):
        read_weights(path)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_tensors_of_users(dtype: DType):
    assert getattr(sx, dtype.name) is dtype and pickle.loads(pickle.dumps(dtype)) == dtype
    assert DType.of(dtype.numpy) == DType.of(dtype.ir) == DType.of(dtype.text) == dtype and dtype == dtype.numpy
    numbers = [1.0, 2.0, 1.0]
    x = sx.asarray(numbers, dtype=dtype) if dtype.bits > 2 or dtype.kind == "u" else sx.asarray([1, 0, 1], dtype=dtype)
    assert x.dtype == dtype and x.numpy().dtype == dtype.numpy
    assert [float(v) for v in x.tolist()] == (numbers if dtype != sx.int2 else [1, 0, 1])
    assert x.astype(sx.float32).astype(dtype).numpy().tobytes() == x.numpy().tobytes()
    assert pickle.loads(pickle.dumps(x)).numpy().tobytes() == x.numpy().tobytes()
    assert sx.reshape(x, (3, 1)).dtype == dtype and sx.concat([x, x]).shape == (6,)
