"""The table of the dialect's ops is what the modules define, and nothing is imported that nobody asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sardonyx.dialects.sx as sx
from sardonyx.dialects.base import SxOp
from sardonyx.passes.context import make_context

FOLDER = Path(sx.__file__).parent


@pytest.mark.parametrize("family", sx.FAMILIES)
def test_the_table_is_what_the_modules_define(family: str):
    assert sorted(f"sx.{op}" for op in sx.FAMILIES[family].split()) == sorted(cls.name for cls in sx.family_ops(family))


def test_no_module_with_ops_is_missing():
    """A base class of several families has no name of its own."""
    import importlib

    for path in FOLDER.glob("*.py"):
        if path.stem not in ("__init__", *sx.FAMILIES):
            importlib.import_module(f"sardonyx.dialects.sx.{path.stem}")
            assert not sx.family_ops(path.stem), path.name


def test_by_name():
    assert len(sx.BY_NAME) == len(sx.OPS) == len({cls.name for cls in sx.OPS})
    assert all(sx.BY_NAME[cls.name] is cls and issubclass(cls, SxOp) for cls in sx.OPS)
    assert "sx.add" in sx.BY_NAME and "sx.yield" not in sx.BY_NAME and sx.BY_NAME.get("sx.adds") is None
    with pytest.raises(KeyError):
        sx.BY_NAME["add"]
    assert {op.name for op in sx.SX.operations} == {*sx.BY_NAME, "sx.yield"}
    assert not hasattr(sx, "NOTHING")


def test_a_context_finds_ops_types_and_attributes():
    for ctx in (make_context(), make_context().clone()):
        assert ctx.get_op("sx.exp") is sx.BY_NAME["sx.exp"]
        assert ctx.get_op("sx.yield").name == "sx.yield"
        assert {ctx.get_attr(a.name) if a.name in ("sx.dims", "sx.weight", "sx.strings") else ctx.get_type(a.name)
                for a in sx.ATTRIBUTES} == set(sx.ATTRIBUTES)  # fmt: skip
        assert ctx.get_optional_op("sx.nothing") is None
        assert ctx.get_dialect("sx") is sx.SX
    assert make_context(allow_unregistered=True).get_op("sx.nothing").name == "builtin.unregistered"


def run(code: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "SARDONYX_CHECK_PASSES"}  # checking is done with numbers
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout


def test_a_short_run_imports_what_it_needs(tmp_path: Path):
    """Neither NumPy nor the packages' metadata, and of the dialect the family that the text names."""
    graph = tmp_path / "g.mlir"
    graph.write_text("""func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.softmax %x {axis = 1 : i64} : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %0 : tensor<?x3xf32, #sx.dims<n, _>>
}""")
    code = """
import sys
from sardonyx.tools import opt
sys.argv = ["sardonyx-opt", {path!r}, "-p", {pipeline!r}, "-o", {out!r}]
try:
    opt.main()
except SystemExit as stop:
    assert not stop.code
print(*sys.modules)
"""
    for pipeline in ("cse", "default"):
        out = tmp_path / "out.mlir"
        loaded = run(code.format(path=str(graph), pipeline=pipeline, out=str(out))).split()
        assert "sx.softmax" in out.read_text()
        assert not {"numpy.linalg", "ml_dtypes._finfo", "importlib.metadata", "onnx", "llvmlite"} & set(loaded)
        families = {name.split(".")[3] for name in loaded if name.startswith("sardonyx.dialects.sx.")} & set(
            sx.FAMILIES
        )
        assert "softmax" in families
        assert not families & {"conv", "recurrent_layers", "tree", "custom", "random", "resize"}, families


DEFERRED = """
from sardonyx.tools.deferred import defer
defer("numpy", "json", "no_such_package")
import json, sys
import numpy as np
assert "numpy.linalg" not in sys.modules and "json.decoder" not in sys.modules
import numpy.fft
assert numpy is np and np.add(1, 2) == 3 and "linalg" in dir(np) and np.fft.fft is not None
assert json.loads("[1]") == [1] and type(json).__name__ == "module"
defer("numpy")
assert sys.modules["numpy"] is np
try:
    np.nothing
except AttributeError as error:
    print(error)
"""


def test_a_deferred_package_is_the_package_once_it_is_used():
    assert run(DEFERRED).strip() == "module 'numpy' has no attribute 'nothing'"


def test_a_deferred_package_that_cannot_be_loaded(tmp_path: Path):
    (tmp_path / "broken.py").write_text("raise ValueError('no')")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from sardonyx.tools.deferred import defer
defer("broken")
import broken
try:
    broken.x
except ValueError as error:
    print(error, "broken" in sys.modules)
"""
    assert run(code).strip() == "no False"
