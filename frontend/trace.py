"""Tracing: calls a Python function on tensors without contents and records what it computes, as a graph.

Eager tensors that the function captures become constants: small ones stay in the IR, large ones are weights of the
graph's store. One that it writes in place is a state: a buffer that every run reads and rewrites. Nothing is optimized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, ConstantOp
from sardonyx.dialects.sx.state import StateReadOp, StateWriteOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import Structure, flatten
from sardonyx.frontend.signature import Signature, input_specs, stored_signature
from sardonyx.frontend.source import Place, function_location, user_line, user_location
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor, births

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph

_active: ContextVar[tuple[Trace, ...]] = ContextVar("sardonyx_traces", default=())


class Trace:
    """A graph that is being recorded. Traced tensors refer to it, and it to the constants that it captured."""

    def __init__(self, name: str, specs: Sequence[TensorSpec], location: LocationAttr | None = None) -> None:
        self.name = name
        self.store = WeightStore()
        self.module, self.block = create_module(name, [(spec.name, spec.ir, location) for spec in specs])
        self.root = self.block
        self.inputs = [Tensor.of_value(self, argument) for argument in self.block.args]
        self._open = False
        self._regions: list[Region] = []
        self._nested = False
        self._parameters: list[_State] = []
        self._born: dict[int, Tensor] = {}
        self.modules: set[int] = set()
        """The modules (by `id`) whose parameters the graph has."""
        self._places: dict[Place, LocationAttr] = {}
        self._captured: dict[int, tuple[Tensor, SSAValue]] = {}
        self._constants: dict[object, SSAValue] = {}
        self._states: dict[int, _State] = {}
        self.new_states = False
        """Whether the function wrote to a captured tensor that was not known to be a state from the beginning."""
        self.extents: dict[Dim, Tensor] = {}
        """Dynamic extents that were asked for, as int64 vectors of one element."""

    # ---- life
    @contextmanager
    def recording(self) -> Iterator[None]:
        """The time in which the user's function runs. States are traced tensors meanwhile."""
        token = _active.set((*_active.get(), self))
        self._open = True
        try:
            with births() as self._born:
                yield
        finally:
            self._open = False
            _active.reset(token)
            for state in (*self._states.values(), *self._parameters):
                state.tensor._array = state.array

    def check_usable(self) -> None:
        """Refuse a traced tensor of this trace where it is used outside of it.

        Raises:
            InvalidArgumentError: The trace has ended, or another one runs inside of it.
        """
        running = current()
        if running is self:
            return
        if not self._open:
            raise InvalidArgumentError(
                f"a tensor of the trace '{self.name}' is used after that trace has ended: it has no contents; return "
                "it from the traced function, and use the result of running the graph",
                location=user_line(),
            )
        other = f"the trace '{running.name}' inside of it" if running is not None else "another thread"
        raise InvalidArgumentError(
            f"a tensor of the trace '{self.name}' is used in {other}; pass it as an argument there",
            location=user_line(),
        )

    # ---- states
    def add_state(self, tensor: Tensor) -> None:
        """Let a captured tensor be a state: from now on it stands for what the buffer held when the run began."""
        array = tensor.numpy()
        name = f"state_{len(self._states)}"
        op = StateReadOp.make(
            state=name, result_types=[tensor_type(tensor.dtype, array.shape)], location=self.location()
        )
        op.output.name_hint = name
        self.append_to_root(op)
        self._states[id(tensor)] = _State(name, tensor, array, op.output)
        tensor._become(Tensor.of_value(self, op.output))

    def capture_parameters(self, named: Iterable[tuple[str, Tensor]]) -> None:
        """Let parameters of modules be weights of the graph under their names: they are traced tensors from now on."""
        for name, tensor in named:
            if tensor.is_traced:
                continue
            array = tensor.numpy()
            op = ConstantOp.of_weight(self.store.add(array, name, distinct=True))
            self.append_to_root(op)
            self._parameters.append(_State(name, tensor, array, op.output))
            tensor._become(Tensor.of_value(self, op.output))

    def capture_write(self, tensor: Tensor) -> None:
        """The function writes to an eager tensor: if it was there before the trace, it is a state."""
        if id(tensor) in self._born:
            return
        if len(_active.get()) > 1:
            raise InvalidArgumentError(
                "a captured tensor is written in place inside of two traces", location=user_line()
            )
        self.new_states = True
        self.add_state(tensor)

    def rebind(self, tensor: Tensor, value: SSAValue) -> None:
        """Let a traced tensor stand for another value; at the end of a region one from outside gets its old one."""
        if self._regions:
            region = self._regions[-1]
            if block_of(tensor._value) is not region.block:
                region.written.setdefault(id(tensor), (tensor, tensor._value))
        tensor._value = value

    def hold(self, tensor: Tensor) -> None:
        """Let an eager tensor of this trace that a region is about to write stand for a constant."""
        if self._regions and not tensor.is_traced:
            tensor._become(Tensor.of_value(self, self.value_of(tensor)))

    # ---- regions
    @contextmanager
    def region(self, types: Sequence[Attribute] = ()) -> Iterator[Region]:
        """The time in which a function is recorded as a region, a block with arguments of these types.

        Constants that it captures stand outside. Tensors from outside that it writes have their old value afterwards.
        """
        region = Region(Block(arg_types=types))
        outer, extents = self.block, self.extents
        self.block, self.extents = region.block, dict(extents)
        self._regions.append(region)
        self._nested = True
        try:
            yield region
        finally:
            self._regions.pop()
            self.block, self.extents = outer, extents
            for key, (tensor, before) in region.written.items():
                region.values[key] = tensor._value
                tensor._value = before

    def _check_inside(self, value: SSAValue) -> None:
        block = block_of(value)
        if block is not self.root and not any(block is region.block for region in self._regions):
            raise InvalidArgumentError(
                "a tensor that a function of cond, while_loop, fori_loop or scan computed is used outside of it; "
                "return it from that function",
                location=user_line(),
            )

    def states(self) -> list[Tensor]:
        """The states, in the order in which they were written first."""
        return [state.tensor for state in self._states.values()]

    def finish_states(self, returned: Sequence[SSAValue]) -> tuple[dict[str, Tensor], list[SSAValue]]:
        """Write the states that changed; returns all by name, and what was written."""
        values: list[SSAValue] = []
        for parameter in self._parameters:
            if parameter.tensor._value is not parameter.read:  # written in place: a state
                self.new_states = True
                self._states[id(parameter.tensor)] = parameter
            elif parameter.read.first_use is None and parameter.read not in returned:
                owner = parameter.read.owner
                assert isinstance(owner, Operation)
                owner.detach()
                owner.erase()
        for state in self._states.values():
            value = state.tensor._value
            if value is not state.read:
                self.append(StateWriteOp.make(value, state=state.name, location=self.location()))
                values.append(value)
        return {state.name: state.tensor for state in self._states.values()}, values

    # ---- recording
    def location(self) -> LocationAttr | None:
        """Where in the user's source the current call comes from."""
        return user_location(self._places)

    def append(self, op: Operation) -> None:
        if self._regions:
            self.block.add_op(op)
        else:
            self.append_to_root(op)

    def append_to_root(self, op: Operation) -> None:
        """Put an op behind all others that stand in no region."""
        self.root.add_op(op)

    def value_of(self, tensor: Tensor) -> SSAValue:
        """The value of a tensor in this graph; an eager one is captured."""
        if tensor.is_traced:
            owner = tensor.trace
            owner.check_usable()
            if self._nested:
                self._check_inside(tensor.value)
            return tensor.value
        known = self._captured.get(id(tensor))
        if known is None:
            known = self._captured[id(tensor)] = (tensor, self._constant(tensor))
        return known[1]

    def _constant(self, tensor: Tensor) -> SSAValue:
        array = tensor.numpy()
        key: object
        if array.nbytes <= MAX_DENSE_BYTES:
            key = (array.dtype, array.shape, array.tobytes())
            known = self._constants.get(key)
            if known is not None:
                return known
            op = ConstantOp.dense(array, self.location())
        else:
            weight = self.store.add(array)
            key = weight.key
            known = self._constants.get(key)
            if known is not None:
                return known
            op = ConstantOp.of_weight(weight, self.location())
        self.append_to_root(op)
        self._constants[key] = op.output
        return op.output


