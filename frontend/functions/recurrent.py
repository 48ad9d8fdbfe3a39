"""Recurrent layers, with the shapes of ONNX's operators: x [seq, batch, input], w [dirs, gates * hidden, input],
r [dirs, gates * hidden, hidden], b [dirs, 2 * gates * hidden], states [dirs, batch, hidden].

With `layout=1` the batch comes first: x [batch, seq, input], states [batch, dirs, hidden].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.dialects.dtypes import int32
from sardonyx.frontend.apply import apply
from sardonyx.frontend.operands import TensorLike, promoted, to_tensor
from sardonyx.frontend.tensor import Tensor

_SHARED = ("direction", "layout", "clip", "activations", "activation_alpha", "activation_beta")


def _layer(
    name: str, lens: TensorLike | None, given: Sequence[TensorLike | None], shared: Sequence[Any], **own: Any
) -> tuple[Tensor, ...]:
    """The results of a layer; `shared` are the attributes that all layers have, in the order of `_SHARED`."""
    properties = {**dict(zip(_SHARED, shared, strict=True)), **own}
    tensors = iter(promoted(*(v for v in given if v is not None), floating=True))
    slots: list[Tensor | None] = [None if v is None else next(tensors) for v in given]
    slots.insert(4, None if lens is None else to_tensor(lens, int32))
    for key in ("activations", "activation_alpha", "activation_beta"):
        if properties[key] is not None:
            properties[key] = tuple(properties[key])
    return apply(name, *slots, **properties)


def rnn(
    x: TensorLike,
    w: TensorLike,
    r: TensorLike,
    b: TensorLike | None = None,
    *,
    sequence_lens: TensorLike | None = None,
    initial_h: TensorLike | None = None,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
) -> tuple[Tensor, Tensor]:
    """A simple recurrent layer, `h' = tanh(x w' + h r' + b)`: all h [seq, dirs, batch, hidden], and the last one.

    Args:
        x: The sequences.
        w: The weights of the input.
        r: The weights of the state.
        b: Their biases, one after the other.
        sequence_lens: How many elements each sequence has, by default all.
        initial_h: The first state, by default 0.
        direction: 'forward', 'reverse' or 'bidirectional'.
        layout: 1 where the batch comes first.
        clip: A bound of what enters an activation.
        activations: Names of ONNX's, in place of the layer's own, for each direction.
        activation_alpha: Parameters of those that take one, in order.
        activation_beta: The same for the second parameter.

    Raises:
        InferenceError: The shapes or dtypes don't go together.
    """
    shared = (direction, layout, clip, activations, activation_alpha, activation_beta)
    y, last = _layer("sx.rnn", sequence_lens, (x, w, r, b, initial_h), shared)
    return y, last


def gru(
    x: TensorLike,
    w: TensorLike,
    r: TensorLike,
    b: TensorLike | None = None,
    *,
    sequence_lens: TensorLike | None = None,
    initial_h: TensorLike | None = None,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    linear_before_reset: bool = False,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
) -> tuple[Tensor, Tensor]:
    """A gated recurrent layer with gates z, r, h in this order: all h, and the last one; arguments as for `rnn`.

    With `linear_before_reset` the reset gate is applied after the product with the state, as torch and cuDNN do.
    """
    shared = (direction, layout, clip, activations, activation_alpha, activation_beta)
    y, last = _layer("sx.gru", sequence_lens, (x, w, r, b, initial_h), shared,
                     linear_before_reset=bool(linear_before_reset))  # fmt: skip
    return y, last


def lstm(
    x: TensorLike,
    w: TensorLike,
    r: TensorLike,
    b: TensorLike | None = None,
    *,
    sequence_lens: TensorLike | None = None,
    initial_h: TensorLike | None = None,
    initial_c: TensorLike | None = None,
    peepholes: TensorLike | None = None,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    input_forget: bool = False,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A long short-term memory with gates i, o, f, c in this order: all h, the last one, and the last cell.

    Arguments are as for `rnn`; `peepholes` [dirs, 3 * hidden] are those of i, o and f, and with `input_forget` the
    forget gate is 1 - i.
    """
    shared = (direction, layout, clip, activations, activation_alpha, activation_beta)
    y, last, cell = _layer("sx.lstm", sequence_lens, (x, w, r, b, initial_h, initial_c, peepholes), shared,
                           input_forget=bool(input_forget))  # fmt: skip
    return y, last, cell
