"""The text of a file that reproduces something: a RUN line, what it shows, and the module with its weights inside."""

from __future__ import annotations

import io
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from sardonyx.dialects.attributes import WeightAttr
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import MissingWeightError

MAX_INLINE_BYTES = 1 << 16
"""Weights up to this size stand in the text, so that the file is all that is needed."""


def inline_weights(module: ModuleOp, max_bytes: int = MAX_INLINE_BYTES) -> None:
    """State the contents of weights that are small enough in the IR."""
    for op in list(module.walk()):
        if not isinstance(op, ConstantOp) or not isinstance(op.value, WeightAttr):
            continue
        try:
            array = op.array()
        except MissingWeightError:
            continue
        if array.nbytes <= max_bytes:
            op.properties["value"] = ConstantOp.dense(array).value


def module_text(module: ModuleOp) -> str:
    """The module as MLIR text, its only functions without the module around them where that says no less."""
    out = io.StringIO()
    printer = Printer(stream=out)
    if module.attributes or module.sym_name is not None:
        printer.print_op(module)
        return out.getvalue() + "\n"
    for op in module.body.block.ops:
        printer.print_op(op)
        out.write("\n")
    return out.getvalue()


def reproducer_text(module: ModuleOp, arguments: str, lines: Sequence[str] = (), expect_failure: bool = True) -> str:
    """A file that `sardonyx-opt` runs with these arguments; `lines` say what it shows."""
    copy = module.clone()
    inline_weights(copy)
    prefix = "not " if expect_failure else ""
    notes = "".join(f"// {line}\n" for text in lines for line in text.splitlines())
    return f"// RUN: {prefix}sardonyx-opt %s {arguments}\n{notes}\n{module_text(copy)}"
