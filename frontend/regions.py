"""Records functions as regions: branches, and loops with what they carry, whose types must hold every turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, Region as IrRegion, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.sx.control import LoopOp, ScanOp, YieldOp
from sardonyx.dialects.types import is_tensor, join, symbols_of
from sardonyx.errors import InferenceError, InvalidArgumentError
from sardonyx.frontend.containers import Structure, flatten
from sardonyx.frontend.operands import is_scalar, is_tensor_like, scalar, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import Trace

MAX_TURNS = 16
"""How often a loop's function is recorded until the types of what is carried fit each turn."""


class Recorded:
    """A function that was recorded as a region: its block, and what it returned."""

    def __init__(self, trace: Trace, types: Sequence[Attribute], call: Callable[..., Any]) -> None:
        with trace.region(types) as self.region:
            arguments = [Tensor.of_value(trace, a) for a in self.region.block.args]
            self.returned = snapshot(call(*arguments))
        self.leaves, self.structure = flatten(self.returned)
        for path, leaf in self.leaves:
            if not is_tensor_like(leaf):
                where = f" at {path}" if path else ""
                raise InvalidArgumentError(
                    f"a function of cond, while_loop, fori_loop or scan returns tensors, not "
                    f"{type(leaf).__name__}{where}",
                    location=user_line(),
                )

    def close(self, values: Sequence[SSAValue]) -> IrRegion:
        """End the region with these values."""
        self.region.block.add_op(YieldOp.create(operands=list(values)))
        return IrRegion(self.region.block)


