"""LSTM and GRU, one or several layers, in one or both directions. The weights' layout is ONNX's."""

from __future__ import annotations

from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions import recurrent
from sardonyx.frontend.functions.joining import concat
from sardonyx.frontend.functions.shape import reshape, transpose
from sardonyx.frontend.nn.module import Module, Parameter, uniform
from sardonyx.frontend.tensor import Tensor


class _Recurrent(Module):
    """Layers of x [batch, rows, inputs]: the results [batch, rows, directions * hidden], and the last states."""

    GATES = 4
    FUNCTION = "lstm"
    STATES = 2

    def __init__(
        self, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False, bias: bool = True
    ) -> None:
        if layers < 1 or hidden < 1:
            raise InvalidArgumentError(f"{type(self).__name__}: {layers} layers of {hidden} cannot be")
        self.hidden, self.layers, self.bidirectional = hidden, layers, bidirectional
        ways = 2 if bidirectional else 1
        for layer in range(layers):
            size = inputs if layer == 0 else ways * hidden
            setattr(self, f"w_{layer}", uniform(hidden**-0.5, ways, self.GATES * hidden, size))
            setattr(self, f"r_{layer}", uniform(hidden**-0.5, ways, self.GATES * hidden, hidden))
            if bias:
                setattr(self, f"b_{layer}", uniform(hidden**-0.5, ways, 2 * self.GATES * hidden))

    def forward(self, x: Any, states: tuple[Tensor, ...] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All results, and the last states [layers * directions, batch, hidden] (h, or h and c).

        Args:
            x: The rows.
            states: The first states; by default 0.
        """
        ways = 2 if self.bidirectional else 1
        y = transpose(x, (1, 0, 2))
        last: list[list[Tensor]] = [[] for _ in range(self.STATES)]
        for layer in range(self.layers):
            w, r, b = (self._parameters.get(f"{n}_{layer}") for n in "wrb")
            assert isinstance(w, Parameter) and isinstance(r, Parameter)
            begin = {} if states is None else {
                f"initial_{n}": s[layer * ways : (layer + 1) * ways] for n, s in zip("hc", states)
            }  # fmt: skip
            direction = "bidirectional" if self.bidirectional else "forward"
            made = getattr(recurrent, self.FUNCTION)(y, w, r, b, direction=direction, **begin)
            for found, state in zip(last, made[1:], strict=True):
                found.append(state)
            rows, batch = made[0].shape[0], made[0].shape[2]
            y = reshape(transpose(made[0], (0, 2, 1, 3)), (rows, batch, ways * self.hidden))
        return transpose(y, (1, 0, 2)), tuple(s[0] if len(s) == 1 else concat(s, axis=0) for s in last)

    def extra(self) -> str:
        return f"hidden={self.hidden}, layers={self.layers}, bidirectional={self.bidirectional}"


class LSTM(_Recurrent):
    """Long short-term memory; the states are (h, c)."""


class GRU(_Recurrent):
    """Gated recurrent units; the state is (h,)."""

    GATES = 3
    FUNCTION = "gru"
    STATES = 1
