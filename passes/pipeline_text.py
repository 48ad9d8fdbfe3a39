"""The text of pipelines: `a,b{max-bytes=1024 deep}`, also in MLIR's nested form `builtin.module(a,func.func(b))`.

    pipeline ::= element (`,` element)*
    element  ::= anchor `(` pipeline? `)` | name options?
    options  ::= `{` (key (`=` value (`,` value)*)?)* `}`      separated by blanks
    value    ::= number | `true` | `false` | word | "string"

Passes work on whole modules; an anchor only groups them. This module knows text, not passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.utils.arg_spec import ArgSpec

from sardonyx.errors import InvalidArgumentError

ANCHORS = ("builtin.module", "func.func", "any")
"""What may stand before parentheses."""

Value = str | int | float | bool

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*") | (?P<number>[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_.\-])) |
    (?P<word>[A-Za-z0-9_][A-Za-z0-9_.\-/]*) | (?P<punct>[(){}=,])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Reader:
    """Tokens with one of look-ahead, and errors that show the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._lex()
        self.token = next(self.tokens)

    def _lex(self) -> Iterator[_Token]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None or found.lastgroup is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                raise self.error(f"unexpected '{self.text[at]}'", at)
            yield _Token(found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup))
            at = found.end()
        while True:
            yield _Token("end", "the end", len(self.text))

    def error(self, message: str, at: int | None = None) -> InvalidArgumentError:
        place = self.token.at if at is None else at
        return InvalidArgumentError(f"pipeline, column {place + 1}: {message}", notes=[self.text, " " * place + "^"])

    def take(self) -> _Token:
        token = self.token
        self.token = next(self.tokens)
        return token

    def accept(self, punct: str) -> bool:
        if self.token.kind == "punct" and self.token.text == punct:
            self.take()
            return True
        return False

    def expect(self, punct: str) -> None:
        if not self.accept(punct):
            raise self.error(f"expected '{punct}', found {_shown(self.token)}")


def parse_specs(text: str) -> list[ArgSpec]:
    """The passes of a pipeline in order, with their options as written (keys with `_`).

    Raises:
        InvalidArgumentError: The text is not of the form above; the message names the column.
    """
    reader = _Reader(text)
    out: list[ArgSpec] = []
    if reader.token.kind != "end":
        _read_list(reader, out)
    if reader.token.kind != "end":
        raise reader.error(f"expected ',' or the end, found {_shown(reader.token)}")
    return out


def _read_list(reader: _Reader, out: list[ArgSpec]) -> None:
    while True:
        if reader.token.kind != "word":
            raise reader.error(f"expected the name of a pass, found {_shown(reader.token)}")
        name = reader.take()
        if reader.accept("("):
            if name.text not in ANCHORS:
                raise reader.error(f"'{name.text}' cannot hold passes; {', '.join(ANCHORS)} can", name.at)
            if not reader.accept(")"):
                _read_list(reader, out)
                reader.expect(")")
        else:
            out.append(ArgSpec(name.text, _read_options(reader) if reader.accept("{") else {}))
        if not reader.accept(","):
            return


def _read_options(reader: _Reader) -> dict[str, tuple[Value, ...]]:
    options: dict[str, tuple[Value, ...]] = {}
    while not reader.accept("}"):
        if reader.token.kind != "word":
            raise reader.error(f"expected an option or '}}', found {_shown(reader.token)}")
        key = reader.take()
        name = key.text.replace("-", "_")
        if name in options:
            raise reader.error(f"option '{key.text}' is given twice", key.at)
        values: list[Value] = []
        if reader.accept("="):
            values.append(_read_value(reader))
            while reader.accept(","):
                values.append(_read_value(reader))
        options[name] = tuple(values)
    return options


def _read_value(reader: _Reader) -> Value:
    token = reader.take()
    if token.kind == "number":
        return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
    if token.kind == "string":
        return json.loads(token.text)
    if token.kind == "word":
        return {"true": True, "false": False}.get(token.text, token.text)
    raise reader.error(f"expected a value, found {_shown(token)}", token.at)


def _shown(token: _Token) -> str:
    return token.text if token.kind == "end" else f"'{token.text}'"


def format_spec(spec: ArgSpec) -> str:
    """The text of one pass; `parse_specs` reads it back."""
    if not spec.parameters:
        return spec.name
    parts: list[str] = []
    for key, values in spec.parameters.items():
        shown = ",".join(_format_value(v) for v in values)
        parts.append(key.replace("_", "-") + (f"={shown}" if values else ""))
    return f"{spec.name}{{{' '.join(parts)}}}"


def _format_value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.\-/]*", value) and value not in ("true", "false")
        return value if plain else json.dumps(value)
    return repr(value)
