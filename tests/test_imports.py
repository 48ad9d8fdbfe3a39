"""Who may import whom: the arrows between the rooms, and what importing costs.

Read from the syntax trees of all modules, so that a lazy import inside a function counts like any other.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each room and what it may import of ours, besides itself. Imports only point down this list.
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "dialects": {"errors"},
    "passes": {"errors", "dialects"},
    "backends": {"errors", "dialects", "passes"},
    "frontend": {"errors", "dialects", "passes", "backends"},
    "universe": {"errors", "dialects", "passes", "backends"},
    "examples": {"errors", "dialects", "passes", "backends", "frontend", "face"},
    "tools": {"errors", "dialects", "passes", "backends", "frontend", "face", "examples"},
    # A kit for other people's tests, which may use pytest and filecheck.
    "testing": {"errors", "dialects", "passes", "backends", "frontend", "face", "tools"},
    "face": {"errors", "dialects", "passes", "backends", "frontend"},
}

# Other projects' packages that are heavy or optional, and the only places that may import them.
CONFINED: dict[str, tuple[str, ...]] = {
    "llvmlite": ("sardonyx.backends.llvm",),
    "onnx": ("sardonyx.backends.onnx", "sardonyx.frontend.onnx", "sardonyx.tools"),
    "onnxruntime": ("sardonyx.backends.onnx.parity", "sardonyx.tools", "sardonyx.examples"),
    "torch": ("sardonyx.frontend.torch",),
}

# Never: test tools, and what would make the reference somebody else's.
BANNED = ("pytest", "hypothesis", "filecheck", "onnx.reference", "onnx.shape_inference", "onnx.version_converter")
# ... but as a check of the result.
EXEMPT = {("sardonyx.backends.onnx.check", "onnx.shape_inference"), ("sardonyx.backends.onnx.parity", "onnx.reference")}


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_paths() -> dict[str, Path]:
    """Every module of the package by name."""
    names = {"sardonyx": ROOT / "__init__.py", "sardonyx.errors": ROOT / "errors.py"}
    if (ROOT / "universe.py").exists():
        names["sardonyx.universe"] = ROOT / "universe.py"
    for room in sorted(set(ARROWS) - {"face", "errors", "universe"}):
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            names[".".join(("sardonyx", *parts)).removesuffix(".__init__")] = path
    return names


MODULES = module_paths()


def imports_of(module: str, source: str, modules: dict[str, Path] = MODULES) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole == "sardonyx.__version__":  # loads nothing
                    continue
                inner = node.module != "sardonyx" and not node.module.startswith("sardonyx.")
                yield Import(module, whole if inner or whole in modules else node.module, node.lineno)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "onnx":
            yield Import(module, f"onnx.{node.attr}", node.lineno)  # `import onnx` brings some of its modules along
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            name = node.args[0].value
            # Of ours, importing by name is how registries reach up; of others', it is an import like any other.
            if called in {"import_module", "__import__"} and isinstance(name, str) and not _within(name, "sardonyx"):
                yield Import(module, name, node.lineno)


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "face"


def breaks(found: Import) -> str | None:
    """Why this import must not be; None where it may."""
    if _within(found.imported, "sardonyx"):
        here, there = room_of(found.importer), room_of(found.imported)
        if here == there or there in ARROWS[here]:
            return None
        return f"{found}: {here} may import {', '.join(sorted(ARROWS[here])) or 'nothing of ours'}"
    if (found.importer, found.imported) not in EXEMPT:
        for name in BANNED:
            if room_of(found.importer) == "testing" and name in ("pytest", "filecheck"):
                continue
            if _within(found.imported, name):
                return f"{found}: banned in the package"
    for name, places in CONFINED.items():
        if _within(found.imported, name) and not any(_within(found.importer, place) for place in places):
            return f"{found}: only {', '.join(places)} may"
    return None


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str):
    found = imports_of(module, MODULES[module].read_text(encoding="utf-8"))
    assert not [reason for reason in map(breaks, found) if reason]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sardonyx.errors", "import sardonyx.dialects.dims"),
        ("sardonyx.dialects.x", "from sardonyx.passes import registry"),
        ("sardonyx.dialects.x", "from sardonyx import frontend"),
        ("sardonyx.dialects.x", "import sardonyx"),
        ("sardonyx.passes.x", "def f():\n    from sardonyx.backends.llvm import jit"),
        ("sardonyx.backends.x", "if TYPE_CHECKING:\n    from sardonyx.frontend.graph import ModelGraph"),
        ("sardonyx.frontend.x", "from sardonyx.tools import cli"),
        ("sardonyx.frontend.x", "from sardonyx import Tensor"),
        ("sardonyx.dialects.x", "import onnx"),
        ("sardonyx.frontend.x", "from onnx import helper"),
        ("sardonyx.backends.onnx.emit", "import onnxruntime"),
        ("sardonyx.frontend.x", "importlib.import_module('torch.export')"),
        ("sardonyx.backends.reference", "import llvmlite.binding"),
        ("sardonyx.frontend.onnx.x", "from onnx import shape_inference"),
        ("sardonyx.tools.x", "from onnx.reference import ReferenceEvaluator"),
        ("sardonyx.frontend.onnx.x", "import onnx\nonnx.shape_inference.infer_shapes(model)"),
    ],
)
def test_the_rules_can_fail(module: str, source: str):
    modules = {**MODULES, "sardonyx.frontend": ROOT, "sardonyx.passes.registry": ROOT}
    assert any(map(breaks, imports_of(module, source, modules)))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sardonyx.dialects.x", "from sardonyx import errors"),
        ("sardonyx.backends.onnx.x", "from sardonyx import __version__"),
        ("sardonyx.passes.x", "importlib.import_module('sardonyx.backends.llvm.lowering')"),
        ("sardonyx.backends.llvm.x", "from sardonyx.passes import registry\nimport llvmlite"),
        ("sardonyx.backends.onnx.parity", "import onnxruntime"),
        ("sardonyx.tools.demo", "import sardonyx\nfrom sardonyx.examples.digits import model"),
        ("sardonyx.frontend.onnx.x", "import onnx_ir"),
    ],
)
def test_the_rules_let_the_rest_through(module: str, source: str):
    assert not any(map(breaks, imports_of(module, source)))


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after the code."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_importing_the_face_loads_nothing_heavy():
    loaded = loaded_after("import sardonyx; sardonyx.SardonyxError")
    heavy = {"numpy", "xdsl", "onnx", "llvmlite", "ml_dtypes", "onnxruntime", "torch", "importlib.metadata"}
    assert not heavy & loaded
    assert {name for name in loaded if name.startswith("sardonyx.")} == {"sardonyx.errors"}


@pytest.mark.parametrize("tool", ["opt", "cli"])
def test_a_tools_help_loads_nothing_heavy(tool: str):
    code = f"""
from sardonyx.tools.{tool} import main
import contextlib, os, sys
sys.argv = ["{tool}", "--help"]
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):
    main()
"""
    assert not {"onnx", "llvmlite", "onnxruntime", "torch", "pytest"} & loaded_after(code)
