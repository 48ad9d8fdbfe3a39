"""Targets and frontends of other people: from entry points, and from files given with `--load`.

A package registers them in the entry-point groups `sardonyx.targets` and `sardonyx.frontends`; a file of `--load` just
has them at its top level:

    from sardonyx.tools.extensions import Frontend, Target

    COUNT = Target("op-count", "how many ops there are", lambda module: f"{sum(1 for _ in module.walk())}\\n")
    LINES = Frontend("lines", (".lines",), read_lines)      # path -> ModuleOp or ModelGraph

(Passes and dialects are found likewise: `sardonyx.passes.registry`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import registry

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph

TARGETS_GROUP = "sardonyx.targets"
FRONTENDS_GROUP = "sardonyx.frontends"

Output: TypeAlias = str | bytes


@dataclass(frozen=True)
class Target:
    """A target of somebody else's: what `-t name` writes.

    Attributes:
        name: As on the command line.
        summary: One line for --list-targets.
        emit: From the module (which it may change) to text, or to bytes where it is binary.
        binary: Whether it makes bytes.
        origin: Where it comes from; filled in when it is found.
    """

    name: str
    summary: str
    emit: Callable[[ModuleOp], Output]
    binary: bool = False
    origin: str = field(default="", compare=False)


@dataclass(frozen=True)
class Frontend:
    """A frontend of somebody else's: it reads files whose names have one of these endings.

    Attributes:
        name: For messages.
        suffixes: As `.tflite`, lower case.
        read: From the file's name to a module, or to a `ModelGraph` where there are weights.
        origin: Where it comes from; filled in when it is found.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[str], ModuleOp | ModelGraph]
    origin: str = field(default="", compare=False)


_Found = TypeVar("_Found", Target, Frontend)


def targets() -> dict[str, Target]:
    """All targets of others by name.

    Raises:
        InvalidArgumentError: One cannot be loaded, or two have the same name.
    """
    return _by_name("target", [*_installed(TARGETS_GROUP, Target), *_of_files(Target)])


def frontends() -> dict[str, Frontend]:
    """All frontends of others by name.

    Raises:
        InvalidArgumentError: One cannot be loaded, or two have the same name.
    """
    return _by_name("frontend", [*_installed(FRONTENDS_GROUP, Frontend), *_of_files(Frontend)])


def frontend_for(source: str) -> Frontend | None:
    """The frontend that reads a file of this name."""
    for one in frontends().values():
        if source.lower().endswith(one.suffixes):
            return one
    return None


def _by_name(what: str, found: Iterable[_Found]) -> dict[str, _Found]:
    out: dict[str, _Found] = {}
    for one in found:
        known = out.setdefault(one.name, one)
        if known != one:
            raise InvalidArgumentError(f"{what} '{one.name}' of {one.origin} has the name of one of {known.origin}")
    return out


def _of_files(cls: type[_Found]) -> list[_Found]:
    found: list[_Found] = []
    for file in registry.loaded_files():
        found += [replace(v, origin=str(file.path)) for v in vars(file.module).values() if isinstance(v, cls)]
    return found


@cache
def _installed(group: str, cls: type[_Found]) -> tuple[_Found, ...]:
    from importlib.metadata import entry_points

    found: list[_Found] = []
    for point in entry_points(group=group):
        origin = point.dist.name if point.dist is not None else "an installed package"
        try:
            value = point.load()
        except Exception as error:
            raise InvalidArgumentError(
                f"'{point.name}' of {origin} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(value, cls):
            raise InvalidArgumentError(f"'{point.name}' of {origin} is no {cls.__name__}: {value!r}")
        found.append(replace(value, origin=origin))
    return tuple(found)
