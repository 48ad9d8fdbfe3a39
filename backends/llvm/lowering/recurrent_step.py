"""One step of a recurrent layer as a kernel: blocks of the state, each a product and the cells of the block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.recurrent_cell import Arithmetic, Gate
from sardonyx.dialects.dtypes import int32
from sardonyx.dialects.kernel.contract import ContractOp

if TYPE_CHECKING:
    from sardonyx.backends.llvm.lowering.recurrent import Layer

Cell = Callable[["Step", Body, "Place"], None]
"""`cell(step, body, place)` computes one element of the state."""


@dataclass(frozen=True)
class Weights:
    """Weights of the state for some gates, in panels of `panel` columns: blocks of `width` elements of the state, of
    each block the columns of all gates. `columns` is how many there are in all."""

    buffer: SSAValue
    gates: range
    width: int
    panel: int
    blocks: SSAValue
    columns: SSAValue


@dataclass(frozen=True)
class When:
    """The number of a step, and where the state before and after it lies."""

    number: SSAValue
    before: SSAValue
    after: SSAValue


@dataclass(frozen=True)
class Place:
    """Where a cell stands: its element of the state, and the places of that in states, in the sums of the state's
    products (gate 0), in those of the input's, and in y."""

    element: SSAValue
    state: SSAValue
    sums: SSAValue
    inputs: SSAValue
    y: SSAValue


class Step:
    """The kernel of one step: blocks of the state, each a product and the cells of the block."""

    def __init__(
        self, layer: Layer, name: str, d: int, when: When, weights: Weights, of: SSAValue | None = None
    ) -> None:
        self.layer, self.d, self.weights = layer, d, weights
        self.kernel = kernel = layer.plan.kernel(name)
        self.number, self.after = kernel.outer(when.number), kernel.outer(when.after)
        self.at_before = kernel.outer(when.before)
        self.h = kernel.write_buffer(layer.state)
        self.factor = self.h if of is None else kernel.read_buffer(of)
        self.from_state = of is None
        self.r = kernel.read_buffer(weights.buffer)
        self.inputs = kernel.read_buffer(layer.inputs)
        self.products = kernel.write_buffer(
            layer.plan.workspace(layer.wide, [layer.plan.dim(layer.batch), weights.columns])
        )
        self.y = None if layer.y is None else kernel.write_buffer(layer.y)
        self.lens = None if layer.lens is None else kernel.read_buffer(layer.lens)

    # ---- what cells use
    def read(self, buffer: SSAValue) -> SSAValue:
        return self.kernel.read_buffer(buffer)

    def write(self, buffer: SSAValue) -> SSAValue:
        return self.kernel.write_buffer(buffer)

    def gate(self, b: Body) -> Gate:
        return Gate(Arithmetic(b, self.layer.wide), self.layer.op.attr("clip"))

    def sums(self, b: Body, at: Place, gate: int) -> list[SSAValue]:
        """What the input and what the state adds to a gate of this step's."""
        size = self.kernel.extent(self.layer.hidden)
        of_input = b.load(self.inputs, b.plus(at.inputs, b.times(size, self.weights.gates.start + gate)))
        return [of_input, b.load(self.products, b.plus(at.sums, gate * self.weights.width))]

    def before(self, b: Body, at: Place) -> SSAValue:
        """The state before the step."""
        return b.load(self.h, b.plus(self.at_before, at.state))

    def store(self, b: Body, at: Place, h: SSAValue) -> None:
        """The state after the step, which is also y's element."""
        b.store(h, self.h, b.plus(self.after, at.state))
        if self.y is not None:
            b.store(b.convert(h, self.layer.wide, self.layer.dtype), self.y, at.y)

    # ---- the kernel
    def launch(self, cell: Cell, keeps_dead: bool = True) -> None:
        """Emit the kernel and launch it. Sequences that have ended keep their state, which with `keeps_dead` this
        kernel sees to."""
        layer, kernel, weights = self.layer, self.kernel, self.weights
        batch, size = kernel.extent(layer.batch), kernel.extent(layer.hidden)
        blocks, columns = kernel.outer(weights.blocks), kernel.outer(weights.columns)
        wide = len(weights.gates) * weights.width

        def block(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            left = b.times(number, wide)
            b.add(ContractOp(
                (self.factor, self.r, self.products), [batch, b.index(wide), size],
                [b.index(self.at_before if self.from_state else 0), b.times(left, size), left],
                [size, b.index(1), b.index(weights.panel), b.index(1), columns], packed=weights.panel,
            ))  # fmt: skip
            first = b.times(number, weights.width)
            known = layer.hidden.static_value
            count: IndexLike = weights.width
            if known is None or known % weights.width:
                count = b.index_math("min", weights.width, b.minus(size, first))

            def row(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                self._row(c, i, first, count, c.plus(c.times(i, columns), left), cell, keeps_dead)

            b.loop(batch, row)

        kernel.loop(blocks, block, parallel=True)
        kernel.launch()

    def _row(
        self, b: Body, i: SSAValue, first: SSAValue, count: IndexLike, sums: SSAValue, cell: Cell, keeps_dead: bool
    ) -> None:
        """The cells of one sequence."""
        layer, kernel = self.layer, self.kernel
        backward = self.d == 1 or layer.op.attr("direction") == "reverse"
        size, seq, batch = (kernel.extent(d) for d in (layer.hidden, layer.seq, layer.batch))
        length = seq if self.lens is None else b.to_index(b.load(self.lens, i), int32)
        time = b.minus(b.minus(length, 1), self.number) if backward else self.number

        def place(c: Body, time: SSAValue) -> Callable[[Body, SSAValue], Place]:
            row = c.plus(c.times(i, seq), time) if layer.layout else c.plus(c.times(time, batch), i)
            state = c.plus(c.times(i, size), first)
            all_rows = c.times(c.times(seq, batch), self.d)
            inputs = c.plus(c.times(c.plus(all_rows, row), c.times(size, layer.count)), first)
            if layer.layout:
                y = c.plus(c.times(row, layer.dirs), self.d)
            else:
                y = c.plus(c.times(c.plus(c.times(time, layer.dirs), self.d), batch), i)
            y = c.plus(c.times(y, size), first)
            return lambda e, j: Place(*(e.plus(at, j) for at in (first, state, sums, inputs, y)))

        def live(c: Body) -> None:
            at = place(c, c.index(time))
            c.loop(count, lambda e, j, _: cell(self, e, at(e, j)), vector=True)

        def ended(c: Body) -> None:
            at = place(c, self.number)
            zero = c.const(layer.dtype, 0)

            def keep(e: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                here = at(e, j)
                e.store(self.before(e, here), self.h, e.plus(self.after, here.state))
                if self.y is not None:
                    e.store(zero, self.y, here.y)

            c.loop(count, keep, vector=True)

        if self.lens is None:
            live(b)
        else:
            goes_on = b.compare("slt", self.number, length)
            b.when(goes_on, live, ended if keeps_dead else None)
