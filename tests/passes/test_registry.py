"""The registry of passes: lazy, open to files and packages, with helpful errors."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from ir_text import parse_module
from xdsl.passes import ModulePass

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import registry
from sardonyx.passes.base import SxPass
from sardonyx.passes.pipeline import PassManager

FILE = '''
from dataclasses import dataclass
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect
from sardonyx.passes.base import SxPass

@dataclass(frozen=True)
class MinePass(SxPass):
    """Mark the module."""
    name = "mine"
    text: str = "x"
    def run(self, module, run):
        module.attributes["mine"] = StringAttr(self.text)
        run.changed = True

MINE = Dialect("mine", [], [])
'''


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_loaded_files", {})


@pytest.mark.parametrize("name", sorted(registry._OURS))
def test_each_of_ours_is_what_its_line_says(name):
    cls = registry.get(name)
    assert issubclass(cls, ModulePass) and cls.name == name
    assert registry.own_entries()[name].summary


@pytest.mark.parametrize("name", sorted(n for n, (where, _) in registry._OURS.items() if ".passes." in where))
def test_a_pass_has_a_file_of_its_name_and_a_contract(name):
    where, _ = registry._OURS[name]
    assert where.split(":")[0].endswith(name.replace("-", "_"))
    cls = registry.get(name)
    assert issubclass(cls, SxPass)
    for part in ("Cases:", "Requires:", "Ensures:", "Promise:"):
        assert part in (cls.__doc__ or ""), part
    assert "PROMISE" in vars(cls)


def test_names_are_known_without_importing_passes():
    code = (
        "import sys; from sardonyx.passes import registry; assert 'cse' in registry.names();"
        "print([m for m in ('numpy', 'onnx', 'sardonyx.passes.cse') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sardonyx.passes.cse" not in out.stdout


def test_load_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    loaded = registry.load_file(path)
    assert loaded.passes == ("mine",) and [d.name for d in loaded.dialects] == ["mine"]
    assert registry.load_file(path) is loaded
    assert "mine" in registry.names() and registry.own_entries()["mine"].origin == str(path)
    module = parse_module("func.func @main() { func.return }")
    assert PassManager("mine{text=hello}").run(module).changed
    assert "hello" in str(module)


def test_a_loaded_dialect_is_in_the_context(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    registry.load_file(path)
    context = importlib.import_module("sardonyx.passes.context")
    assert "mine" in set(context.make_context().registered_dialect_names)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), ("1 +", "SyntaxError"), ("raise ValueError('no')", "ValueError: no")],
)
def test_a_file_that_cannot_be_loaded(tmp_path, content, message):
    path = tmp_path / "bad.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidArgumentError, match=message):
        registry.load_file(path)


def test_a_name_is_taken_once():
    class Other(ModulePass):
        name = "cse"

    with pytest.raises(InvalidArgumentError, match="pass 'cse' of user has the name of a pass of sardonyx"):
        registry.register("cse", Other)


def test_what_is_no_pass(monkeypatch):
    registry.register("no-pass", "sardonyx.errors:SardonyxError")
    with pytest.raises(InvalidArgumentError, match="is no pass class"):
        registry.get("no-pass")
    registry.register("no-module", "sardonyx.passes.nowhere:NoPass")
    with pytest.raises(InvalidArgumentError, match="pass 'no-module' of user cannot be loaded"):
        registry.get("no-module")


class FakePoint:
    name = "packaged"
    dist = None

    def load(self) -> type[ModulePass]:
        return registry.get("cse")


def test_installed_packages_add_passes(monkeypatch):
    registry._installed.cache_clear()
    monkeypatch.setattr(metadata, "entry_points", lambda group: [FakePoint()] if group == "sardonyx.passes" else [])
    try:
        assert registry.get("packaged") is registry.get("cse")
        assert registry.own_entries()["packaged"].origin == "an installed package"
    finally:
        registry._installed.cache_clear()


def test_create_with_options():
    assert registry.create("fold-constants", max_bytes=3).max_bytes == 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InvalidArgumentError, match="fold-constants"):
        registry.create("fold-constants", bytes=3)


def test_the_registry_has_upstream_s_passes_last():
    entries = registry.entries()
    assert entries["cse"].origin == "sardonyx" and entries["xdsl-cse"].origin == "xdsl"
    assert entries["canonicalize"].origin == "xdsl"
    assert Path(registry.__file__).name == "registry.py"
