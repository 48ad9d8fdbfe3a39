"""How `sardonyx-opt` prints modules: large constants left out where wanted, and the IR around passes."""

from __future__ import annotations

import difflib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
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

    `elide` is the number of elements above which constants are left out; None keeps all. With `debug_info` machine
    code says from which lines it comes.
    """

    generic: bool = False
    locations: bool = False
    machine: tuple[str | None, str | None, str | None] = (None, None, None)
    elide: int | None = None
    debug_info: bool = False

    def target(self) -> Target:
        """The machine."""
        from sardonyx.backends.llvm.codegen.targets import resolve_target

        return resolve_target(*self.machine)


class SteadyNames:
    """Names of values that stay the same from one print of a module to the next, so that a diff shows what changed and
    not what was counted anew: a value keeps the name under which it was first printed."""

    def __init__(self) -> None:
        self._names: dict[SSAValue, str] = {}
        self._taken: dict[str, int] = {}
        self._count = 0

    def name(self, value: SSAValue) -> str:
        """The value's name, without `%`."""
        found = self._names.get(value)
        if found is None:
            hint = value.name_hint
            if hint:
                number = self._taken.get(hint, 0)
                self._taken[hint] = number + 1
                found = f"{hint}_{number}" if number else hint
            else:
                found = str(self._count)
                self._count += 1
            self._names[value] = found
        return found


def _is_splat(attribute: DenseIntOrFPElementsAttr[Any]) -> bool:
    """Whether all elements are the same, which prints as one."""
    raw, count = attribute.data.data, len(attribute)
    return raw == raw[: len(raw) // count] * count


class DumpPrinter(Printer):
    """A printer that can leave the elements of large constants out, take steady names, and note the line of each op.

    Attributes:
        elide_above: The number of elements above which constants are left out; None keeps all.
        steady: The names of values, where they shall stay.
        lines: The line, from 0, on which each op begins.
    """

    elide_above: int | None = None
    steady: SteadyNames | None = None

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.lines: dict[Operation, int] = {}
        self._types: dict[Attribute, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        elide = self.elide_above
        dense = isinstance(attribute, DenseIntOrFPElementsAttr)
        if dense and elide is not None and len(attribute) > elide and not _is_splat(attribute):
            self.print_string(f"{ELIDED} : ")
            super().print_attribute(attribute.get_type())
        elif isinstance(attribute, TensorType):  # the same few, again and again
            text = self._types.get(attribute)
            if text is None:
                text = self._types[attribute] = str(attribute)
            self.print_string(text)
        else:
            super().print_attribute(attribute)

    def print_ssa_value(self, value: SSAValue) -> str:
        if self.steady is None:
            return super().print_ssa_value(value)
        name = self.steady.name(value)
        self.print_string(f"%{name}")
        return name

    def print_op(self, op: Operation) -> None:
        self.lines[op] = self._current_line
        super().print_op(op)


def print_module(module: ModuleOp, options: PrintOptions, steady: SteadyNames | None = None) -> str:
    """The module's text, with a newline at its end."""
    return print_with_lines(module, options, steady)[0]


def print_with_lines(
    module: ModuleOp, options: PrintOptions, steady: SteadyNames | None = None
) -> tuple[str, dict[Operation, int]]:
    """The module's text, and the line (from 0) on which each op begins."""
    stream = io.StringIO()
    printer = DumpPrinter(stream, print_generic_format=options.generic, print_debuginfo=options.locations)
    printer.elide_above = options.elide
    printer.steady = steady
    printer.print_op(module)
    stream.write("\n")
    return stream.getvalue(), printer.lines


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
    style: PrintOptions
    wanted: Wanted
    folder: Path | None = None
    _steady: SteadyNames = field(default_factory=SteadyNames, init=False)
    _before: str = field(default="", init=False)

    def show(self, module: ModuleOp) -> str:
        """The text of a dump."""
        return print_module(module, self.style)

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
            self._before = print_module(module, self.style, self._steady)

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        if self._named(self.wanted.after, pass_) or (self.wanted.after_change and report.changed):
            self._print(f"After {pass_.name}", f"{index:03d}_{pass_.name}.mlir", self.show(module))
        if self.wanted.diff and report.changed:
            now = print_module(module, self.style, self._steady)
            changes = diff(self._before, now, f"before {pass_.name}", f"after {pass_.name}")
            self._print(f"Changes of {pass_.name}", f"{index:03d}_{pass_.name}.diff", changes)

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        if self.wanted.after_failure:
            self._print(f"After {pass_.name} Failed", f"{index:03d}_{pass_.name}_failed.mlir", self.show(module))


def diff(before: str, after: str, old: str, new: str) -> str:
    """The unified diff of two texts."""
    ours, theirs = before.splitlines(), after.splitlines()
    lines = difflib.unified_diff(ours, theirs, old, new, lineterm="", n=2)
    return "\n".join(lines) + "\n"
