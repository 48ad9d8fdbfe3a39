"""Reading MLIR text, for the commands: see `sardonyx.passes.text`."""

from __future__ import annotations

from sardonyx.passes.text import (
    Text as Text,
    TextError as TextError,
    invalid_ops as invalid_ops,
    parse_text as parse_text,
    read_text as read_text,
    split_text as split_text,
    verify_located as verify_located,
)
