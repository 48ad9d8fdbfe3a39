"""LSTM, GRU and simple recurrent layers, kept whole."""

from __future__ import annotations

from typing import Any

from sardonyx.frontend.functions import gathering as g, recurrent, shape as s
from sardonyx.frontend.functions.joining import concat
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten

_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
"""Where ONNX's gates stand among torch's."""


@aten("lstm.input", "sardonyx::lstm.default")
def lstm(
    n: Call, x: Tensor, states: Any, params: Any, has_biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    return _layers(n, "lstm", x, states, params, has_biases, layers, dropout, train, bidirectional, batch_first)


@aten(
    "gru.input", "rnn_tanh.input", "rnn_relu.input", "sardonyx::gru.default", "sardonyx::rnn_tanh.default",
    "sardonyx::rnn_relu.default",
)  # fmt: skip
def gru(
    n: Call, x: Tensor, state: Tensor, params: Any, has_biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    kind = n.name.split(".")[1]
    return _layers(n, kind, x, [state], params, has_biases, layers, dropout, train, bidirectional, batch_first)


def _layers(
    n: Call, kind: str, x: Tensor, states: Any, params: Any, has_biases: bool, layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    if train and dropout:
        raise n.refuse("dropout between layers draws at random", "call model.eval() before exporting")
    params = [n.translator.recorder.known(p) for p in params]  # their gates are put in order here and now
    directions = 2 if bidirectional else 1
    width = (4 if has_biases else 2) + (len(params) // (layers * directions) - (4 if has_biases else 2))
    if width != (4 if has_biases else 2):
        raise n.refuse("a projection of the hidden state (proj_size)")
    x = s.swapaxes(x, 0, 1) if batch_first else x
    lasts: list[list[Tensor]] = [[] for _ in states]
    for layer in range(layers):
        chosen = [
            params[(layer * directions + d) * width : (layer * directions + d + 1) * width] for d in range(directions)
        ]
        first = [g.sliced(state, {0: (layer * directions, (layer + 1) * directions)}) for state in states]
        outputs = _layer(kind, x, first, chosen, has_biases, bidirectional)
        # [seq, directions, batch, hidden] -> [seq, batch, directions * hidden]
        y = outputs[0]
        if directions == 1:
            x = s.squeeze(y, 1)
        else:
            moved = s.transpose(y, (0, 2, 1, 3))
            x = s.reshape(moved, [*moved.shape[:2], directions * y.shape[3]])
        for place, last in zip(lasts, outputs[1:]):
            place.append(last)
    x = s.swapaxes(x, 0, 1) if batch_first else x
    return x, *(concat(place, 0) if len(place) > 1 else place[0] for place in lasts)


def _layer(kind: str, x: Tensor, states: list[Tensor], params: list[Any], has_biases: bool, both: bool) -> Any:
    weights = concat([s.unsqueeze(_ordered(p[0], kind), 0) for p in params], 0)
    hidden = concat([s.unsqueeze(_ordered(p[1], kind), 0) for p in params], 0)
    biases = None
    if has_biases:
        biases = concat([s.unsqueeze(concat([_ordered(p[2], kind), _ordered(p[3], kind)], 0), 0) for p in params], 0)
    direction = "bidirectional" if both else "forward"
    if kind == "lstm":
        return recurrent.lstm(x, weights, hidden, biases, initial_h=states[0], initial_c=states[1], direction=direction)
    if kind == "gru":
        return recurrent.gru(
            x, weights, hidden, biases, initial_h=states[0], direction=direction, linear_before_reset=True
        )
    names = ["Relu" if kind == "rnn_relu" else "Tanh"] * len(params)
    return recurrent.rnn(x, weights, hidden, biases, initial_h=states[0], direction=direction, activations=names)


def _ordered(weight: Tensor, kind: str) -> Tensor:
    """Weights of torch's gates in ONNX's order."""
    order = _GATES[kind]
    if len(order) == 1:
        return weight
    size = weight.shape[0] // len(order)
    return concat([g.sliced(weight, {0: (i * size, (i + 1) * size)}) for i in order], 0)
