"""Objects of the user's Python files, as the command line names them: `FILE.py:NAME`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.registry import unknown
from sardonyx.tools.modules import blaming, execute_file, importable


def is_object(source: str) -> bool:
    """Whether the text names an object of a Python file."""
    path, separator, name = source.rpartition(":")
    return bool(separator) and path.endswith(".py") and name.isidentifier()


class UserFiles:
    """The Python files that one command names: each is executed once, however many of its objects are asked for."""

    def __init__(self) -> None:
        self._modules: dict[Path, ModuleType] = {}

    def load(self, source: str) -> Any:
        """The object `NAME` of `FILE.py`.

        Raises:
            InvalidArgumentError: The file or the name is not there, or the file fails.
        """
        path_text, _, name = source.rpartition(":")
        path = Path(path_text)
        if not path.is_file():
            raise InvalidArgumentError(f"there is no file '{path}'")
        key = path.resolve()
        if key not in self._modules:
            with importable(path.parent), blaming(path, f"importing '{path}' failed"):
                self._modules[key] = execute_file(path)
        module = self._modules[key]
        if not hasattr(module, name):
            own = [n for n in vars(module) if not n.startswith("_")]
            raise unknown(f"name in '{path}' called", name, own, None)
        return getattr(module, name)

    def inputs(self, given: str | None) -> Any:
        """Inputs as `verify` takes them."""
        return self.load(given) if given is not None and is_object(given) else given

    def source(self, source: str) -> Any:
        """What a source names, as `verify` takes it: a function (traced where it has a signature), or a path."""
        if not is_object(source):
            if source.endswith(".py"):
                raise InvalidArgumentError(f"'{source}' names no function", hint=f"write {source}:FUNCTION")
            return source
        return _opened(source, self.load(source))


def _opened(source: str, found: Any) -> Any:
    if callable(found) and hasattr(found, "__sardonyx_signature__"):
        from sardonyx.frontend.signature import stored_signature
        from sardonyx.frontend.trace import trace
        from sardonyx.frontend.verify.sources import file_digest, graph_source

        path, _, name = source.rpartition(":")
        with blaming(Path(path), f"tracing '{name}' failed"):
            graph = trace(found, stored_signature(found), name=name).graph
        return graph_source(graph, source, file_digest(path))
    from sardonyx.frontend.layers.network import Network

    return found.graph() if isinstance(found, Network) else found
