"""Recurrent layers in every opset, and those of opsets 1 and 7 imported (see `opset_cases`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import evaluate, info, model, node, roundtrip, run_ort
from opset_cases import Entry, check_every_opset, entry, judged
from three_ways import sample

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
SEQ, BATCH, INPUT, HIDDEN = 4, 2, 3, 2


def given(name: str, dtype: str = "float32", dirs: int = 1, batch_first: bool = False) -> list[Any]:
    gates, states = GATES[name], (1, 0, 2) if batch_first else (0, 1, 2)
    shapes = [(SEQ, BATCH, INPUT), (dirs, gates * HIDDEN, INPUT), (dirs, gates * HIDDEN, HIDDEN)]
    out = [sample(dtype, *s, seed=i, low=-1, high=1) for i, s in enumerate([*shapes, (dirs, 2 * gates * HIDDEN)])]
    first = [sample(dtype, dirs, BATCH, HIDDEN, seed=9 + i, low=-1, high=1) for i in range(1 + (name == "lstm"))]
    out[0] = out[0].transpose(states).copy()
    return [*out, np.array([4, 2], np.int32), *(a.transpose(states).copy() for a in first)]


CASES = [
    *(entry(n, *given(n), loose=4) for n in GATES),
    *(entry(n, *given(n, dirs=2), direction="bidirectional", loose=4) for n in GATES),
    *(entry(n, *given(n, batch_first=True), layout=1, loose=4) for n in GATES),
    entry("rnn", *given("rnn"), activations=("Relu",), clip=0.5, direction="reverse", loose=4),
    entry("gru", *given("gru"), linear_before_reset=True, loose=4),
    entry("lstm", *given("lstm", "float16"), loose=4),
]


@pytest.mark.parametrize("one", CASES, ids=str)
def test_opsets(one: Entry):
    check_every_opset(one, opsets=(13, 14) if not one.case.properties.get("layout") else (13,))


@pytest.mark.parametrize("one", [entry(n, *given(n), hidden_size=HIDDEN, loose=4) for n in GATES], ids=str)
def test_dynamic_dims(one: Entry):
    assert judged(one, "dynamic", 21) is None


@pytest.mark.parametrize("name", GATES)
def test_layouts_stay_from_opset_14(name: str):
    op = name.upper()
    x, w, r = given(name, batch_first=True)[:3]
    proto = model(
        [node(op, "x w r", "y h", hidden_size=HIDDEN, layout=1)],
        [info("x", ["b", "s", INPUT])], [info("y", ["b", "s", 1, HIDDEN]), info("h", ["b", 1, HIDDEN])],
        {"w": w, "r": r}, opset=14,
    )  # fmt: skip
    back = roundtrip(proto)
    (made,) = [n for n in back.graph.node if n.op_type == op]
    assert {a.name for a in made.attribute} >= {"layout"} and list(made.output) == ["y", "h"]
    older = roundtrip(proto, opset_version=13)
    for got, want in zip(run_ort(older, {"x": x}), evaluate(proto, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("opset", [1, 7])
def test_old_opsets(name: str, opset: int):
    op = name.upper()
    x, w, r = given(name)[:3]
    functions = ["Sigmoid", "Tanh", "Relu"][: {"rnn": 1, "gru": 2, "lstm": 3}[name]]
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "activations": functions}
    outputs = [info("y", [SEQ, 1, BATCH, HIDDEN]), info("h", [1, BATCH, HIDDEN])]
    new = model([node(op, "x w r", "y h", **attributes)], [info("x", x.shape)], outputs, {"w": w, "r": r}, 14)
    if opset == 1:
        attributes["output_sequence"] = 1
    made = node(op, "x w r", "y h", **attributes)
    old = model([made], [info("x", x.shape)], outputs, {"w": w, "r": r}, opset, 4)
    for got, want in zip(evaluate(old, {"x": x}), run_ort(new, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert [o.name for o in roundtrip(old, opset_version=13).graph.output] == ["y", "h"]
