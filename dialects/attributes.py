"""Attributes of the `sx` dialect: `#sx.dims<…>` on tensor types and `#sx.weight<"key">`, and helpers on both.

Every tensor is a builtin `tensor<…>`; a dynamic dim carries its expression in the encoding. A `?` without one (as
in text written by hand) is read as a symbol of its own that equals no other.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

from sardonyx.dialects.dims import Dim, parse_dim
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InferenceError

if TYPE_CHECKING:
    from sardonyx.dialects.weights import Weight

ANONYMOUS = "?"
"""Symbols whose name starts so were named by nobody: users see them as unnamed dynamic dims."""

_fresh = itertools.count()


def fresh_dim() -> Dim:
    """A symbol that equals no other: an extent that depends on data, or that nobody named."""
    return Dim.symbol(f"{ANONYMOUS}{next(_fresh)}")


def _reserve(dim: Dim) -> Dim:
    """Keep `fresh_dim` from giving a name again that a text already uses."""
    global _fresh
    numbers = [int(name[1:]) for name in dim.symbols() if name.startswith(ANONYMOUS) and name[1:].isdecimal()]
    if numbers:
        _fresh = itertools.count(max(next(_fresh), max(numbers) + 1))
    return dim


def is_anonymous(dim: Dim) -> bool:
    """Whether the extent is a symbol that no user named."""
    return any(name.startswith(ANONYMOUS) for name in dim.symbols())


class _TokenStream:
    """Feeds the grammar of dims from xDSL's lexer."""

    _KINDS = {
        MLIRTokenKind.BARE_IDENT: "id", MLIRTokenKind.INTEGER_LIT: "int", MLIRTokenKind.EOF: "end",
    }  # fmt: skip

    def __init__(self, parser: AttrParser) -> None:
        self.parser = parser

    def peek(self) -> tuple[str, str]:
        token = self.parser._current_token
        if token.kind in (MLIRTokenKind.STRING_LIT, MLIRTokenKind.BYTES_LIT):
            return "string", StringLiteral.from_span(token.span).string_contents
        return self._KINDS.get(token.kind, "punct"), token.text

    def next(self) -> tuple[str, str]:
        token = self.peek()
        self.parser._consume_token()
        return token


@irdl_attr_definition
class DimsAttr(Data[tuple[Dim | None, ...]]):
    """The extents of a tensor's dims: an expression for a dynamic one, `_` for a static one."""

    name = "sx.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Dim | None, ...]:
        def element() -> Dim | None:
            if parser.parse_optional_keyword("_") is not None:
                return None
            return _reserve(parse_dim(_TokenStream(parser)))

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, element))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<" + ", ".join("_" if d is None else str(d) for d in self.data) + ">")


@dataclass(frozen=True, eq=False)
class WeightRef:
    """A weight's key; `source` holds the bytes, where this process has them, and takes no part in equality."""

    key: str
    source: Weight | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeightRef) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@irdl_attr_definition
class WeightAttr(Data[WeightRef]):
    """A tensor's contents by key; the bytes live in a `WeightStore`."""

    name = "sx.weight"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> WeightRef:
        with parser.in_angle_brackets():
            return WeightRef(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.key)


@irdl_attr_definition
class StringsAttr(Data[tuple[str, ...]]):
    """The elements of a tensor of strings, in row-major order.

    In text they are escaped as in JSON (xDSL reads what is beyond ASCII otherwise than it prints it).
    """

    name = "sx.strings"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        def element() -> str:
            literal = parser.parse_str_literal()
            try:
                return json.loads(f'"{literal}"')
            except ValueError:
                parser.raise_error(f"{literal!r} is no JSON string")

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, element))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_list(self.data, lambda text: printer.print_string_literal(json.dumps(text)[1:-1]))
        printer.print_string(">")


# ---- tensor types

Shape = tuple[Dim, ...]


def tensor_type(dtype: DType | Attribute, dims: Iterable[Dim | int | str]) -> TensorType[Any]:
    """The tensor type of that element type and those extents; the encoding holds the dynamic ones."""
    element = dtype.ir if isinstance(dtype, DType) else dtype
    extents = [Dim.of(d) for d in dims]
    static = [d.static_value for d in extents]
    encoding: Attribute = NoneAttr()
    if None in static:
        encoding = DimsAttr(tuple(None if s is not None else d for d, s in zip(extents, static, strict=True)))
    return TensorType(element, [DYNAMIC_INDEX if s is None else s for s in static], encoding)


def unranked_type(dtype: DType) -> UnrankedTensorType[Any]:
    return UnrankedTensorType(dtype.ir)


def type_dims(ty: Attribute) -> Shape:
    """The extents of a ranked tensor type; an unnamed `?` is a fresh symbol at each call.

    Raises:
        InferenceError: The type is no ranked tensor.
    """
    if not isinstance(ty, TensorType):
        raise InferenceError(f"expected a ranked tensor, found {ty}")
    named: Sequence[Dim | None] = ty.encoding.data if isinstance(ty.encoding, DimsAttr) else ()
    out: list[Dim] = []
    for axis, size in enumerate(ty.get_shape()):
        if size != DYNAMIC_INDEX:
            out.append(Dim.of(size))
        else:
            dim = named[axis] if axis < len(named) else None
            out.append(fresh_dim() if dim is None else dim)
    return tuple(out)


def dims_of(value: SSAValue) -> Shape:
    """The extents of a tensor value (see `type_dims`)."""
    return type_dims(value.type)


def rank_of(value: SSAValue) -> int:
    ty = value.type
    if not isinstance(ty, TensorType):
        raise InferenceError(f"expected a ranked tensor, found {ty}")
    return len(ty.get_shape())


def dtype_of(value: SSAValue | Attribute) -> DType:
    """The element type of a tensor value or type."""
    ty = value.type if isinstance(value, SSAValue) else value
    if isinstance(ty, TensorType | UnrankedTensorType):
        return DType.of(ty.element_type)
    raise InferenceError(f"expected a tensor, found {ty}")


def static_shape(value: SSAValue) -> tuple[int, ...] | None:
    """The extents as integers, or None where one is dynamic or the rank is unknown."""
    ty = value.type
    if not isinstance(ty, TensorType):
        return None
    shape = ty.get_shape()
    return None if DYNAMIC_INDEX in shape else tuple(shape)
