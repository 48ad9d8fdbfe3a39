"""Control flow: `sx.if`, `sx.loop` and `sx.scan` become regions of the plan, inside the one native entry.

What a region results in is carried as what it is: a buffer with those extents that only the run knows, or the parts of
a container. A loop's state lies in one of two blocks by turns (`kernel.alternate`), which the op that computes it
writes directly. Rows go straight into the result where its extents are known before the loop, else into memory that
grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sardonyx.backends.llvm.lowering.block import lower_block
from sardonyx.backends.llvm.lowering.builder import IndexLike, scalar_ir
from sardonyx.backends.llvm.lowering.containers import (
    LASTING,
    Container,
    as_type,
    record_words,
)
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, copy_region, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of, type_dims
from sardonyx.dialects.kernel.ops import INDEX, CopyOp, IfOp as ChoiceOp, YieldOp
from sardonyx.dialects.kernel.plan_ops import AlternateOp, GrowOp, NothingOp, RepeatOp, ViewOp
from sardonyx.dialects.sx.control import IfOp, LoopOp, ScanOp, constant_flag, is_same, is_true
from sardonyx.dialects.sx.support import normalize_axis
from sardonyx.dialects.types import is_container, is_tensor
from sardonyx.errors import UnsupportedError

ENDLESS = (1 << 62) - 1
"""The limit of a loop without a trip count."""


# ---- what crosses the border of a region


def _free(plan: Plan, ty: Attribute) -> list[int]:
    """The axes whose extents are not known where the plan stands, so that they must be carried.

    Raises:
        UnsupportedError: The rank is not known.
    """
    if isinstance(ty, UnrankedTensorType):
        raise UnsupportedError(
            "the rank of a value that its region takes or gives is not known before the run",
            location=plan.where(), op=plan.op_name(),
            hint="state its shape, or let finalize(fallback=True) run the op by the reference",
        )  # fmt: skip
    if not is_tensor(ty):
        return []
    return [k for k, d in enumerate(type_dims(ty)) if not plan.is_bound(d)]


def _leave(plan: Plan, value: SSAValue, ty: Attribute, free: Sequence[int], what: str) -> list[SSAValue]:
    """The parts of a value that goes where it has the type; its other extents are checked."""
    if is_container(ty):
        return as_type(plan, value, ty).parts
    _free(plan, value.type)  # refuses an unknown rank
    dims = dims_of(value)
    for k, (own, wanted) in enumerate(zip(dims, type_dims(ty), strict=True)):
        if k not in free:
            plan.require_equal(own, wanted, f"{what} has {{0}} elements along axis {k}, but its region takes {{1}}")
    return [plan.buffer(value), *(plan.dim(dims[k]) for k in free)]


def _arrive(plan: Plan, value: SSAValue, parts: Sequence[SSAValue], free: Sequence[int], what: str) -> None:
    """Let a value be what its parts are."""
    if is_container(value.type):
        plan.containers[value] = Container(*parts)
        return
    dims = dims_of(value)
    plan.bind_all([(dims[k], extent, f"{what}, axis {k},") for k, extent in zip(free, parts[1:], strict=True)])
    plan.set_buffer(value, parts[0])


def read_one(plan: Plan, value: SSAValue, what: str) -> SSAValue:
    """The buffer of a value of one element."""
    for d in dims_of(value):
        if d.static_value != 1:
            extent = plan.dim(d)
            failure = plan.failure(f"{what} has {{0}} elements, not 1")
            plan.body.require(plan.body.compare("eq", extent, 1), failure, extent)
    return plan.buffer(value)


def _flag(plan: Plan, value: SSAValue) -> SSAValue:
    """A condition as an i1."""
    return plan.body.load(read_one(plan, value, "a condition"), 0)


# ---- if


@lowers(IfOp)
def _if(plan: Plan, op: IfOp) -> None:
    known = constant_flag(op.cond)
    if known is not None:
        _inline(plan, op, op.then_branch if known else op.else_branch)
        return
    condition = _flag(plan, op.cond)
    free = [_free(plan, result.type) for result in op.results]
    regions: list[Region] = []
    parts: list[list[SSAValue]] = []
    for branch in (op.then_branch, op.else_branch):
        with plan.scope() as (region, body):
            lower_block(plan, branch.block)
            plan.current = op
            parts = [
                _leave(plan, value, result.type, axes, f"result {k} of a branch")
                for k, (value, result, axes) in enumerate(zip(op.yielded(branch, ""), op.results, free, strict=True))
            ]
            body.block.add_op(YieldOp([part for each in parts for part in each]))
            regions.append(region)
    made = ChoiceOp(condition, regions[0], regions[1], [part.type for each in parts for part in each])
    made.location = op.location
    plan.body.block.add_op(made)
    at = 0
    for k, (result, axes, each) in enumerate(zip(op.results, free, parts, strict=True)):
        _arrive(plan, result, made.results[at : at + len(each)], axes, f"result {k}")
        at += len(each)


def _inline(plan: Plan, op: IfOp, branch: Region) -> None:
    """A branch that is always taken stands in the plan as it is."""
    free = [_free(plan, result.type) for result in op.results]
    lower_block(plan, branch.block)
    plan.current = op
    for k, (value, result, axes) in enumerate(zip(op.yielded(branch, ""), op.results, free, strict=True)):
        what = f"result {k} of the branch"
        _arrive(plan, result, _leave(plan, value, result.type, axes, what), axes, what)


# ---- loop and scan


@dataclass
class State:
    """A value that is carried: what it is at first, in the body, behind it, and after the loop."""

    initial: SSAValue
    argument: SSAValue
    after: SSAValue
    result: SSAValue


@dataclass
class Row:
    """A value that every turn adds to a result, along an axis of the result, the last one first if `backward`."""

    yielded: SSAValue
    result: SSAValue
    axis: int = 0
    backward: bool = False


@lowers(LoopOp)
def _loop(plan: Plan, op: LoopOp) -> None:
    body, block, count = plan.body, op.body.block, op.carried
    yields = op.yielded(op.body, "")
    again = is_true(yields[0]) or is_same(yields[0], block.args[1])
    limit = body.index(ENDLESS)
    if op.trip_count is not None:
        read_one(plan, op.trip_count, "a trip count")
        limit = body.index_math("max", plan.read_ints(op.trip_count, 1)[0], 0)
    going = body.true() if is_true(op.cond) or op.cond is None else _flag(plan, op.cond)
    states = [State(*four) for four in zip(op.initial, block.args[2:], yields[1:], op.results, strict=False)]
    rows = [Row(*two) for two in zip(yields[1 + count :], op.results[count:], strict=True)]

    def begin(turn: SSAValue) -> None:
        _number(plan, block.args[0], turn)
        end = block.last_op  # which does not need to be told that the loop goes on
        if any(use.operation is not end or use.index or not again for use in block.args[1].uses):
            plan.bind_all([(d, plan.body.index(1), "the condition") for d in dims_of(block.args[1])])
            made = plan.workspace(dtype_of(block.args[1]), [])
            plan.body.store(plan.body.true(), made, 0)
            plan.set_buffer(block.args[1], made)

    def next_condition() -> SSAValue:
        return plan.body.true() if again else _flag(plan, yields[0])

    always = again and (op.cond is None or is_true(op.cond))
    _Repetition(plan, op, block, states, rows, limit, going, is_counted=always).lower(begin, next_condition)


def _number(plan: Plan, argument: SSAValue, turn: SSAValue) -> None:
    """Let a body's argument be the number of the turn."""
    if not any(True for _ in argument.uses):
        return
    plan.bind_all([(d, plan.body.index(1), "the number of the iteration") for d in dims_of(argument)])
    made = plan.workspace(dtype_of(argument), [])
    plan.body.store(plan.body.from_index(turn, dtype_of(argument)), made, 0)
    plan.set_buffer(argument, made)


