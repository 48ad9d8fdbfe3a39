"""The text of dim expressions: tokens, quoting, the grammar and its errors (see `dims.py`).

The grammar reads any `TokenStream`, so that a plain text and the tokens of an xDSL parser have one grammar.
"""

from __future__ import annotations

import re
from typing import Protocol

from sardonyx.dialects import dim_rules
from sardonyx.dialects.dim_expr import INFIX, NARY, Dim
from sardonyx.errors import InvalidArgumentError

KEYWORDS = INFIX | NARY | {"_"}
# Deeper expressions are refused: the parser recurses, up to four frames a level.
MAX_NESTING = 100

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r'\s*+(?:(?P<id>[A-Za-z_][A-Za-z0-9_]*)|(?P<int>[0-9]+)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<punct>.))', re.S
)
_ESCAPE = re.compile(r'\\(?:([nt"\\])|([0-9A-Fa-f]{2}))')
_SHORT_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class TokenStream(Protocol):
    """What `parse_dim` reads: tokens of kind 'id', 'string' (text: its contents), 'int', 'punct' or 'end'.

    A stream that also has an attribute `column` (of the next token, from 1) gets it into the messages.
    """

    def peek(self) -> tuple[str, str]:
        """The next token, which stays."""
        ...

    def next(self) -> tuple[str, str]:
        """The next token, which is consumed."""
        ...


class TextTokens:
    """The token stream of a plain text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._token: tuple[str, str] | None = None
        self.column = 1

    def peek(self) -> tuple[str, str]:
        if self._token is None:
            self._token = self._lex()
        return self._token

    def next(self) -> tuple[str, str]:
        token = self.peek()
        self._token = None
        return token

    def _lex(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            self.column = len(self._text) + 1
            return "end", ""
        kind = match.lastgroup or "punct"
        self.column = match.start(kind) + 1
        self._position = match.end()
        token = match.group(kind)
        if kind == "string":
            return kind, unquote(token, self.column)
        if token == '"':
            raise InvalidArgumentError(f"dim expression, column {self.column}: the string has no end")
        return kind, token


def symbol_text(name: str) -> str:
    """A symbol's name as it prints: bare where that reads back as the symbol, else as an MLIR string."""
    if _BARE.fullmatch(name) and name not in KEYWORDS:
        return name
    return '"' + "".join(_quote_character(character) for character in name) + '"'


def _quote_character(character: str) -> str:
    if character in _QUOTED:
        return _QUOTED[character]
    code = ord(character)
    if 32 <= code != 127 and not 0xD800 <= code <= 0xDFFF:
        return character
    # Bytes of UTF-8, as MLIR writes them: xDSL's lexer refuses some controls raw, and knows no \u.
    return "".join(f"\\{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def unquote(token: str, column: int = 1) -> str:
    """The contents of an MLIR string literal, quotes included; a hexadecimal escape is one byte of UTF-8."""
    if "\\" not in token:
        return token[1:-1]
    contents = bytearray()
    position = 1
    while position < len(token) - 1:
        if token[position] != "\\":
            contents += token[position].encode("utf-8", "surrogatepass")
            position += 1
            continue
        match = _ESCAPE.match(token, position)
        if match is None:
            raise InvalidArgumentError(f"dim expression, column {column + position}: unknown escape in a string")
        short, byte = match.groups()
        contents += _SHORT_ESCAPES[short].encode() if short else bytes((int(byte, 16),))
        position = match.end()
    try:
        return contents.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"dim expression, column {column}: the string is no valid UTF-8") from error


def syntax_error(stream: TokenStream, message: str) -> InvalidArgumentError:
    """The error at the stream's next token; says the column where the stream knows it."""
    column = getattr(stream, "column", None)
    where = f"dim expression, column {column}" if column is not None else "dim expression"
    return InvalidArgumentError(f"{where}: {message}")


# The grammar, loosest first:
#   sum     := ['-'] product (('+' | '-') product)*
#   product := factor (('*' | 'floordiv' | 'ceildiv' | 'mod') factor)*
#   factor  := int | '-' factor | symbol | string | '(' sum ')' | ('min' | 'max' | 'broadcast') '(' sum (',' sum)* ')'


def parse_text(text: str) -> Dim:
    """The Dim that the whole text states. Raises InvalidArgumentError, which says the column."""
    stream = TextTokens(text)
    result = parse_dim(stream)
    kind, found = stream.peek()
    if kind != "end":
        raise syntax_error(stream, f"expected an operator or the end, found {found!r}")
    return result


def parse_dim(stream: TokenStream) -> Dim:
    """Read one expression and stop before the first token that can't continue it, such as ',' or '>'.

    Raises InvalidArgumentError for a syntax error, a division by the constant 0 and nesting beyond MAX_NESTING.
    """
    return _parse_sum(stream, 0)


def _parse_sum(stream: TokenStream, depth: int) -> Dim:
    terms = [_parse_product(stream, depth)]
    while (token := stream.peek()) in (("punct", "+"), ("punct", "-")):
        stream.next()
        term = _parse_product(stream, depth)
        terms.append(term if token[1] == "+" else -term)
    return terms[0] if len(terms) == 1 else Dim.sum(terms)


def _parse_product(stream: TokenStream, depth: int) -> Dim:
    result = _parse_factor(stream, depth)
    while True:
        kind, text = stream.peek()
        if kind == "id" and text in INFIX:
            stream.next()
            result = dim_rules.apply(text, (result, _parse_factor(stream, depth)))
        elif (kind, text) == ("punct", "*"):
            stream.next()
            result = result * _parse_factor(stream, depth)
        else:
            return result


def _parse_factor(stream: TokenStream, depth: int) -> Dim:
    if depth > MAX_NESTING:
        raise syntax_error(stream, f"nested more than {MAX_NESTING} deep")
    kind, text = stream.peek()
    if kind == "int":
        value = _parse_int(stream, text)
        stream.next()
        return Dim.of(value)
    if kind == "string" or (kind == "id" and text not in KEYWORDS):
        stream.next()
        return Dim.symbol(text)
    if (kind, text) == ("punct", "-"):
        stream.next()
        return -_parse_factor(stream, depth + 1)
    if (kind, text) == ("punct", "("):
        stream.next()
        result = _parse_sum(stream, depth + 1)
        _expect(stream, ")")
        return result
    if kind == "id" and text in NARY:
        return _parse_call(stream, depth)
    found = repr(text) if kind != "end" else "the end"
    raise syntax_error(stream, f"expected a symbol, an integer, '(' or a function, found {found}")


def _parse_int(stream: TokenStream, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # hexadecimal, which MLIR's lexers know, or beyond Python's limit of digits
        raise syntax_error(stream, f"{text[:20]!r} is no decimal integer that fits") from error


def _parse_call(stream: TokenStream, depth: int) -> Dim:
    _, fn = stream.next()
    _expect(stream, "(")
    args = [_parse_sum(stream, depth + 1)]
    while stream.peek() == ("punct", ","):
        stream.next()
        args.append(_parse_sum(stream, depth + 1))
    _expect(stream, ")")
    return dim_rules.apply(fn, args)


def _expect(stream: TokenStream, punctuation: str) -> None:
    kind, text = stream.peek()
    if (kind, text) != ("punct", punctuation):
        found = repr(text) if kind != "end" else "the end"
        raise syntax_error(stream, f"expected {punctuation!r}, found {found}")
    stream.next()
