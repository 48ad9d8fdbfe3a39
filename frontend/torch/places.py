"""Where a node of a torch graph comes from: the module's path, and the line of the model's source."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import LocationAttr

from sardonyx.dialects.locations import file_location, name_location
from sardonyx.frontend.source import _is_ours as is_ours, shown_path

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')


@cache
def _torchs() -> str:
    import torch

    return str(Path(torch.__file__).parent) + os.sep


def source_of(node: Any) -> tuple[str, int] | None:
    """File and line of the innermost frame that is not torch's own."""
    found: tuple[str, int] | None = None
    for match in _FRAME.finditer(node.meta.get("stack_trace") or ""):
        path = match["file"]
        if not path.startswith((_torchs(), "torch/")) and not is_ours(path):
            found = shown_path(path), int(match["line"])
    return found


def module_path(node: Any) -> str:
    """The path of the module that made the node, such as `encoder.layer.0`; empty for the outermost."""
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for entry in stack.values():
        if (
            isinstance(entry, tuple | list)
            and entry
            and isinstance(entry[0], str)
            and not entry[0].startswith("_empty")
        ):
            path = entry[0]
    return path.removeprefix("L['self'].").removeprefix("L__self__")


def location_of(node: Any) -> LocationAttr:
    """The node's name below its module's path, around the line of the source."""
    path = module_path(node)
    name = f"{path}.{node.name}" if path else str(node.name)
    source = source_of(node)
    return name_location(name, None if source is None else file_location(*source))


def describe_node(node: Any) -> str:
    """Line and module of a node for a person."""
    source, path = source_of(node), module_path(node)
    where = f"{source[0]}:{source[1]}" if source else f"node '{node.name}'"
    return f"{where} (module '{path}')" if path else where
