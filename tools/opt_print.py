"""How `sardonyx-opt` prints modules: large constants left out where wanted, and the IR around passes."""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.pipeline import Instrumentation, PassReport

if TYPE_CHECKING:
    from sardonyx.backends.llvm.codegen.text import Target

ELIDED = "dense_resource<__elided__>"
"""What stands for a constant that is left out, as in mlir-opt."""

DUMP_ELIDES = 16
"""Of how many elements a constant may be that IR dumps show."""


@dataclass(frozen=True)
class PrintOptions:
    """How MLIR is printed, and for which machine code is generated: CPU, features and triple, None for this one's.

    `elide` is the number of elements above which constants are left out; None keeps all.
    """

    generic: bool = False
    locations: bool = False
    machine: tuple[str | None, str | None, str | None] = (None, None, None)
    elide: int | None = None

    def target(self) -> Target:
        """The machine."""
        from sardonyx.backends.llvm.codegen.targets import resolve_target

        return resolve_target(*self.machine)


class _EllipsisPrinter(Printer):
    """A printer that leaves the elements of large constants out."""

    elide_above: int

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, DenseIntOrFPElementsAttr) and len(attribute) > self.elide_above:
            self.print_string(f"{ELIDED} : ")
            super().print_attribute(attribute.get_type())
        else:
            super().print_attribute(attribute)


def print_module(module: ModuleOp, options: PrintOptions) -> str:
    """The module's text, with a newline at its end."""
    stream = io.StringIO()
    if options.elide is None:
        printer = Printer(stream, print_generic_format=options.generic, print_debuginfo=options.locations)
    else:
        printer = _EllipsisPrinter(stream, print_generic_format=options.generic, print_debuginfo=options.locations)
        printer.elide_above = options.elide
    printer.print_op(module)
    stream.write("\n")
    return stream.getvalue()


# ---- IR around passes


@dataclass(frozen=True)
class Wanted:
    """Around which passes the IR is printed. A name of `*` means every pass."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    after_change: bool = False
    after_failure: bool = False
    diff: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.before or self.after or self.after_change or self.after_failure or self.diff)


@dataclass
class IRPrinting(Instrumentation):
    """Prints the module before and after passes, or what they changed in it.

    With a `folder`, each dump is a file there: `<number of the pass>_<pass>[_before|_failed].mlir`, or `.diff`.
    """

    stream: TextIO
    show: Callable[[ModuleOp], str]
    wanted: Wanted
    folder: Path | None = None
    _before: str = field(default="", init=False)

    def _named(self, names: frozenset[str], pass_: ModulePass) -> bool:
        return "*" in names or pass_.name in names

    def _print(self, title: str, file: str, content: str) -> None:
        if self.folder is None:
            self.stream.write(f"// -----// IR Dump {title} //----- //\n{content}\n")
            return
        path = self.folder / re.sub(r"[^\w.\-]", "_", file)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"cannot write the dump {path}: {error.strerror}") from error

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        if self._named(self.wanted.before, pass_):
            self._print(f"Before {pass_.name}", f"{index:03d}_{pass_.name}_before.mlir", self.show(module))
        if self.wanted.diff:
            self._before = self.show(module)

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        if self._named(self.wanted.after, pass_) or (self.wanted.after_change and report.changed):
            self._print(f"After {pass_.name}", f"{index:03d}_{pass_.name}.mlir", self.show(module))
        if self.wanted.diff and report.changed:
            changes = diff(self._before, self.show(module), f"before {pass_.name}", f"after {pass_.name}")
            self._print(f"Changes of {pass_.name}", f"{index:03d}_{pass_.name}.diff", changes)

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        if self.wanted.after_failure:
            self._print(f"After {pass_.name} Failed", f"{index:03d}_{pass_.name}_failed.mlir", self.show(module))


def diff(before: str, after: str, old: str, new: str) -> str:
    """The unified diff of two texts."""
    ours, theirs = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(ours, theirs, old, new, lineterm="", n=2)
    return "\n".join(lines) + "\n"
