"""ONNX models as text: which form a file's name asks for, and a model written in it.

JSON and Protobuf's text format state all of a model. ONNX's own syntax is read only: it states floats with six digits,
and no doc strings.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from sardonyx.errors import UnsupportedError

SYNTAX = frozenset({".onnxtxt", ".onnxtext"})
JSON = frozenset({".json", ".onnxjson"})
PROTOTEXT = frozenset({".textproto", ".prototxt", ".pbtxt", ".txtpb"})


def is_text(path: Path) -> bool:
    """Whether a file of this name holds text."""
    return path.suffix.lower() in SYNTAX | JSON | PROTOTEXT


def refuse_unwritable(path: Path) -> None:
    """Refuse a name that asks for ONNX's own syntax."""
    if path.suffix.lower() in SYNTAX:
        raise UnsupportedError(
            f"{path.name} would be in ONNX's own syntax, which states floats with six digits only",
            hint="a name that ends in .json or .textproto is written as text without loss",
        )


def serialized(proto: onnx.ModelProto, path: Path) -> bytes:
    """The model as the file of this name has it: as text, or as Protobuf's bytes; equal models give equal bytes."""
    kind = path.suffix.lower()
    if kind in JSON:
        from google.protobuf import json_format

        return (json_format.MessageToJson(proto) + "\n").encode()
    if kind in PROTOTEXT:
        from google.protobuf import text_format

        return text_format.MessageToString(proto, as_utf8=True).encode()
    return proto.SerializeToString(deterministic=True)
