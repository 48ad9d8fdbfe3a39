"""Reads assembly of x86-64 (AT&T syntax) and aarch64: functions, their innermost loops, calls and stack accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FUNCTION = re.compile(r'^"?([\w.$]+)"?:')
_LABEL = re.compile(r"^\.?(L\w+):")
_JUMP = re.compile(r"^\s+(?:j[a-z]+|b|b\.[a-z]+|cbn?z|tbn?z)\s+(?:.*,\s*)?\.?(L\w+)\b")
_STACK = re.compile(r"\(%rsp|\[sp\b")
_FMA = re.compile(r"^\s+(vfn?madd|fmla|fmls)")


@dataclass
class Loop:
    """The instructions between a label and the jump back to it, no loop in between."""

    function: str
    lines: list[str]

    @property
    def calls(self) -> list[str]:
        return [line for line in self.lines if re.match(r"\s+(call|bl\s|blr\s)", line)]

    @property
    def stack_accesses(self) -> list[str]:
        return [line for line in self.lines if _STACK.search(line)]

    @property
    def vector_stack_accesses(self) -> list[str]:
        """Those that move vector registers."""
        return [line for line in self.stack_accesses if re.search(r"%[xyz]mm|\s[qvd]\d", line)]

    @property
    def spills(self) -> list[str]:
        """What LLVM comments as spills and reloads of whole registers."""
        return [line for line in self.lines if re.search(r"Spill|Reload", line)]

    @property
    def fmas(self) -> int:
        return sum(1 for line in self.lines if _FMA.match(line))


def functions(assembly: str) -> dict[str, list[str]]:
    """Each function's instructions and labels, without directives."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in assembly.splitlines():
        label = _FUNCTION.match(line)
        if label and not line.startswith((".L", "L")):
            current = found.setdefault(label.group(1), [])
        elif current is not None and (_LABEL.match(line) or (line[:1].isspace() and not line.strip().startswith("."))):
            current.append(line)
    return {name: lines for name, lines in found.items() if lines}


def innermost_loops(assembly: str) -> list[Loop]:
    """All loops without a loop inside."""
    loops: list[Loop] = []
    for name, lines in functions(assembly).items():
        at = {m.group(1): k for k, line in enumerate(lines) if (m := _LABEL.match(line))}
        spans: list[tuple[int, int]] = []
        for k, line in enumerate(lines):
            jump = _JUMP.match(line)
            if jump and at.get(jump.group(1), k + 1) <= k:
                spans.append((at[jump.group(1)], k))
        for first, last in spans:
            if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in spans):
                instructions = [line for line in lines[first : last + 1] if not _LABEL.match(line)]
                loops.append(Loop(name, [line for line in instructions if not line.strip().startswith("#")]))
    return loops