@dataclass
class Region:
    """A region that is recorded, or was: its block, and the tensors from outside that were written in it, by `id`, with
    their value before (`written`) and at its end (`values`)."""

    block: Block
    written: dict[int, tuple[Tensor, SSAValue]] = field(default_factory=dict)
    values: dict[int, SSAValue] = field(default_factory=dict)


def block_of(value: SSAValue) -> Block | None:
    """The block in which a value is defined."""
    owner = value.owner
    return owner.parent if isinstance(owner, Operation) else owner


@dataclass
class _State:
    """A state of a trace: its buffer's name, the user's tensor and its contents, and the value that reads it."""

    name: str
    tensor: Tensor
    array: np.ndarray[Any, Any]
    read: SSAValue


def current() -> Trace | None:
    """The innermost trace that runs."""
    running = _active.get()
    return running[-1] if running else None


# ---- the user's call


@dataclass(frozen=True)
class TraceResult:
    """What `trace` returns: the graph, its inputs, and how the function's result is made of the outputs."""

    graph: ModelGraph
    signature: tuple[TensorSpec, ...]
    structure: Structure

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.signature))
        return f"<trace of '{self.graph.name}' ({inputs}) -> {', '.join(self.graph.output_names())}>"


def trace(
    fn: Callable[..., Any],
    signature: Signature | None = None,
    name: str | None = None,
    output_names: Sequence[str] | None = None,
) -> TraceResult:
    """Trace a function into a graph, as it stands: nothing is optimized or finalized.

    Args:
        fn: The function, on tensors. It returns a Tensor, or a list, tuple or dict of tensors.
        signature: What it is called with: a list of `TensorSpec` (`fn(list_of_tensors)`), a tuple (`fn(*tensors)`) or
            a dict (`fn(**tensors)`); or a text such as `"x: f32[batch,37]"` (as a tuple). None: what
            `@sardonyx.signature` stored.
        name: The graph's name; the function's by default.
        output_names: The outputs' names; by default a dict's keys, else `output_0`, `output_1`, ….

    The function is called twice where it writes to tensors that it captures: once to find them. Tracing itself changes
    no tensor of the user's; what was written are the last outputs, `state_out_0`, ….

    Raises:
        InvalidArgumentError: The signature, the result or the names are wrong, or the function asks a traced tensor for
            its contents.
    """
    if not callable(fn):
        raise InvalidArgumentError(f"trace(): fn is a function, not {type(fn).__name__}")
    given = stored_signature(fn) if signature is None else signature
    specs, call = input_specs(given, fn)
    graph_name = name or _name_of(fn)
    states: list[Tensor] = []
    while True:
        recorder = Trace(graph_name, specs, function_location(fn))
        with recorder.recording():
            for state in states:
                recorder.add_state(state)
            returned = call(recorder.inputs)
            leaves, structure = flatten(returned)
            values = [_output_value(recorder, leaf, path) for path, leaf in leaves]
            by_name, written = recorder.finish_states(values)
        if not recorder.new_states:
            break
        states = recorder.states()  # once more: what read them before the first write was a constant
    if not values and not written:
        raise InvalidArgumentError(f"the function '{graph_name}' returned no tensor", location=_where(fn))
    names = _output_names(leaves, output_names, isinstance(returned, Mapping), fn)
    taken = {spec.name for spec in specs} if output_names is None else set[str]()
    names = [f"{n}_out" if n in taken and ("[" in n or "." in n) else n for n in names]  # nobody chose these
    values += written
    names += [f"state_out_{number}" for number in range(len(written))]
    _check_names(recorder, values, names, specs, fn)
    set_outputs(recorder.module, values, names)
    from sardonyx.frontend.graph import ModelGraph

    return TraceResult(ModelGraph(recorder.module, recorder.store, by_name), tuple(specs), structure)


