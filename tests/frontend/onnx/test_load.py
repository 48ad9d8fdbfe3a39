"""Reading files: damage, and external data that stays inside the model's folder and inside its files."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx_models import FLOAT, info, model, node

import sardonyx as sx
from sardonyx.dialects.weights import FileSlice

DATA = np.array([1, 2, 5, 6], "f4")


def plain() -> onnx.ModelProto:
    return model([node("Add", "x w", "y")], [info("x", [1])], [info("y", [2])], {"w": np.array([5, 6], "f4")})


def external(location: str, shape=(2,), **entries: object) -> onnx.ModelProto:
    proto = plain()
    tensor = proto.graph.initializer[0]
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = "w", FLOAT, TensorProto.EXTERNAL
    tensor.dims.extend(shape)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for path in (folder / "w.bin", folder / "sub" / "w.bin", tmp_path / "secret.bin"):
        path.write_bytes(DATA.tobytes())
    return folder


def opened(home, proto: onnx.ModelProto) -> sx.OnnxModel:
    path = home / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return sx.OnnxModel.open(path)


def result(opened_model: sx.OnnxModel) -> list[float]:
    return np.asarray(opened_model.compile().evaluate([np.ones(1, "f4")])[0]).tolist()


# ---- damage


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "is empty"),
        (plain().SerializeToString()[:40], "damaged"),
        (bytes(range(256)), "damaged"),
        (b"this is not a model\n" * 20, "damaged"),
        (onnx.ModelProto(ir_version=10).SerializeToString(), "has no graph"),
    ],
)
def test_damaged_files(tmp_path, data, text):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(sx.InvalidArgumentError, match=text) as caught:
        sx.OnnxModel.open(path)
    assert "m.onnx" in str(caught.value)


@pytest.mark.parametrize("cut", range(1, len(plain().SerializeToString())))
def test_every_truncation_is_an_ordinary_error_or_a_model(cut):
    from sardonyx.frontend.onnx.load import load_bytes

    try:
        loaded = load_bytes(plain().SerializeToString()[:cut])
        sx.OnnxModel.from_proto(loaded.proto).compile()
    except sx.SardonyxError:
        return


def test_texts_that_are_no_utf_8():
    from sardonyx.frontend.onnx.load import load_bytes

    data = plain().SerializeToString()
    for old, new in ((b"Add", b"A\xfed"), (b"\x01w", b"\x01\xff"), (b"\x01g", b"\x01\xc3")):
        assert old in data
        with pytest.raises(sx.InvalidArgumentError, match="no valid UTF-8"):
            load_bytes(data.replace(old, new))
    proto = model([node("Gelu", "x", "y", approximate=b"t\xfe")], [info("x", [1])], [info("y", [1])])
    with pytest.raises(sx.InvalidArgumentError, match="'approximate' is no valid UTF-8"):
        sx.OnnxModel.from_proto(proto).compile()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(sx.InvalidArgumentError, match="cannot read .*none.onnx: No such file"):
        sx.OnnxModel.open(tmp_path / "none.onnx")
    with pytest.raises(sx.InvalidArgumentError, match="cannot read"):
        sx.OnnxModel.open(tmp_path)


def test_a_file_that_protobuf_cannot_read(tmp_path, monkeypatch):
    from sardonyx.frontend.onnx import load

    monkeypatch.setattr(load, "MAX_FILE", 10)
    (tmp_path / "m.onnx").write_bytes(bytes(11))
    with pytest.raises(sx.InvalidArgumentError, match="fewer than 2 GiB"):
        sx.OnnxModel.open(tmp_path / "m.onnx")


# ---- external data


@pytest.mark.parametrize(
    "location, entries, expected",
    [
        ("w.bin", {"offset": 8, "length": 8}, [6, 7]),
        ("w.bin", {"offset": 4}, [3, 6]),
        ("sub/w.bin", {}, [2, 3]),
        ("./w.bin", {}, [2, 3]),
        ("w.bin", {"checksum": "whatever"}, [2, 3]),
    ],
)
def test_external_data_is_found(home, location, entries, expected):
    assert result(opened(home, external(location, **entries))) == expected


@pytest.mark.parametrize(
    "location", ["../secret.bin", "sub/../../secret.bin", "sub/../w.bin", "/etc/hostname", "C:\\w.bin", "", "w\0.bin"]
)
def test_paths_that_lead_out_are_refused(home, location):
    with pytest.raises(sx.InvalidArgumentError, match="initializer 'w'.*not inside the model's folder"):
        opened(home, external(location))


def test_links_that_lead_out_are_refused(home):
    (home / "link").symlink_to(home.parent / "secret.bin")
    (home / "dir").symlink_to(home.parent)
    (home / "inside").symlink_to(home / "w.bin")
    (home / "loop").symlink_to(home / "loop")
    for location in ("link", "dir/secret.bin"):
        with pytest.raises(sx.InvalidArgumentError, match="link out of the model's folder"):
            opened(home, external(location))
    with pytest.raises(sx.InvalidArgumentError, match="is not there"):
        opened(home, external("loop"))
    assert result(opened(home, external("inside"))) == [2, 3]


@pytest.mark.parametrize(
    "entries, text",
    [
        ({"offset": 12, "length": 8}, "beyond the end of 'w.bin', which has 16"),
        ({"offset": 16}, "beyond the end"),
        ({"length": 4}, "take 8 bytes, but its length is 4"),
        ({"offset": -8, "length": 8}, "offset '-8' is no byte count"),
        ({"offset": "x"}, "no byte count"),
        ({"offset": "٣"}, "no byte count"),
        ({"offset": "9" * 40}, "no byte count"),
        ({"length": "1e1"}, "no byte count"),
    ],
)
def test_ranges_that_do_not_fit(home, entries, text):
    with pytest.raises(sx.InvalidArgumentError, match=text):
        opened(home, external("w.bin", **entries))


def test_what_is_no_file(home):
    import os

    os.mkfifo(home / "pipe")
    for location in ("none.bin", "sub", "pipe"):
        with pytest.raises(sx.InvalidArgumentError, match="is not there|is no file"):
            opened(home, external(location))


def test_shapes_that_the_file_cannot_hold(home):
    with pytest.raises(sx.InvalidArgumentError, match="but its length is 8"):
        opened(home, external("w.bin", shape=(2**40,), length=8))
    with pytest.raises(sx.InvalidArgumentError, match="beyond the end"):
        opened(home, external("w.bin", shape=(2**40,)))
    with pytest.raises(sx.InvalidArgumentError, match="overflow"):
        opened(home, external("w.bin", shape=(2**62, 8)))
    with pytest.raises(sx.InvalidArgumentError, match="negative"):
        opened(home, external("w.bin", shape=(-2,)))


def test_a_proto_has_no_folder():
    with pytest.raises(sx.InvalidArgumentError, match="was not read from a file"):
        sx.OnnxModel.from_proto(external("w.bin"))


def test_large_weights_stay_in_their_file_until_they_are_read(home):
    big = np.arange(5000, dtype="f4")
    (home / "big.bin").write_bytes(big.tobytes())
    proto = external("big.bin", shape=(5000,))
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5000
    graph = opened(home, proto).compile()
    (weight,) = graph.store
    assert weight.content == FileSlice((home / "big.bin").resolve(), 0, 20_000)
    assert weight.__getstate__()["_mapped"] is None and weight._mapped is None
    assert isinstance(weight.array(), np.memmap) or isinstance(weight.array().base, np.memmap)
    np.testing.assert_array_equal(np.asarray(graph.evaluate([np.ones(1, "f4")])[0]), big + 1)


def test_small_external_tensors_are_seen_by_inference(home):
    (home / "shape.bin").write_bytes(np.array([2, 3]).tobytes())
    proto = model([node("Reshape", "x s", "y")], [info("x", [6])], [info("y", ["a", "b"])], {"s": np.zeros(2, "i8")})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="shape.bin")
    assert opened(home, proto).compile().outputs()[0][2] == (2, 3)


def test_external_constants_of_nodes_are_read(home):
    value = onnx.numpy_helper.from_array(np.zeros(2, "f4"), "v")
    value.ClearField("raw_data")
    value.data_location = TensorProto.EXTERNAL
    value.external_data.add(key="location", value="w.bin")
    value.external_data.add(key="offset", value="8")
    proto = model([node("Constant", "", "c", value=value), node("Add", "x c", "y")], [info("x", [1])], [info("y", [2])])
    assert result(opened(home, proto)) == [6, 7]
    proto.graph.node[0].attribute[0].t.external_data[0].value = "../secret.bin"
    with pytest.raises(sx.InvalidArgumentError, match="not inside"):
        opened(home, proto)
