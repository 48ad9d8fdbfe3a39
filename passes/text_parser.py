"""The parser of MLIR text: xDSL's, with the line of each op as its location, and without its two slow spots.

Nine of ten tokens of a graph's text belong to types, and the same few types come again and again. So a type's text is
parsed once per parser, and so is the text of a whole signature, `(T, T) -> T`; and the usual tokens are found by one
regular expression. All else, errors included, is xDSL's doing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, FunctionType, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import Operation, TypeAttribute
from xdsl.parser import Parser, ParserState, Span
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind

if TYPE_CHECKING:
    from sardonyx.passes.text import Text

_Parsed = TypeVar("_Parsed")

_BLANK = r"(?:[ \t\n\r\f\v]+|//[^\n]*\n?)*+"
_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_TOKEN = re.compile(
    rf"{_BLANK}(?:([a-zA-Z_][a-zA-Z0-9_$.]*)|(%{_SUFFIX})|(->|[:,()\[\]}}<>=+*?|]|-|\{{(?!-#))|(#(?!-\}}){_SUFFIX})"
    rf"|(!{_SUFFIX})|(\^{_SUFFIX})|((?!0x[0-9a-fA-F])[0-9]+(?!\.|[0-9])))"
)
"""White space, and a token of a kind that `_KINDS` has; the groups are its members in order."""

_KINDS = (
    None, MLIRTokenKind.BARE_IDENT, MLIRTokenKind.PERCENT_IDENT, None, MLIRTokenKind.HASH_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT, MLIRTokenKind.CARET_IDENT, MLIRTokenKind.INTEGER_LIT,
)  # fmt: skip
_PUNCTUATION: dict[str, MLIRTokenKind] = {**KIND_BY_PUNCTUATION_SPELLING}

_TYPE = r'(?:tensor<[^<>"]*(?:<[^<>"]*>)?>|[a-z][a-zA-Z0-9_$.]*+)'
_TENSOR = re.compile(r'tensor<[^<>"]*(?:<[^<>"]*>)?>')
_SIGNATURE = re.compile(rf"\((?:{_TYPE}(?:, {_TYPE})*)?\) -> (?:{_TYPE}|\((?:{_TYPE}(?:, {_TYPE})*)?\))")
_BLANKS = re.compile(_BLANK)


class FastLexer(MLIRLexer):
    """xDSL's lexer, with the usual tokens found by one regular expression. It takes exponential time for a string that
    is not closed, too; possessive quantifiers don't backtrack."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        found = _TOKEN.match(self.input.content, self.pos)
        if found is None:
            return super().lex()
        group = found.lastindex or 0
        start, self.pos = found.span(group)
        kind = _KINDS[group] or _PUNCTUATION[found[group]]
        return Token(kind, Span(start, self.pos, self.input))


class LocatingParser(Parser):
    """A parser that notes the line of ops without a location of their own."""

    def __init__(self, ctx: Context, text: Text) -> None:
        super().__init__(ctx, "", text.name)
        self._parser_state = ParserState(FastLexer(Input(text.content, text.name)))
        self._text = text
        self._stated: LocationAttr | None = None
        self._file = StringAttr(text.name)
        self._numbers: dict[int, IntAttr] = {}
        self._tensors: dict[str, TypeAttribute] = {}
        self._signatures: dict[str, FunctionType] = {}

    def parse_optional_location(self) -> LocationAttr | None:
        self._stated = super().parse_optional_location()
        return self._stated

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()  # its own location is the last thing that it parses
        if self._stated is None and isinstance(op.location, UnknownLoc):
            line, column = self._text.place(start)
            op.location = FileLineColLoc(self._file, self._number(line), self._number(column))
        return op

    def _number(self, value: int) -> IntAttr:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = IntAttr(value)
        return found

    # ---- what was parsed before
    def _parse_optional_builtin_parametrized_type(self) -> TypeAttribute | None:
        return self._once(_TENSOR, self._tensors, super()._parse_optional_builtin_parametrized_type)

    def parse_optional_function_type(self) -> FunctionType | None:
        return self._once(_SIGNATURE, self._signatures, super().parse_optional_function_type)

    def _once(
        self, form: re.Pattern[str], known: dict[str, _Parsed], parse: Callable[[], _Parsed | None]
    ) -> _Parsed | None:
        """What `parse` finds here. Where the text has this form it is parsed the first time only, provided that it was
        all that was parsed then: what it means does not depend on what follows."""
        content = self.lexer.input.content
        found = form.match(content, self.pos)
        if found is None:
            return parse()
        before = known.get(found[0])
        if before is not None:
            self._resume_from(found.end())
            return before
        parsed = parse()
        if parsed is not None and self.pos >= found.end() and _BLANKS.fullmatch(content, found.end(), self.pos):
            known[found[0]] = parsed
        return parsed

    # ---- errors
    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:  # xDSL's stands behind the name
            start = self._text.content.rfind(name, 0, error.span.start)
            raise ParseError(Span(start, start + len(name), self.lexer.input), error.msg) from error

    @property
    def offset(self) -> int:
        """Where it stands."""
        return self.pos
