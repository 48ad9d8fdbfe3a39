"""Running products, determinants, bits, n-gram counts and attention by a recurrent state."""

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

PROD, DET, BITS, GRAMS, ATTENTION = (
    op(n) for n in ("cumprod", "det", "bit_cast", "tfidf_vectorizer", "linear_attention")
)
RNG = np.random.default_rng(61)


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


# ---- cumprod


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", *(t.name for t in dtypes.FLOATS)])
def test_running_products(dtype):
    x = np.array([[1, 2, 3], [4, 5, 6]]).astype(dtypes.DTYPES[dtype].numpy)
    one = np.array(1)
    assert run(PROD, x, one).tolist() == [[1, 2, 6], [4, 20, 120]]
    assert run(PROD, x, np.array([-1], np.int32), exclusive=True).tolist() == [[1, 1, 2], [1, 4, 20]]
    assert run(PROD, x, one, reverse=True).tolist() == [[6, 6, 3], [120, 30, 6]]
    assert run(PROD, x, one, reverse=True, exclusive=True).tolist() == [[6, 3, 1], [30, 6, 1]]
    assert run(PROD, x, np.array(0)).tolist() == [[1, 2, 3], [4, 10, 18]]


def test_products_wrap_and_round_once():
    assert run(PROD, np.array([2**31 - 1, 2], np.int32), np.array(0)).tolist() == [2**31 - 1, -2]
    half = run(PROD, np.full(11, 1.1, np.float16), np.array(0))[-1]
    assert half == np.float16(float(np.float16(1.1)) ** 11)
    assert run(PROD, np.zeros((0, 3), "f4"), np.array(0), exclusive=True).shape == (0, 3)


def test_product_constraints():
    x = value("float32", ["b", 4])
    made = PROD.make(x, value("int64", []), reverse=True)
    assert shape(made) == ["b", "4"] and "reverse = true" in round_trip(made)
    refuses(PROD, "C1", value("int8", [2]), constant(0))
    refuses(PROD, "C2", x, value("float32", []))
    refuses(PROD, "C2", x, value("int64", [2]))
    refuses(PROD, "C3", x, constant(2))
    for axis in ([2], [0, 1]):
        with pytest.raises(ExecutionError):
            made.evaluate(EvalContext(), np.zeros((1, 4), "f4"), np.array(axis))


# ---- det


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
def test_determinants(dtype):
    x = np.array([[[1, 2], [3, 4]], [[2, 0], [0, 3]], [[1, 2], [2, 4]]]).astype(dtypes.DTYPES[dtype].numpy)
    np.testing.assert_allclose(run(DET, x).astype(np.float64), [-2, 6, 0], atol=1e-6)


def test_determinants_against_onnxruntime():
    agree(DET, RNG.random((3, 2, 4, 4), np.float32), rtol=1e-4, opset=11)
    assert run(DET, np.zeros((3, 0, 0), "f4")).tolist() == [1, 1, 1]
    assert run(DET, np.zeros((0, 2, 2), "f4")).shape == (0,)
    made = DET.make(value("float32", ["b", "n", "n"]))
    assert shape(made) == ["b"] and "sx.det" in round_trip(made)
    refuses(DET, "C1", value("int32", [2, 2]))
    refuses(DET, "C2", value("float32", [2]))
    refuses(DET, "C3", value("float32", [2, 3]))
    with pytest.raises(ExecutionError, match="not square"):
        made.evaluate(EvalContext(), np.zeros((1, 2, 3), "f4"))


# ---- bit_cast


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "int32"), ("int32", "uint32"), ("float64", "int64"), ("float16", "bfloat16"), ("int8", "uint8"),
     ("bfloat16", "int16"), ("int4", "uint4"), ("uint8", "float8e4m3fn"), ("uint2", "int2")],
)  # fmt: skip
def test_bits(source, target):
    a, b = dtypes.DTYPES[source], dtypes.DTYPES[target]
    x = np.arange(-2, 2).astype(np.int8).astype(a.numpy).reshape(2, 2)
    out = run(BITS, x, to=b)
    assert out.dtype == b.numpy and out.tobytes() == x.tobytes()
    assert run(BITS, out, to=a).tobytes() == x.tobytes()


