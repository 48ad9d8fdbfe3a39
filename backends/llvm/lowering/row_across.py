"""Row programs whose rows lie side by side: a reduction over an outer axis, a softmax over channels.

The lanes are neighbouring rows. A tile of rows is walked down along the reduced axis, some elements of every row at a
time, so that memory is read in long runs; what has been accumulated waits in workspace of one element a row, which a
tile keeps in the first-level cache. Every row is summed in the same order, however the tiles are spread over threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.elementwise import is_worth_splitting
from sardonyx.backends.llvm.lowering.row_emission import Emission, Loop
from sardonyx.backends.llvm.lowering.row_program import Node, Values
from sardonyx.backends.llvm.lowering.rows import Accumulator, Row

TILE = 512
"""How many rows a tile has at most."""
TILE_GRAIN = 64
GROUP = 8
"""How many elements of each row one turn takes: as many streams as the hardware prefetches."""
BLOCK = 1024
"""Sums of floats over longer rows are sums of sums."""


class AcrossEmission(Emission):
    """Emits a program over rows side by side along one reduced axis."""

    def emit(self) -> None:
        self.scratch: dict[Node, SSAValue] = {}
        self._partial: dict[Node, SSAValue] = {}
        self.axis = self.rows.reduced[0]
        self.columns = self.rows.kept[-1].extent
        direct = {t.node: t for t in self.row_targets if t.node.start is not None and t.dtype == t.node.dtype}
        self.row_targets = [t for t in self.row_targets if direct.get(t.node) is not t]
        self.saved = self._saved()
        for loop in self.loops:
            for fold in loop.folds:
                self.scratch[fold] = direct[fold].buffer if fold in direct else self._workspace(fold)
                if self._is_long() and self._accumulator(self.kernel, fold).is_rounded:
                    self._partial[fold] = self._workspace(fold)
        for node in self.saved:
            self.scratch.setdefault(node, self._workspace(node))
        splits = is_worth_splitting([axis.extent for axis in (*self.rows.kept, *self.rows.reduced)])
        self._outer(self.kernel, 0, 0, 0, [], splits)

    def _workspace(self, node: Node) -> SSAValue:
        return self.kernel.write_buffer(self.kernel.plan.workspace(node.dtype, [self.row_count]))

    def _accumulator(self, b: Body, fold: Node) -> Accumulator:
        if fold.start is None:
            raise ValueError("no fold")
        return fold.start(b)

    def _is_long(self) -> bool:
        extent = number_of(self.axis.extent)
        return extent is None or extent > BLOCK

    def _saved(self) -> list[Node]:
        """The values of a row, folds aside, that a later loop over elements takes as they are."""
        found: dict[Node, None] = {}
        for loop in self.loops:
            stack, seen = list(loop.targets()), set[Node]()
            while stack:
                node = stack.pop()
                if node in seen:
                    continue
                seen.add(node)
                if node.full:
                    stack.extend(node.inputs)
                elif node.level and node.start is None:
                    found[node] = None
        return list(found)

    # ---- the loops
    def _outer(
        self, b: Body, depth: int, base: IndexLike, flat: IndexLike, indices: list[SSAValue], splits: bool
    ) -> None:
        """Loops over the kept axes but the last, then over tiles of that."""
        axes = self.rows.kept
        if depth < len(axes) - 1:
            axis = axes[depth]

            def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                place = inner.plus(base, inner.times(index, axis.stride))
                number = inner.plus(inner.times(flat, axis.extent), index)
                self._outer(inner, depth + 1, place, number, [*indices, index], splits)

            b.loop(axis.extent, step, parallel=splits and depth == 0)
            return
        known = number_of(self.columns)
        tile = TILE if known is None else min(TILE, max(TILE_GRAIN, -(-known // (4 * TILE_GRAIN)) * TILE_GRAIN))
        first = b.times(flat, self.columns)

        def tiles(inner: Body, start: SSAValue, _: Sequence[SSAValue]) -> None:
            end = inner.index_math("min", inner.plus(start, tile), self.columns)
            self._tile(_Tile(inner, start, end, inner.index(base), first, indices, self))

        if known is not None and known <= tile and depth:
            tiles(b, b.index(0), [])
        else:
            b.loop(self.columns, tiles, step=tile, parallel=splits and depth == 0)

    def _tile(self, tile: _Tile) -> None:
        self.waiting = {}
        level = 0
        for loop in self.loops:
            if loop.folds:
                self._fold_tile(tile, loop)
                level = loop.folds[0].level
                self._save(tile, [n for n in self.saved if n.level == level])
            else:
                self._map_tile(tile, loop)
            for node, buffer in loop.keeps:
                self.waiting[node] = buffer
        if self.row_targets:

            def store(b: Body, row: Row) -> None:
                values: Values = {}
                for target in self.row_targets:
                    value = self._from_row(b, row, target.node, values)
                    b.store(b.convert(value, target.node.dtype, target.dtype), target.buffer, row.flat)

            tile.rows(tile.body, store)

    def _down(self, tile: _Tile, first: IndexLike, end: IndexLike, step: Callable[..., None], group: int = 1) -> None:
        """`step(body, row, offsets, places)` for `group` elements of each row of the tile at a time."""

        def elements(outer: Body, place: SSAValue, _: Sequence[SSAValue]) -> None:
            def one(b: Body, row: Row) -> None:
                places = [b.plus(place, k) for k in range(group)]
                step(b, row, [b.plus(row.base, b.times(p, self.axis.stride)) for p in places], places)

            tile.rows(outer, one)

        tile.body.loop(end, elements, lower=first, step=group)

    def _map_tile(self, tile: _Tile, loop: Loop) -> None:
        def step(b: Body, row: Row, at: Sequence[SSAValue], places: Sequence[SSAValue]) -> None:
            self._elements(b, [row], loop, [self._known(b, row, loop)], at[0], places)

        self._down(tile, 0, self.axis.extent, step)

    def _fold_tile(self, tile: _Tile, loop: Loop) -> None:
        extent = self.axis.extent
        if any(fold in self._partial for fold in loop.folds):

            def start_all(b: Body, row: Row) -> None:
                for fold in loop.folds:
                    b.store(self._accumulator(b, fold).start, self.scratch[fold], row.flat)

            tile.rows(tile.body, start_all)

            def block(b: Body, first: SSAValue, _: Sequence[SSAValue]) -> None:
                end = b.index_math("min", b.plus(first, BLOCK), extent)
                inner = tile.inside(b)
                self._accumulate(
                    inner, loop, first, end, {f: self._partial.get(f, self.scratch[f]) for f in loop.folds}
                )

                def join(c: Body, row: Row) -> None:
                    for fold in loop.folds:
                        if fold in self._partial:
                            total, part = (c.load(at[fold], row.flat) for at in (self.scratch, self._partial))
                            c.store(self._accumulator(c, fold).combine(c, total, part), self.scratch[fold], row.flat)

                inner.rows(b, join)

            tile.body.loop(extent, block, step=BLOCK)
            return
        self._accumulate(tile, loop, 0, extent, {f: self.scratch[f] for f in loop.folds}, fresh=True)

    def _accumulate(
        self,
        tile: _Tile,
        loop: Loop,
        first: IndexLike,
        end: IndexLike,
        into: dict[Node, SSAValue],
        fresh: bool = False,
    ) -> None:
        """Accumulate elements `first` to `end` of each row in these buffers; partial ones begin anew."""
        restart = [f for f in loop.folds if fresh or f in self._partial]

        def begin(b: Body, row: Row) -> None:
            for fold in restart:
                b.store(self._accumulator(b, fold).start, into[fold], row.flat)

        tile.rows(tile.body, begin)

        def step(b: Body, row: Row, at: Sequence[SSAValue], places: Sequence[SSAValue]) -> None:
            values = self._known(b, row, loop)
            terms = [self._elements(b, [row], loop, [values], a, [p]) for a, p in zip(at, places, strict=True)]
            for k, fold in enumerate(loop.folds):
                accumulator = self._accumulator(b, fold)
                parts = [t[k] for t in terms]
                while len(parts) > 1:
                    pairs = [accumulator.combine(b, x, y) for x, y in zip(parts[::2], parts[1::2])]
                    parts = pairs + parts[len(pairs) * 2 :]
                total = b.load(into[fold], row.flat)
                b.store(accumulator.combine(b, total, parts[0]), into[fold], row.flat)

        b = tile.body
        length = b.minus(end, first)
        rest = b.index_math("floormod", length, GROUP)
        whole = b.minus(end, rest)
        if number_of(length) is None or (number_of(length) or 0) >= GROUP:
            self._down(tile, first, whole, step, GROUP)
        if number_of(rest) != 0:
            self._down(tile, whole, end, step)

    # ---- values of a row
    def _save(self, tile: _Tile, nodes: Sequence[Node]) -> None:
        if not nodes:
            return

        def store(b: Body, row: Row) -> None:
            values: Values = {}
            for node in nodes:
                b.store(self._from_row(b, row, node, values), self.scratch[node], row.flat)

        tile.rows(tile.body, store)

    def _from_row(self, b: Body, row: Row, node: Node, values: Values) -> SSAValue:
        """A value of a row out of the folds that wait in workspace."""
        stack, seen = [node], set[Node]()
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            if at.start is not None:
                values[at] = b.load(self.scratch[at], row.flat)
            else:
                stack.extend(at.inputs)
        return self._row_value(b, row, node, values)

    def _known(self, b: Body, row: Row, loop: Loop) -> Values:
        """The values of a row that a loop over its elements takes."""
        values: Values = {}
        stack, seen = list(loop.targets()), set[Node]()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.full:
                if node not in self.waiting:
                    stack.extend(node.inputs)
            elif node in self.scratch:
                values[node] = b.load(self.scratch[node], row.flat)
            else:
                self._row_value(b, row, node, values)
        return values


class _Tile:
    """Neighbouring rows, `start` to `end`, at one place along the other kept axes."""

    def __init__(
        self,
        body: Body,
        start: SSAValue,
        end: SSAValue,
        base: SSAValue,
        first: IndexLike,
        indices: Sequence[SSAValue],
        emission: AcrossEmission,
    ) -> None:
        self.body, self.start, self.end, self.base, self.first = body, start, end, base, first
        self.indices, self.emission = indices, emission

    def inside(self, body: Body) -> _Tile:
        """The same rows, in a loop of the tile."""
        return _Tile(body, self.start, self.end, self.base, self.first, self.indices, self.emission)

    def rows(self, body: Body, point: Callable[[Body, Row], None]) -> None:
        """`point` for each row, over the lanes."""

        def step(b: Body, column: SSAValue, _: Sequence[SSAValue]) -> None:
            row = Row([], True, b.plus(self.base, column), b.plus(self.first, column), [*self.indices, column])
            point(b, row)

        body.loop(self.end, step, lower=self.start, vector=True)
