"""rnn, gru and lstm against their formulas written out, and against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from op_case import op, round_trip, run_all, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.recurrent import ACTIVATIONS
from sardonyx.errors import ExecutionError, InferenceError

RNN, GRU, LSTM = op("rnn"), op("gru"), op("lstm")
LAYERS = {"RNN": (RNN, 1, 1), "GRU": (GRU, 3, 1), "LSTM": (LSTM, 4, 2)}  # op, gates, states
SEQ, BATCH, INPUT, HIDDEN = 5, 3, 4, 2


def operands(layer, dirs=1, seed=0, dtype="float32"):
    """x, w, r, b, lengths, states, peepholes, random."""
    rng = np.random.default_rng(seed)
    _, gates, states = LAYERS[layer]

    def sample(*dims):
        return rng.uniform(-1, 1, dims).astype(dtypes.DTYPES[dtype].numpy)

    first = [sample(SEQ, BATCH, INPUT), sample(dirs, gates * HIDDEN, INPUT), sample(dirs, gates * HIDDEN, HIDDEN)]
    more = [sample(dirs, 2 * gates * HIDDEN), np.array([5, 2, 3], np.int32)]
    peepholes = [sample(dirs, 3 * HIDDEN)] if layer == "LSTM" else []
    return [*first, *more, *(sample(dirs, BATCH, HIDDEN) for _ in range(states)), *peepholes]


def compare(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def sig(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layer", LAYERS)
def test_directions_against_onnxruntime(layer, direction):
    cls, _, states = LAYERS[layer]
    given = operands(layer, 2 if direction == "bidirectional" else 1)
    attributes = {"direction": direction, "hidden_size": HIDDEN}
    for count in (3, 4, 5, 5 + states, len(given)):
        compare(run_all(cls, *given[:count], **attributes),
                run_node(layer, given[:count], 1 + states, opset=14, **attributes))  # fmt: skip
    skipped = [*given[:3], None, None, given[5]]
    compare(run_all(cls, *skipped, **attributes), run_node(layer, skipped, 1 + states, opset=14, **attributes))


@pytest.mark.parametrize(
    ("layer", "attributes"),
    [
        ("RNN", {"clip": 0.3}), ("GRU", {"clip": 0.3}), ("LSTM", {"clip": 0.3}),
        ("GRU", {"linear_before_reset": 1}), ("GRU", {"linear_before_reset": 1, "clip": 0.2}),
        ("LSTM", {"input_forget": 1}),
        ("RNN", {"activations": ["Relu"]}), ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5],
                                                     "activation_beta": [0.25]}),
        ("GRU", {"activations": ["HardSigmoid", "LeakyRelu"], "activation_alpha": [0.3, 0.1],
                 "activation_beta": [0.4]}),
        ("LSTM", {"activations": ["Sigmoid", "Softsign", "Tanh"]}),
        ("LSTM", {"activations": ["HardSigmoid", "Elu", "Softplus"], "activation_alpha": [0.2, 0.7],
                  "activation_beta": [0.5]}),
    ],
)  # fmt: skip
def test_attributes_against_onnxruntime(layer, attributes):
    cls, _, states = LAYERS[layer]
    given = operands(layer, seed=3)
    if layer == "LSTM" and "clip" in attributes:
        given = given[:-1]
    ours: Any = {
        k: tuple(v) if isinstance(v, list) else bool(v) if isinstance(v, int) else v for k, v in attributes.items()
    }
    compare(run_all(cls, *given, **ours),
            run_node(layer, given, 1 + states, opset=14, hidden_size=HIDDEN, **attributes))  # fmt: skip


def test_formulas_written_out():
    x, w, r, b, _, h, c, p = (a.astype(np.float64) for a in operands("LSTM"))
    h, c, half = h[0], c[0], 4 * HIDDEN
    want = []
    for t in range(SEQ):
        i, o, f, g = np.split(x[t] @ w[0].T + h @ r[0].T + b[0, :half] + b[0, half:], 4, axis=1)
        i, f = sig(i + p[0, :2] * c), sig(f + p[0, 4:] * c)
        c = f * c + i * np.tanh(g)
        h = sig(o + p[0, 2:4] * c) * np.tanh(c)
        want.append(h)
    given = operands("LSTM")
    y, y_h, y_c = run_all(LSTM, *given[:4], None, *given[5:])
    compare([y[:, 0], y_h[0], y_c[0]], [np.stack(want), h, c])


@pytest.mark.parametrize("layer", LAYERS)
def test_layout_1_is_batch_first(layer):
    cls, _, states = LAYERS[layer]
    given = operands(layer, 2)
    want = run_all(cls, *given, direction="bidirectional")
    turned = [given[0].swapaxes(0, 1), *given[1:5], *(s.swapaxes(0, 1) for s in given[5 : 5 + states])]
    got = run_all(cls, *turned, *given[5 + states :], direction="bidirectional", layout=1)
    compare(got, [want[0].transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in want[1:])])


@pytest.mark.parametrize("layer", LAYERS)
def test_empty_sequences_keep_their_state(layer):
    cls, _, states = LAYERS[layer]
    given = operands(layer)
    given[4] = np.array([0, 2, 0], np.int32)
    y, *last = run_all(cls, *given)
    assert not y[:, :, [0, 2]].any() and not y[2:].any()
    for found, start in zip(last, given[5 : 5 + states], strict=True):
        np.testing.assert_array_equal(found[:, [0, 2]], start[:, [0, 2]])
    nothing = [np.zeros((0, BATCH, INPUT), np.float32), *given[1:4], None, *given[5:]]
    y, *last = run_all(cls, *nothing)
    assert y.shape == (0, 1, BATCH, HIDDEN) and last[0].tolist() == given[5].tolist()
    empty = [np.zeros((SEQ, 0, INPUT), np.float32), *given[1:4]]
    assert [a.shape for a in run_all(cls, *empty)][:2] == [(SEQ, 1, 0, HIDDEN), (1, 0, HIDDEN)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("layer", LAYERS)
def test_dtypes_round_once(layer, dtype):
    given = operands(layer, dtype=dtype)
    exact = run_all(LAYERS[layer][0], *(a if a.dtype == np.int32 else a.astype(np.float64) for a in given))
    for a, b in zip(run_all(LAYERS[layer][0], *given), exact, strict=True):
        assert a.dtype == given[0].dtype and a.tobytes() == b.astype(a.dtype).tobytes()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = np.array([[[-2.0]], [[0.5]], [[3.0]]])
    zero, one = np.zeros((1, 1, 1)), np.ones((1, 1, 1))
    alpha, beta = 0.7, 0.3
    want = {
        "relu": np.maximum(x, 0), "tanh": np.tanh(x), "sigmoid": sig(x), "affine": alpha * x + beta,
        "leakyrelu": np.where(x < 0, alpha * x, x), "thresholdedrelu": np.where(x > alpha, x, 0),
        "scaledtanh": alpha * np.tanh(beta * x), "hardsigmoid": np.clip(alpha * x + beta, 0, 1),
        "elu": np.where(x < 0, alpha * (np.exp(x) - 1), x), "softsign": x / (1 + np.abs(x)),
        "softplus": np.log1p(np.exp(x)),
    }[name]  # fmt: skip
    made = {"activations": (name.upper(),), "activation_alpha": (alpha,), "activation_beta": (beta,)}
    np.testing.assert_allclose(run_all(RNN, x, one, zero, **made)[0][:, 0], want, rtol=1e-12)


def test_types_and_text():
    x, w, r = value("float32", ["s", "n", 4]), value("float32", [2, 8, 4]), value("float32", [2, 8, "h"])
    made = LSTM.make(x, w, value("float32", [2, 8, 2]), direction="bidirectional")
    assert [shape(made, i) for i in range(3)] == [["s", "2", "n", "2"], ["2", "n", "2"], ["2", "n", "2"]]
    assert "sx.lstm" in round_trip(made) and 'direction = "bidirectional"' in round_trip(made)
    batch = LSTM.make(
        value("float32", ["n", "s", 4]), w, value("float32", [2, 8, 2]), direction="bidirectional", layout=1
    )
    assert [shape(batch, i) for i in range(2)] == [["n", "s", "2", "2"], ["n", "2", "2"]]
    assert shape(LSTM.make(x, w, r, direction="bidirectional", hidden_size=2)) == ["s", "2", "n", "2"]
    assert shape(LSTM.make(value("float32", None), w, value("float32", [2, 8, 2]), direction="bidirectional")) is None


@pytest.mark.parametrize(
    ("message", "change", "attributes"),
    [
        (r"\(C1\) w", {1: value("float64", [1, 2, 4])}, {}), (r"\(C1\) x", {0: value("int32", [5, 3, 4])}, {}),
        (r"\(C1\) sequence_lens", {4: value("int64", [3])}, {}), (r"\(C2\) r", {2: value("float32", [2, 2])}, {}),
        (r"\(C3\) w", {1: value("float32", [1, 6, 4])}, {}), (r"\(C3\) b", {3: value("float32", [1, 2])}, {}),
        (r"\(C3\) hidden_size", {}, {"hidden_size": 3}), (r"\(C3\) initial_h", {5: value("float32", [1, 2, 2])}, {}),
        (r"\(C3\) sequence_lens", {4: value("int32", [4])}, {}),
        (r"\(C3\) the last extents", {0: value("float32", [5, 3, 5])}, {}),
        (r"\(C3\) w", {}, {"direction": "bidirectional"}), (r"\(C4\) direction", {}, {"direction": "sideways"}),
        (r"\(C4\) layout", {}, {"layout": 2}), (r"\(C4\) clip", {}, {"clip": -1.0}),
        (r"\(C5\) 3 activations", {}, {"activations": ("Tanh",) * 3}),
        (r"\(C5\) the activation 'sin'", {}, {"activations": ("sin",)}),
    ],
)  # fmt: skip
def test_constraints(message, change, attributes):
    slots = [value("float32", d) for d in ([5, 3, 4], [1, 2, 4], [1, 2, 2], [1, 4])] + [
        None,
        value("float32", [1, 3, 2]),
    ]
    for index, wrong in change.items():
        slots[index] = wrong
    with pytest.raises(InferenceError, match=message):
        RNN.make(*slots, **attributes)


def test_data_are_refused_in_a_run():
    made = RNN.make(*(value("float32", ["a", "b", "c"]) for _ in range(3)), None, value("int32", ["n"]))
    x, w, r, _, _, h = operands("RNN")
    for lens in ([5, 2, 6], [5, -1, 2], [5, 2]):
        with pytest.raises(ExecutionError, match="sequence_lens"):
            made.evaluate(EvalContext(), x, w, r, None, np.array(lens, np.int32), None)
    with pytest.raises(ExecutionError, match="no recurrent layer's"):
        made.evaluate(EvalContext(), x, w[:, :1], r, None, None, None)
    with pytest.raises(ExecutionError, match="initial state"):
        made.evaluate(EvalContext(), x, w, r, None, None, h[:, :2])
