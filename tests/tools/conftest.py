"""What the tests of the tools work on."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_opt import GRAPH, MODEL, PLUGIN

from sardonyx.passes import registry


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH, encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL, encoding="utf-8")
    (tmp_path / "neighbour.py").write_text("def twice(x):\n    import later\n    return x * later.TWO\n", "utf-8")
    (tmp_path / "later.py").write_text("TWO = 2.0\n", "utf-8")
    return path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_loaded_files", {})
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN, "utf-8")
    return path
