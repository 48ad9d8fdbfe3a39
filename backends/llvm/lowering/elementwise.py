"""Elementwise ops: scalar bodies, and their fusion into one map kernel.

An op registers how one element of its result follows from one element of each operand (`@scalar(Op)`). A producer
all of whose users are in one group over the same extents is inlined into that group's kernel. The kernel's iteration
space is the result's, with neighbouring dims merged where every operand is either whole or broadcast over both.
Whatever does not change along the inner loops is loaded and computed outside of them.

Where only the run knows whether an operand is broadcast, the kernel has two forms: one for operands that all turn out
to be whole (then the space is as flat as it can be), one for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects import func
from xdsl.ir import Block, Operation, OpResult, SSAValue

from sardonyx.backends.llvm.codegen import nontemporal
from sardonyx.backends.llvm.codegen.nontemporal import LINE
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.registries import SCALARS, ScalarBody
from sardonyx.dialects.attributes import WeightAttr, dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, Symbol, equal
from sardonyx.dialects.kernel.nontemporal import NontemporalOp
from sardonyx.dialects.sx.constant import ConstantOp

MAX_GROUP = 24
"""How many ops one kernel holds at most: beyond, registers spill and compile time grows."""

SMALLEST_SPLIT = 4096
"""A kernel of fewer points is never split."""

READS: dict[type[Operation], int] = {}
"""How many leading slots an op's body takes, where that is not all of them."""


def scalar(*ops: type[SxOp], reads: int | None = None) -> Callable[[ScalarBody], ScalarBody]:
    """Register the scalar body of these ops; with `reads` it takes only that many leading operands."""

    def register(body: ScalarBody) -> ScalarBody:
        for op in ops:
            SCALARS[op] = body
            if reads is not None:
                READS[op] = reads
        return body

    return register


def read_slots(op: Any) -> tuple[SSAValue | None, ...]:
    """The slots that the op's body takes."""
    return op.slots[: READS.get(type(op))]


def choose_inlined(block: Block, taken: Collection[Operation] = ()) -> set[Operation]:
    """The elementwise ops that are computed inside the kernel of their users, which all are in one group; none of
    `taken`."""
    inlined: set[Operation] = set()
    root_of: dict[Operation, Operation] = {}
    size: dict[Operation, int] = {}
    for op in reversed(list(block.ops)):
        if type(op) not in SCALARS or op in taken:
            continue
        own = op.results[0]
        users = {use.operation for use in own.uses}
        roots = {root_of.get(user) for user in users}
        root = roots.pop() if len(roots) == 1 and len(op.results) == 1 else None
        fits = root is not None and size[root] < MAX_GROUP and any(own in read_slots(user) for user in users)
        if root is not None and fits and all(same_extents(dims_of(own), dims_of(u.results[0])) for u in users):
            inlined.add(op)
        else:
            root, size[op] = op, 0
        root_of[op] = root
        size[root] += 1
    return inlined


