"""Elementwise groups that read through views: transposes, reshapes, expansions and slices become index maps of loads.

A group's root is an elementwise op or a transpose; its tree goes up through ops whose only user is in the group. Every
dim of a value in the tree is a product of axes of the root's space ("digits", outermost first); a reshape may split an
axis. So a chain of transposes composes to what each operand's loads need, or to nothing.

The innermost axis of the space must be contiguous (or constant) in every operand: where it isn't, the transpose that
makes it so, the one next to the operand, stays a kernel of its own, which works by tiles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.sx.reshape import ExpandOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.values import known_ints

RESHAPES = (ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp)
SHORTEST_RUN = 8
"""Contiguous runs that are shorter are left to the kernels that move elements."""


class NoView(Exception):
    """A value does not lie along the axes of the root's space."""


@dataclass(eq=False)
class Axis:
    """An axis of the root's space; a reshape may have split it."""

    extent: Dim
    parts: tuple[Axis, ...] = ()

    def leaves(self) -> list[Axis]:
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]


Digits = list[list[Axis]]
"""For each dim of a value the axes whose product it is; none for one that is 1 or broadcast."""


@dataclass(eq=False)
class Entry:
    """A value at a place of the space: computed by an op from others, or read."""

    value: SSAValue
    digits: Digits
    op: Any = None
    inputs: list[Entry | None] = field(default_factory=list)
    steps: tuple[int, ...] | None = None
    """Of a slice: the step along each dim of `source`, and where it begins."""
    source: SSAValue | None = None
    first: int = 0
    path: tuple[Operation, ...] = ()
    """The transposes between the root and a value that is read."""

    def strides(self) -> dict[Axis, Dim]:
        """The stride of what is read along each axis, in elements."""
        tensor = self.value if self.source is None else self.source
        out: dict[Axis, Dim] = {}
        for place, (axes, stride) in enumerate(zip(self.digits, row_major(dims_of(tensor)), strict=True)):
            at = stride * (self.steps[place] if self.steps else 1)
            for axis in reversed([leaf for a in axes for leaf in a.leaves()]):
                out[axis] = at
                at = at * axis.extent
        return out


@dataclass(eq=False)
class View:
    """A group: the root, its space, and all values, inputs before what uses them."""

    root: Any
    axes: list[Axis]
    entries: list[Entry] = field(default_factory=list)
    ops: set[Operation] = field(default_factory=set)
    is_worth_it: bool = False

    def reads(self) -> list[Entry]:
        return [e for e in self.entries if e.op is None]

    def space(self) -> list[Axis]:
        return [leaf for axis in self.axes for leaf in axis.leaves() if leaf.extent.static_value != 1]


def choose(block: Block, taken: Collection[Operation]) -> list[View]:
    """The groups that read through views; ops in `taken` stay where they are."""
    ops = list(block.ops)
    used: set[Operation] = set(taken)
    found: list[View] = []
    for root in reversed(ops):
        if root in used or not (type(root) in elementwise.SCALARS or isinstance(root, TransposeOp)):
            continue
        view = _collect(root, used)
        if view is not None:
            found.append(view)
            used |= view.ops
    return found


def _collect(root: Any, used: Collection[Operation]) -> View | None:
    """The largest group at a root whose operands are read in runs; None where no view takes part."""
    cuts: set[Operation] = set()
    while True:
        view = _Collector(root, used, cuts).collect()
        if view is None or not view.is_worth_it or len(view.ops) < 2:
            return None
        bad = next((e for e in view.reads() if not _is_in_runs(view, e)), None)
        if bad is None:
            return view
        cut = next((op for op in reversed(bad.path) if op is not root), None)
        if cut is None:
            return None
        cuts.add(cut)


def _is_in_runs(view: View, entry: Entry) -> bool:
    space = view.space()
    if not space:
        return True
    strides = entry.strides()
    if not strides or elementwise.known_number(entry.value) is not None:
        return True
    innermost = strides.get(space[-1], Dim.of(0)).static_value
    extent = space[-1].extent.static_value
    if innermost == 0:
        return True
    return innermost == 1 and (extent is None or extent >= SHORTEST_RUN or _runs_on(space, strides))


def _runs_on(space: Sequence[Axis], strides: dict[Axis, Dim]) -> bool:
    """Whether the whole space is one run."""
    wanted = Dim.of(1)
    for axis in reversed(space):
        if equal(strides.get(axis, Dim.of(0)), wanted) is not Proof.PROVED:
            return False
        wanted = wanted * axis.extent
    return True