@lowers(ScanOp)
def _scan(plan: Plan, op: ScanOp) -> None:
    body, block, count = plan.body, op.body.block, op.states
    yields, scanned = op.yielded(op.body, ""), op.inputs[op.states :]
    for value in scanned:
        _free(plan, value.type)  # refuses an unknown rank
    given = _list(op, "scan_input_axes", len(scanned))
    axes = [normalize_axis(op, a, len(dims_of(value)), "(C3)") for a, value in zip(given, scanned, strict=True)]
    backward = _list(op, "scan_input_directions", len(scanned))
    extents = [dims_of(value)[a] for value, a in zip(scanned, axes, strict=True)]
    for other in extents[1:]:
        plan.require_equal(extents[0], other, "(C4) the scanned axes have {0} and {1} elements")
    limit = plan.dim(extents[0])
    states = [State(*four) for four in zip(op.inputs[:count], block.args, yields, op.results, strict=False)]
    out_axes, directions = (_list(op, f"scan_output_{name}", len(yields) - count) for name in ("axes", "directions"))
    rows: list[Row] = []
    for yielded, result, at, back in zip(yields[count:], op.results[count:], out_axes, directions, strict=True):
        _free(plan, yielded.type)
        rows.append(Row(yielded, result, normalize_axis(op, at, len(dims_of(yielded)) + 1, "(C3)"), bool(back)))

    def begin(turn: SSAValue) -> None:
        for value, argument, at, back in zip(scanned, block.args[count:], axes, backward, strict=True):
            place = plan.body.minus(plan.body.minus(limit, 1), turn) if back else turn
            _slice(plan, value, argument, at, place)

    repetition = _Repetition(plan, op, block, states, rows, limit, body.true(), is_counted=True)
    repetition.lower(begin, lambda: plan.body.true())


