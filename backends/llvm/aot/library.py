"""Builds libraries, object files, assembly and LLVM IR of a graph for one or several targets.

What is made holds the code of each target (its symbols hidden), the C interface (`runtime`), the thread pool and,
unless they stand in a file beside it, the weights. Linking a library is the C compiler's work (`$CC`, else cc or clang,
for another architecture its cross compiler); all else is LLVM's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.aot.cpu import is_x86
from sardonyx.backends.llvm.aot.header import c_header
from sardonyx.backends.llvm.aot.runtime import Part, emit_runtime, pool_text
from sardonyx.backends.llvm.aot.weights import WeightsFile, weights_assembly
from sardonyx.backends.llvm.build import emit_module, forget_unread, lower
from sardonyx.backends.llvm.codegen.debug import with_lines
from sardonyx.backends.llvm.codegen.targets import NAMED, resolve_target
from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.compile import no_collection
from sardonyx.backends.llvm.copies import with_explicit_state
from sardonyx.backends.llvm.fallback import has_map, python_ops
from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.call import constant_arrays
from sardonyx.backends.llvm.runtime.phases import advance, phase
from sardonyx.backends.llvm.runtime.program_cache import stated_program
from sardonyx.dialects import locations
from sardonyx.dialects.files import write_files
from sardonyx.errors import InvalidArgumentError, SardonyxError, UnsupportedError

KINDS = {".so": "library", ".o": "object", ".s": "assembly", ".ll": "llvm-ir"}
LINE = 64
LARGEST_INSIDE = 1 << 30
"""Weights of more bytes stand beside the library, unless the user says otherwise: a link of more may not reach."""
API = ("create", "destroy", "set_threads", "run", "error", "free", "select")
BASELINE = '"target-cpu"="x86-64" "target-features"="+sse2"'
STRENGTH = ("x86-64-v4", "x86-64-v3", "x86-64-v2")


@dataclass
class Built:
    """What was written, and what it holds."""

    name: str
    kind: str
    files: list[Path]
    targets: list[str]
    weight_bytes: int
    weights_beside: bool
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)


@dataclass
class _Weights:
    """The constants of all parts, each content once, at multiples of 64 bytes."""

    chunks: list[Any] = field(default_factory=list)
    size: int = 0
    places: dict[bytes, int] = field(default_factory=dict)

    def add(self, array: np.ndarray[Any, Any]) -> int:
        flat = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        digest = hashlib.sha256(flat.data).digest() + array.nbytes.to_bytes(8, "little")
        if digest not in self.places:
            self.places[digest] = self.size
            rest = -flat.size % LINE
            self.chunks += [flat, bytes(rest)]
            self.size += flat.size + rest
        return self.places[digest]


def library_name(path: Path) -> str:
    """The name that C's functions begin with: the file's, as far as it is an identifier."""
    stem = path.name.split(".")[0].removeprefix("lib")
    found = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")
    return f"m{found}" if not found or found[0].isdigit() else found


def compile_to(
    module: ModuleOp,
    path: str | os.PathLike[str],
    targets: Sequence[str] = (),
    *,
    name: str | None = None,
    weights_beside: bool | None = None,
    header: str | os.PathLike[str] | None = None,
    fast_conv: bool = False,
    debug_info: bool = False,
) -> Built:
    """Compile a graph ahead of time; the suffix of `path` (.so, .o, .s, .ll) says to what. Written whole or not at all.

    Args:
        targets: Names of CPUs as `resolve_target` takes them (default: x86-64-v2, or aarch64 there). A library may hold
            several; when it is loaded the first that the CPU runs is taken, x86's strongest first.
        name: What the C functions' names begin with (default: the file's name).
        weights_beside: Whether the weights stand in a file beside the library (default: if they have more than 1 GiB).
        header: Where the C header goes (default: beside a library or an object file).
        debug_info: Whether the code says from which lines of the source it comes.

    Raises:
        InvalidArgumentError: The file's suffix, the name or a target is none.
        UnsupportedError: An op has no native form, the interface has none in C, or no C compiler is here.
    """
    target_path = Path(path)
    kind = KINDS.get(target_path.suffix)
    if kind is None:
        raise InvalidArgumentError(f"'{path}' ends in none of {', '.join(KINDS)}, which say what to write")
    library = name or library_name(target_path)
    if not re.fullmatch(r"[A-Za-z_]\w*", library, re.ASCII):
        raise InvalidArgumentError(f"the name '{library}' is no identifier of C")
    chosen = _resolve(targets, kind)
    parts: list[Part] = []
    texts: list[str] = []
    weights = _Weights()
    prepared = with_explicit_state(module)
    for op in python_ops(prepared):
        made_of_maps = has_map(op)
        raise UnsupportedError(
            "C has no maps" if made_of_maps else "a kernel that is Python's cannot run without Python",
            hint="take what comes before it as the output (OnnxModel.extract)"
            if made_of_maps
            else "give the custom operator a lowering to native code",
            op=op.name,
            location=locations.describe(op.location),
        )
    with no_collection():
        for title, target in chosen:
            part, text = _part(prepared, library, title, target, weights, (fast_conv, debug_info))
            parts.append(part)
            texts.append(text)
    beside = weights.size > LARGEST_INSIDE if weights_beside is None else weights_beside
    if kind in ("assembly", "llvm-ir") and weights.size:
        if weights_beside is False:
            raise InvalidArgumentError(f"the weights of a {target_path.suffix} file stand beside it")
        beside = True
    with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder:
        files = _write(kind, target_path, library, parts, texts, weights, beside, Path(folder))
        if kind in ("library", "object") or header is not None:
            place = Path(header) if header is not None else target_path.with_suffix(".h")
            content = c_header(
                library, parts[0].inputs, parts[0].outputs, weights_path(target_path) if beside else None
            )
            files.append((place, lambda file: file.write(content.encode())))
        write_files(files)
    if kind == "library":
        target_path.chmod(target_path.stat().st_mode | 0o111 & ~_umask())
    ports = list(parts[0].inputs), list(parts[0].outputs)
    return Built(library, kind, [f for f, _ in files], [p.title for p in parts], weights.size, beside, *ports)


def weights_path(path: Path) -> Path:
    """The file of the weights that stand beside a library."""
    return path.with_suffix(".weights")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- the code


def _resolve(names: Sequence[str], kind: str) -> list[tuple[str, Target]]:
    """(name, target) in the order in which they are tried when the library is loaded."""
    default = "x86-64-v2" if is_x86(jit.native_target()) else "aarch64"
    given = list(dict.fromkeys(names)) or [default]
    found = [(name, resolve_target(name)) for name in given]
    if len({t.triple.split("-")[0] for _, t in found}) > 1:
        raise InvalidArgumentError(f"{', '.join(given)} are of several architectures; a file is for one")
    if is_x86(found[0][1]) and not is_x86(jit.native_target()):
        raise UnsupportedError("libraries for x86-64 are made on x86-64: their test of the CPU needs its assembler")
    if kind != "library" and len(found) > 1:
        raise InvalidArgumentError("a file of several CPUs is a library (.so); name one CPU for others")
    return sorted(found, key=lambda one: STRENGTH.index(one[0]) if one[0] in STRENGTH else -1)


def _part(
    module: ModuleOp, library: str, title: str, target: Target, weights: _Weights, how: tuple[bool, bool]
) -> tuple[Part, str]:
    label = re.sub(r"\W+", "_", title, flags=re.ASCII)
    with phase("lowering"):
        lowered = lower(module, target, how[0])
    for port in (*lowered.inputs, *lowered.outputs):
        if port.kind != "tensor":
            raise UnsupportedError(f"'{port.name}' is a {port.kind}, which has no form in C")
    with phase("text"):
        text, sizes = emit_module(lowered, target)
    forget_unread(lowered)
    arrays = constant_arrays(lowered.constants)
    offsets = [weights.add(array) for array in arrays]
    stated = stated_program(lowered.inputs, lowered.outputs, lowered.failures, sizes)
    stated["constants"] = [{"dtype": str(a.dtype), "shape": list(a.shape), "bytes": a.nbytes} for a in arrays]
    metadata = json.dumps(stated, separators=(",", ":")).encode()
    part = Part(label, title, target, lowered.inputs, lowered.outputs, lowered.failures, sizes, offsets, metadata)
    renamed = with_lines(text, sizes) if how[1] else str(text)
    for entry in ("entry", "entry_py"):
        renamed = renamed.replace(f"define i64 @{entry}(", f"define hidden i64 @{library}.{label}.{entry}(")
        renamed = renamed.replace(f"call i64 @{entry}(", f"call i64 @{library}.{label}.{entry}(")
    return part, renamed


def _baseline(text: str, target: Target) -> str:
    """Code that runs before the CPU is looked at takes nothing but what all of its kind have."""
    if not is_x86(target):
        return text
    return re.sub(r"^(define .*\)) nounwind \{", rf"\1 nounwind {BASELINE} {{", text, flags=re.MULTILINE)


def _own_architecture(target: Target) -> bool:
    return target.triple.split("-")[0] == jit.native_target().triple.split("-")[0]


def _initialize() -> None:
    import llvmlite.binding as llvm

    jit.native_target()
    llvm.initialize_native_asmparser()  # for what the runtime says in assembly


# ---- the files


Files = list[tuple[Path, Callable[[BinaryIO], object]]]


def _write(
    kind: str, path: Path, library: str, parts: Sequence[Part], texts: Sequence[str], weights: _Weights, beside: bool,
    folder: Path,
) -> Files:  # fmt: skip
    """What is to be written; `folder` is for files in between."""
    _initialize()
    files: Files = []
    source: str | WeightsFile | None = None
    extra: str | None = None
    target = parts[-1].target
    if beside and weights.size:
        place = weights_path(path)
        head = hashlib.sha256(b"".join(sorted(weights.places))).digest()[:16]
        source = WeightsFile(place.name, weights.size + LINE, head)
        parts = [_shifted(p) for p in parts]
        files.append((place, lambda file: _put(file, [head.ljust(LINE, b"\0"), *weights.chunks])))
    elif weights.size:
        inside = folder / "weights.bin"
        with inside.open("wb") as file:
            _put(file, weights.chunks)
        alone = kind == "library" or not _own_architecture(target)
        extra = weights_assembly(library, str(inside)) if alone else None
        source = "" if alone else str(inside)
    runtime = _baseline(emit_runtime(library, parts, source), target)
    pool = pool_text(library, target)
    if pool is not None:
        pool = _baseline(pool, target)
    if kind == "library":
        modules = [*zip(texts, (p.target for p in parts), strict=True), (runtime, target)]
        modules += [(pool, target)] if pool is not None else []
        content = _linked(path, modules, extra, folder)
        files.insert(0, (path, lambda file: file.write(content)))
        return files
    with phase("LLVM"):
        whole = jit.parse(runtime)
        for text in ([pool] if pool is not None else []) + list(texts):
            whole.link_in(jit.parse(text))
        public = {f"{library}_{f}" for f in API}
        for function in whole.functions:
            if not function.is_declaration and function.name not in public:
                function.visibility = "default"
                function.linkage = "internal"
        content = _emitted(kind, whole, target, extra, folder)
    files.insert(0, (path, lambda file: file.write(content)))
    return files


def _shifted(part: Part) -> Part:
    """Behind the head of a file of weights."""
    return Part(
        part.name, part.title, part.target, part.inputs, part.outputs, part.failures, part.sizes,
        [o + LINE for o in part.offsets], part.metadata,
    )  # fmt: skip


def _put(file: BinaryIO, chunks: Sequence[Any]) -> None:
    for chunk in chunks:
        file.write(chunk)


def _emitted(kind: str, module: Any, target: Target, extra: str | None, folder: Path) -> bytes:
    if kind == "llvm-ir":
        return str(module).encode()
    if kind == "assembly":
        return jit.machine(target).emit_assembly(module).encode()
    if _own_architecture(target):
        return jit.machine(target).emit_object(module)
    assembly, made = folder / "whole.s", folder / "whole.o"
    assembly.write_text(jit.machine(target).emit_assembly(module))
    inputs = [str(assembly), *_assembly(extra, folder)]
    _run([*_compiler(target), "-r", "-nostdlib", "-o", str(made), *inputs])
    return made.read_bytes()


def _assembly(text: str | None, folder: Path) -> list[str]:
    """The file of a piece of assembly, if there is one."""
    if text is None:
        return []
    place = folder / "weights.s"
    place.write_text(text)
    return [str(place)]


def _linked(path: Path, modules: Sequence[tuple[str, Target]], extra: str | None, folder: Path) -> bytes:
    """The library that the C compiler's linker makes."""
    compiler = _compiler(modules[0][1])
    inputs = _assembly(extra, folder)
    for number, (text, target) in enumerate(modules):
        place = folder / f"part{number}{'.o' if _own_architecture(target) else '.s'}"
        with phase("LLVM"):
            advance(number, len(modules))
            if _own_architecture(target):
                place.write_bytes(jit.emit_object(target, text))
            else:
                place.write_text(jit.machine(target).emit_assembly(jit.parse(text)))
        inputs.append(str(place))
    made = folder / "library.so"
    options = ["-Wl,-z,noexecstack", f"-Wl,-soname,{path.name}", "-lpthread", "-ldl"]
    with phase("link"):
        _run([*compiler, "-shared", "-fPIC", "-o", str(made), *inputs, *options])
    return made.read_bytes()


def _compiler(target: Target) -> list[str]:
    """The command of the C compiler for a target.

    Raises:
        UnsupportedError: There is none.
    """
    stated = os.environ.get("CC")
    if stated:
        command = shlex.split(stated)
        if command and shutil.which(command[0]):
            return command
        raise UnsupportedError(f"CC is '{stated}', which is no program here")
    architecture = target.triple.split("-")[0]
    names = ("cc", "clang", "gcc") if _own_architecture(target) else (f"{architecture}-linux-gnu-gcc",)
    for name in names:
        if shutil.which(name):
            return [name]
    raise UnsupportedError(
        f"no C compiler for {architecture} is here: {', '.join(names)} is missing, which links the library",
        hint="install one, or name it by CC; -o FILE.o needs none for this machine's architecture",
    )


def _run(command: Sequence[str]) -> None:
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        said = (found.stderr or found.stdout).strip().splitlines()
        raise SardonyxError(f"{command[0]} could not link: {said[-1] if said else f'status {found.returncode}'}")


__all__ = ["KINDS", "NAMED", "Built", "compile_to", "library_name", "weights_path"]