def same_extents(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(equal(x, y) is Proof.PROVED for x, y in zip(a, b, strict=True))


def lower_group(plan: Plan, op: SxOp, inlined: set[Operation]) -> None:
    """Lower an elementwise op together with the producers that are inlined into it."""
    ops = members(op, inlined)
    for member in ops:
        check_extents(plan, member)
    result = op.results[0]
    made = {member.results[0] for member in ops}
    reads = list(dict.fromkeys(s for m in ops for s in read_slots(m) if s is not None and s not in made))
    known = {leaf: number for leaf in reads if (number := known_number(leaf)) is not None}
    leaves = [leaf for leaf in reads if leaf not in known]
    dims, shapes = dims_of(result), [dims_of(leaf) for leaf in leaves]
    kernel = plan.kernel(op.name.removeprefix("sx."))
    group = Group(ops, leaves, [kernel.read(leaf) for leaf in leaves], kernel.write(result), known)
    general = _space(plan, kernel, dims, shapes, whole=False)
    if not general.is_uncertain:
        group.emit(kernel, general)
    else:
        flat = _space(plan, kernel, dims, shapes, whole=True)
        all_whole = kernel.compare("ne", kernel.outer(_all_whole(plan, dims, shapes)), 0)
        kernel.when(all_whole, lambda b: group.emit(b, flat), lambda b: group.emit(b, general))
    kernel.launch()


def known_number(value: SSAValue) -> float | int | None:
    """The content of a constant of one element, which kernels hold as it is."""
    owner = value.owner
    if not isinstance(owner, ConstantOp) or isinstance(owner.value, WeightAttr):
        return None
    if any(d.static_value != 1 for d in dims_of(value)):
        return None
    number = owner.array().reshape(-1)[0]
    return float(number) if dtype_of(value).is_float else int(number)


def members(op: SxOp, inlined: set[Operation]) -> list[Any]:
    """The ops of a group, producers before users."""
    order: dict[Operation, None] = {}
    stack: list[tuple[Any, bool]] = [(op, False)]
    while stack:
        at, done = stack.pop()
        if done:
            order.setdefault(at)
            continue
        stack.append((at, True))
        for slot in reversed(read_slots(at)):
            if isinstance(slot, OpResult) and slot.op in inlined and type(slot.op) in SCALARS and slot.op not in order:
                stack.append((slot.op, False))
    return list(order)


def check_extents(plan: Plan, op: Any) -> None:
    """Require that the operands fit the result where only the run can tell."""
    current, plan.current = plan.current, op
    for slot in read_slots(op):
        if slot is not None:
            check_fits(plan, dims_of(slot), dims_of(op.results[0]))
    plan.current = current


def check_fits(plan: Plan, shape: Sequence[Dim], dims: Sequence[Dim]) -> None:
    """Require that a shape broadcasts to these dims where only the run can tell."""
    for own, full in zip(shape, dims[len(dims) - len(shape) :], strict=True):
        if own.static_value == 1 or equal(own, full) is Proof.PROVED:
            continue
        extent = plan.dim(full)
        if _includes(full, own):
            continue  # the extents were compared where the result's was computed
        own_extent, body = plan.dim(own), plan.body
        fits = body.either(body.compare("eq", own_extent, 1), body.compare("eq", own_extent, extent))
        body.require(fits, plan.failure("the extents {0} and {1} do not broadcast"), own_extent, extent)


def _includes(full: Dim, own: Dim) -> bool:
    """Whether an extent is a broadcast that `own`, or what `own` is a broadcast of, takes part in."""
    arguments = _broadcast_arguments(full)
    return arguments is not None and set(_broadcast_arguments(own) or (own,)) <= set(arguments)


def _broadcast_arguments(dim: Dim) -> tuple[Dim, ...] | None:
    terms = dim.terms()
    if len(terms) != 1 or terms[0][0] != 1 or len(terms[0][1]) != 1:
        return None
    atom = terms[0][1][0]
    return atom.args if not isinstance(atom, Symbol) and atom.fn == "broadcast" else None


@dataclass
class Group:
    """Ops that one kernel computes for each point: from the leaves' buffers into the target."""

    ops: list[Any]
    leaves: list[SSAValue]
    buffers: list[SSAValue]
    target: SSAValue
    numbers: dict[SSAValue, float | int]
    """The operands that are one known number."""

    def emit(self, b: Body, space: Space) -> None:
        """The loops of the kernel; every op stands in the outermost loop in which its operands are known."""
        depth_of = dict(zip(self.leaves, (line.depth for line in space.lines), strict=True))
        for op in self.ops:
            known = [depth_of.get(slot, 0) for slot in read_slots(op) if slot is not None]
            depth_of[op.results[0]] = max(known, default=0)
        values: dict[SSAValue, SSAValue] = {}

        def enter(inner: Body, depth: int, indices: Sequence[SSAValue]) -> None:
            for leaf, buffer, line in zip(self.leaves, self.buffers, space.lines, strict=True):
                if line.depth == depth:
                    dtype = dtype_of(leaf)
                    values[leaf] = inner.convert(line.load(inner, buffer, indices), dtype, compute_dtype(dtype))
            if depth == 0:
                for leaf, number in self.numbers.items():
                    values[leaf] = inner.const(compute_dtype(dtype_of(leaf)), number)
            for op in self.ops:
                if depth_of[op.results[0]] == depth:
                    values[op.results[0]] = element(inner, op, values, last=op is self.ops[-1])

        result = self.ops[-1].results[0]
        stored_nest(b, space.bounds, result, self.target, lambda _: values[result], enter)


def element(b: Body, op: Any, values: dict[SSAValue, SSAValue], last: bool) -> SSAValue:
    """One element of the op; it is rounded to the op's dtype, as it is where the op stands alone."""
    args = [None if slot is None else values[slot] for slot in read_slots(op)]
    value = SCALARS[type(op)](b, op, *args)
    dtype = dtype_of(op.results[0])
    wide = compute_dtype(dtype)
    rounded = b.convert(value, wide, dtype)
    return rounded if last else b.convert(rounded, dtype, wide)


# ---- iteration spaces

Stride = tuple[str, Dim | None, list[Dim]]


@dataclass(frozen=True)
class Line:
    """How one operand lies in a merged space: a mode and a stride per extent."""

    modes: tuple[str, ...]
    strides: tuple[SSAValue, ...]

    @property
    def depth(self) -> int:
        """The number of outer loops on whose indices the operand depends."""
        return max((axis + 1 for axis, mode in enumerate(self.modes) if mode != "one"), default=0)

    def load(self, b: Body, buffer: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        used = indices[: self.depth]
        offset = offset_of(b, used, self.strides[: self.depth])
        if self.depth != len(self.modes) or not self.modes or self.modes[-1] != "maybe":
            return b.load(buffer, offset)
        # The innermost stride is 0 or 1, and each has a load of its own.
        outer = offset_of(b, used[:-1], self.strides[: self.depth - 1])
        whole = b.compare("ne", self.strides[-1], 0)
        return b.when(whole, lambda t: [t.load(buffer, t.plus(outer, indices[-1]))], lambda t: [t.load(buffer, outer)])[
            0
        ]


@dataclass(frozen=True)
class Space:
    """A merged iteration space inside a kernel: the extents, outermost first, and how each operand lies in it."""

    bounds: list[SSAValue]
    lines: list[Line]

    @property
    def is_uncertain(self) -> bool:
        """Whether only the run knows if some operand is broadcast."""
        return any("maybe" in line.modes for line in self.lines)


def _space(plan: Plan, kernel: Kernel, dims: Sequence[Dim], shapes: Sequence[Sequence[Dim]], whole: bool) -> Space:
    extents, table = merge_dims(dims, shapes, whole)
    lines = [
        Line(tuple(mode for mode, _, _ in line), tuple(stride_of(plan, kernel, stride) for stride in line))
        for line in table
    ]
    return Space([kernel.outer(plan.count(list(e))) for e in extents], lines)


def stride_of(plan: Plan, kernel: Kernel, stride: Stride) -> SSAValue:
    """The stride of one operand along a merged extent, as an index inside the kernel."""
    mode, extent, below = stride
    if mode == "one":
        return kernel.index(0)
    step = plan.count(below)
    if mode == "maybe" and extent is not None:
        one = plan.body.compare("eq", plan.dim(extent), 1)
        step = plan.body.select(one, plan.body.index(0), step)
    return kernel.outer(step)


def _all_whole(plan: Plan, dims: Sequence[Dim], shapes: Sequence[Sequence[Dim]]) -> SSAValue:
    """1 where no extent is broadcast that only the run knows, else 0: an index of the plan."""
    body = plan.body
    known: SSAValue | None = None
    for shape in shapes:
        for own, full in zip(shape, dims[len(dims) - len(shape) :], strict=True):
            if own.static_value == 1 or equal(own, full) is Proof.PROVED:
                continue
            same = body.compare("eq", plan.dim(own), plan.dim(full))
            known = same if known is None else body.both(known, same)
    one = body.index(1)
    return one if known is None else body.select(known, one, body.index(0))


def merge_dims(
    dims: Sequence[Dim], operands: Sequence[Sequence[Dim]], whole: bool = False
) -> tuple[list[list[Dim]], list[list[Stride]]]:
    """Merge neighbouring dims of an iteration space.

    Returns the merged extents, outermost first, each as the dims it multiplies, and per operand and merged extent
    `(mode, extent, dims below)`: mode is 'full', 'one' (broadcast) or 'maybe' (broadcast if the operand's `extent` is
    1 at run time; never with `whole`, which takes those for full); the stride of a full one is the product of the
    operand's own dims below it.
    """
    rank = len(dims)
    modes: list[list[str]] = []
    for shape in operands:
        padded = [Dim.of(1)] * (rank - len(shape)) + list(shape)
        row: list[str] = []
        for own, full in zip(padded, dims, strict=True):
            if own.static_value == 1 and full.static_value != 1:
                row.append("one")
            elif whole or equal(own, full) is Proof.PROVED:
                row.append("full")
            else:
                row.append("maybe")
        modes.append(row)
    groups: list[list[int]] = []
    for axis in range(rank):
        if dims[axis].static_value == 1:
            continue
        column = [m[axis] for m in modes]
        if groups and "maybe" not in column and column == [m[groups[-1][-1]] for m in modes]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    extents = [[dims[a] for a in group] for group in groups]
    strides: list[list[Stride]] = []
    for shape, row in zip(operands, modes, strict=True):
        padded = [Dim.of(1)] * (rank - len(shape)) + list(shape)
        line: list[Stride] = []
        for group in groups:
            last = group[-1]
            line.append((row[last], padded[last], padded[last + 1 :]))
        strides.append(line)
    return extents, strides


def offset_of(b: Body, indices: Sequence[SSAValue], strides: Sequence[IndexLike]) -> SSAValue:
    """The flat offset of a point."""
    total: IndexLike = 0
    for index, stride in zip(indices, strides, strict=True):
        total = b.plus(total, b.times(index, stride))
    return b.index(total)


def nest(
    kernel: Body,
    bounds: Sequence[IndexLike],
    point: Callable[[Body, Sequence[SSAValue], IndexLike], None],
    enter: Callable[[Body, int, Sequence[SSAValue]], None] | None = None,
) -> None:
    """Loops over a contiguous result: the outermost parallel, the innermost over vector lanes.

    `point(b, indices, flat)` is called in the innermost body with the flat offset of the point; `enter(b, depth,
    indices)` before the loops and at the start of each loop's body, `depth` being the number of loops around it.
    """

    def level(b: Body, depth: int, indices: list[SSAValue], base: IndexLike) -> None:
        if enter is not None:
            enter(b, depth, indices)
        if depth == len(bounds):
            point(b, indices, base)
            return
        last = depth == len(bounds) - 1

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            flat = inner.plus(base, index)
            level(inner, depth + 1, [*indices, index], flat if last else inner.times(flat, bounds[depth + 1]))

        b.loop(_inside(b, bounds[depth]), body, vector=last, parallel=depth == 0 and is_worth_splitting(bounds))

    level(kernel, 0, [], 0)


def stored_nest(
    b: Body,
    bounds: Sequence[IndexLike],
    result: SSAValue,
    target: SSAValue,
    value: Callable[[Body], SSAValue],
    enter: Callable[[Body, int, Sequence[SSAValue]], None],
) -> None:
    """`nest`, with `value(b)` stored at each point of the result's buffer: past the caches where it is large."""
    numbers, size = [number_of(bound) for bound in bounds], dtype_of(result).itemsize
    run = LINE if len(bounds) == 1 else numbers[-1] if bounds else None
    past: SSAValue | None = None
    if bounds and may_pass_caches(result, numbers) and (run is None or run * size % LINE == 0):
        count: IndexLike = 1
        for bound in bounds:
            count = b.times(count, bound)
        past = b.add(NontemporalOp(target, b.index(count), b.index(bounds[-1] if run is None else run)))

    def point(at: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        at.store(value(at), target, flat, past)

    nest(b, bounds, point, enter)


def may_pass_caches(result: SSAValue, extents: Sequence[int | None]) -> bool:
    """Whether a result of these extents (None: of any) can be so large that it is better written past the caches: the
    graph returns it, and nothing else reads it."""
    size = dtype_of(result).itemsize
    known = prod(e for e in extents if e is not None) * size
    is_returned = all(isinstance(use.operation, func.ReturnOp) for use in result.uses)
    return is_returned and size > 1 and (None in extents or known >= nontemporal.LARGE)


def is_worth_splitting(bounds: Sequence[IndexLike]) -> bool:
    """Whether a nest may be large enough for several threads; loops that are not split keep static bounds."""
    numbers = [number_of(bound) for bound in bounds]
    return None in numbers or prod(n or 0 for n in numbers) >= SMALLEST_SPLIT


def _inside(b: Body, bound: IndexLike) -> IndexLike:
    number = number_of(bound)
    return b.index(number) if number is not None else bound
