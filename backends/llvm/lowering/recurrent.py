"""Lowerings of the recurrent layers: rnn, gru, lstm.

The products with the input are one contraction over all steps. Then each step is one launch, over blocks of the state:
a block's columns of all gates lie side by side in the packed weights of the state, so a block multiplies, and computes
its part of the next state while the sums are in the first-level cache; nothing else is needed between two steps. (A gru
whose reset gate comes before the product takes two launches.) States are kept in the compute dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import tile_vectors
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.epilogue import Point
from sardonyx.backends.llvm.lowering.matmul import Matrix, contract, panels_of, widened
from sardonyx.backends.llvm.lowering.pack import Source, pack_columns, pack_matrices, panel_block
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.recurrent_cell import Arithmetic, gru_update, lstm_cell
from sardonyx.backends.llvm.lowering.recurrent_step import Place, Step, Weights, When
from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import int32
from sardonyx.dialects.kernel.ops import INDEX, LoopOp, YieldOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.recurrent import Chosen
from sardonyx.dialects.sx.recurrent_layers import GruOp, LstmOp, RnnOp

NARROWEST, MOST_BLOCKS = 16, 16
"""A block has at least so many elements of the state; there are no more blocks than that, if the state is known."""


@lowers(RnnOp)
def _rnn(plan: Plan, op: RnnOp) -> None:
    layer = Layer(plan, op)

    def turn(d: int, functions: Sequence[Chosen], weights: Sequence[Weights]) -> Turn:
        def cell(step: Step, b: Body, at: Place) -> None:
            gate = step.gate(b)
            step.store(b, at, gate(functions[0], *step.sums(b, at, 0)))

        return lambda when: Step(layer, "rnn_step", d, when, weights[0]).launch(cell)

    layer.lower(turn, [range(1)])


@lowers(LstmOp)
def _lstm(plan: Plan, op: LstmOp) -> None:
    layer = Layer(plan, op)
    given = op.p
    peepholes = None if given is None else widened(plan, given, layer.dtype)
    if given is not None:
        layer.require(given, [Dim.of(layer.dirs), layer.hidden * 3], "p")

    def turn(d: int, functions: Sequence[Chosen], weights: Sequence[Weights]) -> Turn:
        def cell(step: Step, b: Body, at: Place) -> None:
            c = b.load(step.read(layer.cell), at.state)
            peep = None
            if peepholes is not None:
                size, buffer = step.kernel.extent(layer.hidden), step.read(peepholes)
                peep = [b.load(buffer, b.plus(b.times(size, d * 3 + k), at.element)) for k in range(3)]
            sums = [step.gate(b).m.add(*step.sums(b, at, k)) for k in range(4)]
            h, after = lstm_cell(step.gate(b), functions, sums, c, peep, bool(op.attr("input_forget")))
            b.store(after, step.write(layer.cell), at.state)
            step.store(b, at, h)

        return lambda when: Step(layer, "lstm_step", d, when, weights[0]).launch(cell)

    layer.lower(turn, [range(4)], op.initial_c, op.y_c)


@lowers(GruOp)
def _gru(plan: Plan, op: GruOp) -> None:
    layer = Layer(plan, op)
    if op.attr("linear_before_reset"):
        _gru_with_late_reset(layer)
        return
    size = plan.product(plan.dim(layer.batch), plan.dim(layer.hidden))
    update, reset_h = plan.workspace(layer.wide, [size]), plan.workspace(layer.wide, [size])

    def turn(d: int, functions: Sequence[Chosen], weights: Sequence[Weights]) -> Turn:
        def first(step: Step, b: Body, at: Place) -> None:
            gate = step.gate(b)
            z, r = (gate(functions[0], *step.sums(b, at, k)) for k in range(2))
            b.store(z, step.write(update), at.state)
            b.store(gate.m.mul(r, step.before(b, at)), step.write(reset_h), at.state)

        def second(step: Step, b: Body, at: Place) -> None:
            gate = step.gate(b)
            n = gate(functions[1], *step.sums(b, at, 0))
            z = b.load(step.read(update), at.state)
            step.store(b, at, gru_update(gate.m, z, n, step.before(b, at)))

        def both(when: When) -> None:
            Step(layer, "gru_gates", d, when, weights[0]).launch(first, keeps_dead=False)
            Step(layer, "gru_step", d, when, weights[1], of=reset_h).launch(second)

        return both

    layer.lower(turn, [range(2), range(2, 3)])


def _gru_with_late_reset(layer: Layer) -> None:
    """The bias of the state's product belongs to what the reset gate multiplies."""

    def turn(d: int, functions: Sequence[Chosen], weights: Sequence[Weights]) -> Turn:
        def cell(step: Step, b: Body, at: Place) -> None:
            gate = step.gate(b)
            z, r = (gate(functions[0], *step.sums(b, at, k)) for k in range(2))
            of_input, of_state = step.sums(b, at, 2)
            if layer.bias is not None:
                row = b.times(step.kernel.extent(layer.hidden), d * 6 + 5)
                of_state = gate.m.add(of_state, b.load(step.read(layer.bias), b.plus(row, at.element)))
            n = gate(functions[1], of_input, gate.m.mul(r, of_state))
            step.store(b, at, gru_update(gate.m, z, n, step.before(b, at)))

        return lambda when: Step(layer, "gru_step", d, when, weights[0]).launch(cell)

    layer.lower(turn, [range(3)], late=2)


