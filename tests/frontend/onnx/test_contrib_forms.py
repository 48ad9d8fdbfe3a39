"""Rarer forms of attention and its kin of com.microsoft, held against onnxruntime where its CPU kernels have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_models import RNG, one, sample, typed
from onnx_models import info, run_ort

from sardonyx import OnnxModel

B, S, T, N, D = 2, 3, 5, 2, 4
H = N * D


def outputs(op: str, feeds: dict[str, Any], names: str = "y", weights: str = "", **attributes: Any) -> tuple[Any, Any]:
    """What onnxruntime computes, and what our reference does."""
    proto, given = one(op, feeds, names, weights, **attributes)
    for out in proto.graph.output:  # onnxruntime infers no type for some
        out.CopyFrom(info(out.name, None))
    wanted = run_ort(proto, given)
    graph = OnnxModel.from_proto(typed(proto, wanted)).compile()
    assert "sx.opaque" not in graph.text()
    return wanted, [np.asarray(t) for t in graph.evaluate(dict(given))]


def agree(op: str, feeds: dict[str, Any], names: str = "y", weights: str = "", **attributes: Any) -> None:
    for a, b in zip(*outputs(op, feeds, names, weights, **attributes), strict=True):
        np.testing.assert_allclose(b, a, rtol=3e-5, atol=3e-5)


def heads(x: Any) -> Any:
    return np.ascontiguousarray(x.reshape(B, -1, N, D).transpose(0, 2, 1, 3))


@pytest.mark.parametrize("weights", ["w b", "w b m"])
def test_masks_by_where_sequences_end_and_start(weights: str) -> None:
    base = {"x": sample(B, S, H), "w": sample(H, 3 * H, scale=0.5), "b": sample(3 * H)}
    for places in ([2, 3], [2, 3, 1, 0], [2, 3, 0, 2, 5, 0, 2, 5]):
        agree("Attention", base | {"m": np.array(places, "i4")}, weights=weights, num_heads=N)


def test_attention_without_known_weights() -> None:
    base = {"x": sample(B, S, H), "w": sample(H, 3 * H, scale=0.5)}
    agree("Attention", base, num_heads=N)
    agree("Attention", base, num_heads=N, unidirectional=1, mask_filter_value=-5.0)  # which is of masks only


def test_a_mask_of_whole_matrices() -> None:
    """onnxruntime has no CPU kernel for it: the first T columns, and the rows of the last S of T."""
    base = {"x": sample(B, S, H), "w": sample(H, 3 * H, scale=0.5), "b": sample(3 * H)}
    proto, given = one("Attention", base | {"m": np.tril(np.ones((B, 1, 8, 8), "i4"))}, "y", "w b", num_heads=N)
    masked = OnnxModel.from_proto(typed(proto, [given["x"]])).compile().evaluate(given)[0]
    proto, given = one("Attention", base, "y", "w b", num_heads=N, unidirectional=1)
    causal = OnnxModel.from_proto(typed(proto, [given["x"]])).compile().evaluate(given)[0]
    np.testing.assert_allclose(np.asarray(masked), np.asarray(causal), rtol=1e-5, atol=1e-5)


def test_keys_and_values_of_another_sequence() -> None:
    q, k, v = sample(B, S, H), sample(B, T, H), sample(B, T, H)
    split = {"q": q, "k": heads(k), "v": heads(v)}
    agree("MultiHeadAttention", split, num_heads=N)
    agree("MultiHeadAttention", split | {"b": sample(3 * H)}, num_heads=N)
    wide = {"q": q, "k": k, "v": sample(B, T, 2 * H), "b": sample(4 * H)}
    agree("MultiHeadAttention", wide, num_heads=N)
    base = {"q": q, "k": k, "v": v, "_b": 0}
    agree("MultiHeadAttention", base | {"m": np.array([4, 5], "i4")}, num_heads=N)
    hidden = RNG.integers(0, 2, (B, S, T)).astype("i4")
    agree("MultiHeadAttention", base | {"m": hidden}, "y _ _ qk", num_heads=N, mask_filter_value=-3.0)


def test_packed_projections() -> None:
    """onnxruntime has no CPU kernel for them; they are the same as the unpacked ones."""
    q, k, v = sample(B, S, H), sample(B, S, H), sample(B, S, H)
    bias = sample(3 * H)
    wanted, _ = outputs("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": bias}, num_heads=N)
    parts = [t.reshape(B, S, N, 1, D) for t in (q, k, v)]
    for feeds in (
        {"q": np.concatenate(parts, 3), "_k": 0, "_v": 0, "b": bias},
        {"q": q, "k": np.concatenate(parts[1:], 3), "_v": 0, "b": bias},
    ):
        proto, given = one("MultiHeadAttention", feeds, "y", num_heads=N)
        graph = OnnxModel.from_proto(typed(proto, wanted)).compile()
        np.testing.assert_allclose(np.asarray(graph.evaluate(given)[0]), wanted[0], rtol=3e-5, atol=3e-5)


def test_rotation() -> None:
    angles = RNG.uniform(0, 6, (10, D // 2)).astype("f4")
    feeds = {"x": sample(B, S, H), "p": np.array([[0, 1, 2], [3, 9, 4]]), "c": np.cos(angles), "s": np.sin(angles)}
    agree("RotaryEmbedding", feeds, num_heads=N)  # by tables of unknown widths
    agree("RotaryEmbedding", feeds, weights="c s", scale=0.5, is_packed_batching=1)


# ---- queries in groups

WIDE = 16


def grouped(new: int, past: int | None, last: list[int], total: int, **more: Any) -> dict[str, Any]:
    feeds: dict[str, Any] = {"q": sample(B, new, N * WIDE), "k": sample(B, new, WIDE), "v": sample(B, new, WIDE)}
    if past is None:
        feeds |= {"_pk": 0, "_pv": 0}
    else:
        feeds |= {"pk": sample(B, 1, past, WIDE), "pv": sample(B, 1, past, WIDE)}
    feeds |= {"len": np.array(last, "i4"), "total": np.array(total, "i4")}
    for name in ("c", "s", "p", "bias", "sink", "ks", "vs", "qn", "kn", "qs"):
        feeds[name if name in more else f"_{name}"] = more.get(name, 0)
    while next(reversed(feeds)).startswith("_"):
        feeds.popitem()
    return feeds


def gqa(feeds: dict[str, Any], names: str = "y k2 v2", valid: Any = None, **attributes: Any) -> None:
    """Rows of queries that don't count, and keys behind the last one, are nobody's."""
    wanted, found = outputs("GroupQueryAttention", feeds, names, "c s", num_heads=N, kv_num_heads=1, **attributes)
    for row, last in enumerate(feeds["len"]):
        rows = slice(None if valid is None else valid[row])
        np.testing.assert_allclose(found[0][row, rows], wanted[0][row, rows], rtol=3e-5, atol=3e-5)
        for a, b in zip(found[1:3], wanted[1:3]):
            np.testing.assert_allclose(a[row, :, : last + 1], b[row, :, : last + 1], rtol=3e-5, atol=3e-5)
        for a, b in zip(found[3:], wanted[3:]):
            np.testing.assert_allclose(a[row], b[row], rtol=3e-5, atol=3e-5)


def test_softmax_with_a_sink() -> None:
    gqa(grouped(3, None, [2, 2], 3), smooth_softmax=1)
    gqa(grouped(1, 6, [6, 6], 7), smooth_softmax=1, local_window_size=3)
    gqa(grouped(1, 4, [4, 4], 5, sink=sample(N)))


def test_keys_behind_the_query() -> None:
    gqa(grouped(3, None, [2, 2], 3), causal=0)
    gqa(grouped(1, 4, [3, 4], 5), causal=0)


def test_scores_as_an_output() -> None:
    bias = sample(1, 1, 3, 3)
    gqa(grouped(3, None, [2, 2], 3, bias=bias), "y k2 v2 qk", qk_output=1, softcap=2.0, scale=0.5)
    gqa(grouped(1, 4, [3, 4], 5), "y k2 v2 qk", qk_output=2)


def test_positions_and_padded_queries() -> None:
    angles = RNG.uniform(0, 6, (16, WIDE // 2)).astype("f4")
    tables = {"c": np.cos(angles), "s": np.sin(angles)}
    gqa(grouped(3, None, [2, 2], 3, **tables, p=np.array([[2, 3, 4], [1, 2, 5]])), do_rotary=1)
    gqa(grouped(1, 4, [4, 4], 5, **tables, p=np.array([[3], [4]])), do_rotary=1)
    gqa(grouped(3, 6, [4, 5], 8, qs=np.array([2, 3], "i4")), valid=[2, 3])


def test_norms_of_heads() -> None:
    """onnxruntime has no CPU kernel for them; the formula is that of its documentation."""
    feeds = grouped(3, None, [2, 2], 3, qn=sample(WIDE), kn=sample(WIDE))
    proto, given = one("GroupQueryAttention", feeds, "y", num_heads=N, kv_num_heads=1, qk_norm_epsilon=1e-3)
    found = OnnxModel.from_proto(typed(proto, [given["q"]])).compile().evaluate(given)[0]
    q, k = feeds["q"].reshape(B, 3, N, WIDE), feeds["k"].reshape(B, 3, 1, WIDE)
    q, k = (t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-3) * w for t, w in ((q, feeds["qn"]), (k, feeds["kn"])))
    plain = grouped(3, None, [2, 2], 3) | {"q": q.reshape(B, 3, -1), "k": k.reshape(B, 3, -1), "v": feeds["v"]}
    wanted, _ = outputs("GroupQueryAttention", plain, num_heads=N, kv_num_heads=1)
    np.testing.assert_allclose(np.asarray(found), wanted[0], rtol=3e-5, atol=3e-5)


def test_norms_of_two_dtypes_and_of_several_axes() -> None:
    x = sample(2, 3, 8)
    proto, given = one("SimplifiedLayerNormalization", {"x": x, "g": sample(3, 8)}, "y v", domain="", axis=1)
    wanted = run_ort(proto, given)
    found = OnnxModel.from_proto(typed(proto, wanted)).compile().evaluate(given)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=3e-5, atol=3e-5)
    feeds = {"x": x.astype("f2"), "g": sample(8)}
    proto, given = one("SimplifiedLayerNormalization", feeds, "y", domain="", axis=-1)
    wanted = run_ort(proto, given)
    model = OnnxModel.from_proto(typed(proto, wanted))
    again = OnnxModel.from_graph(model.compile(), optimize=False).to_proto()
    for found in (model.compile().evaluate(given)[0], run_ort(again, given)[0]):
        assert np.asarray(found).dtype == wanted[0].dtype == np.float32
        np.testing.assert_allclose(np.asarray(found), wanted[0], rtol=2e-3, atol=2e-3)
