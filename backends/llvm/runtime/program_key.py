"""The name of a graph's program in the cache: a hash of all that decides what the graph becomes.

That is the graph with its locations (errors and debug lines show them), the contents of its weights, the target, the
options, and the versions of this package's source files, LLVM, llvmlite and NumPy. The graph is not printed for it: a
statement of its own, which says the same, is made several times as fast.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sardonyx.backends.llvm.runtime import cache as object_cache
from sardonyx.dialects.attributes import ANONYMOUS, WeightAttr
from sardonyx.dialects.weights_file import module_weights

_DIMS = re.compile("#sx\\.dims<[^>]*>")
_UNNAMED = re.compile(f'"{re.escape(ANONYMOUS)}[0-9]+"')


def program_key(module: ModuleOp, how: object) -> str | None:
    """The name of the module's program; None where the cache is off or a weight's bytes are not here.

    `how` is all else that decides what becomes of the module: target and options, by their `repr`.
    """
    if object_cache.folder() is None:
        return None
    hasher = hashlib.sha256()
    versions = (*map(str, llvm.llvm_version_info), llvmlite.__version__, np.__version__, _source_version())
    hasher.update(repr((how, versions)).encode())
    hasher.update(_renumbered(statement(module)).encode(errors="surrogatepass"))
    for key, weight in module_weights(module).items():
        if weight is None:
            return None
        hasher.update(f"{key} {weight.digest()} ".encode(errors="surrogatepass"))
    return hasher.hexdigest()


@cache
def _source_version() -> str:
    """A hash of the names, sizes and times of this package's files: what they make may change with them."""
    root = str(Path(__file__).parents[3])
    found = sorted(
        f"{path[len(root) :]} {status.st_size} {status.st_mtime_ns}"
        for folder in ("dialects", "passes", "backends")
        for path, status in _sources(f"{root}{os.sep}{folder}")
    )
    return hashlib.sha256("\n".join(found).encode(errors="surrogateescape")).hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path, entry.stat()
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)


def _renumbered(text: str) -> str:
    """A module's statement with the extents that nobody named numbered from 0 in their order: a process numbers them
    on from graph to graph."""
    numbers: dict[str, str] = {}

    def renamed(name: re.Match[str]) -> str:
        return numbers.setdefault(name.group(), f'"?{len(numbers)}"')

    return _DIMS.sub(lambda dims: _UNNAMED.sub(renamed, dims.group()), text)


# ---- the statement of a graph


def statement(module: Operation) -> str:
    """All that the module says, as text: other text for other modules.

    Ops follow one another in their order, with name, operands, attributes, types, location and regions. Values and
    blocks are numbered as they are defined.
    """
    return "\n".join(_Statement().op(module))


class _Statement:
    """Numbers values and blocks, and states equal types and locations once."""

    def __init__(self) -> None:
        self._values: dict[SSAValue, int] = {}
        self._blocks: dict[Block, int] = {}
        self._types: dict[Attribute, str] = {}

    def op(self, op: Operation) -> Iterator[str]:
        for result in op.results:
            self._value(result)
        named = [f"{name}={_stated(attr)}" for name, attr in sorted(op.properties.items())]
        kept = [f"{name}={_stated(attr)}" for name, attr in sorted(op.attributes.items())]
        operands, successors = map(self._value, op.operands), map(self._block, op.successors)
        types = [self._type(result.type) for result in op.results]
        yield f"{op.name}({[*operands]}{[*successors]}){named}{kept}{types}{self._type(op.location)}"
        for region in op.regions:
            yield "{"
            for block in region.blocks:
                self._block(block)
            for block in region.blocks:
                arguments = [(self._value(a), self._type(a.type), self._type(a.location)) for a in block.args]
                yield f"^{self._block(block)}{arguments}"
                for inner in block.ops:
                    yield from self.op(inner)
            yield "}"

    def _value(self, value: SSAValue) -> int:
        return self._values.setdefault(value, len(self._values))

    def _block(self, block: Block) -> int:
        return self._blocks.setdefault(block, len(self._blocks))

    def _type(self, attr: Attribute | None) -> str:
        """The text of a type or a location: equal ones have the same."""
        if attr is None:
            return ""
        found = self._types.get(attr)
        if found is None:
            found = self._types[attr] = str(attr)
        return found


def _stated(attr: Attribute) -> str:
    state = _STATED.get(type(attr))
    return str(attr) if state is None else state(attr)


_STATED: dict[type[Attribute], Callable[[Any], str]] = {
    # By kind first, so that no two of different kinds state the same.
    ArrayAttr: lambda a: f"[{','.join(map(_stated, a.data))}]",
    DenseArrayBase: lambda a: f"array:{a.elt_type}:{a.data.data.hex()}",
    DenseIntOrFPElementsAttr: lambda a: f"dense:{a.type}:{a.data.data.hex()}",
    FloatAttr: lambda a: f"float:{a.type}:{a.value.data.hex()}",
    IntegerAttr: lambda a: f"integer:{a.type}:{a.value.data}",
    StringAttr: lambda a: f"string:{a.data!r}",
    WeightAttr: lambda a: f"weight:{a.data.key!r}",
}
"""The kinds that most attributes are of, which the printer takes long for; all others are stated as they print."""


__all__ = ["program_key", "statement"]