# ---- the layer


Turn = Callable[[When], None]
MakeTurn = Callable[[int, Sequence[Chosen], Sequence[Weights]], Turn]


class Layer:
    """A recurrent layer that is being lowered: its extents and what is computed before the first step."""

    def __init__(self, plan: Plan, op: Any) -> None:
        self.plan, self.op = plan, op
        self.dtype = dtype_of(op.x)
        self.wide = compute_dtype(self.dtype)
        self.dirs, self.count = op.directions(), op.GATES
        x, r = dims_of(op.x), dims_of(op.r)
        self.layout = op.attr("layout")
        self.seq, self.batch = (x[1], x[0]) if self.layout else (x[0], x[1])
        self.hidden = r[2]
        rows = self.hidden * self.count
        self.require(op.w, [Dim.of(self.dirs), rows, x[2]], "w")
        self.require(op.r, [Dim.of(self.dirs), rows, self.hidden], "r")
        self.bias: SSAValue | None = None
        if op.b is not None:
            self.require(op.b, [Dim.of(self.dirs), rows * 2], "b")
            self.bias = widened(plan, op.b, self.dtype)
        self.lens = None if op.sequence_lens is None else plan.buffer(op.sequence_lens)
        if op.sequence_lens is not None:
            self.require(op.sequence_lens, [self.batch], "sequence_lens")
            self._check_lengths(self.lens)
        size = plan.product(plan.dim(self.batch), plan.dim(self.hidden))
        self.size = size
        self.state = plan.workspace(self.wide, [plan.product(size, 2)])
        self.cell: SSAValue = self.state
        self.inputs: SSAValue = self.state

    def require(self, value: SSAValue, dims: Sequence[Dim], name: str) -> None:
        """Require an operand's extents."""
        for k, (own, wanted) in enumerate(zip(dims_of(value), dims, strict=True)):
            self.plan.require_equal(own, wanted, f"(C3) {name} has {{0}} elements along axis {k}, not {{1}}")

    def _check_lengths(self, lens: SSAValue | None) -> None:
        if lens is None:
            return
        plan = self.plan
        failure, seq = plan.failure("sequence_lens has {0} for sequences of at most {1} elements"), plan.dim(self.seq)

        def check(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            length = b.to_index(b.load(lens, at), int32)
            b.require(b.both(b.compare("sge", length, 0), b.compare("sle", length, seq)), failure, length, seq)

        plan.body.loop(plan.dim(self.batch), check)

    def lower(
        self,
        turn: MakeTurn,
        groups: Sequence[range],
        initial_c: SSAValue | None = None,
        y_c: SSAValue | None = None,
        late: int | None = None,
    ) -> None:
        """Append the whole layer. `groups` are the gates whose products a launch computes; the state's bias of gate
        `late` is left to the cell."""
        plan, op = self.plan, self.op
        self._multiply_inputs(late)
        if y_c is not None:
            self.cell = plan.workspace(self.wide, [self.size])
        self.y = plan.new_buffer(op.y) if _is_read(op.y) else None
        last = {value: plan.new_buffer(value) for value in (op.y_h, y_c) if value is not None and _is_read(value)}
        for d, functions in enumerate(op.chosen_activations()):
            self._start(op.initial_h, self.state, d)
            if y_c is not None:
                self._start(initial_c, self.cell, d)
            weights = [self._weights(d, gates) for gates in groups]
            step = turn(d, functions, weights)
            with plan.scope([INDEX]) as (region, body):
                number = region.block.args[0]
                parity = body.index_math("floormod", number, 2)
                here = body.times(parity, self.size)
                step(When(number, here, body.minus(self.size, here)))
                body.block.add_op(YieldOp())
            plan.body.block.add_op(LoopOp(plan.body.index(0), plan.dim(self.seq), region))
            end = plan.body.times(plan.body.index_math("floormod", plan.dim(self.seq), 2), self.size)
            if op.y_h in last:
                self._finish(self.state, end, last[op.y_h], d)
            if y_c is not None and y_c in last:
                self._finish(self.cell, plan.body.index(0), last[y_c], d)

    def _multiply_inputs(self, late: int | None) -> None:
        """`x w' + wb + rb` of all steps: [dirs, rows of x, gates * hidden]."""
        plan, op = self.plan, self.op
        rows, columns, k = self.seq * self.batch, self.hidden * self.count, dims_of(op.x)[2]
        sizes = [plan.product(plan.dim(self.seq), plan.dim(self.batch)), plan.dim(columns)]
        self.inputs = plan.workspace(self.wide, [self.dirs, *sizes])
        panels = panels_of(plan, op.w, self.dtype, rows, transpose=True)
        source = widened(plan, op.x, self.dtype)
        right = panels or Matrix(widened(plan, op.w, self.dtype), Dim.of(1), k)
        block = panel_block(plan, k, columns, panels.packed or 1) if panels else plan.count([columns, k])
        lines = [(plan.dim(Dim.of(self.dirs)), plan.body.index(0), block)] if self.dirs > 1 else []
        stage = None if self.bias is None else self._bias_stage(rows, columns, late)
        left = Matrix(source, k, Dim.of(1))
        contract(plan, "recurrent_input", self.wide, left, right, self.inputs, (rows, columns, k), lines, stage)

    def _bias_stage(self, rows: Dim, columns: Dim, late: int | None) -> Callable[[Kernel], Point]:
        def stage(kernel: Kernel) -> Point:
            buffer, width = kernel.read_buffer(self.bias), kernel.extent(columns)  # pyright: ignore[reportArgumentType]
            count, begin = kernel.extent(rows), None if late is None else kernel.extent(self.hidden * late)
            zero = kernel.const(self.wide, 0)

            def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
                start: IndexLike = 0
                if self.dirs > 1:
                    start = b.times(b.times(b.index_math("floordiv", row, count), width), 2)
                m = Arithmetic(b, self.wide)
                first = b.load(buffer, b.plus(start, column))
                second = b.load(buffer, b.plus(b.plus(start, width), column))
                if begin is not None:
                    second = b.select(b.compare("sge", column, begin), zero, second)
                return m.add(total, m.add(first, second))

            return point

        return stage

    def _start(self, given: SSAValue | None, target: SSAValue, d: int) -> None:
        """The first state of a direction."""
        plan = self.plan
        if given is not None:
            lead = [self.batch, Dim.of(self.dirs)] if self.layout else [Dim.of(self.dirs), self.batch]
            self.require(given, [*lead, self.hidden], "an initial state")
        kernel = plan.kernel("initial_state")
        write, size = kernel.write_buffer(target), kernel.extent(self.hidden)
        read = None if given is None else kernel.read(given)
        zero = kernel.const(self.wide, 0)

        def row(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            source, goal = b.times(self._state_row(b, kernel, i, d), size), b.times(i, size)

            def element(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                value = zero
                if read is not None:
                    value = c.convert(c.load(read, c.plus(source, j)), self.dtype, self.wide)
                c.store(value, write, c.plus(goal, j))

            b.loop(size, element, vector=True)

        kernel.loop(kernel.extent(self.batch), row)
        kernel.launch()

    def _state_row(self, b: Body, kernel: Kernel, i: SSAValue, d: int) -> SSAValue:
        """The row of batch i and direction d in a tensor of states."""
        if self.layout:
            return b.plus(b.times(i, self.dirs), d)
        return b.plus(b.times(kernel.extent(self.batch), d), i)

    def _finish(self, source: SSAValue, offset: SSAValue, target: SSAValue, d: int) -> None:
        """The last state of a direction, rounded."""
        kernel = self.plan.kernel("last_state")
        read, write, size = kernel.read_buffer(source), kernel.write_buffer(target), kernel.extent(self.hidden)
        at = kernel.outer(offset)

        def row(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            start, goal = b.plus(at, b.times(i, size)), b.times(self._state_row(b, kernel, i, d), size)

            def element(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                value = c.convert(c.load(read, c.plus(start, j)), self.wide, self.dtype)
                c.store(value, write, c.plus(goal, j))

            b.loop(size, element, vector=True)

        kernel.loop(kernel.extent(self.batch), row)
        kernel.launch()

    # ---- weights of the state
    def _weights(self, d: int, gates: range) -> Weights:
        plan, count = self.plan, len(gates)
        lanes = plan.target.lanes(self.wide.bits)
        vectors = tile_vectors(plan.target, lanes, self.batch.static_value, None)
        if count == 3 and vectors > 3:
            vectors -= vectors % 3
        panel = vectors * lanes
        width = least = panel // gcd(panel, count)
        known = self.hidden.static_value
        while width < NARROWEST or (known is not None and width * MOST_BLOCKS < known):
            width += least
        blocks = plan.body.index_math("ceildiv", plan.dim(self.hidden), width)
        columns = plan.product(blocks, count * width)
        owner = self.op.r.owner
        if isinstance(owner, ConstantOp):
            buffer = plan.constant_array(self._packed(owner.array()[d], gates, width, panel), self.wide)
        else:
            buffer = self._arranged(d, gates, width, panel, columns)
        return Weights(buffer, gates, width, panel, plan.body.index(blocks), plan.body.index(columns))

    def _packed(self, array: np.ndarray[Any, Any], gates: range, width: int, panel: int) -> np.ndarray[Any, Any]:
        hidden = array.shape[1]
        blocks = -(-hidden // width)
        padded = np.zeros((len(gates), blocks * width, hidden), self.wide.numpy)
        padded[:, :hidden] = array.reshape(self.count, hidden, hidden)[gates.start : gates.stop]
        arranged = padded.reshape(len(gates), blocks, width, hidden).swapaxes(0, 1).reshape(-1, hidden)
        return pack_columns(arranged.T[None], panel)

    def _arranged(self, d: int, gates: range, width: int, panel: int, columns: SSAValue) -> SSAValue:
        """The same by kernels, for weights that the run brings."""
        plan = self.plan
        rows = plan.workspace(self.wide, [columns, plan.dim(self.hidden)])
        kernel = plan.kernel("arrange_weights")
        read, write, size = kernel.read(self.op.r), kernel.write_buffer(rows), kernel.extent(self.hidden)
        zero, count = kernel.const(self.wide, 0), len(gates)

        def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            block = b.index_math("floordiv", number, count * width)
            inner = b.minus(number, b.times(block, count * width))
            gate = b.index_math("floordiv", inner, width)
            element = b.plus(b.times(block, width), b.minus(inner, b.times(gate, width)))
            source = b.plus(b.times(b.plus(gate, d * self.count + gates.start), size), element)
            goal = b.times(number, size)

            def copy(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                value = c.load(read, c.plus(c.times(source, size), k))
                c.store(c.convert(value, self.dtype, self.wide), write, c.plus(goal, k))

            def clear(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                c.store(zero, write, c.plus(goal, k))

            there = b.compare("slt", element, size)
            b.when(there, lambda t: _nothing(t.loop(size, copy, vector=True)),
                   lambda t: _nothing(t.loop(size, clear, vector=True)))  # fmt: skip

        kernel.loop(kernel.outer(columns), row, parallel=True)
        kernel.launch()
        whole = fresh_dim()
        plan.bind(whole, columns, "the number of columns")
        source = Source(rows, 0, 1, plan.dim(self.hidden), self.wide)
        return pack_matrices(plan, source, self.wide, (Dim.of(1), self.hidden, whole), panel)


def _nothing(_: object) -> None:
    return None


def _is_read(value: SSAValue) -> bool:
    return any(True for _ in value.uses)
