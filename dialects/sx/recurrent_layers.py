"""Recurrent layers: `sx.rnn`, `sx.gru`, `sx.lstm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.base import SEGMENTS, OnnxForm
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import slots
from sardonyx.dialects.sx.recurrent import RecurrentOp, Turn


@irdl_op_definition
class RnnOp(RecurrentOp):
    """A simple recurrent layer: `h' = f(x w' + h r' + wb + rb)`; results: all h, and the last one.

    The constraints are those of `RecurrentOp`, with one gate and the activation f (tanh).
    """

    name = "sx.rnn"
    irdl_options = SEGMENTS
    y = result_def()
    y_h = result_def()
    ONNX: ClassVar = OnnxForm("RNN", since=7)
    GATES: ClassVar = 1
    FUNCTIONS: ClassVar = ("Tanh",)

    def step(self, turn: Turn) -> list[Array]:
        (gate, *_) = turn.gates()
        return [turn.functions[0](self.clipped(gate))]


@irdl_op_definition
class GruOp(RecurrentOp):
    """A gated recurrent layer, with gates z (update), r (reset) and h in this order; results: all h, and the last one.

    `z = f(x wz' + h rz' + bz)`, `r = f(x wr' + h rr' + br)`, `n = g(x wh' + (r h) rh' + bh)`, or with
    `linear_before_reset` `n = g(x wh' + wbh + r (h rh' + rbh))`; `h' = (1 - z) n + z h`.

    The constraints are those of `RecurrentOp`, with three gates and the activations f (sigmoid) and g (tanh).
    """

    name = "sx.gru"
    irdl_options = SEGMENTS
    linear_before_reset = opt_prop_def(IntegerAttr)
    y = result_def()
    y_h = result_def()
    ONNX: ClassVar = OnnxForm("GRU", since=7)
    DEFAULTS: ClassVar = {**RecurrentOp.DEFAULTS, "linear_before_reset": False}
    GATES: ClassVar = 3
    FUNCTIONS: ClassVar = ("Sigmoid", "Tanh")

    def step(self, turn: Turn) -> list[Array]:
        (h,), (f, g), (w, r, b), size = turn.state, turn.functions, turn.weights, turn.hidden
        z, reset = turn.gates(0, 2)[:2]
        z, reset = f(self.clipped(z)), f(self.clipped(reset))
        two = 2 * size
        inputs = turn.x @ w[two:].T + b[two : 3 * size]
        if self.attr("linear_before_reset"):
            inner = inputs + reset * (h @ r[two:].T + b[5 * size :])
        else:
            inner = inputs + (reset * h) @ r[two:].T + b[5 * size :]
        return [(1 - z) * g(self.clipped(inner)) + z * h]


@irdl_op_definition
class LstmOp(RecurrentOp):
    """A long short-term memory, with gates i, o, f, c in this order; results: all h, the last one, and the last cell c.

    `i = f(x wi' + h ri' + pi c + bi)`, `f = f(x wf' + h rf' + pf c + bf)` (with `input_forget` 1 - i), `c' = f c +
    i g(x wc' + h rc' + bc)`, `o = f(x wo' + h ro' + po c' + bo)`, `h' = o h(c')`; the peepholes `p` [dirs, 3 * hidden]
    are pi, po, pf. `clip` bounds what enters the gates and g, not the cell, as onnxruntime has it.

    The constraints are those of `RecurrentOp`, with four gates and the activations f (sigmoid), g and h (tanh).
    """

    name = "sx.lstm"
    irdl_options = SEGMENTS
    x = operand_def()  # those of `RecurrentOp` again: an op's own operands come before inherited ones
    w = operand_def()
    r = operand_def()
    b = opt_operand_def()
    sequence_lens = opt_operand_def()
    initial_h = opt_operand_def()
    initial_c = opt_operand_def()
    p = opt_operand_def()
    input_forget = opt_prop_def(IntegerAttr)
    y = result_def()
    y_h = result_def()
    y_c = result_def()
    ONNX: ClassVar = OnnxForm("LSTM", since=7)
    DEFAULTS: ClassVar = {**RecurrentOp.DEFAULTS, "input_forget": False}
    GATES: ClassVar = 4
    FUNCTIONS: ClassVar = ("Sigmoid", "Tanh", "Tanh")

    def infer(self) -> Sequence[Attribute]:
        return self.infer_recurrent([("initial_c", self.initial_c, 0), ("p", self.p, 3)], states=2)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, r, b, lens, h, c, p = slots(arrays)
        return self.run_layer(x, w, r, b, lens, h, c, peepholes=p)

    def step(self, turn: Turn) -> list[Array]:
        (_, c), (f, g, last), size = turn.state, turn.functions, turn.hidden
        into, out, forget, cell = turn.gates()
        peep_in, peep_out, peep_forget = (turn.peepholes[i * size : (i + 1) * size] for i in range(3))
        into = f(self.clipped(into + peep_in * c))
        forget = 1 - into if self.attr("input_forget") else f(self.clipped(forget + peep_forget * c))
        c = forget * c + into * g(self.clipped(cell))
        out = f(self.clipped(out + peep_out * c))
        return [out * last(c), c]
