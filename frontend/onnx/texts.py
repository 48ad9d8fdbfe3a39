"""Reads ONNX models written as text: ONNX's own syntax, JSON, and Protobuf's text format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from sardonyx.backends.onnx.texts import JSON, SYNTAX
from sardonyx.errors import InvalidArgumentError

MAX_NESTING = 100
"""How deep brackets may be nested: parsers recurse."""


def parse_text(data: bytes, path: Path) -> onnx.ModelProto:
    """The model that a text states.

    Raises:
        InvalidArgumentError: It is no valid UTF-8, or not of that syntax; the text is the parser's.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is no valid UTF-8: {error}") from error
    kind = path.suffix.lower()
    _check_nesting(text, path)
    proto = onnx.ModelProto()
    try:
        if kind in SYNTAX:
            return _parsed(text)
        if kind in JSON:
            from google.protobuf import json_format

            return json_format.Parse(text, proto, max_recursion_depth=4 * MAX_NESTING)
        from google.protobuf import text_format

        return text_format.Parse(text, proto)
    except InvalidArgumentError:
        raise
    except Exception as error:  # each parser has errors of its own, which share no base
        shown = " ".join(str(error).split())
        raise InvalidArgumentError(f"{path} cannot be read: {shown[:400]}") from error


def _parsed(text: str) -> onnx.ModelProto:
    from onnx import parser

    parse: Any = parser.parse_model
    return parse(text)


def _check_nesting(text: str, path: Path) -> None:
    """Refuse text whose brackets are nested too deep; strings count, which does no harm."""
    depth = deepest = 0
    for character in text:
        if character in "([{<":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}>":
            depth = max(0, depth - 1)
    if deepest > MAX_NESTING:
        raise InvalidArgumentError(f"{path}: brackets are nested {deepest} deep, {MAX_NESTING} are supported")
