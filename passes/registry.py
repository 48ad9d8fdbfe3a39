"""All passes by name, loaded when they are first asked for.

To add a pass of ours, add one line to `_OURS`. Others register theirs through the entry-point group `sardonyx.passes`
(name → class), by `register`, or in a file given with `--load` (`load_file`). Passes that upstream xDSL has and we have
not are found too; `xdsl-` in front of a name asks for upstream's explicitly (`xdsl-cse`).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.base import SxPass

ENTRY_POINTS = "sardonyx.passes"
DIALECTS_GROUP = "sardonyx.dialects"
UPSTREAM = "xdsl-"

PassSource: TypeAlias = str | type[ModulePass] | Callable[[], type[ModulePass]]
"""`"module:Class"`, a pass class, or a function that returns one."""

# Name -> where it is, and what --list-passes says of it.
_OURS: dict[str, tuple[str, str]] = {
    "remove-dead-nodes": ("sardonyx.passes.remove_dead_nodes:RemoveDeadNodesPass", "remove ops that no output needs"),
    "compose-transposes": (
        "sardonyx.passes.compose_transposes:ComposeTransposesPass",
        "compose transposes and move ops past them where fewer are left",
    ),
    "cse": ("sardonyx.passes.cse:CsePass", "compute equal things once"),
    "fold-constants": ("sardonyx.passes.fold_constants:FoldConstantsPass", "evaluate ops whose operands are constants"),
    "simplify": ("sardonyx.passes.simplify:SimplifyPass", "algebraic identities that are exact, known shapes"),
    "infer-types": ("sardonyx.passes.infer_types:InferTypesPass", "refine all types by inference"),
    "fold-affine": (
        "sardonyx.passes.fold_affine:FoldAffinePass",
        "let the constants of convolutions and products take up scales, biases and batch norms",
    ),
    "decompose-batch-norm": (
        "sardonyx.passes.decompose_batch_norm:DecomposeBatchNormPass",
        "state batch normalisations with constant statistics as arithmetic",
    ),
    "channels-last": (
        "sardonyx.passes.channels_last:ChannelsLastPass",
        "convolutions and pools with their channels last, where that pays",
    ),
    "join-reshapes": (
        "sardonyx.passes.join_reshapes:JoinReshapesPass",
        "state two ops that only change the shape as one reshape",
    ),
    "join-slices": ("sardonyx.passes.join_slices:JoinSlicesPass", "state the slices that make up a value as one split"),
    "explicit-state": (
        "sardonyx.passes.explicit_state:ExplicitStatePass",
        "buffers that outlive a run become inputs and outputs",
    ),
    "recognize-gelu": (
        "sardonyx.passes.recognize_gelu:RecognizeGeluPass",
        "state the Gaussian error linear unit as one op",
    ),
    "recognize-norms": (
        "sardonyx.passes.recognize_norms:RecognizeNormsPass",
        "state layer, RMS, instance and group normalisations as one op each",
    ),
    "recognize-attention": (
        "sardonyx.passes.recognize_attention:RecognizeAttentionPass",
        "state scaled dot-product attention as one op",
    ),
    "recognize-rotary": (
        "sardonyx.passes.recognize_rotary:RecognizeRotaryPass",
        "state rotary position embeddings as one op",
    ),
    "extract": ("sardonyx.passes.extract:ExtractPass", "cut out the part that computes some values from others"),
    "specialize-dims": ("sardonyx.passes.specialize_dims:SpecializeDimsPass", "fix named dims to extents"),
    "dequantized-products": (
        "sardonyx.backends.llvm.dequantized:DequantizedProductsPass",
        "state products of dequantised operands as products of the integers",
    ),
    "move-constants": (
        "sardonyx.backends.llvm.moved_constants:MoveConstantsPass",
        "evaluate moves of constants, such as transposes of weights",
    ),
    "gelu-sums": (
        "sardonyx.backends.llvm.gelu_sums:GeluSumsPass",
        "compute the Gaussian error linear unit in primitives as one function",
    ),
    "fast-conv": (
        "sardonyx.backends.llvm.fast_conv:FastConvPass",
        "let native code compute convolutions with fewer products",
    ),
    "legalize-for-opset": (
        "sardonyx.backends.onnx.legalize:LegalizeForOpsetPass",
        "rewrite what an ONNX opset cannot state, or refuse",
    ),
    "decompose-operators": (
        "sardonyx.backends.onnx.decompose_operators:DecomposeOperatorsPass",
        "state ONNX operators that a runtime lacks by others",
    ),
}


@dataclass(frozen=True)
class PassEntry:
    """A registered pass: its name, where it comes from, one line on it, and how to get its class."""

    name: str
    origin: str
    summary: str
    source: PassSource = field(repr=False)

    def load(self) -> type[ModulePass]:
        """The pass class.

        Raises:
            InvalidArgumentError: It cannot be imported, or is no pass.
        """
        source: object = self.source
        if isinstance(source, str):
            module, _, name = source.partition(":")
            try:
                source = getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError) as error:
                raise InvalidArgumentError(f"pass '{self.name}' of {self.origin} cannot be loaded: {error}") from error
        elif not isinstance(source, type):
            source = cast(Callable[[], type[ModulePass]], source)()
        if not (isinstance(source, type) and issubclass(source, ModulePass)):
            raise InvalidArgumentError(f"pass '{self.name}' of {self.origin} is no pass class: {source!r}")
        return source


@dataclass(frozen=True)
class LoadedFile:
    """What a file given with `--load` brought."""

    path: Path
    module: ModuleType = field(repr=False)
    passes: tuple[str, ...]
    dialects: tuple[Dialect, ...]


_registered: dict[str, PassEntry] = {}
_loaded_files: dict[Path, LoadedFile] = {}


def register(name: str, source: PassSource, *, summary: str = "", origin: str = "user") -> None:
    """Add a pass under a name.

    Raises:
        InvalidArgumentError: Another pass has that name.
    """
    known = own_entries().get(name)
    if known is not None and known.source is not source:
        raise InvalidArgumentError(f"pass '{name}' of {origin} has the name of a pass of {known.origin}")
    _registered[name] = PassEntry(name, origin, summary or _summary_of(source), source)


def own_entries() -> dict[str, PassEntry]:
    """Ours, those of installed packages, and those registered in this process; upstream's left out."""
    return {**{name: _own(name) for name in _OURS}, **_installed(), **_registered}


