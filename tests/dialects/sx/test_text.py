"""Ops on strings, against values by hand and onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import info, model, node, run_onnx, run_ort
from op_case import op, round_trip, value

import sardonyx as sx
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.sx.strings import string_array

STRING = onnx.TensorProto.STRING
WORDS = ["Monday", "tuesday", "", "é x", "MONDAY"]


def texts(*words, shape=None):
    return string_array(list(words), (len(words),) if shape is None else shape)


def run(name: str, *arrays: Any, results: int | None = None, **properties: Any) -> Any:
    made = op(name).make(*(value("string", a.shape) for a in arrays), **properties)
    made.verify()
    round_trip(made)
    ctx = EvalContext(dict(zip(made.operands, arrays)))
    evaluate_op(made, ctx)
    out = [ctx.values[r] for r in made.results]
    for got, result in zip(out, made.results):
        dims = result.type.get_shape()
        assert len(dims) == got.ndim and all(d in (n, min(dims)) for d, n in zip(dims, got.shape))
    return out if len(out) > 1 else out[0]


def ort(name: str, *arrays: Any, **attributes: Any) -> Any:
    return judged(run_ort, name, *arrays, **attributes)


def judged(judge, name, *arrays, outputs=1, **attributes):
    names = "abc"[: len(arrays)]
    proto = model(
        [node(name, " ".join(names), " ".join("xyz"[:outputs]), **attributes)],
        [info(n, a.shape, STRING) for n, a in zip(names, arrays)],
        [onnx.helper.make_empty_tensor_value_info(n) for n in "xyz"[:outputs]],
    )
    return judge(proto, dict(zip(names, arrays)))


def test_concat_and_equal():
    x, y = texts(*"abcd", shape=(2, 2)), texts("!", "é")
    assert run("string_concat", x, y).tolist() == [["a!", "bé"], ["c!", "dé"]] == ort("StringConcat", x, y)[0].tolist()
    assert run("string_concat", x, texts(shape=(0, 2, 2))).shape == (0, 2, 2)
    assert run("string_concat", texts("a", shape=()), texts("b", shape=())).tolist() == "ab"
    got = run("equal", x, texts("a", "d"))
    assert got.dtype == np.bool_ and got.tolist() == [[True, False], [False, True]]
    assert ort("Equal", x, texts("a", "d"))[0].tolist() == got.tolist()


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("stopwords", [(), ("monday", "é x"), ("Monday",)])
def test_normalizer(action, sensitive, stopwords):
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    kept = [
        w for w in WORDS if (w if sensitive else w.lower()) not in (s if sensitive else s.lower() for s in stopwords)
    ]
    given = {"case_change_action": action, "is_case_sensitive": sensitive, "stopwords": stopwords or None}
    assert run("string_normalizer", texts(*WORDS), **given).tolist() == [change(w) for w in kept]
    assert run("string_normalizer", texts(*WORDS, shape=(1, 5)), **given).tolist() == [[change(w) for w in kept]]


def test_normalizer_of_nothing():
    assert run("string_normalizer", texts("a", "A"), stopwords=("a",)).tolist() == [""]
    assert run("string_normalizer", texts(shape=(1, 0))).tolist() == [[""]]


@pytest.mark.parametrize("delimiter", [None, "", ",", "--"])
@pytest.mark.parametrize("maxsplit", [None, 0, 1])
def test_split(delimiter, maxsplit):
    x = texts("a,b", "  c  d ", ",,", "e--f--g", "", "h", shape=(2, 3))
    given = {k: v for k, v in (("delimiter", delimiter), ("maxsplit", maxsplit)) if v is not None}
    parts, counts = run("string_split", x, **given)
    want = judged(run_onnx, "StringSplit", x, outputs=2, **given)  # onnxruntime finds no part in an empty text
    assert parts.tolist() == want[0].tolist() and counts.tolist() == want[1].tolist() and counts.dtype == np.int64
    parts, counts = run("string_split", texts(shape=(0, 2)), **given)
    assert parts.shape == (0, 2, 0) and counts.shape == (0, 2)


def test_full_match():
    x = texts("www.google.com", "www.facebook.com", "www.bbc.co.uk", "www.google.com\n", shape=(2, 2))
    pattern = r"www\.[\w.-]+\.\bcom\b"
    assert run("regex_full_match", x, pattern=pattern).tolist() == [[True, True], [False, False]]
    assert ort("RegexFullMatch", x, pattern=pattern)[0].tolist() == [[True, True], [False, False]]
    assert run("regex_full_match", texts(shape=(0,))).shape == (0,)


def test_constraints():
    s, f = value("string", [3]), value("float32", [3])
    for name, slots, properties, constraint in (
        ("string_concat", [s, f], {}, "C1"), ("string_concat", [s, value("string", [2])], {}, "C2"),
        ("string_normalizer", [f], {}, "C1"), ("string_normalizer", [value("string", [2, 3])], {}, "C2"),
        ("string_normalizer", [s], {"case_change_action": "Lower"}, "C3"), ("string_split", [f], {}, "C1"),
        ("regex_full_match", [f], {}, "C1"), ("regex_full_match", [s], {"pattern": "("}, "C2"),
        ("equal", [s, f], {}, "C1"),
    ):  # fmt: skip
        with pytest.raises(sx.InvalidArgumentError, match=rf"\({constraint}\)"):
            op(name).make(*slots, **properties)
    with pytest.raises(sx.ExecutionError, match=r"\(C2\)"):
        op("string_normalizer").make(value("string", None)).evaluate(EvalContext(), texts("a", "b", shape=(2, 1)))
