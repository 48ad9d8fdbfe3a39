"""Row programs: what one kernel does with each row of a tensor, as a graph of values.

A value is *full* (one per element of the row) or one per row. Full values are computed in loops over the row, values of
a row between them. A *fold* makes a row's value of a full one (a sum, a maximum), so whatever depends on it needs a
further loop over the row: its level. Folds of one level share a loop. Cheap full values are computed again in each loop
that needs them, out of what lies in the first-level cache; one that costs more waits in the result's own memory where
its dtype is that of the result.

Softmax, the normalisations and the reductions are such programs, and elementwise ops that stand before, between or
behind them join the program: see `row_fusion.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.elementwise import known_number, same_extents
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.lowering.rows import Accumulator, Placed, Row, Rows, rows_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType

Make = Callable[..., SSAValue]
"""`make(body, *input scalars) -> scalar`: one element of a value."""


@dataclass(eq=False)
class Node:
    """A value of the program, in `dtype`. `level` is the number of folds that come one after another before it."""

    dtype: DType
    full: bool
    level: int
    inputs: tuple[Node, ...] = ()
    make: Make | None = None
    is_costly: bool = False
    start: Callable[[Body], Accumulator] | None = None
    """What a fold starts from."""
    leaf: SSAValue | None = None
    """The tensor that is read."""
    within: Within | None = None
    """Of a fold to which only the part of the row with the extreme contributes."""


@dataclass(frozen=True, eq=False)
class Within:
    """Where in a row an extreme stands: `better(b, extreme of a part, that of all parts before it)` says whether in the
    later part."""

    extreme: Node
    better: Callable[[Body, SSAValue, SSAValue], SSAValue]


Values = dict[Node, SSAValue]


@dataclass
class Program:
    """The values of a program over the rows that `reduced` axes of a tensor of `dims` span."""

    plan: Plan
    dims: Sequence[Dim]
    reduced: Sequence[int]
    nodes: dict[SSAValue, Node] = field(default_factory=dict)
    _index: Node | None = None
    _count: dict[DType, Node] = field(default_factory=dict)
    _length: list[SSAValue] = field(default_factory=list)

    # ---- building
    def value(self, tensor: SSAValue) -> Node:
        """A tensor: what the program computed for it, else what it reads. It broadcasts to the dims."""
        if tensor not in self.nodes:
            shape = dims_of(tensor)
            padded = [Dim.of(1)] * (len(self.dims) - len(shape)) + list(shape)
            full = any(padded[axis].static_value != 1 for axis in self.reduced)
            dtype, number = compute_dtype(dtype_of(tensor)), known_number(tensor)
            if number is not None:
                self.nodes[tensor] = Node(dtype, False, 0, make=lambda b: b.const(dtype, number))
            else:
                self.nodes[tensor] = Node(dtype, full, 0, leaf=tensor)
        return self.nodes[tensor]

    def map(self, dtype: DType, make: Make, *inputs: Node, is_costly: bool = False) -> Node:
        """`make(body, *inputs)` for each element, or once a row where no input is full."""
        full, level = any(n.full for n in inputs), max((n.level for n in inputs), default=0)
        return Node(dtype, full, level, inputs, make, is_costly)

    def fold(self, dtype: DType, start: Callable[[Body, DType], Accumulator], term: Node) -> Node:
        """The accumulation of a value over the row; of one that is the same for all elements, over as many."""
        return Node(dtype, False, term.level + 1, (term,), start=lambda b: start(b, dtype))

    def convert(self, node: Node, dtype: DType) -> Node:
        if node.dtype == dtype:
            return node
        return self.map(dtype, lambda b, x: b.convert(x, node.dtype, dtype), node)

    def rounded(self, node: Node, dtype: DType) -> Node:
        """The value as a tensor of the dtype holds it, in the dtype in which such tensors are computed."""
        wide = compute_dtype(dtype)
        if node.dtype == dtype == wide:
            return node
        return self.map(wide, lambda b, x: b.convert(b.convert(x, node.dtype, dtype), dtype, wide), node)

    def index(self, dtype: DType) -> Node:
        """The place of an element along the only reduced axis."""
        if self._index is None:
            self._index = Node(dtype, True, 0)
        return self._index

    def count(self, dtype: DType) -> Node:
        """The length of a row as a number."""
        if dtype not in self._count:
            self._count[dtype] = Node(dtype, False, 0, make=lambda b: b.from_index(self._length[0], dtype))
        return self._count[dtype]

    # ---- emission
    def emit(self, name: str, outputs: Iterable[SSAValue], over: Any = None) -> None:
        """Launch the kernel that computes these tensors: of the dims, or one element a row.

        `over(kernel)` gives rows and length where they are not those of known axes.
        """
        kernel = self.plan.kernel(name)
        leaves = [n for n in self._reached(self.nodes[o] for o in outputs) if n.leaf is not None]
        spread = [n for n in leaves if n.leaf is not None and not same_extents(dims_of(n.leaf), self.dims)]
        if over is None:
            shapes = [dims_of(n.leaf) for n in spread if n.leaf is not None]
            rows, places = rows_of(self.plan, kernel, self.dims, self.reduced, shapes)
            length = kernel.outer(self.plan.count([self.dims[a] for a in self.reduced]))
        else:
            (rows, count), places = over(kernel), []
            length = kernel.outer(count)
        self._length[:] = [length]
        buffers = {n: kernel.read(n.leaf) for n in leaves if n.leaf is not None}
        targets = [Target(self.nodes[o], kernel.write(o), dtype_of(o)) for o in outputs]
        kind: type[Emission] = Emission
        if rows.across and len(rows.reduced) == 1:
            from sardonyx.backends.llvm.lowering.row_across import AcrossEmission

            kind = AcrossEmission
        made = kind(kernel, rows, buffers, dict(zip(spread, places, strict=True)), targets, self._index)
        made.row_count = self._row_count()
        made.emit()
        kernel.launch()

    def _row_count(self) -> SSAValue:
        return self.plan.count([d for axis, d in enumerate(self.dims) if axis not in self.reduced])

    def _reached(self, nodes: Iterable[Node]) -> list[Node]:
        found: dict[Node, None] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in found:
                found[node] = None
                stack.extend(node.inputs)
        return list(found)


@dataclass(eq=False)
class Target:
    """A result: the value that is stored, rounded to the dtype of the buffer."""

    node: Node
    buffer: SSAValue
    dtype: DType


FETCHED_AHEAD = 512
"""How many elements ahead the first loop over a row has memory fetched: while further loops go over the same row again,
nothing else would ask for the next one."""

ROWS_AT_ONCE, LONG_ROW = 4, 1024
"""Rows of at least so many elements that are read once are read so many at a time: memory answers more than one run of
reads faster than a single one (24 GB/s beside 19 on one core of the machine where this was measured)."""
PAIR, LONGEST_PAIRED = 2, 2048
"""Rows of at most so many elements that several loops go over are taken in pairs: what is the same for all rows is read
once for both, and one row's sums are combined while the other's are."""
PART = 1024
"""Elements of a part of a row in which an extreme is looked for: few enough to stay in the first-level cache."""


def _start(fold: Node, b: Body) -> Accumulator:
    if fold.start is None:
        raise ValueError("no fold")
    return fold.start(b)


def _within(place: Node) -> Within:
    if place.within is None:
        raise ValueError("a fold over all of the row")
    return place.within


@dataclass
class Loop:
    """One loop over a row: the folds it makes, the results it stores, and what it keeps for later loops."""

    folds: list[Node]
    stores: list[Target] = field(default_factory=list)
    keeps: list[tuple[Node, SSAValue]] = field(default_factory=list)

    def targets(self) -> list[Node]:
        return [*(fold.inputs[0] for fold in self.folds), *(t.node for t in self.stores)]


class Emission:
    """Emits a program: each row's loops one after the other."""

    row_count: SSAValue
    """How many rows there are, as an index of the plan."""

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        buffers: dict[Node, SSAValue],
        places: dict[Node, Placed],
        targets: Sequence[Target],
        index: Node | None,
    ) -> None:
        self.kernel, self.rows, self.buffers, self.places, self.index = kernel, rows, buffers, places, index
        self.row_targets = [t for t in targets if not t.node.full]
        self.loops = self._loops(targets)
        self.waiting: dict[Node, SSAValue] = {}
        self.fetches = False

    def emit(self) -> None:
        few = self._rows_at_once()
        together = self._find if self._finds_place() else self._go_over
        if few > 1:
            self.rows.each_few(self.kernel, few, together, LONGEST_PAIRED if few == PAIR else None)
        else:
            self.rows.each(self.kernel, lambda b, row: together(b, [row]))

    def _rows_at_once(self) -> int:
        """How many rows, each in one run of memory, are gone over side by side."""
        rows = self.rows
        if rows.across or len(rows.kept) != 1 or len(rows.reduced) != 1 or number_of(rows.reduced[0].stride) != 1:
            return 1
        extent, count = number_of(rows.reduced[0].extent), number_of(rows.kept[0].extent)
        if self._finds_place():  # of smaller elements, the comparisons take longer than memory
            few = ROWS_AT_ONCE if all(dtype_of(n.leaf).bits >= 32 for n in self.buffers if n.leaf is not None) else 1
        else:
            few = ROWS_AT_ONCE if self._reads_once() else PAIR if len(self.loops) > 1 else 1
        fits = extent is None or (extent <= LONGEST_PAIRED if few == PAIR else extent >= LONG_ROW)
        return few if fits and (count is None or count >= few) else 1

    def _reads_once(self) -> bool:
        """Whether each row is gone over once, for what it comes to alone."""
        return len(self.loops) == 1 and not self.loops[0].stores and len(self.loops[0].folds) == 1

    def _finds_place(self) -> bool:
        """Whether all that a row's second loop looks for is where the extreme stands that the first one finds."""
        rows, folds = self.rows, [loop.folds for loop in self.loops]
        if [len(found) for found in folds] != [1, 1] or any(loop.stores or loop.keeps for loop in self.loops):
            return False
        (extreme,), (place,) = folds
        if place.within is None or place.within.extreme is not extreme or rows.across or len(rows.reduced) != 1:
            return False
        extent = number_of(rows.reduced[0].extent)
        return extent is None or extent > PART

    def _find(self, b: Body, rows: Sequence[Row]) -> None:
        """The extreme of each part of a row, and then its place in the part that has it: the rest is read once."""
        values: list[Values] = [{} for _ in rows]
        self.waiting, self.fetches = {}, False
        axis = rows[0].reduced[0]

        def fold(at: Body, loop: Loop, chosen: Sequence[int], first: SSAValue) -> Sequence[SSAValue]:
            """Of the part that begins there."""
            accumulator = _start(loop.folds[0], at)

            def step(inner: Body, index: SSAValue, kept: Sequence[SSAValue]) -> list[SSAValue]:
                found: list[SSAValue] = []
                for k, best in zip(chosen, kept, strict=True):
                    place = inner.index(inner.plus(rows[k].base, inner.times(index, axis.stride)))
                    terms, _ = self._element(inner, rows[k], loop, values[k], place, [index], {})
                    found.append(accumulator.combine(inner, best, terms[0]))
                return found

            end = at.index_math("min", at.plus(first, PART), axis.extent)
            carried = [(accumulator.kind, accumulator.start)] * len(chosen)
            return at.loop(end, step, carried, lower=first, vector=True)

        seek, locate = self.loops
        (extreme,), (place,) = seek.folds, locate.folds
        for row, own in zip(rows, values, strict=True):
            self._prepare(b, row, seek.targets(), own)
        start, is_better = _start(extreme, b), _within(place).better

        def part(outer: Body, first: SSAValue, kept: Sequence[SSAValue]) -> list[SSAValue]:
            results: list[SSAValue] = []
            for found, best, where in zip(
                fold(outer, seek, range(len(rows)), first), kept[::2], kept[1::2], strict=True
            ):
                better = is_better(outer, found, best)
                results += [outer.select(better, found, best), outer.select(better, first, where)]
            return results

        carried = [(start.kind, start.start), ("max", b.index(0))] * len(rows)
        results = b.loop(axis.extent, part, carried, step=PART)
        for k, (row, own) in enumerate(zip(rows, values, strict=True)):
            own[extreme] = results[2 * k]
            self._prepare(b, row, locate.targets(), own)
            (own[place],) = fold(b, locate, [k], results[2 * k + 1])
            self._store_row(b, row, own)

    def _store_row(self, b: Body, row: Row, values: Values) -> None:
        for target in self.row_targets:
            value = self._row_value(b, row, target.node, values)
            b.store(b.convert(value, target.node.dtype, target.dtype), target.buffer, row.flat)

    # ---- which loops there are
    def _loops(self, targets: Sequence[Target]) -> list[Loop]:
        folds: dict[int, dict[Node, None]] = {}
        seen: set[Node] = set()
        stack = [t.node for t in targets]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.start is not None:
                folds.setdefault(node.level, {})[node] = None
            stack.extend(node.inputs)
        loops = [Loop(list(folds[level])) for level in sorted(folds)]
        last = Loop([])
        full = [t for t in targets if t.node.full]
        needs = [self._full_nodes(loop.targets()) for loop in loops]
        late: list[Target] = []
        for target in full:  # a result is stored where it is first computed, or in a last loop of its own
            first = next((k for k, need in enumerate(needs) if target.node in need), None)
            (loops[first] if first is not None else last).stores.append(target)
            if first is None:
                late.append(target)
        if last.stores:
            loops.append(last)
            needs.append(self._full_nodes(last.targets()))
        self._keep(loops, needs, late)
        return loops

    def _keep(self, loops: list[Loop], needs: list[set[Node]], late: list[Target]) -> None:
        """Let costly values that several loops need wait in memory of results of their dtype."""
        free = [t for t in late if compute_dtype(t.dtype) == t.dtype]
        for node in dict.fromkeys(n for need in needs for n in need if n.is_costly):
            users = [k for k, need in enumerate(needs) if node in need]
            if len(users) < 2:
                continue
            own = next((t for t in loops[users[0]].stores if t.node is node and t.dtype == node.dtype), None)
            place = own or next((t for t in free if t.dtype == node.dtype), None)
            if place is None:
                continue
            if own is None:
                free.remove(place)
            loops[users[0]].keeps.append((node, place.buffer))
            needs[:] = [
                need if k <= users[0] else self._full_nodes(loops[k].targets(), {node}) | {node}
                for k, need in enumerate(needs)
            ]

    def _full_nodes(self, nodes: Iterable[Node], known: set[Node] = frozenset()) -> set[Node]:  # pyright: ignore[reportArgumentType]
        """The full values that these need, without what only `known` ones need."""
        found: set[Node] = set()
        stack = [n for n in nodes if n.full]
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                if node not in known:
                    stack.extend(n for n in node.inputs if n.full)
        return found

    # ---- rows, one or a few side by side
    def _go_over(self, b: Body, rows: Sequence[Row]) -> None:
        values: list[Values] = [{} for _ in rows]
        self.waiting = {}
        reduced = rows[0].reduced
        extent = number_of(reduced[-1].extent) if reduced and not rows[0].across else 0
        is_long = extent is None or extent >= FETCHED_AHEAD // 2
        for loop in self.loops:
            self.fetches = is_long and loop is self.loops[0] and len(self.loops) > 1
            for row, own in zip(rows, values, strict=True):
                self._prepare(b, row, loop.targets(), own)
            if loop.folds:
                self._fold(b, rows, loop, values)
            else:
                rows[0].map(
                    b, lambda inner, at, indices, loop=loop: self._elements(inner, rows, loop, values, at, indices)
                )
            for node, buffer in loop.keeps:
                self.waiting[node] = buffer
        for row, own in zip(rows, values, strict=True):
            self._store_row(b, row, own)

    def _fold(self, b: Body, rows: Sequence[Row], loop: Loop, values: Sequence[Values]) -> None:
        starts = [_start(fold, b) for _ in rows for fold in loop.folds]

        def terms(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> list[SSAValue]:
            return self._elements(inner, rows, loop, values, at, indices)

        results = iter(rows[0].fold(b, starts, terms))
        for own in values:
            own.update((fold, next(results)) for fold in loop.folds)

    def _elements(
        self,
        b: Body,
        rows: Sequence[Row],
        loop: Loop,
        values: Sequence[Values],
        at: SSAValue,
        indices: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """One element of each row, `at` being that of the first: the terms of the loop's folds; results are stored."""
        found: list[SSAValue] = []
        stores: list[tuple[SSAValue, SSAValue, SSAValue]] = []
        shared: Values = {}
        for k, (row, own) in enumerate(zip(rows, values, strict=True)):
            place = b.index(b.plus(at, b.times(self.rows.kept[0].stride, k))) if k else at
            terms, stored = self._element(b, row, loop, own, place, indices, shared)
            found += terms
            stores += [(value, buffer, place) for value, buffer in stored]
        for value, buffer, place in stores:  # all is read before anything is written
            b.store(value, buffer, place)
        return found

    def _prepare(self, b: Body, row: Row, nodes: Iterable[Node], values: Values) -> None:
        """Compute the row's values that a loop needs before it begins."""
        seen: set[Node] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if not node.full:
                self._row_value(b, row, node, values)
            elif node not in self.waiting:
                stack.extend(node.inputs)

    def _row_value(self, b: Body, row: Row, node: Node, values: Values) -> SSAValue:
        if node in values:
            return values[node]
        if node.leaf is not None:
            offset = self.places[node].offset(b, row, []) if node in self.places else row.base
            dtype = dtype_of(node.leaf)
            values[node] = b.convert(b.load(self.buffers[node], offset), dtype, node.dtype)
        elif node.make is not None:
            inputs = [self._row_value(b, row, n, values) for n in node.inputs]
            values[node] = node.make(b, *inputs)
        return values[node]

    def _element(
        self,
        b: Body,
        row: Row,
        loop: Loop,
        values: Values,
        at: SSAValue,
        indices: Sequence[SSAValue],
        shared: Values,
    ) -> tuple[list[SSAValue], list[tuple[SSAValue, SSAValue]]]:
        """One element: the terms of the loop's folds; its results and what waits, each with the buffer for it.

        `shared` holds what is the same for this element of every row.
        """
        own: Values = dict(values)

        def value(node: Node) -> SSAValue:
            if node not in own:
                known = shared.get(node)
                own[node] = known if known is not None else self._full_value(b, row, node, value, at, indices)
                if node in self.places and all(number_of(stride) == 0 for stride in self.places[node].kept):
                    shared[node] = own[node]
            return own[node]

        terms = [value(fold.inputs[0]) for fold in loop.folds]
        results = [(value(t.node), t) for t in loop.stores]
        waits = [(value(node), buffer) for node, buffer in loop.keeps if all(buffer != t.buffer for t in loop.stores)]
        stored = [(b.convert(result, t.node.dtype, t.dtype), t.buffer) for result, t in results]
        return terms, [*waits, *stored]

    def _full_value(
        self,
        b: Body,
        row: Row,
        node: Node,
        value: Callable[[Node], SSAValue],
        at: SSAValue,
        indices: Sequence[SSAValue],
    ) -> SSAValue:
        if node in self.waiting:
            return b.load(self.waiting[node], at)
        if node.leaf is not None:
            if node in self.places:
                loaded = b.load(self.buffers[node], self.places[node].offset(b, row, indices))
            else:
                loaded = b.load(self.buffers[node], at, FETCHED_AHEAD if self.fetches else None)
            return b.convert(loaded, dtype_of(node.leaf), node.dtype)
        if node is self.index:
            return b.from_index(indices[0] if indices else b.index(0), node.dtype)
        if node.make is None:
            raise ValueError("a value of a row program that nothing makes")
        return node.make(b, *(value(n) for n in node.inputs))
