"""Profiles: every kernel and node with its time, bytes and operations; the machine's ceilings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.tools import cli

WEIGHTS = np.random.default_rng(0).standard_normal((64, 32), np.float32)


@pytest.fixture(scope="module")
def graph() -> sx.ModelGraph:
    return sx.trace(lambda x: sx.softmax(sx.matmul(x, WEIGHTS), axis=-1), "x: f32[batch,64]").graph


def test_nodes_have_times_bytes_and_operations(graph: sx.ModelGraph) -> None:
    found = graph.profile([np.ones((8, 64), np.float32)], runs=3, threads=1)
    assert found.threads == 1 and found.seconds > 0 and found.peak_flops > 1e8 and found.peak_bytes > 1e7
    assert sum(n.seconds for n in found.nodes) == pytest.approx(sum(k.seconds for k in found.kernels))
    (product,) = [n for n in found.nodes if "matmul" in n.operators]  # both stand on one line
    assert product.flops == 2 * 64 * 8 * 32 + 8 * 32
    assert product.bytes == 4 * (8 * 64 + 64 * 32 + 8 * 32) + 4 * 2 * 8 * 32
    assert "GFLOP/s" in str(found) and f"{Path(__file__).name}" in str(found)
    events = json.loads(found.chrome_trace())["traceEvents"]
    assert len(events) == len(found.kernels) and all(e["ph"] == "X" for e in events)
    assert not graph.is_finalized  # a copy was compiled


def test_the_command(graph: sx.ModelGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    model, page, trace = tmp_path / "m.onnx", tmp_path / "p.html", tmp_path / "t.json"
    graph.export_onnx(model)
    out, err = io.StringIO(), io.StringIO()
    files = ["--html", str(page), "--trace", str(trace)]
    assert cli.run(["profile", str(model), "--dim", "batch=4", "--runs", "2", *files], out, err) == 0, err.getvalue()
    assert "at batch=4" in out.getvalue() and "matmul" in out.getvalue() and "GFLOP/s" in out.getvalue()
    assert "<svg" in page.read_text() and "http://" not in page.read_text().replace("http://www.w3.org/2000/svg", "")
    assert json.loads(trace.read_text())["traceEvents"]
    out = io.StringIO()
    assert cli.run(["profile", str(model), "--runs", "2", "--json"], out, err) == 0
    assert {n["operators"][0] for n in json.loads(out.getvalue())["nodes"]} <= {"matmul", "softmax"}
