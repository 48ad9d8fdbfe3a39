"""`CompiledModel`: a library that was compiled ahead of time, loaded and run from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.binding import Binding, Inputs
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph


class CompiledModel:
    """A compiled model. `run` may be called from several threads at once."""

    def __init__(self, graph: CompiledGraph, path: str, target: str) -> None:
        self._graph = graph
        self._path = path
        self._target = target
        self._inputs = _specs(graph.inputs)
        self._outputs = _specs(graph.outputs)
        self._binding = Binding(tuple(self._inputs), {}, WeightStore())
        self._quick = graph.quick(Tensor, "_array")

    @property
    def target(self) -> str:
        """The CPU whose code runs, of those that the library has."""
        return self._target

    @property
    def inputs(self) -> list[TensorSpec]:
        """The inputs' names, dtypes and dims."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[TensorSpec]:
        return list(self._outputs)

    def run(self, inputs: Inputs, out: Sequence[Any] | None = None) -> list[Tensor]:
        """The outputs for these inputs.

        Args:
            inputs: Tensors, arrays or DLPack objects, in the inputs' order or by name.
            out: Buffers that the outputs are written to; they are returned.

        Raises:
            InvalidArgumentError: An input does not fit.
            ExecutionError: The run failed on the data; the message names the node.
        """
        if out is None and self._quick is not None:
            found = self._quick(inputs)
            if found is not None:
                return found
        return [Tensor.of_array(array) for array in self._graph.run(self._binding.bind("run", inputs), out)]

    def __call__(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """`run`, with the inputs as arguments."""
        given: Inputs = {**dict(zip((s.name for s in self._inputs), inputs)), **named} if named else list(inputs)
        return self.run(given)

    def set_num_threads(self, threads: int) -> None:
        """Let runs use this many threads.

        Raises:
            InvalidArgumentError: The number is below 1.
        """
        self._graph.use_threads(threads)

    def __repr__(self) -> str:
        return f"CompiledModel('{self._path}', target='{self._target}')"


def _specs(ports: Sequence[Any]) -> list[TensorSpec]:
    return [TensorSpec(p.name, p.dtype, [d.static_value if d.is_static else str(d) for d in p.dims]) for p in ports]


def compile_to(
    graph: ModelGraph,
    path: str | os.PathLike[str],
    target_cpu: str | Sequence[str] = (),
    *,
    name: str | None = None,
    weights: str | None = None,
    fast_conv: bool = False,
) -> list[Path]:
    """Compile a graph ahead of time, to a library (.so), an object file (.o), assembly (.s) or LLVM IR (.ll).

    Args:
        graph: The graph, as it stands: passes that are to run have run.
        path: Where it goes; the C header goes beside a library or an object file.
        target_cpu: `x86-64-v2` (the default), `x86-64-v3`, `x86-64-v4`, `aarch64`, `host` or a CPU of LLVM's; of
            several a library takes the first that runs where it is loaded.
        name: What the C functions' names begin with (default: the file's name).
        weights: 'inside' or 'beside' (default: inside, from 1 GiB on beside).
        fast_conv: Allow convolutions that are faster and less exact.

    Returns:
        The files that were written.

    Raises:
        InvalidArgumentError: The path's suffix, the name, a target or `weights` is none.
        UnsupportedError: An op has no native form, or there is no C compiler to link with.
    """
    from sardonyx.backends.llvm.aot.library import compile_to as compile_ahead

    if weights not in (None, "inside", "beside"):
        raise InvalidArgumentError(f"compile_to(): weights is 'inside' or 'beside', not {weights!r}")
    targets = [target_cpu] if isinstance(target_cpu, str) else list(target_cpu)
    beside = None if weights is None else weights == "beside"
    return compile_ahead(graph.module, path, targets, name=name, weights_beside=beside, fast_conv=fast_conv).files


def load_compiled(path: str | os.PathLike[str]) -> CompiledModel:
    """Load a library that `sardonyx compile` or `compile_to` wrote. Nothing is compiled again.

    The library's code runs in this process: load only what you trust, as with any shared library.

    Raises:
        InvalidArgumentError: The file cannot be loaded, is no library of Sardonyx, or its weights are not beside it.
        UnsupportedError: This CPU lacks what its code needs.
    """
    from sardonyx.backends.llvm.aot.load import load_library

    graph, target = load_library(path)
    return CompiledModel(graph, os.fspath(path), target)