def _name_of(fn: Callable[..., Any]) -> str:
    name = getattr(fn, "__name__", None) or type(fn).__name__
    return "graph" if name == "<lambda>" else name


def _where(fn: Callable[..., Any]) -> str | None:
    return locations.describe(function_location(fn))


def _output_value(recorder: Trace, leaf: object, path: str) -> SSAValue:
    from sardonyx.frontend.operands import is_tensor_like, to_tensor

    if not is_tensor_like(leaf):
        raise InvalidArgumentError(
            f"the function '{recorder.name}' returned {type(leaf).__name__}{f' at {path}' if path else ''}; it returns "
            "a Tensor, or a list, tuple or dict of tensors"
        )
    return recorder.value_of(to_tensor(leaf))


def _output_names(
    leaves: Sequence[tuple[str, object]], given: Sequence[str] | None, by_key: bool, fn: Callable[..., Any]
) -> list[str]:
    if given is None:
        return [path if by_key else f"output_{i}" for i, (path, _) in enumerate(leaves)]
    if isinstance(given, str) or not all(isinstance(n, str) and n for n in given):
        raise InvalidArgumentError(f"output_names is a list of names, not {given!r}")
    if len(given) != len(leaves):
        raise InvalidArgumentError(
            f"output_names has {len(given)} names, but the function returned {len(leaves)} tensors", location=_where(fn)
        )
    return list(given)


def _check_names(
    recorder: Trace, values: Sequence[SSAValue], names: Sequence[str], specs: Sequence[TensorSpec], fn: object
) -> None:
    seen: set[str] = set()
    arguments = {spec.name: argument for spec, argument in zip(specs, recorder.block.args)}
    for value, name in zip(values, names):
        if name in seen:
            raise InvalidArgumentError(f"two outputs of '{recorder.name}' are called '{name}'")
        if name in arguments and arguments[name] is not value:
            raise InvalidArgumentError(f"an output of '{recorder.name}' has the name of the input '{name}'")
        seen.add(name)


def module_of(result: TraceResult) -> ModuleOp:
    """The IR of a traced graph."""
    return result.graph.module
