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
