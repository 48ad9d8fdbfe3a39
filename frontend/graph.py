"""`ModelGraph`: a graph that is inspected, optimized, run and exported.

It holds a module of the `sx` dialect and the store of its weights. `finalize()` compiles it; `run` is a thin call of
the compiled graph; `evaluate` runs the reference. While one call works on the graph, others are refused.
"""

from __future__ import annotations

import difflib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import (
    GRAPH_NAME,
    get_opset,
    get_text,
    main_function,
    output_names,
    output_values,
    sync_signature,
)
from sardonyx.dialects.types import is_tensor
from sardonyx.dialects.weights import FileSlice, WeightStore
from sardonyx.errors import ExecutionError, FailedPreconditionError, InvalidArgumentError, SardonyxError
from sardonyx.frontend import serialize
from sardonyx.frontend.binding import Array, Binding, Inputs
from sardonyx.frontend.edits import Edits
from sardonyx.frontend.kv_cache import DEFAULT_CAPACITY, CacheRun, KVCache, attach
from sardonyx.frontend.naming import Names
from sardonyx.frontend.nested import arrays_in, map_arrays
from sardonyx.frontend.nodes import Node
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.state import States
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.transform import Transform
from sardonyx.passes.pipeline import DEFAULT_PIPELINE, PassManager, PipelineReport, parse

if TYPE_CHECKING:
    from sardonyx.backends.llvm.runtime.phases import CompileProgress
    from sardonyx.frontend.profile import GraphProfile
    from sardonyx.passes.checked import CheckOptions

Slot = tuple[str, DType, tuple[int, ...] | None]
"""An input or output: name, dtype and dims, -1 for a dynamic one."""
Passes = Sequence[Transform | ModulePass | str] | str | None

_of_array = Tensor.of_array
_new = object.__new__


def _never(inputs: object) -> None:
    """The quick way of a graph that has none."""


