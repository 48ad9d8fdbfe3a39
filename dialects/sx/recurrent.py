"""What recurrent layers share: shapes, directions, sequence lengths and activations; see `rnn`, `gru`, `lstm`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, DType, int32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow, sigmoid, softplus
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, require_equal

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """A function that a recurrent layer may apply, with the parameters that it takes and their defaults."""

    make: Callable[[float, float], Function]
    alpha: float | None = None
    beta: float | None = None


def _elu(a: float) -> Function:
    return lambda x: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x)


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(lambda a, b: lambda x: np.maximum(x, 0)),
    "tanh": Activation(lambda a, b: np.tanh),
    "sigmoid": Activation(lambda a, b: sigmoid),
    "affine": Activation(lambda a, b: lambda x: a * x + b, 1.0, 0.0),
    "leakyrelu": Activation(lambda a, b: lambda x: np.where(x < 0, a * x, x), 0.01),
    "thresholdedrelu": Activation(lambda a, b: lambda x: np.where(x > a, x, 0.0), 1.0),
    "scaledtanh": Activation(lambda a, b: lambda x: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": Activation(lambda a, b: lambda x: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": Activation(lambda a, b: _elu(a), 1.0),
    "softsign": Activation(lambda a, b: lambda x: x / (1 + np.abs(x))),
    "softplus": Activation(lambda a, b: softplus),
}
"""By ONNX's name in small letters; names are read without regard to case."""


@dataclass(frozen=True)
class Chosen:
    """One of `ACTIVATIONS` with the parameters that it is to have."""

    name: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class Turn:
    """What a step of a layer computes from: `x` [batch, input], states [batch, hidden], w, r and b of one direction."""

    x: Array
    state: list[Array]
    weights: tuple[Array, Array, Array]
    peepholes: Array
    functions: Sequence[Function]

    @property
    def hidden(self) -> int:
        return self.state[0].shape[1]

    def gates(self, first: int = 0, last: int | None = None) -> list[Array]:
        """`x w' + h r' + wb + rb` of the gates from the first to before the last."""
        w, r, b = self.weights
        size = self.hidden
        rows = slice(first * size, None if last is None else last * size)
        both = b.reshape(2, -1)[:, rows].sum(0)
        total = self.x @ w[rows].T + self.state[0] @ r[rows].T + both
        return [total[:, i : i + size] for i in range(0, total.shape[1], size)] if size else [total] * 4


DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


