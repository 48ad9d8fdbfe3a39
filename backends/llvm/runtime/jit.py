"""From LLVM text to code: target machines, object files, and ORC's LLJIT."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from sardonyx.backends.llvm.codegen.text import ModuleText, Target, host_target
from sardonyx.backends.llvm.runtime.phases import phase
from sardonyx.errors import SardonyxError

_lock = threading.RLock()
_names = itertools.count()


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@cache
def native_target() -> Target:
    """This machine, as the generator sees it."""
    _initialize()
    return host_target()


@cache
def machine(target: Target, level: int = 2) -> Any:
    """LLVM's target machine. Code generation level 2 for kernels: never 0, which spills everything."""
    _initialize()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="default", jit=False
    )


def parse(text: str) -> Any:
    """LLVM's module of the text; a mistake of the generator is an error that shows LLVM's message."""
    _initialize()
    with _lock:
        try:
            module = llvm.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise SardonyxError(f"the generated LLVM IR is not valid: {error}", code_name="INTERNAL") from error
    return module


def emit_object(target: Target, text: str, level: int = 2) -> bytes:
    """Object code of a module's text, at a code generation level."""
    with _lock:
        return machine(target, level).emit_object(parse(text))


def to_object(module: ModuleText) -> bytes:
    """One object of the module, from the cache where it is known."""
    from sardonyx.backends.llvm.runtime.objects import to_objects

    return to_objects(module, ())[0]


def to_assembly(module: ModuleText) -> str:
    """Assembly, with LLVM's comments (spills, loops)."""
    return text_to_assembly(module.target, str(module))


def text_to_assembly(target: Target, text: str) -> str:
    """The same of a module's text."""
    with phase("LLVM"), _lock:
        tm = machine(target)
        tm.set_asm_verbosity(True)
        return tm.emit_assembly(parse(text))


@cache
def _compiler() -> Any:
    _initialize()
    target = llvm.Target.from_triple(native_target().triple)
    return llvm.create_lljit_compiler(
        target.create_target_machine(cpu=native_target().cpu, features=native_target().features, opt=2, jit=True)
    )


class Library:
    """Object code loaded into this process; it stays as long as this object lives."""

    def __init__(self, objects: bytes | Sequence[bytes], symbols: tuple[str, ...]) -> None:
        with _lock:
            builder = llvm.JITLibraryBuilder()
            for body in [objects] if isinstance(objects, bytes) else objects:
                builder = builder.add_object_img(body)
            builder = builder.add_current_process()
            for symbol in symbols:
                builder = builder.export_symbol(symbol)
            self._tracker = builder.link(_compiler(), f"sardonyx.{next(_names)}")
            self.addresses = {symbol: self._tracker[symbol] for symbol in symbols}
