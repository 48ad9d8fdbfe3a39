"""Lowering of `sx.dynamic_quantize_lstm`: as a scan over its steps, with the quantised products of integers.

X is quantised and multiplied at once. A step quantises the state by its own range, multiplies, and computes the cells;
each of these fuses as it would in any body of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, Region, SSAValue

from sardonyx.backends.llvm.expand import Builder, expands, known
from sardonyx.backends.llvm.lowering.quantize import view
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, float32, int64
from sardonyx.dialects.sx.activation import SigmoidOp, TanhOp
from sardonyx.dialects.sx.binary import AddOp, MulOp, SubOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.compare import LessOp
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.contrib_lstm import DynamicQuantizeLstmOp
from sardonyx.dialects.sx.control import ScanOp, YieldOp
from sardonyx.dialects.sx.fill import ConstantOfShapeOp, RangeOp
from sardonyx.dialects.sx.quantize_integer import MatMulIntegerOp
from sardonyx.dialects.sx.quantize_linear import DynamicQuantizeLinearOp
from sardonyx.dialects.sx.reduce import ReduceMaxOp
from sardonyx.dialects.sx.reshape import ExpandOp
from sardonyx.dialects.sx.reverse_sequence import ReverseSequenceOp
from sardonyx.dialects.sx.select import ClipOp, WhereOp
from sardonyx.dialects.sx.shape import ShapeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.errors import UnsupportedError

ONE = Dim.of(1)


@expands(DynamicQuantizeLstmOp)
def _dynamic_quantize_lstm(b: Builder, op: DynamicQuantizeLstmOp) -> Sequence[SSAValue]:
    layer = _Layer(b, op)
    runs = [layer.direction(d) for d in range(layer.count)]
    steps, batch, hidden = layer.steps, layer.batch, layer.hidden
    leads = ([ONE, batch, hidden], [ONE, batch, hidden], [steps, ONE, batch, hidden])
    joined: list[SSAValue] = []
    for index, (lead, axis) in enumerate(zip(leads, (0, 0, 1), strict=True)):
        parts = [view(b, run[index], lead) for run in runs]
        joined.append(parts[0] if len(parts) == 1 else b.add(ConcatOp, parts, axis=axis))
    y_h, y_c, y = joined
    return [y, y_h, y_c]


class _Layer:
    """A layer that is being expanded: what all directions share."""

    def __init__(self, b: Builder, op: DynamicQuantizeLstmOp) -> None:
        self.b, self.op = b, op
        self.count = 2 if op.attr("direction") == "bidirectional" else 1
        self.hidden = Dim.of(op.attr("hidden_size"))
        self.steps, self.batch, self.size = dims_of(op.x)
        self.clip = op.attr("clip")
        self.zero, self.one = (b.constant(np.asarray(n, np.float32)) for n in (0, 1))
        self.lens: SSAValue | None = None
        self.alive: SSAValue | None = None
        x = op.x
        if op.sequence_lens is not None:
            x = self._bounded(op.sequence_lens)
        self.x = b.op(DynamicQuantizeLinearOp, x).results

    def _bounded(self, given: SSAValue) -> SSAValue:
        """X with zeros where all sequences have ended, so that its range is that of what is read."""
        b, op = self.b, self.op
        self.lens = lens = view(b, b.add(CastOp, given, to=int64.ir), [self.batch])
        start, step = (b.constant(np.asarray(n, np.int64)) for n in (0, 1))
        extents = b.add(ShapeOp, op.x, start=0, end=2)
        count = view(b, b.add(ShapeOp, op.x, start=0, end=1), [])
        times = view(b, b.add(RangeOp, start, count, step), [self.steps, ONE])
        # Reversed, so that a length that is out of range is refused; a sequence is over where time and its mirror
        # image are its length together, or more.
        mirrored = b.add(ReverseSequenceOp, b.add(ExpandOp, times, extents), lens)
        alive = b.add(LessOp, b.add(AddOp, mirrored, times), lens)
        self.alive = view(b, alive, [self.steps, self.batch, ONE])
        longest = b.add(ReduceMaxOp, lens, keepdims=False)
        read = view(b, b.add(LessOp, times, longest), [self.steps, ONE, ONE])
        return b.add(WhereOp, read, op.x, self.zero)

    # ---- the parts of operands
    def part(self, value: SSAValue, d: int, dims: Sequence[Dim]) -> SSAValue:
        """What a direction has of an operand, [directions, ...], in a shape."""
        b, array = self.b, known(value)
        extents = [n.static_value for n in dims]
        if array is not None and None not in extents:
            return b.constant(np.ascontiguousarray(array[d]).reshape([n or 0 for n in extents]))
        if self.count > 1:
            first, last, axis = (b.constant(np.array([n], np.int64)) for n in (d, d + 1, 0))
            value = b.add(SliceOp, value, first, last, axis)
        return view(b, value, dims)

    def columns(self, value: SSAValue, d: int) -> SSAValue:
        """A scale: one number or one per column."""
        return self.part(value, d, [] if len(dims_of(value)) == 1 else [self.hidden * 4])

    def point(self, value: SSAValue, d: int) -> SSAValue:
        """A zero point, one number."""
        if len(dims_of(value)) == 1:
            return self.part(value, d, [])
        array = known(value)
        if array is None or len(np.unique(array[d])) != 1:
            message = "zero points per column" if array is None else "zero points of a direction that differ"
            location = locations.describe(self.op.location)
            raise UnsupportedError(
                f"{self.op.name} has no native form for {message}", location=location, op=self.op.name
            )
        return self.b.constant(array[d].reshape(-1)[:1].reshape(()))

    def bias(self, d: int) -> SSAValue | None:
        """The sum of both biases."""
        op, b = self.op, self.b
        if op.b is None:
            return None
        array = known(op.b)
        if array is not None:
            return b.constant(array[d].reshape(2, -1).sum(0, dtype=np.float32))
        return b.add(AddOp, *b.op(SplitOp, self.part(op.b, d, [self.hidden * 8]), results=2, num_outputs=2).results)

    def state(self, given: SSAValue | None, d: int) -> SSAValue:
        """A direction's first state."""
        b, dims = self.b, [self.batch, self.hidden]
        if given is not None:
            return self.part(given, d, dims)
        extent = b.add(ShapeOp, self.op.x, start=1, end=2)
        shape = b.add(ConcatOp, [extent, b.constant(np.array([self.hidden.static_value]))], axis=0)
        return view(b, b.add(ConstantOfShapeOp, shape), dims)

    # ---- a direction
    def direction(self, d: int) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The last h and c, [B, H], and all h, [S, B, H]."""
        b, op = self.b, self.op
        backward = op.attr("direction") == "reverse" or d == 1
        rows = self.hidden * 4
        given = _product(
            b,
            self.x,
            self.part(op.w, d, [self.size, rows]),
            self.columns(op.w_scale, d),
            self.point(op.w_zero_point, d),
        )
        weights = (
            self.part(op.r, d, [self.hidden, rows]), self.columns(op.r_scale, d), self.point(op.r_zero_point, d)
        )  # fmt: skip
        peepholes = (
            None
            if op.p is None
            else b.op(SplitOp, self.part(op.p, d, [self.hidden * 3]), results=3, num_outputs=3).results
        )
        bias = self.bias(d)
        states = [self.state(op.initial_h, d), self.state(op.initial_c, d)]
        if backward and self.lens is not None:
            given = b.add(ReverseSequenceOp, given, self.lens)
        scanned = [given] if self.alive is None else [given, self.alive]
        block = Block(arg_types=[
            *(tensor_type(float32, [self.batch, self.hidden]) for _ in states),
            tensor_type(float32, [self.batch, rows]),
            *([] if self.alive is None else [tensor_type(bool_, [self.batch, ONE])]),
        ])  # fmt: skip
        body = _BodyBuilder(b, op, block)
        body.end(self._step(body, list(block.args), weights, bias, peepholes))
        mirrored = backward and self.lens is None
        directions = [1 if mirrored else 0]
        h, c, y = b.op(
            ScanOp, [*states, *scanned], results=3, regions=[Region(block)], num_scan_inputs=len(scanned),
            scan_input_directions=directions * len(scanned), scan_output_directions=directions,
        ).results  # fmt: skip
        if backward and self.lens is not None:
            y = b.add(ReverseSequenceOp, y, self.lens)
        return h, c, y

    def _step(
        self,
        b: Builder,
        given: Sequence[SSAValue],
        weights: tuple[SSAValue, SSAValue, SSAValue],
        bias: SSAValue | None,
        peepholes: Sequence[SSAValue] | None,
    ) -> list[SSAValue]:
        """The next h and c, and the row of y."""
        h, c, of_input, *alive = given
        gates = b.add(AddOp, of_input, _product(b, b.op(DynamicQuantizeLinearOp, h).results, *weights))
        if bias is not None:
            gates = b.add(AddOp, gates, bias)
        into, out, forget, fresh = b.op(SplitOp, gates, results=4, num_outputs=4, axis=1).results

        def gate(value: SSAValue, number: int, cell: SSAValue) -> SSAValue:
            if peepholes is not None:
                value = b.add(AddOp, value, b.add(MulOp, peepholes[number], cell))
            return b.add(SigmoidOp, self._limited(b, value))

        into = gate(into, 0, c)
        forget = b.add(SubOp, self.one, into) if self.op.attr("input_forget") else gate(forget, 2, c)
        squashed = b.add(TanhOp, self._limited(b, fresh))
        after = b.add(AddOp, b.add(MulOp, forget, c), b.add(MulOp, into, squashed))
        hidden = b.add(MulOp, gate(out, 1, after), b.add(TanhOp, self._limited(b, after)))
        if not alive:
            return [hidden, after, hidden]
        (goes_on,) = alive
        kept = [b.add(WhereOp, goes_on, hidden, h), b.add(WhereOp, goes_on, after, c)]
        return [*kept, b.add(WhereOp, goes_on, hidden, self.zero)]

    def _limited(self, b: Builder, value: SSAValue) -> SSAValue:
        if self.clip is None:
            return value
        bounds = (b.constant(np.asarray(n, np.float32)) for n in (-self.clip, self.clip))
        return b.add(ClipOp, value, *bounds)


def _product(b: Builder, x: Sequence[SSAValue], w: SSAValue, w_scale: SSAValue, w_point: SSAValue) -> SSAValue:
    """Rows that were quantised, times weights, in float32."""
    rows, scale, point = x
    sums = b.add(CastOp, b.add(MatMulIntegerOp, rows, w, point, w_point), to=float32.ir)
    return b.add(MulOp, sums, b.add(MulOp, scale, w_scale))


class _BodyBuilder(Builder):
    """Puts ops at the end of a block, on behalf of another builder's op."""

    def __init__(self, outer: Builder, op: Operation, block: Block) -> None:
        super().__init__(op)
        self.made = outer.made
        self._block = block

    def _insert(self, op: Any) -> Any:
        op.location = self._op.location
        self._block.add_op(op)
        self.made.append(op)
        return op

    def end(self, values: Sequence[SSAValue]) -> None:
        self._insert(YieldOp.create(operands=values))