class RecurrentOp(SxOp):
    """A recurrent layer over sequences: `x` [seq, batch, input], `w` [dirs, gates * hidden, input], `r` [dirs, gates *
    hidden, hidden], `b` [dirs, 2 * gates * hidden] (those of `w`, then those of `r`), states [dirs, batch, hidden].

    With `layout` 1 `x` is [batch, seq, input] and states are [batch, dirs, hidden]. `direction` is 'forward', 'reverse'
    (from the last element of each sequence to the first) or 'bidirectional' (both). Batch i has `sequence_lens[i]`
    elements: what follows is 0 in the result and does not change the states. `clip` bounds what enters an activation.
    Activations take parameters from `activation_alpha` and `activation_beta` in order, else their defaults. Computed
    in float64, rounded once.

    (C1) The operands have one dtype of `DTYPES`, `sequence_lens` is int32. (C2) The ranks are those above. (C3) The
    extents agree; `hidden_size`, where given, is that of `r`. (C4) `direction` is one of the three, `layout` 0 or 1,
    `clip` not negative. (C5) There are as many known activations as the layer has, for each direction (or for two).

    """

    x = operand_def()
    w = operand_def()
    r = operand_def()
    b = opt_operand_def()
    sequence_lens = opt_operand_def()
    initial_h = opt_operand_def()
    direction = opt_prop_def(StringAttr)
    hidden_size = opt_prop_def(IntegerAttr)
    layout = opt_prop_def(IntegerAttr)
    clip = opt_prop_def(FloatAttr)
    activations = opt_prop_def(ArrayAttr)
    activation_alpha = opt_prop_def(DenseArrayBase)
    activation_beta = opt_prop_def(DenseArrayBase)
    DEFAULTS: ClassVar = {"direction": "forward", "layout": 0}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS
    GATES: ClassVar[int]
    FUNCTIONS: ClassVar[tuple[str, ...]]

    def infer(self) -> Sequence[Attribute]:
        return self.infer_recurrent()

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return self.run_layer(*slots(arrays))

    # ---- types
    def infer_recurrent(
        self, more: Sequence[tuple[str, SSAValue | None, int]] = (), states: int = 1
    ) -> list[Attribute]:
        """The types of y and of so many last states.

        Args:
            more: Further operands: name, value, and how many times hidden their last extent is (0: a state).
            states: The number of states.
        """
        sequence_lens = self.sequence_lens
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        more = [("b", self.b, 2 * self.GATES), ("initial_h", self.initial_h, 0), *more]
        given = [("w", self.w, 0), ("r", self.r, 0), *more]
        for name, value, _ in given:
            if value is not None:
                check_dtype(self, value, (dtype,), "(C1)", name)
        if sequence_lens is not None:
            check_dtype(self, sequence_lens, (int32,), "(C1)", "sequence_lens")
        dirs = self.directions()
        self.functions()
        x = self._shape("x", self.x, 3)
        w, r = self._shape("w", self.w, 3), self._shape("r", self.r, 3)
        stated = self.attr("hidden_size")
        hidden = None if stated is None else Dim.of(stated)
        if r is not None:
            hidden = r[2] if hidden is None else merge(self, hidden, r[2], "(C3) hidden_size and r differ")
        if hidden is None:
            return [unranked_type(dtype)] * (1 + states)
        for name, shape in (("w", w), ("r", r)):
            if shape is not None:
                require_equal(self, shape[0], Dim.of(dirs), f"(C3) {name} of shape {format_dims(shape)}, directions")
                require_equal(
                    self,
                    shape[1],
                    hidden * self.GATES,
                    f"(C3) {name} of shape {format_dims(shape)}, gates times hidden",
                )
        if x is not None and w is not None:
            require_equal(self, x[2], w[2], "(C3) the last extents of x and w differ")
        if x is None:
            return [unranked_type(dtype)] * (1 + states)
        seq, batch = (x[1], x[0]) if self.attr("layout") else (x[0], x[1])
        for name, value, times in more:
            self._check_more(name, value, times, batch, hidden)
        lengths = None if sequence_lens is None else self._shape("sequence_lens", sequence_lens, 1)
        if lengths is not None:
            batch = merge(self, batch, lengths[0], "(C3) sequence_lens and the batch differ")
        state = [batch, Dim.of(dirs), hidden] if self.attr("layout") else [Dim.of(dirs), batch, hidden]
        y = [batch, seq, Dim.of(dirs), hidden] if self.attr("layout") else [seq, Dim.of(dirs), batch, hidden]
        return [tensor_type(dtype, y), *[tensor_type(dtype, state) for _ in range(states)]]

    def _shape(self, name: str, value: SSAValue, rank: int) -> Shape | None:
        if is_unranked(value):
            return None
        dims = dims_of(value)
        if len(dims) != rank:
            raise self.fail(f"(C2) {name} of shape {format_dims(dims)} has rank {len(dims)}, not {rank}")
        return dims

    def _check_more(self, name: str, value: SSAValue | None, times: int, batch: Dim, hidden: Dim) -> None:
        if value is None:
            return
        dirs = Dim.of(self.directions())
        if times:
            wanted = (dirs, hidden * times)
        else:
            wanted = (batch, dirs, hidden) if self.attr("layout") else (dirs, batch, hidden)
        found = self._shape(name, value, len(wanted))
        if found is not None:
            for a, b in zip(found, wanted, strict=True):
                require_equal(self, a, b, f"(C3) {name} of shape {format_dims(found)} is to be {format_dims(wanted)}")

    def directions(self) -> int:
        """The number of directions."""
        direction, layout, clip = self.attr("direction"), self.attr("layout"), self.attr("clip")
        if direction not in DIRECTIONS:
            raise self.fail(f"(C4) direction '{direction}' is none of {', '.join(DIRECTIONS)}")
        if layout not in (0, 1):
            raise self.fail(f"(C4) layout is {layout}")
        if clip is not None and clip < 0:
            raise self.fail(f"(C4) clip is {clip}")
        return DIRECTIONS[direction]

    def functions(self) -> list[list[Function]]:
        """The activations of each direction, as functions on arrays."""
        return [
            [ACTIVATIONS[chosen.name].make(chosen.alpha, chosen.beta) for chosen in each]
            for each in self.chosen_activations()
        ]

    def chosen_activations(self) -> list[list[Chosen]]:
        """The activations of each direction, with their parameters."""
        dirs, count = self.directions(), len(self.FUNCTIONS)
        names: Sequence[str] = self.attr("activations") or self.FUNCTIONS * dirs
        if len(names) == 2 * count and dirs == 1:
            names = names[:count]  # the default that ONNX's schema of RNN states is for two directions
        if len(names) != dirs * count:
            raise self.fail(f"(C5) {len(names)} activations for {dirs} times {count}")
        alphas, betas = list(self.attr("activation_alpha") or ()), list(self.attr("activation_beta") or ())
        out: list[Chosen] = []
        for name in names:
            known = ACTIVATIONS.get(name.lower())
            if known is None:
                raise self.fail(f"(C5) the activation '{name}' is unknown; known: {', '.join(ACTIVATIONS)}")
            alpha, beta = known.alpha, known.beta
            if alpha is not None and alphas:
                alpha = alphas.pop(0)
            if beta is not None and betas:
                beta = betas.pop(0)
            out.append(Chosen(name.lower(), 0.0 if alpha is None else alpha, 0.0 if beta is None else beta))
        return [out[i * count : (i + 1) * count] for i in range(dirs)]

    # ---- runs
    def run_layer(self, x: Array, w: Array, r: Array, b: Array | None, lens: Array | None, *states: Array | None,
                  peepholes: Array | None = None) -> list[Array]:  # fmt: skip
        """y and the last states, rounded to the dtype of `x`."""
        layout = self.attr("layout")
        dtype, dirs, hidden = x.dtype, self.directions(), r.shape[-1] if r.ndim == 3 else 0
        data = double(np.swapaxes(x, 0, 1) if layout and x.ndim == 3 else x)
        parts = [w, r, *(a for a in (b, peepholes) if a is not None)]
        sizes = [(dirs, self.GATES * hidden, x.shape[-1] if x.ndim else 0), (dirs, self.GATES * hidden, hidden)]
        sizes += [(dirs, 2 * self.GATES * hidden)] * (b is not None) + [(dirs, 3 * hidden)] * (peepholes is not None)
        if data.ndim != 3 or any(a.shape != s for a, s in zip(parts, sizes, strict=True)):
            raise refuse(self, f"shapes {', '.join(str(list(a.shape)) for a in (x, *parts))} are no recurrent layer's")
        seq, batch = data.shape[:2]
        starts = [self._start(s, (dirs, batch, hidden)) for s in states]
        lengths = np.full(batch, seq) if lens is None else lens.astype(np.int64)
        if lengths.shape != (batch,) or (lengths < 0).any() or (lengths > seq).any():
            raise refuse(self, f"sequence_lens {lengths.tolist()} for {batch} sequences of at most {seq} elements")
        y = np.zeros((seq, dirs, batch, hidden))
        last = [np.zeros((dirs, batch, hidden)) for _ in states]
        for d, functions in enumerate(self.functions()):
            backward = d == 1 or self.attr("direction") == "reverse"
            state = [s[d] for s in starts]
            weights = double(w[d]), double(r[d]), np.zeros(2 * self.GATES * hidden) if b is None else double(b[d])
            peep = np.zeros(3 * hidden) if peepholes is None else double(peepholes[d])
            for at, live in _steps(lengths, backward):
                new = self.step(Turn(data[at, np.arange(batch)], state, weights, peep, functions))
                state = [np.where(live[:, None], n, s) for n, s in zip(new, state, strict=True)]
                y[at[live], d, np.flatnonzero(live)] = state[0][live]
            for target, found in zip(last, state, strict=True):
                target[d] = found
        if layout:
            y, last = y.transpose(2, 0, 1, 3), [s.swapaxes(0, 1) for s in last]
        return [np.ascontiguousarray(narrow(a, dtype)) for a in (y, *last)]

    def _start(self, state: Array | None, shape: tuple[int, int, int]) -> Array:
        if state is None:
            return np.zeros(shape)
        found = double(np.swapaxes(state, 0, 1) if self.attr("layout") and state.ndim == 3 else state)
        if found.shape != shape:
            raise refuse(self, f"an initial state of shape {list(state.shape)} is no state of {list(shape)}")
        return found

    def clipped(self, value: Array) -> Array:
        """What enters an activation."""
        clip = self.attr("clip")
        return value if not clip else np.clip(value, -clip, clip)

    def step(self, turn: Turn) -> list[Array]:
        """The next states."""
        raise NotImplementedError


def _steps(lengths: Array, backward: bool) -> Iterator[tuple[Array, Array]]:
    """Per step the place in each sequence, and which sequences have one."""
    for step in range(int(lengths.max(initial=0))):
        live = step < lengths
        at = lengths - 1 - step if backward else np.full(lengths.shape, step)
        yield np.where(live, at, 0), live
