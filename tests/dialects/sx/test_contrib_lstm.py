"""The LSTM with weights of 8 bits, held against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_models import one, typed
from onnx_models import roundtrip, run_ort
from three_ways import both_refuse, case, check_all
from tolerances import Tolerance

import sardonyx as sx
from sardonyx import OnnxModel
from sardonyx.dialects.sx.contrib_lstm import DynamicQuantizeLstmOp

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


def agree(given: dict[str, Any], outputs: str = "y y_h y_c", native: bool = False, **options: Any) -> None:
    proto, inputs = one("DynamicQuantizeLSTM", given, outputs, "w r b ws wz rs rz p", hidden_size=HIDDEN, **options)
    wanted = run_ort(proto, inputs)
    proto = typed(proto, wanted)
    graph = OnnxModel.from_proto(proto).compile()
    assert "sx.dynamic_quantize_lstm" in graph.text()
    given_back = [np.asarray(a) for a in graph.evaluate(dict(inputs))]
    if native:
        graph.finalize()
        for got, reference in zip(graph.run(dict(inputs)), given_back, strict=True):
            assert tuple(got.shape) == reference.shape
            np.testing.assert_allclose(np.asarray(got), reference, atol=0.02)
            assert np.abs(np.asarray(got) - reference).mean() < 1e-3
    for a, b in zip(given_back, wanted, strict=True):
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
    agree(feeds(count, 1, True), native=True, direction=direction)
    agree(feeds(count, 1, False, "u1"), "_ y_h", direction=direction)


@pytest.mark.parametrize("count", [1, 2])
def test_lengths_and_states(count: int) -> None:
    direction = "bidirectional" if count == 2 else "reverse"
    given = feeds(count, 2, False)
    state = RNG.normal(size=(count, 2, HIDDEN)).astype("f4")
    agree(put(given, lens=np.array([3, 5], "i4")), direction=direction)
    agree(put(given, h=state, c=state[::-1].copy()), direction=direction)


def test_natively() -> None:
    def slots(steps: int, batch: int, count: int, lens: Any = None, states: bool = False, dtype: str = "i1") -> Any:
        size, hidden = 5, 9

        def real(*shape: int) -> Any:
            return RNG.normal(size=shape).astype("f4")

        def whole(*shape: int) -> Any:
            return RNG.integers(0, 100, shape).astype(dtype)

        scale, zero = RNG.uniform(0.005, 0.02, count).astype("f4"), np.full(count, 40, dtype)
        first = [real(count, batch, hidden) if states else None for _ in range(2)]
        given = [real(steps, batch, size), whole(count, size, 4 * hidden), whole(count, hidden, 4 * hidden)]
        return [*given, real(count, 8 * hidden), lens, *first, None, scale, zero, scale * 2, zero + 1]

    def layer(*of: Any, **options: Any) -> Any:
        return case(DynamicQuantizeLstmOp, *slots(*of), hidden_size=9, **options)

    cases = [
        layer(7, 3, 1, np.array([3, 0, 6], "i4"), True, direction="reverse"),
        layer(4, 3, 2, np.array([3, 1, 2], "i4"), True, "u1", direction="bidirectional", clip=0.7),
        layer(0, 2, 1, None, True),
        layer(3, 0, 1, input_forget=1),
    ]  # a value on a rounding edge may fall to either side
    check_all(cases, ("static", "shared"), Tolerance(of_largest=1 << 17))
    message = both_refuse(DynamicQuantizeLstmOp, *slots(4, 2, 1, np.array([3, 5], "i4")), hidden_size=9)
    assert "length" in message[0] or "5" in message[0]


def test_options() -> None:
    given = feeds(1, 1, False)
    agree(given, clip=0.5)
    agree(put(given, p=RNG.normal(size=(1, 3 * HIDDEN)).astype("f4")), native=True)
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


def test_zero_points_that_differ_are_refused() -> None:
    given = feeds(1, 1, True)
    given["wz"][0, 3] = 5
    proto, inputs = one("DynamicQuantizeLSTM", given, "y", "w r b ws wz rs rz", hidden_size=HIDDEN)
    graph = OnnxModel.from_proto(typed(proto, [np.zeros((STEPS, 1, 1, HIDDEN), "f4")])).compile()
    with pytest.raises(sx.SardonyxError, match="C4"):
        graph.evaluate(dict(inputs))
    with pytest.raises(sx.UnsupportedError, match="zero points of a direction that differ"):
        graph.finalize()
