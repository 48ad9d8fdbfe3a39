"""Emits row programs: the loops over each row one after the other, or over a few rows side by side.

A result that is large, and that nothing else of the graph reads, goes past the caches: there a row's result would only
displace the next rows, and its memory would be read before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.nontemporal import LINE
from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype, number_of, scalar_ir
from sardonyx.backends.llvm.lowering.elementwise import may_pass_caches
from sardonyx.backends.llvm.lowering.plan import Kernel
from sardonyx.backends.llvm.lowering.row_program import Node, Target, Values, Within
from sardonyx.backends.llvm.lowering.rows import Accumulator, Placed, Row, Rows
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.kernel.nontemporal import FetchOp, NontemporalOp, ScratchOp


@dataclass(frozen=True)
class Stored:
    """An element on its way to its place in a buffer, or past the caches to memory."""

    value: SSAValue
    buffer: SSAValue
    place: SSAValue
    passes: bool = False


FETCHED_AHEAD = 512
"""How many elements ahead the first loop over a row has memory fetched: while further loops go over the same row again,
nothing else would ask for the next one."""

ROWS_AT_ONCE, LONG_ROW = 4, 1024
"""Rows of at least so many elements that are read once are read so many at a time: memory answers more than one run of
reads faster than a single one (24 GB/s beside 19 on one core of the machine where this was measured)."""
PAIR, LONGEST_PAIRED = 2, 2048
"""Rows of at most so many elements that several loops go over are taken in pairs: what is the same for all rows is read
once for both, and one row's sums are combined while the other's are."""
LONGEST_WAITING = 2048
"""As many elements of a row may wait on the stack: they stay in the first-level cache."""
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
        self.ahead: int | None = None
        """How many elements ahead memory is fetched."""
        self.fetched: list[SSAValue] = []
        self.passing: Target | None = None
        """The result that goes past the caches."""
        self.scratch: dict[Node, SSAValue] = {}
        """What waits on the stack meanwhile, instead of in that result's memory."""

    def emit(self) -> None:
        past = self._may_pass_caches()
        if past is None:
            self._emit(self.kernel)
            return

        def passing(b: Body) -> None:
            self.passing = past
            kept = [node for loop in self.loops for node, buffer in loop.keeps if buffer is past.buffer]
            self.scratch = {n: b.add(ScratchOp(LONGEST_WAITING, scalar_ir(n.dtype))) for n in kept}
            self._emit(b)
            self.passing, self.scratch = None, {}

        axis = self.rows.reduced[0]
        count = self.kernel.times(self.rows.kept[0].extent, axis.extent)
        self.kernel.when(self.kernel.add(NontemporalOp(past.buffer, count, axis.extent)), passing, self._emit)

    def _emit(self, b: Body) -> None:
        few = self._rows_at_once()
        together = self._find if self._finds_place() else self._go_over
        if few > 1:
            self.rows.each_few(b, few, together, LONGEST_PAIRED if few == PAIR else None)
        else:
            self.rows.each(b, lambda inner, row: together(inner, [row]))

    def _may_pass_caches(self) -> Target | None:
        """The result that goes past the caches where it is large: the only one of a row's elements, where a row's
        length is known. What waits for a later loop then waits on the stack."""
        full = [t for loop in self.loops for t in loop.stores]
        if len(full) != 1 or not self._are_runs():
            return None
        extent, count = (number_of(axis.extent) for axis in (self.rows.reduced[0], self.rows.kept[0]))
        if extent is None or extent > LONGEST_WAITING or extent * full[0].dtype.itemsize % LINE:
            return None
        return full[0] if may_pass_caches(full[0].result, [extent, count]) else None

    def _are_runs(self) -> bool:
        """Whether each row is one run of memory, and so are all of them together."""
        rows = self.rows
        if rows.across or len(rows.kept) != 1 or len(rows.reduced) != 1:
            return False
        return number_of(rows.reduced[0].stride) == 1

    def _rows_at_once(self) -> int:
        """How many rows, each in one run of memory, are gone over side by side."""
        rows = self.rows
        if not self._are_runs() or self.passing is not None:  # memory is what large results take longest for
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
        self.waiting, self.ahead = {}, None
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
            fetches = is_long and loop is self.loops[0] and len(self.loops) > 1
            self.ahead = FETCHED_AHEAD + (len(rows) - 1) * (extent or 0) if fetches else None
            later = self.loops[1:] if fetches else []
            self.fetched = [t.buffer for after in later for t in after.stores if t is not self.passing]
            for row, own in zip(rows, values, strict=True):
                self._prepare(b, row, loop.targets(), own)
            if loop.folds and any(n.is_long for n in self._full_nodes(loop.targets(), set(self.waiting))):
                for row, own in zip(rows, values, strict=True):  # registers are few
                    self._fold(b, [row], loop, [own])
            elif loop.folds:
                self._fold(b, rows, loop, values)
            else:
                self._map(b, rows, loop, values)
            for node, buffer in loop.keeps:
                self.waiting[node] = self.scratch.get(node, buffer)
        for row, own in zip(rows, values, strict=True):
            self._store_row(b, row, own)

    def _map(self, b: Body, rows: Sequence[Row], loop: Loop, values: Sequence[Values]) -> None:
        def point(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            self._elements(inner, rows, loop, values, at, indices)

        rows[0].map(b, point)

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
        stores: list[Stored] = []
        shared: Values = {}
        for k, (row, own) in enumerate(zip(rows, values, strict=True)):
            place = b.index(b.plus(at, b.times(self.rows.kept[0].stride, k))) if k else at
            terms, stored = self._element(b, row, loop, own, place, indices, shared)
            for buffer in self.fetched:
                b.add(FetchOp(buffer, place))
            found += terms
            stores += stored
        for one in stores:  # all is read before anything is written
            b.store(one.value, one.buffer, one.place, b.true() if one.passes else None)
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
    ) -> tuple[list[SSAValue], list[Stored]]:
        """One element: the terms of the loop's folds; its results and what waits.

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
        stored: list[Stored] = []
        for node, buffer in loop.keeps:
            if node in self.scratch:
                stored.append(Stored(value(node), self.scratch[node], indices[0]))
            elif all(buffer != t.buffer for t in loop.stores):
                stored.append(Stored(value(node), buffer, at))
        for result, t in results:
            stored.append(Stored(b.convert(result, t.node.dtype, t.dtype), t.buffer, at, t is self.passing))
        return terms, stored

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
            return b.load(self.waiting[node], indices[0] if node in self.scratch else at)
        if node.leaf is not None:
            if node in self.places:
                loaded = b.load(self.buffers[node], self.places[node].offset(b, row, indices))
            else:
                loaded = b.load(self.buffers[node], at, self.ahead)
            return b.convert(loaded, dtype_of(node.leaf), node.dtype)
        if node is self.index:
            return b.from_index(indices[0] if indices else b.index(0), node.dtype)
        if node.make is None:
            raise ValueError("a value of a row program that nothing makes")
        return node.make(b, *(value(n) for n in node.inputs))
