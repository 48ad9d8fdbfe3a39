"""The LSTM with weights of 8 bits, held against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_models import one, typed
from onnx_models import roundtrip, run_ort

import sardonyx as sx
from sardonyx import OnnxModel

RNG = np.random.default_rng(4)
STEPS, SIZE, HIDDEN = 5, 3, 4


def feeds(count: int, batch: int, columns: bool, dtype: str = "i1") -> dict[str, Any]:
    def whole(*shape: int) -> Any:
        low, high = (-60, 60) if dtype == "i1" else (0, 120)
        return RNG.integers(low, high, shape).astype(dtype)

    shape = (count, 4 * HIDDEN) if columns else (count,)
    zero = np.full(shape, 0 if dtype == "i1" else 60, dtype)
    return {
        "x": RNG.normal(size=(STEPS, batch, SIZE)).astype("f4"), "w": whole(count, SIZE, 4 * HIDDEN),
        "r": whole(count, HIDDEN, 4 * HIDDEN), "b": RNG.normal(size=(count, 8 * HIDDEN)).astype("f4") / 4,
        "_lens": 0, "_h": 0, "_c": 0, "_p": 0,
        "ws": RNG.uniform(0.005, 0.02, shape).astype("f4"), "wz": zero,
        "rs": RNG.uniform(0.005, 0.02, shape).astype("f4"), "rz": zero.copy(),
    }  # fmt: skip


def put(given: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """With inputs in the place of those that are left out."""
    return {name.lstrip("_") if name.lstrip("_") in changes else name: changes.get(name.lstrip("_"), value)
            for name, value in given.items()}  # fmt: skip


def agree(given: dict[str, Any], outputs: str = "y y_h y_c", **options: Any) -> None:
    proto, inputs = one("DynamicQuantizeLSTM", given, outputs, "w r b ws wz rs rz p", hidden_size=HIDDEN, **options)
    wanted = run_ort(proto, inputs)
    proto = typed(proto, wanted)
    graph = OnnxModel.from_proto(proto).compile()
    assert "sx.dynamic_quantize_lstm" in graph.text()
    for a, b in zip(graph.evaluate(dict(inputs)), wanted, strict=True):
        assert tuple(a.shape) == b.shape
        np.testing.assert_allclose(np.asarray(a), b, atol=0.02)  # a value on a rounding edge may fall to either side
        assert np.abs(np.asarray(a) - b).mean() < 2e-3
    again = roundtrip(proto)
    assert again.graph.node[0].domain == "com.microsoft"
    for a, b in zip(run_ort(again, inputs), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    agree(feeds(count, 1, False), direction=direction)
    agree(feeds(count, 1, True), direction=direction)
    agree(feeds(count, 1, False, "u1"), "_ y_h", direction=direction)


@pytest.mark.parametrize("count", [1, 2])
def test_lengths_and_states(count: int) -> None:
    direction = "bidirectional" if count == 2 else "reverse"
    given = feeds(count, 2, False)
    state = RNG.normal(size=(count, 2, HIDDEN)).astype("f4")
    agree(put(given, lens=np.array([3, 5], "i4")), direction=direction)
    agree(put(given, h=state, c=state[::-1].copy()), direction=direction)


def test_options() -> None:
    given = feeds(1, 1, False)
    agree(given, clip=0.5)
    agree(put(given, p=RNG.normal(size=(1, 3 * HIDDEN)).astype("f4")))
    agree(given, activations=["Sigmoid", "Tanh", "Tanh"])


def test_other_activations_pass_through() -> None:
    proto, inputs = one("DynamicQuantizeLSTM", feeds(1, 1, False), "y", "w r b ws wz rs rz", hidden_size=HIDDEN,
                        activations=["HardSigmoid", "Tanh", "Tanh"])  # fmt: skip
    proto = typed(proto, run_ort(proto, inputs))
    assert "sx.opaque" in OnnxModel.from_proto(proto).compile().text()


def test_without_contrib_operators_it_is_refused() -> None:
    proto, inputs = one("DynamicQuantizeLSTM", feeds(1, 1, False), "y", "w r b ws wz rs rz", hidden_size=HIDDEN)
    graph = OnnxModel.from_proto(typed(proto, run_ort(proto, inputs))).compile()
    with pytest.raises(sx.UnsupportedError, match="contrib_ops=False"):
        OnnxModel.from_graph(graph, contrib_ops=False)


@pytest.mark.parametrize(
    "changes, options, message",
    [
        ({"w": np.zeros((1, 9, 4 * HIDDEN), "i1")}, {}, "C2"),
        ({"r": np.zeros((1, HIDDEN, 4 * HIDDEN), "u1")}, {}, "C1"),
        ({"ws": np.zeros(3, "f4")}, {}, "C2"),
        ({}, {"direction": "sideways"}, "C3"),
        ({}, {"hidden_size": 5}, "C2"),
    ],
)
def test_refusals(changes: dict[str, Any], options: dict[str, Any], message: str) -> None:
    options = {"hidden_size": HIDDEN} | options
    proto, _ = one("DynamicQuantizeLSTM", feeds(1, 1, False) | changes, "y", "w r b ws wz rs rz", **options)
    with pytest.raises(sx.SardonyxError, match=message):
        OnnxModel.from_proto(typed(proto, [np.zeros(1, "f4")])).compile()


def test_a_length_beyond_the_steps_is_refused() -> None:
    given = put(feeds(1, 2, False), lens=np.array([3, 9], "i4"))
    proto, inputs = one("DynamicQuantizeLSTM", given, "y", "w r b ws wz rs rz", hidden_size=HIDDEN)
    with pytest.raises(sx.SardonyxError, match="C4"):
        OnnxModel.from_proto(typed(proto, [np.zeros(1, "f4")])).compile().evaluate(dict(inputs))