def test_bits_of_bools_and_scalars():
    assert run(BITS, np.array([True, False]), to=dtypes.uint8).tolist() == [1, 0]
    assert run(BITS, np.array([0, 1, 2, 255], np.uint8), to=dtypes.bool_).tolist() == [False, True, True, True]
    assert run(BITS, np.array(1.0, "f4"), to=dtypes.int32).tolist() == 0x3F800000
    assert run(BITS, np.zeros((0, 2), "f4"), to=dtypes.int32).shape == (0, 2)
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert run(BITS, turned, to=dtypes.uint32).tolist() == np.ascontiguousarray(turned).view(np.uint32).tolist()
    made = BITS.make(value("float32", ["n"]), to=dtypes.uint32)
    assert shape(made) == ["n"] and "to = ui32" in round_trip(made)
    refuses(BITS, "C1", value("string", [2]), to=dtypes.int64)
    refuses(BITS, "C1", value("int64", [2]), to=dtypes.string)
    refuses(BITS, "C2", value("float32", [2]), to=dtypes.int64)
    refuses(BITS, "C2", value("int4", [2]), to=dtypes.int8)


# ---- tfidf_vectorizer

POOL = {
    "pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7), "ngram_counts": (0, 4), "ngram_indexes": tuple(range(7)),
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
}  # fmt: skip
ROWS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skip", [0, 1, 5])
@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("weights", [None, (0.5, 1.0, 2.0, 3.0, 0.25, 4.0, 8.0)])
def test_counts_against_onnxruntime(mode, skip, lengths, weights):
    low, high = lengths
    attributes = {**POOL, "mode": mode, "max_skip_count": skip, "min_gram_length": low, "max_gram_length": high}
    agree(GRAMS, ROWS, weights=weights, **attributes)
    agree(GRAMS, ROWS[1].astype(np.int64), weights=weights, **attributes)


def test_counts_of_strings_against_onnxruntime():
    texts = np.array(["one", "two", "one", "two", "", "three"], object)
    pool = {**POOL, "pool_strings": ("one", "", "two", "three", "one", "two", "two", "one", "", "three"), "mode": "TF"}
    del pool["pool_int64s"]
    made = GRAMS.make(value("string", [6]), **pool)
    assert 'pool_strings = ["one", "",' in round_trip(made)
    (got,) = made.evaluate(EvalContext(), texts)
    assert got.tolist() == run_node("TfIdfVectorizer", [texts], **pool)[0].tolist() == [2, 1, 2, 1, 2, 1, 1]
    refuses(GRAMS, "C1", value("string", [3]), **{**POOL, "mode": "TF"})
    refuses(GRAMS, "C1", value("int32", [3]), **pool)


def test_counts_of_nothing_and_constraints():
    attributes = {**POOL, "mode": "TF"}
    assert run(GRAMS, ROWS[:, :0], **attributes).tolist() == [[0] * 7] * 2
    assert run(GRAMS, ROWS[:0], **attributes).shape == (0, 7)
    x = value("int32", ["b", "n"])
    made = GRAMS.make(x, **attributes)
    assert shape(made) == ["b", "7"] and 'mode = "TF"' in round_trip(made)
    refuses(GRAMS, "C1", value("float32", [3]), **attributes)
    refuses(GRAMS, "C2", value("int32", []), **attributes)
    for constraint, change in (
        ("C3", {"mode": "tf"}),
        ("C4", {"ngram_counts": (0, 5)}),
        ("C4", {"ngram_counts": (4, 0)}),
        ("C4", {"ngram_counts": (0, 99)}),
        ("C4", {"max_gram_length": 3}),
        ("C5", {"ngram_indexes": (0, 1)}),
        ("C5", {"ngram_indexes": (0, 1, 2, 3, 4, 5, -1)}),
        ("C5", {"weights": (1.0,)}),
        ("C6", {"min_gram_length": 0}),
        ("C6", {"min_gram_length": 2, "max_gram_length": 1}),
        ("C6", {"max_skip_count": -1}),
    ):
        refuses(GRAMS, constraint, x, **{**attributes, **change})


# ---- linear_attention


def recurrent(q, k, v, state, decay, beta, scale):
    """Step by step for one head: q, k [T, d_k], v [T, d_v]."""
    out = []
    for t in range(len(q)):
        state = state * np.exp(decay[t])[:, None]
        state = state + np.outer(k[t], beta[t] * (v[t] - (0 if beta is ONES else state.T @ k[t])))
        out.append(scale * state.T @ q[t])
    return np.array(out), state