class _Collector:
    def __init__(self, root: Any, used: Collection[Operation], cuts: Collection[Operation]) -> None:
        self.root, self.used, self.cuts = root, used, cuts
        self.view = View(root, [Axis(d) for d in dims_of(root.results[0])])
        self.known: dict[tuple[SSAValue, tuple[tuple[int, ...], ...]], Entry] = {}

    def collect(self) -> View | None:
        try:
            self._value(self.root.results[0], [[a] for a in self.view.axes], (), is_root=True)
        except NoView:
            return None
        return self.view

    def _value(
        self, value: SSAValue, digits: Digits, path: tuple[Operation, ...], is_root: bool = False, joins: bool = True
    ) -> Entry:
        key = value, tuple(tuple(id(a) for a in axes) for axes in digits)
        if key not in self.known:
            self.known[key] = self._make(value, digits, path, is_root, joins)
        return self.known[key]

    def _make(self, value: SSAValue, digits: Digits, path: tuple[Operation, ...], is_root: bool, joins: bool) -> Entry:
        op = value.owner
        if is_root or (joins and self._may_join(op, value)):
            made = self._through(op, digits, path)
            if made is not None:
                return made
            if is_root:
                raise NoView
        entry = Entry(value, digits, path=path)
        self.view.entries.append(entry)
        return entry

    def _may_join(self, op: Any, value: SSAValue) -> bool:
        if not isinstance(op, Operation) or op in self.used or op in self.cuts or len(op.results) != 1:
            return False
        if op.parent_block() is not self.root.parent_block():
            return False
        if len(self.view.ops) >= elementwise.MAX_GROUP:
            return False
        users = {use.operation for use in value.uses}
        return len(users) == 1 and (users <= self.view.ops)

    def _through(self, op: Any, digits: Digits, path: tuple[Operation, ...]) -> Entry | None:
        """What an op that joins makes of its operands; None where it does not join."""
        if type(op) in elementwise.SCALARS:
            return self._elementwise(op, digits, path)
        if isinstance(op, TransposeOp):
            rank = len(dims_of(op.data))
            perm = op.attr("perm") or tuple(reversed(range(rank)))
            turned: Digits = [[] for _ in range(rank)]
            for place, p in enumerate(perm):
                turned[p] = digits[place]
            self._joined(op)
            return self._value(op.data, turned, (*path, op))
        if isinstance(op, ExpandOp):
            dims, out = dims_of(op.data), dims_of(op.output)
            narrowed = _broadcast(dims, out, digits)
            if narrowed is None or any(not d.is_static and d not in dims for d in out):
                return None  # where the run brings an extent, the op's own lowering reads it
            self._joined(op)
            return self._value(op.data, narrowed, path, joins=False)
        if isinstance(op, RESHAPES):
            split = _split(digits, dims_of(op.data))
            if split is None:
                return None
            self._joined(op, counts=_is_computed(op.data))
            return self._value(op.data, split, path)
        if isinstance(op, SliceOp):
            return self._slice(op, digits, path)
        return None

    def _joined(self, op: Operation, counts: bool = True) -> None:
        self.view.ops.add(op)
        self.view.is_worth_it |= counts

    def _elementwise(self, op: Any, digits: Digits, path: tuple[Operation, ...]) -> Entry | None:
        dims = dims_of(op.results[0])
        parts: list[tuple[SSAValue, Digits] | None] = []
        for slot in elementwise.read_slots(op):
            narrowed = None if slot is None else _broadcast(dims_of(slot), dims, digits)
            if slot is not None and narrowed is None:
                return None
            parts.append(None if slot is None or narrowed is None else (slot, narrowed))
        self._joined(op, counts=False)
        # What is broadcast is computed once, not for every place that it goes to.
        inputs = [
            None if part is None else self._value(*part, path, joins=elementwise.same_extents(dims_of(part[0]), dims))
            for part in parts
        ]
        entry = Entry(op.results[0], digits, op, inputs)
        self.view.entries.append(entry)
        return entry

    def _slice(self, op: Any, digits: Digits, path: tuple[Operation, ...]) -> Entry | None:
        """A slice of known bounds reads its operand with steps from a first place on."""
        dims, out = dims_of(op.data), dims_of(op.output)
        starts, axes = known_ints(op.starts), known_ints(op.axes) if op.axes is not None else None
        steps = known_ints(op.steps) if op.steps is not None else [1] * len(starts or ())
        if starts is None or steps is None or (op.axes is not None and axes is None):
            return None
        if any(d.static_value is None for d in (*dims, *out)) or any(d.static_value == 0 for d in out):
            return None
        first, along = [0] * len(dims), [1] * len(dims)
        for axis, start, step in zip(axes if axes is not None else range(len(starts)), starts, steps, strict=False):
            size = dims[axis].static_value or 0
            begin = start + size if start < 0 else start
            first[axis % len(dims)] = min(max(begin, 0), size - 1 if step < 0 else size)
            along[axis % len(dims)] = step
        strides = row_major(dims)
        offset = sum(f * (s.static_value or 0) for f, s in zip(first, strides, strict=True))
        self._joined(op)
        entry = Entry(op.output, digits, steps=tuple(along), source=op.data, first=offset, path=path)
        self.view.entries.append(entry)
        return entry


def _is_computed(value: SSAValue) -> bool:
    return type(value.owner) in elementwise.SCALARS or isinstance(value.owner, TransposeOp)


