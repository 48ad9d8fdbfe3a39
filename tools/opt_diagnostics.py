"""`--verify-diagnostics`: the diagnostics that come are held against those that the input's comments expect.

    // expected-error @+1 {{is stated as}}
    %0 = sx.exp %x : ...            // expected-remark {{folded}}

A comment names a severity (`error`, `warning`, `note`, `remark`), a line, and a part of the message. The line is the
comment's own, `@+n` or `@-n` from it, `@n` of the file, `@above` or `@below` (the next line that is no such comment),
or `@unknown` for a diagnostic without a line. With `-re` after the severity, `{{...}}` inside the text are regular
expressions. Each diagnostic is expected once; a number after the line (`@below 2`) says how often. As in mlir-opt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from sardonyx.errors import SardonyxError

if TYPE_CHECKING:
    from sardonyx.passes.base import Remark
    from sardonyx.tools.text import Text

SEVERITIES = ("error", "warning", "note", "remark")

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)(?P<regex>-re)?"
    r"[ \t]*(?:@(?P<line>[+-]?\d+|above|below|unknown))?[ \t]*(?P<count>\d+)?[ \t]*(?P<open>\{\{)?"
)


@dataclass(frozen=True)
class Diagnostic:
    """What was said of a line; `line` is None where it names no line of the input."""

    severity: str
    line: int | None
    message: str


@dataclass
class Expectation:
    """What a comment expects; `at` is the comment's own line."""

    severity: str
    line: int | None
    text: str
    pattern: re.Pattern[str]
    at: int
    found: bool = False

    def matches(self, one: Diagnostic) -> bool:
        return self.severity == one.severity and self.line == one.line and bool(self.pattern.search(one.message))


class MalformedComment(SardonyxError):
    """A comment that begins like an expectation and is none."""

    default_code = "INVALID_ARGUMENT"


def read_expectations(text: Text) -> list[Expectation]:
    """The expectations of a text's comments.

    Raises:
        MalformedComment: One has no `{{text}}`, or a regular expression in it is wrong.
    """
    lines = text.content.split("\n")
    found: list[Expectation] = []
    for index, line in enumerate(lines):
        comment = line.find("//")
        for match in _EXPECTED.finditer(line, comment) if comment >= 0 else ():
            at = text.first_line + index
            body = _braced(line, match.end()) if match["open"] else None
            if body is None:
                raise MalformedComment(
                    f"'{line[match.start() :].strip()}' expects nothing",
                    location=f"{text.name}:{at}",
                    hint="write expected-error @+1 {{text}}",
                )
            try:
                pattern = _pattern(body) if match["regex"] else re.compile(re.escape(body))
            except re.error as error:
                raise MalformedComment(
                    f"the regular expression is wrong: {error}", location=f"{text.name}:{at}"
                ) from None
            wanted = _line(match["line"], at, lines, index, text.first_line)
            for _ in range(int(match["count"] or 1)):
                found.append(Expectation(match["severity"], wanted, body, pattern, at))
    return found


def _braced(line: str, start: int) -> str | None:
    """What stands up to the `}}` that closes; pairs inside count."""
    depth, at = 1, start
    while at < len(line):
        if line.startswith("{{", at):
            depth, at = depth + 1, at + 2
        elif line.startswith("}}", at):
            depth -= 1
            if not depth:
                return line[start:at]
            at += 2
        else:
            at += 1
    return None


def _pattern(body: str) -> re.Pattern[str]:
    parts = re.split(r"\{\{(.*?)\}\}", body)
    return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)))


def _line(stated: str | None, at: int, lines: Sequence[str], index: int, first: int) -> int | None:
    if stated is None:
        return at
    if stated == "unknown":
        return None
    if stated in ("above", "below"):
        step = -1 if stated == "above" else 1
        index += step
        while 0 <= index < len(lines) and _only_expects(lines[index]):
            index += step
        return first + index
    return at + int(stated) if stated[0] in "+-" else int(stated)


def _only_expects(line: str) -> bool:
    return line.lstrip().startswith("//") and _EXPECTED.search(line) is not None


# ---- what came


def of_error(error: SardonyxError, source: str) -> Iterator[Diagnostic]:
    """The diagnostics of an error: itself and its notes."""
    line = line_in(error.location, source)
    yield Diagnostic("error", line, error.message)
    for note in error.notes:
        yield Diagnostic("note", line, note)


def of_remark(remark: Remark, source: str) -> Diagnostic:
    """The diagnostic of a remark, or of a warning."""
    severity = "warning" if remark.kind == "warning" else "remark"
    return Diagnostic(severity, line_in(remark.location, source), remark.message)


def line_in(location: str | None, source: str) -> int | None:
    """The line of the input that a location names."""
    found = re.fullmatch(r"(.*?):(\d+)(?::\d+)?", location or "", re.DOTALL)
    return int(found[2]) if found and found[1] == source else None


def check(expected: Sequence[Expectation], came: Iterable[Diagnostic], source: str, stderr: TextIO) -> bool:
    """Whether the two agree; `stderr` is told where not."""
    good = True
    for one in came:
        match = next((e for e in expected if not e.found and e.matches(one)), None)
        if match is not None:
            match.found = True
            continue
        good = False
        where = f"{source}:{one.line}" if one.line is not None else source
        stderr.write(f"{where}: error: unexpected {one.severity}: {one.message}\n")
    for one in expected:
        if not one.found:
            good = False
            where = "no line" if one.line is None else f"line {one.line}"
            stderr.write(f"{source}:{one.at}: error: expected {one.severity} of {where} did not come: {one.text}\n")
    return good
