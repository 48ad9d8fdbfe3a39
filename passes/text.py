"""Reads MLIR text: decoding, splitting into parts, and parsing with an error that shows the place.

Ops that state no location get the line that they stand on, so that whatever refuses one later can name it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from sardonyx.dialects import locations
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes.registry import unknown
from sardonyx.passes.text_parser import LocatingParser

SEPARATOR = re.compile(r"^// -----[ \t]*\r?$", re.MULTILINE)
"""The line between the parts of a split file."""

_NOTHING = re.compile(r"(?:\s+|//[^\n]*)*+")

_SHOWN = 100
"""How many characters of a line an error shows."""


@dataclass(frozen=True)
class Text:
    """MLIR text: its file's name, and the number of its first line there."""

    content: str
    name: str
    first_line: int = 1
    _starts: list[int] = field(default_factory=list[int], compare=False, repr=False)

    def place(self, at: int) -> tuple[int, int]:
        """Line (as counted in the file) and column, from 1, of an offset."""
        if not self._starts:
            self._starts.extend([0, *(m.end() for m in re.finditer("\n", self.content))])
        number = bisect_right(self._starts, at)
        return self.first_line + number - 1, at - self._starts[number - 1] + 1

    def excerpt(self, at: int) -> list[str]:
        """The line around an offset, cut where it is long, and a caret below it."""
        begin = self.content.rfind("\n", 0, at) + 1
        end = self.content.find("\n", at)
        line = self.content[begin : end if end >= 0 else len(self.content)].rstrip().replace("\t", " ")
        column = at - begin
        left = max(0, min(column - _SHOWN // 2, len(line) - _SHOWN))
        head, tail = "..." if left else "", "..." if len(line) > left + _SHOWN else ""
        return [head + line[left : left + _SHOWN] + tail, " " * (len(head) + column - left) + "^"]


def read_text(source: str, stdin: TextIO) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        InvalidArgumentError: It cannot be read, or is no text.
    """
    try:
        if source == "-":
            raw = stdin.buffer.read() if hasattr(stdin, "buffer") else stdin.read().encode()
        else:
            raw = Path(source).read_bytes()
        return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")  # some editors begin a text with that mark
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{'standard input' if source == '-' else 'the file'} is no text: byte 0x{error.object[error.start]:02x} "
            f"at offset {error.start} is not UTF-8",
            hint="ONNX models are read from files whose names end in .onnx",
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error


def split_text(text: Text) -> list[Text]:
    """The parts of a text between lines of `// -----`; each knows its first line."""
    parts: list[Text] = []
    begin = 0
    for found in SEPARATOR.finditer(text.content):
        parts.append(_part(text, begin, found.start()))
        begin = found.end()
    parts.append(_part(text, begin, len(text.content)))
    return parts


def _part(text: Text, begin: int, end: int) -> Text:
    return Text(text.content[begin:end], text.name, text.place(begin)[0])


class TextError(InvalidArgumentError):
    """A mistake in a text; `excerpt` shows its line and place."""

    def __init__(self, text: Text, offset: int, message: str, **details: Any) -> None:
        at = min(offset, len(text.content))
        line, column = text.place(at)
        super().__init__(message or "the text does not parse", location=f"{text.name}:{line}:{column}", **details)
        self.excerpt = text.excerpt(at)


def parse_text(ctx: Context, text: Text, verify: bool = True) -> ModuleOp:
    """Parse MLIR text.

    Raises:
        InvalidArgumentError: The text does not parse, or (with `verify`) is not valid; the location is its line.
    """
    if _NOTHING.fullmatch(text.content):
        raise InvalidArgumentError("there is nothing in it: neither a module nor an op", location=text.name)
    parser: LocatingParser | None = None
    try:
        parser = LocatingParser(ctx, text)
        module = parser.parse_module()
    except ParseError as error:
        raise TextError(text, error.span.start, _first_line(error.msg), hint=_hint(error.msg, ctx)) from error
    except SardonyxError as error:
        offset = parser.offset if parser else 0
        raise TextError(text, offset, error.message, code_name=error.code_name, op=error.op, hint=error.hint) from error
    except RecursionError:
        raise InvalidArgumentError("the text is nested too deeply", location=text.name) from None
    except Exception as error:  # what attributes and ops raise comes through xDSL's parser
        offset = parser.offset if parser else 0
        raise TextError(text, offset, _first_line(str(error)) or type(error).__name__) from error
    if verify:
        verify_located(module, "", text.name)
    return module


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _hint(message: str, ctx: Context) -> str | None:
    """The nearest op, where the text names one that is not there."""
    found = re.match(r"Operation (\S+) is not registered", message)
    if found is None:
        return None
    ctx.get_optional_dialect("sx")
    known: Iterable[str] = [op.name for op in ctx.loaded_ops]
    near = unknown("op", found[1], known).hint
    return near or "--allow-unregistered-dialect accepts ops of unknown dialects"


def verify_located(module: ModuleOp, message: str = "", source: str | None = None) -> None:
    """Verify a module.

    Raises:
        InvalidArgumentError: It is invalid; the error names the op and its line, and holds the first line of xDSL's,
            without the whole module that xDSL prints. `message` stands in front.
    """
    for error in invalid_ops(module, message, source):
        raise error


def invalid_ops(module: ModuleOp, message: str = "", source: str | None = None) -> Iterator[InvalidArgumentError]:
    """What is wrong with a module: an error for each op that is invalid, innermost first; none where it is valid."""
    try:
        module.verify()
        return
    except Exception as error:  # noqa: BLE001 -- verifiers of other dialects raise what they like
        first = error
    alone = True
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except Exception as error:  # noqa: BLE001
            alone = False
            yield _invalid(error, message, op, source)
    if alone:
        yield _invalid(first, message, None, source)


def _invalid(error: Exception, message: str, op: Operation | None, source: str | None) -> InvalidArgumentError:
    known = error.__cause__ if isinstance(error.__cause__, SardonyxError) else error
    found = known.message if isinstance(known, SardonyxError) else _first_line(str(error)) or type(error).__name__
    where = locations.describe(op.location) if op is not None else None
    invalid = InvalidArgumentError(
        f"{message}: {found}" if message else found,
        op=op.name if op is not None else None,
        location=where or source,
    )
    invalid.__cause__ = error
    return invalid