def _broadcast(shape: Sequence[Dim], dims: Sequence[Dim], digits: Digits) -> Digits | None:
    """The digits of an operand that broadcasts to these dims; None where only the run knows how."""
    out: Digits = []
    skip = len(dims) - len(shape)
    for own, full, axes in zip(shape, dims[skip:], digits[skip:], strict=True):
        if own.static_value == 1:
            out.append([])
        elif equal(own, full) is Proof.PROVED:
            out.append(axes)
        else:
            return None
    return out


def _split(digits: Digits, dims: Sequence[Dim]) -> Digits | None:
    """The digits of a reshape's operand: the same axes in the same order, dealt out to other dims."""
    axes = [leaf for dim in digits for axis in dim for leaf in axis.leaves()]
    out: Digits = []
    for dim in reversed(dims):
        own: list[Axis] = []
        rest = dim
        while rest.static_value != 1:
            if not axes:
                return None
            axis = axes.pop()
            if equal(axis.extent, rest) is Proof.PROVED:
                own.append(axis)
                rest = Dim.of(1)
                continue
            have, need = axis.extent.static_value, rest.static_value
            if have is None or need is None or have == 0 or need == 0:
                return None
            if need % have == 0:
                own.append(axis)
                rest = Dim.of(need // have)
            elif have % need == 0:
                upper, lower = Axis(Dim.of(have // need)), Axis(Dim.of(need))
                axis.parts = (upper, lower)
                axes.append(upper)
                own.append(lower)
                rest = Dim.of(1)
            else:
                return None
        out.append(own[::-1])
    if any(axis.extent.static_value != 1 for axis in axes):
        return None
    return out[::-1]


# ---- lowering


def lower(plan: Plan, view: View) -> None:
    """Lower a group as one kernel."""
    for op in view.ops:
        if type(op) in elementwise.SCALARS:
            elementwise.check_extents(plan, op)
    kernel = plan.kernel(view.root.name.removeprefix("sx."))
    reads = [e for e in view.reads() if elementwise.known_number(e.value) is None]
    space, table = _merged(view.space(), [e.strides() for e in reads])
    bounds = [kernel.extent(extent) for extent in space]
    buffers = {e: kernel.read(e.value if e.source is None else e.source) for e in reads}
    strides = {e: [kernel.extent(s) for s in line] for e, line in zip(reads, table, strict=True)}
    depth_of: dict[Entry, int] = {}
    for entry in view.entries:
        if entry in strides:
            line = table[reads.index(entry)]
            depth_of[entry] = max((k + 1 for k, s in enumerate(line) if s.static_value != 0), default=0)
        else:
            depth_of[entry] = max((depth_of[i] for i in entry.inputs if i is not None), default=0)
    target = kernel.write(view.root.results[0])
    values: dict[Entry, SSAValue] = {}
    last = view.entries[-1]

    def enter(b: Body, depth: int, indices: Sequence[SSAValue]) -> None:
        for entry in view.entries:
            if depth_of[entry] == depth:
                values[entry] = _emitted(b, entry, buffers, strides, values, indices)

    def value(b: Body) -> SSAValue:
        dtype = dtype_of(last.value)
        return b.convert(values[last], compute_dtype(dtype), dtype)

    elementwise.stored_nest(kernel, bounds, view.root.results[0], target, value, enter)
    kernel.launch()


def _emitted(
    b: Body,
    entry: Entry,
    buffers: dict[Entry, SSAValue],
    strides: dict[Entry, list[SSAValue]],
    values: dict[Entry, SSAValue],
    indices: Sequence[SSAValue],
) -> SSAValue:
    dtype = dtype_of(entry.value)
    if entry.op is None:
        number = elementwise.known_number(entry.value)
        if number is not None:
            return b.const(compute_dtype(dtype), number)
        used = strides[entry][: len(indices)]
        offset = b.plus(elementwise.offset_of(b, indices, used), entry.first)
        return b.convert(b.load(buffers[entry], offset), dtype, compute_dtype(dtype))
    args = [None if i is None else values[i] for i in entry.inputs]
    value = elementwise.SCALARS[type(entry.op)](b, entry.op, *args)
    wide = compute_dtype(dtype)
    return b.convert(b.convert(value, wide, dtype), dtype, wide)


def _merged(space: Sequence[Axis], lines: Sequence[dict[Axis, Dim]]) -> tuple[list[Dim], list[list[Dim]]]:
    """The space with neighbouring axes merged where every operand steps on from one to the other."""
    zero = Dim.of(0)
    extents: list[Dim] = []
    table: list[list[Dim]] = [[] for _ in lines]
    for axis in space:
        own = [line.get(axis, zero) for line in lines]
        outer = [line[-1] for line in table] if extents else []
        if extents and all(equal(o, s * axis.extent) is Proof.PROVED for o, s in zip(outer, own, strict=True)):
            extents[-1] = extents[-1] * axis.extent
            for line, stride in zip(table, own, strict=True):
                line[-1] = stride
        else:
            extents.append(axis.extent)
            for line, stride in zip(table, own, strict=True):
                line.append(stride)
    return extents, table