class Loop:
    """A loop while it is recorded: until the types of what is carried, and what the body writes, are known."""

    def __init__(
        self,
        trace: Trace,
        call: str,
        init: Any,
        body: Callable[[Loop, Tensor, Any], tuple[Any, ...]],
        first: Callable[[Any], Any] | None = None,
    ) -> None:
        self.trace, self.call, self.body, self.first = trace, call, body, first
        self.raw, self.structure = flatten(init)
        self.initial = [carried_leaf(call, path, leaf) for path, leaf in self.raw]
        self.types = [trace.value_of(t).type for t in self.initial]
        self.written: list[Tensor] = []
        self.written_types: list[Attribute] = []
        self.free: set[str] = set()
        """Symbols that stand for an extent which may be another one in each turn."""

    def check_structure(self, after: Any) -> None:
        found = flatten(after)[1]
        if found != self.structure:
            raise InvalidArgumentError(
                f"{self.call}: what is carried has {self.structure.size} tensors, but the function returns "
                f"{found.size} in another structure",
                location=user_line(),
            )

    def record(self, trips: Tensor | None) -> tuple[Any, Any]:
        """The last carried value, and what is stacked (None where nothing is)."""
        trace = self.trace
        condition = None
        if self.first is not None:
            condition = trace.value_of(condition_flag(self.first(self.structure.build(self.initial)), self.call))
        count = None if trips is None else trace.value_of(trips)
        for _ in range(MAX_TURNS):
            recorded, parts = self._body()
            going_on, after, *more = parts
            if self._fits(recorded, after):
                break
        else:
            raise InvalidArgumentError(f"{self.call}: the types of what is carried never settle", location=user_line())
        rows = None if not more or more[0] is None else flatten(more[0])
        going = recorded.region.block.args[1] if going_on is None else value_in(trace, recorded, going_on)
        values = [going, *(value_in(trace, recorded, carried_leaf(self.call, p, v)) for p, v in flatten(after)[0])]
        values += self.written_values(recorded, 2 + len(self.initial))
        values += [] if rows is None else [value_in(trace, recorded, to_tensor(leaf)) for _, leaf in rows[0]]
        region = recorded.close(values)
        carried = [*(trace.value_of(t) for t in self.initial), *(t.value for t in self.written)]
        op = record_op(trace, lambda: LoopOp.make(count, condition, carried, results=len(values) - 1, regions=[region]))
        results = [Tensor.of_value(trace, r) for r in op.results]
        size = len(self.initial)
        for tensor, result in zip(self.written, op.results[size:], strict=False):
            trace.rebind(tensor, result)
        stacked = None if rows is None else rows[1].build(results[size + len(self.written) :])
        return self.structure.build(results[:size]), stacked

    def written_values(self, recorded: Recorded, first: int) -> list[SSAValue]:
        """What the written tensors are at the end of a turn; `first` is where their arguments begin."""
        arguments = recorded.region.block.args[first : first + len(self.written)]
        return [recorded.region.values.get(id(t), a) for t, a in zip(self.written, arguments, strict=True)]

    def _body(self) -> tuple[Recorded, tuple[Any, ...]]:
        """Record the body with the types as they are known."""
        trace = self.trace
        types = [tensor_type(int64, ()), tensor_type(bool_, ()), *self.types, *self.written_types]
        parts: list[tuple[Any, ...]] = []

        def call(number: Tensor, condition: Tensor, *carried: Tensor) -> Any:
            size = len(self.initial)
            for tensor, inside in zip(self.written, carried[size:], strict=True):
                trace.rebind(tensor, inside.value)
            made = self.body(self, number, self.structure.build(carried[:size]))
            parts.append(tuple(snapshot(part) for part in made))
            self.check_structure(parts[0][1])
            return [p for p in parts[0] if p is not None]

        return Recorded(trace, types, call), parts[0]

    def _fits(self, recorded: Recorded, after: Any) -> bool:
        """Whether the yielded values fit the arguments; else the types are widened, and written tensors are carried."""
        known = {id(t) for t in self.written}
        new = [t for key, (t, _) in recorded.region.written.items() if key not in known]
        self.written += new
        self.written_types += [t.value.type for t in new]
        settled = not new
        for index, (path, leaf) in enumerate(flatten(after)[0]):
            made = carried_leaf(self.call, path, leaf)
            if not made.is_traced:
                made = Tensor.of_value(self.trace, self.trace.value_of(made))
            settled &= self._widen(index, path, made.value, leaf)
        for place, tensor in enumerate(self.written):
            value = recorded.region.values.get(id(tensor))
            if value is not None:
                settled &= self._join("a tensor that is written", self.written_types, place, value.type)
        return settled

    def _widen(self, index: int, path: str, value: SSAValue, leaf: Any) -> bool:
        what = f"what is carried{f' at {path}' if path else ''}"
        if dtype_of(value) != dtype_of(self.types[index]) and is_scalar(self.raw[index][1]) and not is_scalar(leaf):
            # a Python number takes the dtype of what the body makes of it
            self.initial[index] = scalar(self.raw[index][1], dtype_of(value))
            self.types[index] = self.trace.value_of(self.initial[index]).type
            return False
        return self._join(what, self.types, index, value.type)

    def _join(self, what: str, types: list[Attribute], index: int, after: Attribute) -> bool:
        """Widen a type so that it holds another one too; whether it did."""
        before = types[index]
        types[index] = wide = _joined(self.call, what, before, after, frozenset(self.free))
        self.free |= symbols_of(wide) - symbols_of(before)
        return wide == before


