"""Files: whole or not at all; where the weights go; the same graph gives the same bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import info, model, run_ort

import sardonyx as sx
from sardonyx.backends.onnx import write

MIB = 1 << 20


def graph_of(*weights: np.ndarray[Any, Any]) -> sx.ModelGraph:
    """x + the sum of all weights, which are kept as weights of that order."""

    tensors = [sx.asarray(w) for w in weights]

    def fn(xs):
        total = xs[0]
        for tensor in tensors:
            total = total + sx.sum(tensor * xs[0])
        return [total]

    return sx.trace(fn, [sx.TensorSpec("x", sx.float32, [])], output_names=["y"]).graph


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def entries(path: Path) -> dict[str, dict[str, str]]:
    proto = onnx.load(path, load_external_data=False)
    return {t.name: {e.key: e.value for e in t.external_data} for t in proto.graph.initializer if t.external_data}


def test_weights_are_inside_by_default(tmp_path):
    graph = graph_of(np.arange(300, dtype="f4"))
    graph.export_onnx(tmp_path / "m.onnx")
    graph.export_onnx(str(tmp_path / "n.onnx"), save_as_external_data=False)
    assert files(tmp_path) == ["m.onnx", "n.onnx"]
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "n.onnx").read_bytes()


def test_weights_beside_are_exactly_their_bytes_each_once(tmp_path):
    a, b = np.arange(37, dtype="f4"), np.arange(500, dtype="f4")
    graph_of(a, b, b.copy()).export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert files(tmp_path) == ["m.onnx", "m_data"]
    assert (tmp_path / "m_data").read_bytes() == a.tobytes() + b.tobytes()
    (got,) = run_ort(str(tmp_path / "m.onnx"), {"x": np.array(2, "f4")})
    np.testing.assert_allclose(got, 2 + 2 * a.sum() + 4 * b.sum(), rtol=1e-6)


def test_large_tensors_begin_at_64_kib_unless_they_are_first(tmp_path):
    first, small, large, more = (
        np.full(n, v, "f4") for n, v in ((MIB // 4, 1), (5, 2), (MIB // 4, 3), (MIB // 4 - 1, 4))
    )
    graph_of(first, small, large, more).export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    places = [(int(e["offset"]), int(e["length"])) for e in entries(tmp_path / "m.onnx").values()]
    aligned = MIB + (1 << 16)
    assert places == [(0, MIB), (MIB, 20), (aligned, MIB), (aligned + MIB, MIB - 4)]
    assert (tmp_path / "m_data").stat().st_size == aligned + 2 * MIB - 4
    back = sx.OnnxModel.open(tmp_path / "m.onnx").compile()
    got = np.asarray(back.evaluate([np.array(1, "f4")])[0])
    np.testing.assert_allclose(got, 1 + first.sum() + small.sum() + large.sum() + more.sum(), rtol=1e-5)


def test_a_large_tensor_that_comes_first_is_not_padded(tmp_path):
    graph_of(np.ones(MIB // 4, "f4")).export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert (tmp_path / "m_data").stat().st_size == MIB


def test_what_shape_inference_reads_stays_inside(tmp_path):
    def fn(xs):
        return [sx.reshape(xs[0], [2, 3]) * sx.asarray(np.ones(3, "f4")) + 1.0]

    graph = sx.trace(fn, [sx.TensorSpec("x", sx.float32, [6])], output_names=["y"]).graph
    graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert (tmp_path / "m_data").stat().st_size == 12
    (got,) = run_ort(str(tmp_path / "m.onnx"), {"x": np.arange(6, dtype="f4")})
    assert got.shape == (2, 3)


def test_no_weights_no_data_file(tmp_path):
    graph = sx.trace(lambda xs: [sx.relu(xs[0])], [sx.TensorSpec("x", sx.float32, [2])]).graph
    graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert files(tmp_path) == ["m.onnx"]


def test_beyond_2_gib_weights_go_beside_or_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "INSIDE_LIMIT", 8192)
    graph = graph_of(np.ones(1000, "f4"))
    graph.export_onnx(tmp_path / "small.onnx")
    assert files(tmp_path) == ["small.onnx"]
    graph = graph_of(np.ones(3000, "f4"))
    with pytest.raises(sx.InvalidArgumentError, match="fewer than 2 GiB"):
        graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=False)
    assert files(tmp_path) == ["small.onnx"]
    graph.export_onnx(tmp_path / "m.onnx")
    assert files(tmp_path) == ["m.onnx", "m_data", "small.onnx"]


def test_the_same_graph_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        graph = graph_of(np.arange(400, dtype="f4"), np.arange(3, dtype="f4"))
        (tmp_path / name).mkdir()
        graph.export_onnx(tmp_path / name / "m.onnx", save_as_external_data=True)
        graph.export_onnx(tmp_path / name / "n.onnx")
    for name in files(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    path.chmod(0o600)
    graph_of(np.ones(3, "f4")).export_onnx(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and files(tmp_path) == ["m.onnx"]
    sx.OnnxModel.open(path)


def test_a_model_can_be_saved_over_the_files_that_it_maps(tmp_path):
    weight = np.arange(5000, dtype="f4")
    graph_of(weight).export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    model = sx.OnnxModel.open(tmp_path / "m.onnx")
    model.save(tmp_path / "m.onnx", save_as_external_data=True)
    assert (tmp_path / "m_data").read_bytes() == weight.tobytes()
    model.save(tmp_path / "m.onnx", save_as_external_data=False)
    assert sx.OnnxModel.open(tmp_path / "m.onnx").num_initializers == model.num_initializers


# ---- refusals leave nothing


def state(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


@pytest.mark.parametrize("external", [True, False, None])
@pytest.mark.parametrize(
    "options, error",
    [
        ({"opset_version": 99}, sx.InvalidArgumentError),
        ({"opset_version": 12}, sx.InvalidArgumentError),
        ({"opset_version": -1}, sx.InvalidArgumentError),
        ({"opset_version": "17"}, TypeError),
        ({"opset_version": True}, TypeError),
        ({"producer_name": 3}, TypeError),
        ({"colour": 3}, TypeError),
    ],
)
def test_wrong_options_leave_nothing(tmp_path, options, error, external):
    (tmp_path / "m.onnx").write_bytes(b"mine")
    before = state(tmp_path)
    with pytest.raises(error) as caught:
        graph_of(np.ones(3, "f4")).export_onnx(tmp_path / "m.onnx", save_as_external_data=external, **options)
    assert state(tmp_path) == before
    if options.get("opset_version") == 99:
        assert "99" in str(caught.value) and caught.value.code_name == "INVALID_ARGUMENT"


def test_an_op_that_the_opset_lacks_leaves_nothing(tmp_path):
    spec = [sx.TensorSpec("a", sx.int32, [2]), sx.TensorSpec("b", sx.int32, [2])]
    graph = sx.trace(lambda xs: [sx.bitwise_and(xs[0], xs[1])], spec).graph
    with pytest.raises(sx.UnsupportedError, match="BitwiseAnd cannot be stated in opset 13.*opset 18 is the lowest"):
        graph.export_onnx(tmp_path / "m.onnx", opset_version=13)
    assert files(tmp_path) == []


@pytest.mark.parametrize("path", [3, None, b"m.onnx", ["m.onnx"]])
def test_a_path_of_another_type(path):
    graph = graph_of(np.ones(3, "f4"))
    kind = type(path).__name__
    with pytest.raises(TypeError, match=rf"export_onnx\(\): path is a str or an os.PathLike, not {kind}"):
        graph.export_onnx(path)
    with pytest.raises(TypeError, match=rf"save\(\): path is a str or an os.PathLike, not {kind}"):
        sx.OnnxModel.from_graph(graph).save(path)


def test_a_folder_that_is_not_there_or_a_path_that_is_a_folder(tmp_path):
    graph = graph_of(np.ones(300, "f4"))
    with pytest.raises(sx.InvalidArgumentError, match="cannot write .*No such file"):
        graph.export_onnx(tmp_path / "none" / "m.onnx")
    (tmp_path / "d").mkdir()
    with pytest.raises(sx.InvalidArgumentError, match="is a folder"):
        graph.export_onnx(tmp_path / "d")
    (tmp_path / "m_data").mkdir()
    with pytest.raises(sx.InvalidArgumentError, match="is taken"):
        graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert files(tmp_path) == ["d", "m_data"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(sx.InvalidArgumentError, match="Permission denied"):
            graph_of(np.ones(3, "f4")).export_onnx(tmp_path / "m.onnx")
        assert files(tmp_path) == []
    finally:
        tmp_path.chmod(0o700)


def test_a_failure_in_the_middle_restores_what_was_there(tmp_path, monkeypatch):
    graph = graph_of(np.ones(300, "f4"))
    graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    before = state(tmp_path)
    replace, calls = os.replace, []

    def failing(source: Any, target: Any) -> None:
        calls.append(target)
        if Path(target).name == "m.onnx":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(sx.InvalidArgumentError, match="No space left"):
        graph_of(np.full(700, 2, "f4")).export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert len(calls) > 1 and state(tmp_path) == before
    (tmp_path / "new").mkdir()
    with pytest.raises(sx.InvalidArgumentError):
        graph.export_onnx(tmp_path / "new" / "m.onnx", save_as_external_data=True)
    assert files(tmp_path / "new") == []


def test_a_weight_without_its_bytes_leaves_nothing(tmp_path):
    graph = graph_of(np.ones(3000, "f4"))
    graph.export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    back = sx.OnnxModel.open(tmp_path / "m.onnx").compile()
    (tmp_path / "m_data").unlink()
    (tmp_path / "new").mkdir()
    for external in (True, False):
        with pytest.raises(sx.MissingWeightError, match="m_data"):
            back.export_onnx(tmp_path / "new" / "n.onnx", save_as_external_data=external)
    assert files(tmp_path / "new") == []


# ---- text


@pytest.mark.parametrize("name", ["m.json", "m.onnxjson", "m.textproto", "m.pbtxt"])
@pytest.mark.parametrize("external", [False, True])
def test_text_forms(tmp_path: Path, name: str, external: bool) -> None:
    """A model saved as text is text, and reads back as it was, floats and special values to the bit."""
    weights = {"w": np.array([1 / 3, np.nan, np.inf, -0.0, 1e-42] * 99, np.float32)}
    node_ = onnx.helper.make_node("LeakyRelu", ["x"], ["h"], alpha=1 / 3, doc_string="ünï")
    proto = model(
        [node_, onnx.helper.make_node("Add", ["h", "w"], ["y"])], [info("x", [495])], [info("y", [495])], weights
    )
    made = sx.OnnxModel.from_proto(proto)
    made.save(tmp_path / name, save_as_external_data=external)
    assert "LeakyRelu" in (tmp_path / name).read_text("utf-8") and (tmp_path / "m_data").exists() == external
    again = sx.OnnxModel.open(tmp_path / name).to_proto()
    assert again.graph.initializer[0].raw_data == proto.graph.initializer[0].raw_data and again == proto
    first = (tmp_path / name).read_bytes()
    made.save(tmp_path / name, save_as_external_data=external)
    assert (tmp_path / name).read_bytes() == first


def test_the_syntax_that_loses_digits_is_not_written(tmp_path: Path) -> None:
    made = sx.OnnxModel.from_proto(model([], [info("x", [2])], [info("x", [2])]))
    with pytest.raises(sx.UnsupportedError, match=r"m.onnxtxt would be in ONNX's own syntax") as error:
        made.save(tmp_path / "m.onnxtxt")
    assert ".textproto" in (error.value.hint or "") and not list(tmp_path.iterdir())


def test_weights_that_came_inside_go_beside(tmp_path: Path) -> None:
    """A file with its weights inside, opened and saved: where they go is as for a graph, tensors' notes included."""
    weights = {"w": np.arange(64, dtype=np.float32), "axes": np.array([0], np.int64), "half": np.ones(40, np.float16)}
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["h"]), onnx.helper.make_node("Cast", ["half"], ["c"], to=1)]
    nodes.append(onnx.helper.make_node("Unsqueeze", ["h", "axes"], ["y"]))
    proto = model(nodes, [info("x", [64])], [info("y", [1, 64]), info("c", [40])], weights)
    proto.graph.initializer[0].doc_string = "kept"
    proto.graph.initializer[2].CopyFrom(
        onnx.helper.make_tensor("half", onnx.TensorProto.FLOAT16, [40], [1.0] * 40)  # int32_data
    )
    (tmp_path / "inside.onnx").write_bytes(proto.SerializeToString())
    held = sx.OnnxModel.open(tmp_path / "inside.onnx")
    held.save(tmp_path / "out.onnx", save_as_external_data=True)
    assert (tmp_path / "out_data").stat().st_size == 64 * 4 + 40 * 2
    stored = onnx.load(str(tmp_path / "out.onnx"), load_external_data=False).graph.initializer
    assert [(t.name, t.data_location) for t in stored] == [("w", 1), ("axes", 0), ("half", 1)]
    assert stored[0].doc_string == "kept" and held.to_proto() == proto
    x = np.ones(64, np.float32)
    for got, want in zip(run_ort(str(tmp_path / "out.onnx"), {"x": x}), run_ort(proto, {"x": x}), strict=True):
        np.testing.assert_array_equal(got, want)
