"""Models beyond 2 GiB: exported with little memory, beside the model by themselves, and opened by onnxruntime."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import large_export
import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx import OnnxModel
from sardonyx.backends.onnx import write

SCRIPT = large_export.__file__


def exported(folder: Path, gib: float) -> dict[str, Any]:
    command = [sys.executable, SCRIPT, "--gib", str(gib), "--folder", str(folder / "large"), "--run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_more_than_two_gib(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 8 << 30:
        pytest.skip("there are no 8 GiB of disk")
    report = exported(tmp_path, 2.25)
    assert report["weights"] >= 2.25 * 2**30 and report["beside"] >= report["weights"]
    assert report["peak_anonymous"] < 2**30 and report["same"]


def test_the_same_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """48 MiB with a limit of 32 MiB: beside the model, and by the kernel's copy or by ours."""
    monkeypatch.setattr(write, "INSIDE_LIMIT", 32 << 20)
    source = large_export.make_model(tmp_path / "a", 48 << 20)
    report = large_export.export(source, tmp_path / "target.onnx")
    assert report["beside"] == report["weights"] == 48 << 20
    assert report["peak_anonymous"] < 24 << 20
    whole = (tmp_path / "target_data").read_bytes()
    assert whole == (tmp_path / "a" / "weights.bin").read_bytes()
    np.testing.assert_array_equal(large_export.run(tmp_path / "target.onnx"), large_export.run(source))
    monkeypatch.delattr("os.copy_file_range", raising=False)
    OnnxModel.open(source).compile().export_onnx(tmp_path / "again.onnx")
    assert (tmp_path / "again_data").read_bytes() == whole


def test_weights_that_are_gone_when_they_are_copied(tmp_path: Path) -> None:
    source = large_export.make_model(tmp_path / "a", 1 << 20)
    graph = OnnxModel.open(source).compile()
    with open(tmp_path / "a" / "weights.bin", "r+b") as file:
        file.truncate(300_000)
    with pytest.raises(sx.SardonyxError, match=r"weight 'w1' cannot be read .* too short"):
        graph.export_onnx(tmp_path / "target.onnx", save_as_external_data=True)
    (tmp_path / "a" / "weights.bin").unlink()
    with pytest.raises(sx.SardonyxError, match="weight 'w0' cannot be read"):
        graph.export_onnx(tmp_path / "target.onnx", save_as_external_data=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]


def test_a_stream_is_the_serialised_model(tmp_path: Path) -> None:
    """Weights of many dtypes, from memory and from files, tensors that hold their contents, and fields of all kinds."""
    from onnx_models import info, model, node

    weights = {"w": np.arange(3, dtype="f4"), "e": np.zeros((0, 2), "f4"), "i": np.arange(300), "b": np.array([True])}
    proto = model([node("Mul", "x w", "y")], [info("x", ["n", 3])], [info("y", ["n", 3])], weights,
                  producer_name="somebody", doc_string="a model")  # fmt: skip
    proto.graph.doc_string = "a graph"
    proto.graph.initializer.append(onnx.helper.make_tensor("old", onnx.TensorProto.FLOAT, [2], [1.0, 2.0]))
    proto.graph.value_info.add(name="z")
    proto.metadata_props.add(key="k", value="v")
    found = OnnxModel.from_proto(proto)
    found.set_initializer("big", np.arange(70_000, dtype="f8"))
    for name, made in (("a", found), ("b", OnnxModel.from_graph(found.compile()))):
        made.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == made.to_proto().SerializeToString(deterministic=True)
    source = large_export.make_model(tmp_path / "c", 1 << 20)
    made = OnnxModel.open(source)
    made.save(tmp_path / "d")
    assert (tmp_path / "d").read_bytes() == made.to_proto().SerializeToString(deterministic=True)


def test_fields_that_onnx_does_not_know_survive(tmp_path: Path) -> None:
    from onnx_models import info, model, node

    data = model([node("Neg", "x", "y")], [info("x", [3])], [info("y", [3])]).SerializeToString()
    data += b"\xfa\x3e\x02hi"  # field 1007
    found = OnnxModel.from_proto(onnx.ModelProto.FromString(data))
    found.save(tmp_path / "m")
    assert b"\xfa\x3e\x02hi" in (tmp_path / "m").read_bytes()
