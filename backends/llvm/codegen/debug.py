"""Debug lines: each kernel and each launch says from which line of the user's source (or node of the model) it comes.

The text of a module gets DWARF line tables: a kernel's instructions stand on the line of the op that it was first made
for, and the entry's on the line of the launch that they prepare. A kernel of a model's node has no line; its function
is then called by the kernel's and the node's name. `perf` and `gdb` read both.
"""

from __future__ import annotations

import re
from pathlib import Path

from sardonyx.backends.llvm.codegen.plan_emitter import field
from sardonyx.backends.llvm.codegen.text import ModuleText
from sardonyx.backends.llvm.interface import EntrySizes

_NOWHERE = ("graph", 0)


def place_of(description: str) -> tuple[str, int]:
    """(file, line) of a location as `locations.describe` puts it; a node of a model has none."""
    path, colon, line = description.rpartition(":")
    return (path, int(line)) if colon and line.isdigit() else _NOWHERE


class _Metadata:
    """Numbered nodes; equal ones once."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self._known: dict[str, int] = {}

    def add(self, text: str, distinct: bool = False) -> str:
        if not distinct and text in self._known:
            return f"!{self._known[text]}"
        self.nodes.append(f"distinct {text}" if distinct else text)
        self._known[text] = len(self.nodes) - 1
        return f"!{len(self.nodes) - 1}"

    def file(self, path: str) -> str:
        place = Path(path)
        folder = str(place.parent) if place.parent != Path() else "."
        return self.add(f'!DIFile(filename: "{_quoted(place.name)}", directory: "{_quoted(folder)}")')


def _quoted(text: str) -> str:
    return "".join(c if " " <= c <= "~" and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in text)


def with_lines(module: ModuleText, sizes: EntrySizes) -> str:
    """The module's text with line tables."""
    data = _Metadata()
    unit = data.add(
        f'!DICompileUnit(language: DW_LANG_C99, file: {data.file("graph")}, producer: "sardonyx", isOptimized: true, '
        "runtimeVersion: 0, emissionKind: LineTablesOnly)",
        distinct=True,
    )
    kind = data.add("!DISubroutineType(types: !{})")
    first: dict[str, str] = {}
    for kernel, node in zip(sizes.launches, sizes.nodes, strict=True):
        first.setdefault(kernel, node)
    functions: dict[str, str] = {}
    for name, text in module.functions.items():
        node = first.get(name, "")
        path, line = place_of(node)
        title = name if line or not node else f"{name} ({node})"
        file = data.file(path)
        scope = data.add(
            f'!DISubprogram(name: "{_quoted(title)}", scope: {file}, file: {file}, line: {line}, type: {kind}, '
            f"scopeLine: {line}, unit: {unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized)",
            distinct=True,
        )
        places = [place_of(n) for n in sizes.nodes] if name == "entry" else []
        functions[name] = _attributed(text, data, scope, (path, line), places)
    whole = ModuleText(module.target, functions, module.declarations, module.globals)
    flags = ['!{i32 2, !"Debug Info Version", i32 3}', '!{i32 7, !"Dwarf Version", i32 4}']
    listed = ", ".join(data.add(flag) for flag in flags)
    lines = [str(whole), f"!llvm.dbg.cu = !{{{unit}}}", f"!llvm.module.flags = !{{{listed}}}"]
    return "\n".join([*lines, *(f"!{k} = {node}" for k, node in enumerate(data.nodes))]) + "\n"


def _attributed(text: str, data: _Metadata, scope: str, own: tuple[str, int], launches: list[tuple[str, int]]) -> str:
    """A function whose instructions say where they come from; the entry's by the launch that they belong to."""
    at = data.add(f"!DILocation(line: {own[1]}, column: 0, scope: {scope})")
    launch_field = f"ptr %ctx, i64 {field('launch')}"
    out: list[str] = []
    for line in text.splitlines():
        if line.startswith("define "):
            out.append(re.sub(r"\{\s*$", f"!dbg {scope} {{", line))
            continue
        if not line.startswith("  ") or not line.strip():
            out.append(line)
            continue
        number = re.match(r"\s+store i64 (\d+), ptr", line)
        if launches and number is not None and launch_field in out[-1]:
            path, row = launches[int(number[1])]
            inside = scope
            if path != own[0]:
                inside = data.add(f"!DILexicalBlockFile(scope: {scope}, file: {data.file(path)}, discriminator: 0)")
            at = data.add(f"!DILocation(line: {row}, column: 0, scope: {inside})")
        out.append(f"{line}, !dbg {at}")
    return "\n".join(out)