def _own(name: str) -> PassEntry:
    where, text = _OURS[name]
    return PassEntry(name, "sardonyx", text, where)


def _find(name: str) -> PassEntry | None:
    """The pass of that name, upstream's left out. What packages register is looked at only for a name that nothing
    else has: looking at all packages takes a tenth of a short run."""
    if name in _registered:
        return _registered[name]
    return _own(name) if name in _OURS else _installed().get(name)


def entries() -> dict[str, PassEntry]:
    """All passes that a pipeline can name."""
    found = own_entries()
    for name, factory in _upstream().items():
        entry = PassEntry(name, "xdsl", "", factory)
        found[UPSTREAM + name] = entry
        found.setdefault(name, entry)
    return found


def names() -> list[str]:
    """The names of all passes but upstream's."""
    return sorted(own_entries())


def get(name: str) -> type[ModulePass]:
    """The pass class of that name.

    Raises:
        InvalidArgumentError: There is none; the hint names the nearest.
    """
    entry = _find(name)
    if entry is None:
        upstream = _upstream()
        factory = upstream.get(name.removeprefix(UPSTREAM))
        if factory is None:
            raise unknown("pass", name, [*own_entries(), *upstream], "see sardonyx-opt --list-passes")
        entry = PassEntry(name, "xdsl", "", factory)
    return entry.load()


def create(name: str, **options: object) -> ModulePass:
    """A pass of that name with these options."""
    cls = get(name)
    try:
        return cls(**options)
    except TypeError as error:
        raise InvalidArgumentError(f"pass '{name}': {error}") from error


def unknown(what: str, name: str, known: Iterable[str], otherwise: str | None = None) -> InvalidArgumentError:
    """The error of a name that nothing has, with the nearest one as the hint."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.55)
    hint = f"did you mean '{near[0]}'?" if near else otherwise
    return InvalidArgumentError(f"there is no {what} '{name}'", hint=hint)


def load_file(path: str | Path) -> LoadedFile:
    """Execute a Python file and register the passes that it defines; `Dialect` objects in it are collected too.

    A pass is any `ModulePass` subclass defined in the file that has a `name`. The same file is loaded once.

    Raises:
        InvalidArgumentError: The file is not there, or fails.
    """
    where = Path(path).resolve()
    known = _loaded_files.get(where)
    if known is not None:
        return known
    if not where.is_file():
        raise InvalidArgumentError(f"cannot load {path}: no such file")
    module_name = f"sardonyx_loaded_{where.stem}_{len(_loaded_files)}"
    spec = importlib.util.spec_from_file_location(module_name, where)
    if spec is None or spec.loader is None:
        raise InvalidArgumentError(f"cannot load {path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise InvalidArgumentError(f"cannot load {path}: {type(error).__name__}: {error}") from error
    found: list[str] = []
    for value in list(vars(module).values()):
        if not (isinstance(value, type) and issubclass(value, ModulePass) and value.__module__ == module_name):
            continue
        if inspect.isabstract(value) or not isinstance(getattr(value, "name", None), str):
            continue
        register(value.name, value, origin=str(path))
        found.append(value.name)
    dialects = tuple(v for v in vars(module).values() if isinstance(v, Dialect))
    loaded = LoadedFile(where, module, tuple(found), dialects)
    _loaded_files[where] = loaded
    return loaded


def loaded_files() -> list[LoadedFile]:
    """The files that were loaded."""
    return list(_loaded_files.values())


def loaded_dialects() -> list[Dialect]:
    """The dialects of all files that were loaded."""
    return [dialect for file in _loaded_files.values() for dialect in file.dialects]


@cache
def installed_dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects of installed packages: the entry-point group `sardonyx.dialects` (name -> `Dialect`)."""
    from importlib.metadata import entry_points

    return {point.name: point.load for point in entry_points(group=DIALECTS_GROUP)}


@cache
def _upstream() -> dict[str, Callable[[], type[ModulePass]]]:
    from xdsl.transforms import get_all_passes

    return get_all_passes()


@cache
def _installed() -> dict[str, PassEntry]:
    from importlib.metadata import entry_points

    out: dict[str, PassEntry] = {}
    for point in entry_points(group=ENTRY_POINTS):
        origin = point.dist.name if point.dist is not None else "an installed package"
        known = out.get(point.name)
        if known is not None or point.name in _OURS:
            other = known.origin if known is not None else "sardonyx"
            raise InvalidArgumentError(f"pass '{point.name}' of {origin} has the name of a pass of {other}")
        out[point.name] = PassEntry(point.name, origin, "", point.load)
    return out


def _summary_of(source: PassSource) -> str:
    if isinstance(source, type) and issubclass(source, SxPass) and source.__doc__:
        return source.__doc__.strip().partition("\n")[0].rstrip(".")
    return ""