class ModelGraph(Edits):
    """A graph: inputs, outputs, nodes and weights.

    Args:
        module: The IR; the graph owns it from now on. Edit it in `with graph.edit():`.
        store: The weights that it names.
        states: The tensors that hold the contents of its buffers, by name; one that is not given begins with zeros.
    """

    def __init__(
        self, module: ModuleOp, store: WeightStore | None = None, states: Mapping[str, Tensor] | None = None
    ) -> None:
        if not isinstance(module, ModuleOp):
            raise InvalidArgumentError(f"a ModelGraph is made of a module, not {type(module).__name__}")
        self._module = module
        self._store = WeightStore() if store is None else store
        self._lock = threading.Lock()
        self._working: tuple[str, int] | None = None
        self._compiled: Any = None
        self._finalized_options: dict[str, bool] = {}
        self._nested = False
        """Whether an output is a sequence or an optional."""
        self._binding: Binding | None = None
        self._names: Names | None = None
        self._tensors = dict(states or {})
        self._states: States | None = None
        self._cache: KVCache | None = None
        self._run = self._refuse_run
        self._quick: Callable[[Any], list[Tensor] | None] = _never
        """A small run as one native call; None where it is none."""

    # ---- what it is
    @property
    def module(self) -> ModuleOp:
        """The IR."""
        return self._module

    @property
    def store(self) -> WeightStore:
        """The weights."""
        return self._store

    @property
    def name(self) -> str:
        return get_text(self._module, GRAPH_NAME) or "main_graph"

    @property
    def opset(self) -> int | None:
        """The opset of the model that the graph was imported from."""
        return get_opset(self._module)

    def inputs(self) -> list[Slot]:
        """(name, dtype, dims) of the inputs that every run needs; a dynamic dim is -1."""
        return [(spec.name, spec.dtype, spec.dims) for spec in self._bound().required]

    def input_specs(self) -> list[TensorSpec]:
        """All inputs, those that may be left out included."""
        return list(self._bound().specs)

    def outputs(self) -> list[Slot]:
        """(name, dtype, dims) of the outputs; a dynamic dim is -1."""
        return [(spec.name, spec.dtype, spec.dims) for spec in self.output_specs()]

    def output_specs(self) -> list[TensorSpec]:
        values = output_values(self._module)
        return [TensorSpec.of_type(n, v.type) for n, v in zip(output_names(self._module), values)]

    def input_names(self) -> list[str]:
        return [spec.name for spec in self._bound().required]

    def output_names(self) -> list[str]:
        return output_names(self._module)

    def _bound(self) -> Binding:
        if self._binding is None:
            self._binding = Binding.of(self._module, self._store)
        return self._binding

    def _stated(self) -> States:
        if self._states is None:
            cache = self._cache and CacheRun(self._module, self._cache, self._bound().specs)
            self._states = States(self._module, self._tensors, cache)
            self._tensors = self._states.tensors
        return self._states

    def states(self) -> dict[str, Tensor]:
        """The buffers that outlive a run, by name: the tensors that the traced function writes in place."""
        return dict(self._stated().tensors)

    # ---- nodes
    def _named(self) -> Names:
        if self._names is None:
            self._names = Names.of(self._module)
        return self._names

    def nodes(self) -> list[Node]:
        """The inputs, then constants and ops in order."""
        names = self._named()
        arguments = main_function(self._module).body.block.args
        inputs = [Node(n, None, (a,), names) for n, a in zip(names.inputs, arguments)]
        block = main_function(self._module).body.block
        return inputs + [Node(names.nodes[op], op, op.results, names) for op in block.ops if op in names.nodes]

    def node(self, name: str) -> Node:
        """The input or node of that name; else the one that makes the value of that name.

        Raises:
            InvalidArgumentError: There is none; the hint names the nearest.
        """
        names = self._named()
        block = main_function(self._module).body.block
        if name in names.inputs:
            return Node(name, None, (block.args[names.inputs.index(name)],), names)
        for op, known in names.nodes.items():
            if known == name:
                return Node(name, op, op.results, names)
        for value, known in names.values.items():
            op = value.owner
            if known == name and isinstance(op, Operation) and op in names.nodes:
                return Node(names.nodes[op], op, op.results, names)
        near = difflib.get_close_matches(str(name), [*names.inputs, *names.nodes.values()], n=1)
        raise InvalidArgumentError(
            f"the graph '{self.name}' has no node '{name}'", hint=f"did you mean '{near[0]}'?" if near else None
        )

    # ---- one call at a time
    def require_idle(self, call: str) -> None:
        """Refuse a call while another one works on the graph.

        Raises:
            FailedPreconditionError: One does.
        """
        if self._working is not None:
            self._refuse_busy(call)

    def _refuse_busy(self, call: str) -> NoReturn:
        running = self._working[0] if self._working is not None else "another call"
        raise FailedPreconditionError(f"{call}: {running}() is running on this graph; call {call}() after it returns")

    @contextmanager
    def _work(self, call: str) -> Iterator[None]:
        """The time in which a call works on the graph; runs are refused."""
        with self._lock:
            if self._working is not None:
                self._refuse_busy(call)
            self._working = (call, threading.get_ident())
        quick, self._quick = self._quick, _never
        before, self._run = self._run, self._refuse_run
        try:
            yield
        finally:
            self._working = None
            if self._run == self._refuse_run:
                self._run, self._quick = before, quick

    @contextmanager
    def edit(self, call: str = "edit") -> Iterator[ModuleOp]:
        """The time in which the module is edited: other calls are refused, and afterwards the graph is not finalized.

        A transform that `optimize()` runs may edit the graph that it is given.
        """
        working = self._working
        if working == ("optimize", threading.get_ident()):
            yield self._module
            self._edited()
            return
        with self._work(call):
            try:
                yield self._module
            finally:
                self._edited()

    def _edited(self) -> None:
        """Forget what was made of the module as it was."""
        sync_signature(main_function(self._module))
        self._binding = self._names = self._compiled = self._states = None
        self._quick = _never
        self._run = self._refuse_run_stale

    # ---- working on it
    def optimize(self, passes: Passes = None, check: CheckOptions | int | None = None) -> PipelineReport:
        """Run passes over the graph, in place. A change un-finalizes it.

        Args:
            passes: None: the default pipeline. A pipeline's text, or a list of `Transform`, passes, and texts.
            check: Evaluate what each pass changed before and after on so many made-up inputs, within the pass's
                promise.

        Raises:
            SardonyxError: A pass failed; the graph is then as that pass left it.
        """
        found = self._passes(passes)
        with self._work("optimize"):
            try:
                report = PassManager(found, check=check).run(self._module)
            except BaseException:
                self._edited()
                raise
            if report.changed:
                self._edited()
        return report

    def _passes(self, passes: Passes) -> list[ModulePass]:
        if passes is None:
            return parse(DEFAULT_PIPELINE)
        if isinstance(passes, str):
            return parse(passes)
        if isinstance(passes, Transform | ModulePass):
            passes = [passes]
        found: list[ModulePass] = []
        for entry in passes:
            if isinstance(entry, str):
                found.extend(parse(entry))
            elif isinstance(entry, Transform):
                found.append(entry.to_pass(self))
            elif isinstance(entry, ModulePass):
                found.append(entry)
            else:
                raise TypeError(
                    f"optimize(): passes holds Transform, passes and pipelines as text, not {type(entry).__name__}"
                )
        return found

    def finalize(
        self,
        fallback: bool = False,
        fast_conv: bool = False,
        time_report: bool = False,
        progress: Callable[[CompileProgress], object] | None = None,
    ) -> None:
        """Compile the graph for this machine, so that it runs; does nothing where that is done.

        Args:
            fallback: Let ops without a native form run by the reference; without it they are refused.
            fast_conv: Let 3x3 convolutions be computed with fewer multiplications, at the cost of about one decimal
                digit; NaN and infinities may then spread to neighbouring pixels.
            time_report: Print on standard error where the time went; also where `SARDONYX_TIME_REPORT` is 1.
            progress: Called while it compiles, with the `stage` and how many ops or kernels are `done`, of a `total`
                (0: nobody counts). As text that is a line to show: `progress=print`. What it raises ends it.

        Raises:
            UnsupportedError: An op has no native form; the error names the node.
        """
        if self._compiled is not None and self._working is None:
            return
        with self._work("finalize"):
            from sardonyx.backends.llvm.compile import compile_module
            from sardonyx.backends.llvm.runtime.call import CompiledGraph
            from sardonyx.backends.llvm.runtime.phases import progress_to, time_report as measured

            with progress_to(progress):
                if time_report or os.environ.get("SARDONYX_TIME_REPORT") == "1":
                    with measured(f"finalize '{self.name}'") as report:
                        self._compiled = compile_module(self._module, fallback=fallback, fast_conv=fast_conv)
                    sys.stderr.write(f"{report}\n")
                else:
                    self._compiled = compile_module(self._module, fallback=fallback, fast_conv=fast_conv)
            self._finalized_options = {"fallback": fallback, "fast_conv": fast_conv}
            bound = self._bound()
            binds = bool(bound.defaults) or any(spec.container is not None for spec in bound.specs)
            if not self._stated().is_empty:
                self._run = self._run_stateful
            elif binds:
                self._run = self._run_bound
            else:
                self._run = self._compiled.run
                if isinstance(self._compiled, CompiledGraph):
                    self._quick = self._compiled.quick(Tensor, "_array") or _never
            self._nested = any(not is_tensor(value.type) for value in output_values(self._module))

    @property
    def is_finalized(self) -> bool:
        """Whether `run` may be called."""
        return self._compiled is not None

    @property
    def _finalized_with(self) -> dict[str, bool] | None:
        """The options of `finalize`; None for a graph that is not finalized."""
        return None if self._compiled is None else self._finalized_options

    @property
    def compiled(self) -> Any:
        """The native code of a finalized graph; None before."""
        return self._compiled

    @property
    def fallbacks(self) -> list[Any]:
        """What of a finalized graph is not native: the ops that run by the reference and the custom operators whose
        kernels are Python's, each with its `op`, `location` and `reason`."""
        return list(getattr(self._compiled, "fallbacks", ()))

    # ---- running it
    def run(self, inputs: Inputs, out: Sequence[Any] | None = None) -> list[Tensor]:
        """The outputs for these inputs, natively.

        Args:
            inputs: Tensors, arrays or DLPack objects, in the inputs' order or by name.
            out: Buffers that the outputs are written to; they are returned.

        Raises:
            FailedPreconditionError: The graph is not finalized.
            InvalidArgumentError: An input does not fit.
            ExecutionError: The run failed on the data.
        """
        if out is None:
            found = self._quick(inputs)
            if found is not None:
                return found
        kind = type(inputs)
        if kind is not list and kind is not tuple:
            inputs = self._listed(inputs)
        try:
            results: list[Any] = self._run(inputs, out)
        except SardonyxError as error:
            results = self._retry(error, inputs, out)
        if self._nested:
            return [map_arrays(result, _of_array) for result in results]
        # `Tensor.of_array` without the calls: this loop is a good part of what a small run costs.
        for k, array in enumerate(results):
            results[k] = tensor = _new(Tensor)
            tensor._array = array
        return results

    def _listed(self, inputs: Inputs) -> list[Any]:
        if self._compiled is None or self._working is not None:
            self._run(inputs, None)
        return self._bound().bind("run", inputs)

    def _retry(self, error: SardonyxError, inputs: Any, out: Sequence[Any] | None) -> list[Any]:
        """What to do with inputs that native code refused: say which one is wrong, or convert them.

        Native code takes arrays and Tensors; lists of numbers and objects that only have DLPack get here.
        """
        if isinstance(error, FailedPreconditionError):
            raise error
        arrays = self._bound().bind("run", inputs)
        if isinstance(error, ExecutionError) or all(
            array is (g._array if isinstance(g, Tensor) else g) for array, g in zip(arrays, inputs)
        ):
            raise error
        return self._run(arrays, out)

    def _run_bound(self, inputs: Any, out: Sequence[Any] | None = None) -> list[Array]:
        return self._compiled.run(self._bound().bind("run", inputs), out)

    def _run_stateful(self, inputs: Any, out: Sequence[Any] | None = None) -> list[Array]:
        return self._stated().run(self._compiled.run, self._bound().bind("run", inputs), out)

    def _refuse_run(self, inputs: object, out: object = None) -> NoReturn:
        self.require_idle("run")
        raise FailedPreconditionError("run: the graph is not finalized; call finalize() first")

    def _refuse_run_stale(self, inputs: object, out: object = None) -> NoReturn:
        self.require_idle("run")
        raise FailedPreconditionError("run: the graph was edited after finalize(); call finalize() again")

    def evaluate(self, inputs: Inputs) -> list[Tensor]:
        """The outputs for these inputs by the reference; needs no `finalize()`.

        A sequence is a list of tensors, an optional that is empty None, on either side.

        Raises:
            InvalidArgumentError: An input does not fit.
            ExecutionError: The run failed on the data.
        """
        self.require_idle("evaluate")
        arrays = self._bound().bind("evaluate", inputs)
        results = self._stated().evaluate(main_function(self._module), arrays)
        given = arrays_in(arrays)
        return [map_arrays(result, lambda array: _of_array(_owned(array, given))) for result in results]

    def profile(self, inputs: Inputs, runs: int = 20, threads: int | None = None) -> GraphProfile:
        """Compile a copy with counters, run it on these inputs, and say where the time goes; printed, it is a table.

        Args:
            inputs: As for `run`.
            runs: How often it is run.
            threads: How many threads may run it; None: as many as `run` would take.

        Raises:
            UnsupportedError: An op has no native form; the error names the node.
            InvalidArgumentError: An input does not fit.
        """
        from sardonyx.frontend.profile import profile_module

        arrays = self._bound().bind("profile", inputs)
        with self._work("profile"):
            return profile_module(self._module, arrays, runs, threads)

    def bind_inputs(self, call: str, inputs: Inputs) -> list[Array]:
        """The arrays of all inputs in order, checked, defaults filled in; `call` is named in errors.

        Raises:
            InvalidArgumentError: One does not fit.
        """
        return self._bound().bind(call, inputs)

    def __call__(self, *inputs: Any) -> list[Tensor]:
        """`run` with the inputs as arguments."""
        return self.run(list(inputs))

    def to(self, device: str) -> ModelGraph:
        """The graph itself: the one device is "cpu".

        Raises:
            InvalidArgumentError: There is no such device.
            FailedPreconditionError: Another call works on the graph.
        """
        with self._work("to"):
            if device != "cpu":
                raise InvalidArgumentError(f"to(): there is no device {device!r}", hint="the only one is 'cpu'")
        return self

    # ---- caches
    def attach_kv_cache(
        self, capacity: int = DEFAULT_CAPACITY, *, pairs: Mapping[str, str] | None = None, cache: KVCache | None = None
    ) -> KVCache:
        """Put a cache inside of the graph, in the place of a decoding step's past and present.

        A pair is an input whose extent along one axis is a symbol, and the output that is that input with rows appended
        (`concat([past, new], axis)`). Both leave the signature; a run appends the new rows to what the cache holds.

        Args:
            capacity: How many rows the cache holds at most.
            pairs: The pairs by name, input → output; by default all that the graph has.
            cache: The cache of another graph, to be shared: one that reads the prompt, say.

        Raises:
            InvalidArgumentError: The graph has no such pair, or the cache does not fit.
            FailedPreconditionError: The graph has a cache, or another call works on it.
        """
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise InvalidArgumentError(f"attach_kv_cache: a capacity is a number of rows from 1 on, not {capacity!r}")
        self.require_idle("attach_kv_cache")
        if self._cache is not None:
            raise FailedPreconditionError("attach_kv_cache: the graph has a cache already")
        found = KVCache(capacity) if cache is None else cache
        with self.edit("attach_kv_cache") as module:
            attach(module, found, pairs)
            self._cache = found
        return found

    @property
    def kv_cache(self) -> KVCache | None:
        """The cache that `attach_kv_cache` put into the graph."""
        return self._cache

    # ---- taking it elsewhere
    def export_onnx(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the graph as an ONNX model.

        Args:
            path: The file.
            options: `opset_version`, `contrib_ops`, `optimize`, `producer_name`, `save_as_external_data`, `check`,
                `keep_initializers_as_inputs`, `export_params`, `custom_opsets`, as
                `backends.onnx.options.ExportOptions` has them.

        Raises:
            TypeError: `path` or an option is of another type.
            InvalidArgumentError: The opset is not one that can be written.
            UnsupportedError: An op cannot be stated in it; the error names the node. Nothing is written then.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"export_onnx(): path is a str or an os.PathLike, not {type(path).__name__}")
        self.require_idle("export_onnx")
        from sardonyx.backends.onnx.write import export_module

        export_module(self._module, self._store, path, **options)

    def clone(self) -> ModelGraph:
        """A copy that can be changed by itself; it shares the weights' bytes, and is not finalized.

        Its states are tensors of its own, with the same contents.
        """
        self.require_idle("clone")
        store = WeightStore()
        for weight in self._store:
            store.insert(weight)
        copy = ModelGraph(self._module.clone(), store, {name: t.copy() for name, t in self.states().items()})
        copy._cache = self._cache and self._cache.copy()
        return copy

    def __copy__(self) -> ModelGraph:
        return self.clone()

    def __deepcopy__(self, memo: object) -> ModelGraph:
        return self.clone()

    def __reduce__(self) -> tuple[object, ...]:
        self.require_idle("pickle")
        flat = serialize.flatten(self._module)
        return _restore, (flat, self._store, self.states(), self._cache, self._finalized_with)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._bound().specs))
        outputs = ", ".join(map(str, self.output_specs()))
        state = "finalized" if self.is_finalized else "not finalized"
        return f"<ModelGraph '{self.name}' ({inputs}) -> ({outputs}), {state}>"

    def text(self, locations: bool = False) -> str:
        """The IR as text, with the ops' locations where asked for."""
        out = StringIO()
        Printer(out, print_debuginfo=locations).print_op(self._module)
        return out.getvalue() + "\n"

    def print(self, file: IO[str] | None = None, *, locations: bool = False) -> None:
        """Print the IR, on standard output by default."""
        print(self.text(locations), end="", file=file)


def _owned(result: Array, inputs: Sequence[Array]) -> Array:
    """The array, or a copy where the user could write to an input or a weight through it."""
    if result.flags.writeable and not any(np.may_share_memory(result, array) for array in inputs):
        return result
    return result.copy()


def _restore(
    flat: serialize.FlatOp,
    store: WeightStore,
    states: Mapping[str, Tensor] | None = None,
    cache: KVCache | None = None,
    finalized: Mapping[str, bool] | None = None,
) -> ModelGraph:
    for weight in store:
        if not isinstance(weight.content, FileSlice):
            weight.content.flags.writeable = False
    module = serialize.rebuild(flat)
    serialize.bind_weights(module, store)
    graph = ModelGraph(module, store, states)
    graph._cache = cache
    if finalized is not None:
        # The object cache has the code, where this process shares it.
        graph.finalize(fallback=finalized["fallback"], fast_conv=finalized["fast_conv"])
    return graph