def _list(op: ScanOp, name: str, count: int) -> Sequence[int]:
    found = op.attr(name)
    return (0,) * count if found is None else found


def _slice(plan: Plan, value: SSAValue, argument: SSAValue, at: int, place: SSAValue) -> None:
    """Let a body's argument be one slice of a scan input."""
    dims = dims_of(value)
    rest = [*dims[:at], *dims[at + 1 :]]
    wanted = zip(dims_of(argument), rest, strict=True)
    plan.bind_all([(d, plan.dim(own), f"a slice's extent along axis {k}") for k, (d, own) in enumerate(wanted)])
    offset = plan.body.times(place, plan.count(dims[at + 1 :]))
    if all(d.static_value == 1 for d in dims[:at]):
        plan.set_buffer(argument, plan.body.add(ViewOp(plan.buffer(value), offset)))
        return
    source = row_major(dims)
    moved = [axis(d, s, t) for d, s, t in zip(rest, [*source[:at], *source[at + 1 :]], row_major(rest), strict=True)]
    made = plan.workspace(dtype_of(value), [plan.dim(d) for d in rest])
    copy_region(plan, "slice", moved, plan.buffer(value), made, source_offset=offset)
    plan.set_buffer(argument, made)


class _Repetition:
    """A loop under construction."""

    def __init__(
        self,
        plan: Plan,
        op: Any,
        block: Block,
        states: Sequence[State],
        rows: Sequence[Row],
        limit: SSAValue,
        going: SSAValue,
        is_counted: bool,
    ) -> None:
        self.plan, self.op, self.block, self.states, self.rows = plan, op, block, states, rows
        self.limit, self.going = limit, going
        self.is_counted = is_counted
        """Whether there are exactly `limit` turns."""

    def lower(self, begin: Callable[[SSAValue], None], next_condition: Callable[[], SSAValue]) -> None:
        """Append the loop; `begin(turn)` gives the body its other arguments, `next_condition()` says if it goes on."""
        plan, op = self.plan, self.op
        free = [_free(plan, s.argument.type) for s in self.states]
        stacks = [_Stack(self, row) for row in self.rows]
        initial = [
            _leave(plan, s.initial, s.argument.type, axes, f"carried value {k} at first")
            for k, (s, axes) in enumerate(zip(self.states, free, strict=True))
        ]
        flat = [part for each in initial for part in each] + [part for stack in stacks for part in stack.initial]
        with plan.scope([INDEX, *(part.type for part in flat)]) as (region, body):
            turn = region.block.args[0]
            arguments = _dealt(region.block.args[1:], [*initial, *(stack.initial for stack in stacks)])
            for k, (s, axes, parts) in enumerate(zip(self.states, free, arguments, strict=False)):
                _arrive(plan, s.argument, parts, axes, f"carried value {k}")
            begin(turn)
            homes = [self._home(s, turn) for s in self.states]
            for stack, parts in zip(stacks, arguments[len(self.states) :], strict=True):
                stack.begin(turn, parts)
            lower_block(plan, self.block)
            plan.current = op
            for stack in stacks:
                stack.add()
            condition = next_condition()
            out: list[SSAValue] = []
            for k, (s, axes, parts, home) in enumerate(zip(self.states, free, arguments, homes, strict=False)):
                what = f"carried value {k} after an iteration"
                left = _leave(plan, s.after, s.argument.type, axes, what)
                out += [self._kept(s, left, parts[0], home, turn, region), *left[1:]]
            out += [part for stack in stacks for part in stack.next]
            body.block.add_op(YieldOp([condition, *out]))
            for value in (*(s.after for s in self.states), *(row.yielded for row in self.rows)):
                plan.places.pop(value, None)
        made = RepeatOp(self.limit, self.going, flat, region)
        made.location = op.location
        plan.body.block.add_op(made)
        parts = _dealt(made.carried, [*initial, *(stack.initial for stack in stacks)])
        for k, (s, axes, each) in enumerate(zip(self.states, free, parts, strict=False)):
            self._finish(s, axes, each, f"carried value {k} after the loop")
        for stack, each in zip(stacks, parts[len(self.states) :], strict=True):
            stack.finish(made.count, each)

    def _home(self, s: State, turn: SSAValue) -> list[SSAValue]:
        """Have the op that computes the next state write it where it is carried; what it took is in the list."""
        taken: list[SSAValue] = []

        def place(extents: Sequence[SSAValue], element: Attribute) -> SSAValue:
            taken.append(self.plan.body.add(AlternateOp(turn, extents, element)))
            return taken[-1]

        if isinstance(s.after.owner, Operation) and s.after.owner.parent_block() is self.block:
            self.plan.places.setdefault(s.after, place)
        return taken

    def _kept(
        self, s: State, left: list[SSAValue], before: SSAValue, home: list[SSAValue], turn: SSAValue, region: Region
    ) -> SSAValue:
        """The buffer of the next state: one that the next turn does not write."""
        buffer, plan = left[0], self.plan
        if buffer is before or buffer in home or _is_outside(buffer, region):
            return buffer
        if is_container(s.argument.type):
            extents, item = [plan.product(left[1], record_words(plan))], 8
        else:
            extents, item = [plan.dim(d) for d in dims_of(s.after)], dtype_of(s.after).itemsize
        made = plan.body.add(AlternateOp(turn, extents, buffer.type.element))  # pyright: ignore[reportAttributeAccessIssue]
        size: IndexLike = item
        for extent in extents:
            size = plan.product(size, extent)
        plan.body.block.add_op(CopyOp(buffer, made, plan.body.index(size)))
        return made

    def _finish(self, s: State, axes: Sequence[int], parts: Sequence[SSAValue], what: str) -> None:
        plan, result = self.plan, s.result
        if is_container(result.type):
            plan.containers[result] = Container(*parts)
            return
        carried = dict(zip(axes, parts[1:], strict=True))
        argument = type_dims(s.argument.type)
        extents = [carried[k] if k in carried else plan.dim(d) for k, d in enumerate(argument)]
        _arrive(plan, result, [parts[0], *extents], range(len(extents)), what)


