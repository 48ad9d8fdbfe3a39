"""An LSTM with weights of 8 bits, of com.microsoft: `sx.dynamic_quantize_lstm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, rank_of, tensor_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32, int8, int32, uint8
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import sigmoid
from sardonyx.dialects.sx.support import check_dtype, is_unranked, require_equal

DIRECTIONS = ("forward", "reverse", "bidirectional")


def quantized_product(x: Array, weights: Array, zero: int) -> tuple[Array, np.float32]:
    """The rows of `x`, quantised by the range of them all, times integer weights: the sums, and the scale of `x`."""
    low, high = np.float32(min(x.min(initial=0), 0)), np.float32(max(x.max(initial=0), 0))
    scale = np.float32((high - low) / np.float32(255)) if high != low else np.float32(1)
    at = np.float32(np.rint(np.clip(-low / scale, 0, 255)))
    whole = np.clip(np.rint(x / scale) + at, 0, 255) - at
    return (whole.astype(np.int64) @ (weights.astype(np.int64) - zero)), scale


@irdl_op_definition
class DynamicQuantizeLstmOp(SxOp):
    """An LSTM as ONNX has it, whose products are of integers: X at once and H at each step are quantised to 8 bits by
    their own range, the weights [D, input, 4 * hidden] are given so, with a scale (and a zero point) per direction or
    per column. Activations are sigmoid and tanh. In float32; the results are [S, D, B, H], [D, B, H] and [D, B, H].

    (C1) X is float32 [S, B, I], as are bias, states, peepholes and scales; W and R are int8 or uint8 and their zero
    points have that dtype; `sequence_lens` is int32. (C2) The extents fit each other and `hidden_size`. (C3) The
    `direction` is forward, reverse or bidirectional. (C4) The lengths are from 0 to S, and all zero points of a
    direction are equal.
    """

    name = "sx.dynamic_quantize_lstm"
    x = operand_def()
    w = operand_def()
    r = operand_def()
    b = opt_operand_def()
    sequence_lens = opt_operand_def()
    initial_h = opt_operand_def()
    initial_c = opt_operand_def()
    p = opt_operand_def()
    w_scale = operand_def()
    w_zero_point = operand_def()
    r_scale = operand_def()
    r_zero_point = operand_def()
    hidden_size = prop_def(IntegerAttr)
    direction = opt_prop_def(StringAttr)
    clip = opt_prop_def(FloatAttr)
    input_forget = opt_prop_def(IntegerAttr)
    y = result_def()
    y_h = result_def()
    y_c = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("DynamicQuantizeLSTM", "com.microsoft")
    DEFAULTS: ClassVar = {"direction": "forward", "input_forget": 0}

    def infer(self) -> Sequence[Attribute]:
        for name in ("x", "b", "initial_h", "initial_c", "p", "w_scale", "r_scale"):
            value = getattr(self, name)
            if value is not None:
                check_dtype(self, value, (float32,), "(C1)", name)
        for weights, zero in (("w", "w_zero_point"), ("r", "r_zero_point")):
            dtype = check_dtype(self, getattr(self, weights), (int8, uint8), "(C1)", weights)
            check_dtype(self, getattr(self, zero), (dtype,), "(C1)", zero)
        if self.sequence_lens is not None:
            check_dtype(self, self.sequence_lens, (int32,), "(C1)", "sequence_lens")
        if self.attr("direction") not in DIRECTIONS:
            raise self.fail(f"(C3) direction '{self.attr('direction')}' is none of {', '.join(DIRECTIONS)}")
        count, hidden = 2 if self.attr("direction") == "bidirectional" else 1, self.attr("hidden_size")
        if hidden < 1:
            raise self.fail(f"(C2) hidden_size is {hidden}")
        steps = batch = size = None
        if not is_unranked(self.x):
            if rank_of(self.x) != 3:
                raise self.fail(f"(C2) x has rank {rank_of(self.x)}, not 3")
            steps, batch, size = dims_of(self.x)
        self._require("w", [count, size, 4 * hidden])
        self._require("r", [count, hidden, 4 * hidden])
        self._require("b", [count, 8 * hidden])
        self._require("p", [count, 3 * hidden])
        self._require("sequence_lens", [batch])
        self._require("initial_h", [count, batch, hidden])
        self._require("initial_c", [count, batch, hidden])
        for name in ("w_scale", "w_zero_point", "r_scale", "r_zero_point"):
            value = getattr(self, name)
            self._require(name, [count] if is_unranked(value) or rank_of(value) == 1 else [count, 4 * hidden])
        steps, batch = (fresh_dim() if d is None else d for d in (steps, batch))
        state = tensor_type(float32, [count, batch, hidden])
        return [tensor_type(float32, [steps, count, batch, hidden]), state, state]

    def _require(self, name: str, wanted: Sequence[Dim | int | None]) -> None:
        value = getattr(self, name)
        if value is None or is_unranked(value):
            return
        found = dims_of(value)
        if len(found) != len(wanted):
            raise self.fail(f"(C2) {name} has rank {len(found)}, not {len(wanted)}")
        for have, want in zip(found, wanted):
            if want is not None:
                require_equal(self, have, Dim.of(want), f"(C2) {name} does not fit")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, r, b, lengths, h0, c0, p, ws, wz, rs, rz = slots(arrays)
        steps, batch, _ = x.shape
        count, hidden = len(w), self.attr("hidden_size")
        lens = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
        if len(lens) and not (0 <= lens.min() and lens.max() <= steps):
            raise refuse(self, f"(C4) a length is out of range: {lens.min()} to {lens.max()} of {steps}")
        y = np.zeros((steps, count, batch, hidden), np.float32)
        y_h, y_c = np.zeros((2, count, batch, hidden), np.float32)
        for d in range(count):
            state = [np.zeros((batch, hidden), np.float32) if s is None else s[d] for s in (h0, c0)]
            scales = [s[d] for s in (ws, rs)]
            zeros = [self._zero(z, d) for z in (wz, rz)]
            bias = np.zeros(8 * hidden, np.float32) if b is None else b[d]
            peep = np.zeros(3 * hidden, np.float32) if p is None else p[d]
            backward = self.attr("direction") == "reverse" or d == 1
            order = _order(lens, steps, backward)
            y_h[d], y_c[d] = self._direction(
                x,
                order,
                lens,
                y[:, d],
                state,
                (w[d], r[d]),
                scales,
                zeros,
                bias[: 4 * hidden] + bias[4 * hidden :],
                peep,
            )
        return [y, y_h, y_c]

    def _zero(self, zeros: Array, d: int) -> int:
        found = np.unique(zeros[d])
        if len(found) != 1:
            raise refuse(self, "(C4) the zero points of a direction differ")
        return int(found[0])

    def _direction(
        self,
        x: Array,
        order: Array,
        lens: Array,
        y: Array,
        state: list[Array],
        weights: tuple[Array, Array],
        scales: list[Array],
        zeros: list[int],
        bias: Array,
        peep: Array,
    ) -> tuple[Array, Array]:
        """One direction; writes its hidden states into `y` [S, B, H] and returns the last ones.

        `order` has the step that each sequence takes k-th, [S, B].
        """
        h, c = state
        hidden = h.shape[1]
        last = int(lens.max(initial=0))
        rows = x[:last].reshape(last * x.shape[1], x.shape[2])
        sums, scale = quantized_product(rows, weights[0], zeros[0])
        given = (sums.astype(np.float32) * (scale * scales[0])).reshape(last, x.shape[1], 4 * hidden)
        at = np.arange(x.shape[1])
        clip = self.attr("clip")
        for k in range(last):
            sums, scale = quantized_product(h, weights[1], zeros[1])
            gates = given[order[k], at] + sums.astype(np.float32) * (scale * scales[1]) + bias
            i, o, f, g = (gates[:, n * hidden : (n + 1) * hidden] for n in range(4))
            f = f + peep[2 * hidden :] * c
            i = i + peep[:hidden] * c

            def limited(v: Array) -> Array:
                return v if clip is None else np.clip(v, -clip, clip)

            i = sigmoid(limited(i))
            f = 1 - i if self.attr("input_forget") else sigmoid(limited(f))
            fresh = (f * c + i * np.tanh(limited(g))).astype(np.float32)
            out = (sigmoid(limited(o + peep[hidden : 2 * hidden] * fresh)) * np.tanh(limited(fresh))).astype(np.float32)
            alive = (k < lens)[:, None]
            c, h = np.where(alive, fresh, c), np.where(alive, out, h)
            y[order[k][alive[:, 0]], at[alive[:, 0]]] = out[alive[:, 0]]
        return h, c


def _order(lens: Array, steps: int, backward: bool) -> Array:
    """The step that each sequence takes k-th, [S, B]; backward, a sequence begins at its own end."""
    k = np.arange(steps)[:, None]
    return np.where(k < lens, lens - 1 - k, k) if backward else np.broadcast_to(k, (steps, len(lens)))
