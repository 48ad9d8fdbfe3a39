"""Initializers of 8 bits and fewer: inside a model and beside it, and out again byte by byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_models import info, model, node

from sardonyx import OnnxModel
from sardonyx.dialects.dtypes import NARROW, DType, float32


def _model(dtype: DType, count: int) -> tuple[onnx.ModelProto, np.ndarray]:
    codes = (np.arange(count) * 3 % (1 << dtype.bits)).astype(np.uint8).view(dtype.numpy)
    proto = model([node("Cast", "w", "c", to=float32.onnx), node("Add", "x c", "y")], [info("x", [count])],
                  [info("y", [count])], {"w": codes}, opset=28, ir_version=onnx.IR_VERSION)  # fmt: skip
    return proto, codes


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("count", [5, 3001])
def test_inside_and_beside(dtype: DType, count: int, tmp_path: Path):
    proto, codes = _model(dtype, count)
    wanted = numpy_helper.from_array(codes, "w")
    path = tmp_path / "m.onnx"
    copy = onnx.ModelProto.FromString(proto.SerializeToString())  # saving changes it
    onnx.save(copy, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    x = np.zeros(count, np.float32)
    for opened in (OnnxModel.from_proto(proto), OnnxModel.open(path)):
        graph = opened.compile()
        np.testing.assert_array_equal(graph.evaluate([x])[0], codes.astype(np.float32))
        for beside in (False, True):
            out = tmp_path / f"out{beside}.onnx"
            made = OnnxModel.from_graph(graph, optimize=False, save_as_external_data=beside)
            made.save(out)
            back = onnx.load(out)
            (weight,) = back.graph.initializer
            assert weight.raw_data == wanted.raw_data and weight.data_type == dtype.onnx
            assert list(weight.dims) == [count]
    if count > 1024:
        assert (tmp_path / "outTrue_data").stat().st_size == dtype.stored_size(count)


def test_an_external_tensor_of_the_wrong_size_is_refused(tmp_path: Path):
    from sardonyx.errors import InvalidArgumentError

    proto, _ = _model(DType.of("int4"), 5)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("length", "5")):
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "w.bin").write_bytes(bytes(5))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(InvalidArgumentError, match="take 3 bytes, but its length is 5"):
        OnnxModel.open(tmp_path / "m.onnx")