def _dealt(values: Sequence[SSAValue], like: Sequence[Sequence[SSAValue]]) -> list[Sequence[SSAValue]]:
    out: list[Sequence[SSAValue]] = []
    at = 0
    for each in like:
        out.append(values[at : at + len(each)])
        at += len(each)
    return out


def _is_outside(buffer: SSAValue, region: Region) -> bool:
    """Whether a buffer is there, unchanged, for as long as the loop runs."""
    owner = buffer.owner
    if isinstance(owner, Operation) and isinstance(owner, LASTING):
        return True
    block = owner if isinstance(owner, Block) else owner.parent_block()
    while block is not None:
        around = block.parent_region()
        if around is region:
            return False
        parent = None if around is None else around.parent_op()
        block = None if parent is None else parent.parent_block()
    return True


class _Stack:
    """The rows of a result as they come: [turns, extents of a row], moved behind the loop if that is not the result."""

    def __init__(self, loop: _Repetition, row: Row) -> None:
        plan = loop.plan
        self.loop, self.row = loop, row
        self.free = _free(plan, row.yielded.type)
        self.dims = dims_of(row.yielded)
        self.next: list[SSAValue] = []
        self.turn: SSAValue | None = None
        self.parts: Sequence[SSAValue] = ()
        self.taken: list[SSAValue] = []
        self.whole: SSAValue | None = None
        """The buffer for all rows, where it can be taken before the loop."""
        self.initial: list[SSAValue] = []
        if loop.is_counted and not self.free:
            plan.bind_all([(dims_of(row.result)[row.axis], loop.limit, "the number of rows")])
            if row.axis == 0:
                self.whole = plan.new_buffer(row.result)
            else:
                extents = [loop.limit, *(plan.dim(d) for d in self.dims)]
                self.whole = plan.workspace(dtype_of(row.yielded), extents)
            return
        self.grown = plan.growing
        plan.growing += 1
        zero = plan.body.index(0)
        empty = plan.body.add(NothingOp(scalar_ir(dtype_of(row.yielded))))
        self.initial = [empty, *([zero] * len(self.free))]

    def begin(self, turn: SSAValue, parts: Sequence[SSAValue]) -> None:
        """At the start of a turn: have the op that computes the row write it into its place, if that is known."""
        plan, row = self.loop.plan, self.row
        self.turn, self.parts = turn, parts
        if self.whole is None:
            return

        def place(extents: Sequence[SSAValue], element: Attribute) -> SSAValue:
            self.taken.append(self._place(self.whole))
            return self.taken[-1]

        if isinstance(row.yielded.owner, Operation) and row.yielded.owner.parent_block() is self.loop.block:
            plan.places.setdefault(row.yielded, place)

    def _place(self, whole: SSAValue | None) -> SSAValue:
        """Where this turn's row goes."""
        plan, turn = self.loop.plan, self.turn
        if whole is None or turn is None:
            raise UnsupportedError("a row stands outside of its loop")
        body = plan.body
        at = body.minus(body.minus(self.loop.limit, 1), turn) if self.row.backward else turn
        return body.add(ViewOp(whole, body.times(at, plan.count(self.dims))))

    def add(self) -> None:
        """At the end of a turn: the row is in its place."""
        plan, row, turn = self.loop.plan, self.row, self.turn
        if turn is None:
            return
        body, buffer = plan.body, plan.buffer(row.yielded)
        size = plan.product(plan.count(self.dims), dtype_of(row.yielded).itemsize)
        if self.whole is not None:
            if buffer not in self.taken:
                body.block.add_op(CopyOp(buffer, self._place(self.whole), size))
            return
        extents = [plan.dim(self.dims[k]) for k in self.free]
        first = body.compare("eq", turn, 0)
        for extent, before in zip(extents, self.parts[1:], strict=True):
            failure = plan.failure("(C5) rows of different shapes cannot be stacked: an axis has {0} and {1} elements")
            body.require(body.either(first, body.compare("eq", extent, before)), failure, before, extent)
        turns = self.loop.limit if self.loop.is_counted else body.plus(turn, 1)
        grown = GrowOp(self.parts[0], plan.product(turn, size), plan.product(turns, size), self.grown)
        whole = body.add(grown)
        body.block.add_op(CopyOp(buffer, self._place(whole), size))
        self.next = [whole, *extents]

    def finish(self, turns: SSAValue, parts: Sequence[SSAValue]) -> None:
        """Behind the loop: the result."""
        plan, row = self.loop.plan, self.row
        out = dims_of(row.result)
        rest = [*out[: row.axis], *out[row.axis + 1 :]]
        whole = self.whole
        if whole is None:
            whole = parts[0]
            carried = dict(zip(self.free, parts[1:], strict=True))
            extents = [carried[k] if k in carried else plan.dim(d) for k, d in enumerate(self.dims)]
            plan.bind_all([(out[row.axis], turns, "the number of rows")])
        else:
            extents = [plan.dim(d) for d in self.dims]
        pairs = zip(rest, extents, strict=True)
        plan.bind_all([(d, extent, f"a row's extent along axis {k}") for k, (d, extent) in enumerate(pairs)])
        if row.axis == 0:
            if self.whole is None:
                plan.set_buffer(row.result, whole)
            return
        moved = [out[row.axis], *rest]
        target = row_major(out)
        strides = [target[row.axis], *target[: row.axis], *target[row.axis + 1 :]]
        axes = [axis(d, s, t) for d, s, t in zip(moved, row_major(moved), strides, strict=True)]
        copy_region(plan, "stack", axes, whole, plan.new_buffer(row.result))