class Scan:
    """A scan over tensors while it is recorded."""

    def __init__(
        self, trace: Trace, f: Callable[[Any, Any], Any], init: Any, shape: Structure, xs: list[Tensor], reverse: bool
    ) -> None:
        self.trace, self.f, self.shape, self.xs, self.reverse = trace, f, shape, xs, reverse
        self.rows: Any = None

        def body(loop: Loop, _: Tensor, carried: Any) -> tuple[Any, ...]:
            raise NotImplementedError  # `_record` stands in its place

        self.loop = Loop(trace, "scan", init, body)

    def record(self) -> tuple[Any, Any]:
        trace, loop = self.trace, self.loop
        scanned = [trace.value_of(x) for x in self.xs]
        slices = [tensor_type(dtype_of(v), dims_of(v)[1:]) for v in scanned]
        for _ in range(MAX_TURNS):
            recorded, after, rows = self._body(slices)
            if loop._fits(recorded, after):
                break
        else:
            raise InvalidArgumentError("scan: the types of what is carried never settle", location=user_line())
        written = loop.written
        values = [value_in(trace, recorded, carried_leaf("scan", p, v)) for p, v in flatten(after)[0]]
        values += loop.written_values(recorded, len(loop.initial))
        stacked = None if rows is None else flatten(rows)
        values += [] if stacked is None else [value_in(trace, recorded, to_tensor(leaf)) for _, leaf in stacked[0]]
        region = recorded.close(values)
        states = [*(trace.value_of(t) for t in loop.initial), *(t.value for t in written)]
        count = len(values) - len(states)
        backward: dict[str, Any] = {}
        if self.reverse:
            backward["scan_input_directions"] = (1,) * len(scanned)
            if count:
                backward["scan_output_directions"] = (1,) * count
        op = record_op(
            trace,
            lambda: ScanOp.make(
                [*states, *scanned], results=len(values), regions=[region], num_scan_inputs=len(scanned), **backward
            ),
        )
        results = [Tensor.of_value(trace, r) for r in op.results]
        size = len(loop.initial)
        for tensor, result in zip(written, op.results[size:], strict=False):
            trace.rebind(tensor, result)
        built = None if stacked is None else stacked[1].build(results[size + len(written) :])
        return loop.structure.build(results[:size]), built

    def _body(self, slices: Sequence[Attribute]) -> tuple[Recorded, Any, Any]:
        loop, made = self.loop, list[Any]()

        def call(*arguments: Tensor) -> Any:
            size = len(loop.initial)
            inside = arguments[size : size + len(loop.written)]
            for tensor, value in zip(loop.written, inside, strict=True):
                self.trace.rebind(tensor, value.value)
            x = self.shape.build(arguments[size + len(inside) :])
            made.extend(snapshot(part) for part in carry_and_rows(self.f(loop.structure.build(arguments[:size]), x)))
            loop.check_structure(made[0])
            return [part for part in made if part is not None]

        recorded = Recorded(self.trace, [*loop.types, *loop.written_types, *slices], call)
        return recorded, made[0], made[1]


# ---- parts


def snapshot(value: Any) -> Any:
    """A result as it is now: tensors that are written later do not change it."""
    leaves, structure = flatten(value)
    return structure.build([leaf.__copy__() if isinstance(leaf, Tensor) else leaf for _, leaf in leaves])


def record_op(trace: Trace, make: Callable[[], Any]) -> Any:
    op = make()
    location = trace.location()
    if location is not None:
        op.location = location
    trace.append(op)
    return op


def value_in(trace: Trace, recorded: Recorded, tensor: Tensor) -> SSAValue:
    """The value of what a region returns, which may be one of outside."""
    return tensor.value if tensor.is_traced else trace.value_of(tensor)


def carried_leaf(call: str, path: str, leaf: Any) -> Tensor:
    if not is_tensor_like(leaf):
        where = f" at {path}" if path else ""
        raise InvalidArgumentError(
            f"{call}: what is carried consists of tensors, not {type(leaf).__name__}{where}", location=user_line()
        )
    return to_tensor(leaf)


def _joined(call: str, what: str, before: Attribute, after: Attribute, free: frozenset[str]) -> Attribute:
    """The type that holds both; `free` symbols of the first hold any extent."""
    if dtype_of(before) != dtype_of(after):
        raise InvalidArgumentError(
            f"{call}: {what} is {dtype_of(before)} at first, but {dtype_of(after)} after a turn; convert it (astype)",
            location=user_line(),
        )
    try:
        wide = join(before, after, free)
    except InferenceError as error:
        raise InvalidArgumentError(f"{call}: {what}: {error.message}", location=user_line()) from None
    if not is_tensor(wide) or not hasattr(wide, "get_shape"):
        raise InvalidArgumentError(f"{call}: {what} has another rank after a turn", location=user_line())
    return wide


def carry_and_rows(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise InvalidArgumentError(f"scan: f returns (carry, y), not {type(returned).__name__}", location=user_line())
    return returned


def condition_flag(value: Any, call: str) -> Tensor:
    """A condition as a tensor [] of bool."""
    tensor = to_tensor(value)
    if tensor.dtype != bool_ or any(e != 1 for e in tensor.shape if isinstance(e, int)) or tensor.ndim > 1:
        shown = ", ".join(map(str, tensor.shape))
        raise InvalidArgumentError(
            f"{call}: the condition is one bool, not {tensor.dtype}[{shown}]; compare, or use sardonyx.any or all",
            location=user_line(),
        )
    return tensor.reshape(()) if tensor.ndim else tensor
