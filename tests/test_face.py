"""`import sardonyx`: the lazy face says the same in its table, in `__all__` and to type checkers."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import sardonyx
import sardonyx.examples

FACE = Path(sardonyx.__file__)


def names_under_type_checking() -> dict[str, str]:
    """Name -> where the table has to find it, from the imports that type checkers see."""
    (block,) = (
        node
        for node in ast.parse(FACE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom) and node.module, f"line {node.lineno}: write `from M import N as N`"
        for alias in node.names:
            assert alias.asname == alias.name, f"line {node.lineno}: write `{alias.name} as {alias.name}`"
            names[alias.name] = node.module
    return names


def test_table_and_type_checkers_agree():
    assert names_under_type_checking() == sardonyx._EXPORTS


def test_all_is_the_table():
    assert sorted(sardonyx.__all__) == sorted([*sardonyx._EXPORTS, "__version__"])
    assert set(sardonyx.__all__) <= set(dir(sardonyx))


@pytest.mark.parametrize("name", sardonyx.__all__)
def test_every_name_is_there(name: str):
    value = getattr(sardonyx, name)
    assert value is not None or name == "newaxis"
    if module := sardonyx._EXPORTS.get(name):
        scope: dict[str, object] = {}
        exec(f"from {module} import {name}", scope)
        assert value is scope[name]


def test_a_module_can_be_a_public_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sardonyx._EXPORTS, "digits", "sardonyx.examples")
    monkeypatch.delattr(sardonyx.examples, "digits", raising=False)
    monkeypatch.setattr(sardonyx, "digits", None, raising=False)  # so that it is gone again afterwards
    monkeypatch.delattr(sardonyx, "digits")
    assert getattr(sardonyx, "digits").__name__ == "sardonyx.examples.digits"  # noqa: B009 -- checkers don't know it


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(sardonyx, "nonsense")  # noqa: B009 -- checkers know that it isn't there


def test_the_version_is_the_projects():
    project = tomllib.loads((FACE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sardonyx.__version__ == project["version"]