ONES = np.ones(99)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("wide", [False, True])
def test_attention_by_definition(rule, wide):
    batch, time, q_heads, kv_heads, d_k, d_v = 2, 5, 4, 2, 3, 2
    q, k, v = (RNG.random((batch, time, n)).astype("f4") for n in (q_heads * d_k, kv_heads * d_k, kv_heads * d_v))
    past = RNG.random((batch, kv_heads, d_k, d_v)).astype("f4") if wide else None
    decay = -RNG.random((batch, time, kv_heads * (d_k if wide else 1))).astype("f4") if "gated" in rule else None
    beta = RNG.random((batch, time, 1 if wide else kv_heads)).astype("f4") if "delta" in rule else None
    out, state = run_all(
        ATTENTION, q, k, v, past, decay, beta, q_num_heads=q_heads, kv_num_heads=kv_heads, update_rule=rule,
        scale=0.5 if wide else 0.0,
    )  # fmt: skip
    scale = 0.5 if wide else 1 / np.sqrt(d_k)
    for b in range(batch):
        for head in range(q_heads):
            own = head // 2
            cut = slice(own * d_k, own * d_k + d_k)
            gate = (
                np.zeros((time, d_k)) if decay is None else (decay[b, :, cut] if wide else decay[b, :, [own] * d_k].T)
            )
            rate = ONES if beta is None else beta[b, :, 0 if wide else own]
            first = np.zeros((d_k, d_v)) if past is None else past[b, own]
            want, last = recurrent(
                q[b, :, head * d_k : head * d_k + d_k], k[b, :, cut], v[b, :, own * d_v : own * d_v + d_v], first,
                gate, rate, scale,
            )  # fmt: skip
            np.testing.assert_allclose(out[b, :, head * d_v : head * d_v + d_v], want, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(state[b, own], last, rtol=1e-5, atol=1e-6)


def test_attention_dtypes_and_no_elements():
    heads = {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear"}
    x = np.ones((1, 2, 2), np.float16)
    out, state = run_all(ATTENTION, x, x, x, np.zeros((1, 1, 2, 2), "f4"), scale=1.0, **heads)
    assert out.dtype == np.float16 and out.tolist() == [[[2, 2], [4, 4]]]
    assert state.dtype == np.float32 and state.tolist() == [[[[2, 2], [2, 2]]]]
    none = run_all(ATTENTION, x[:, :0], x[:, :0], x[:, :0], **heads)
    assert none[0].shape == (1, 0, 2) and none[1].tolist() == [[[[0, 0], [0, 0]]]]


def test_attention_constraints():
    q, k, v = (value("float32", ["b", "t", n]) for n in (12, 6, 4))
    heads = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": "linear"}
    made = ATTENTION.make(q, k, v, **heads)
    assert shape(made) == ["b", "t", "8"] and shape(made, 1) == ["b", "2", "3", "2"]
    assert 'update_rule = "linear"' in round_trip(made)
    gated = {**heads, "update_rule": "gated"}
    refuses(ATTENTION, "C1", q, value("float16", ["b", "t", 6]), v, **heads)
    refuses(ATTENTION, "C2", q, value("float32", ["b", "t", 7]), v, **heads)
    refuses(ATTENTION, "C2", q, value("float32", ["b", "t", 8]), v, **heads)
    refuses(ATTENTION, "C2", value("float32", [2, 3, 12]), value("float32", [2, 4, 6]), v, **heads)
    refuses(ATTENTION, "C3", q, k, v, **{**heads, "q_num_heads": 3})
    refuses(ATTENTION, "C4", q, k, v, **gated)
    refuses(ATTENTION, "C4", q, k, v, None, value("float32", ["b", "t", 2]), **heads)
    refuses(ATTENTION, "C4", q, k, v, **{**heads, "update_rule": "other"})
    refuses(ATTENTION, "C5", q, k, v, value("float32", ["b", 2, 3, 3]), **heads)
    refuses(ATTENTION, "C5", q, k, v, None, value("float32", ["b", "t", 4]), **gated)
    with pytest.raises(ExecutionError, match="don't fit"):
        made.evaluate(EvalContext(), np.ones((1, 2, 12)), np.ones((1, 3, 6)), np.ones((1, 2, 4)), None, None, None)
