"""Operators of com.microsoft: imported as compositions, held against onnxruntime, and exported without that domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_models import RNG, one, sample, stays_opaque, typed
from onnx import helper
from onnx_models import info, model, roundtrip, run_ort

from sardonyx import OnnxModel


def agree(op: str, feeds: dict[str, Any], outputs: str = "y", rtol: float = 2e-5, native: bool = False, **options: Any):
    proto, given = one(op, feeds, outputs, **options)
    wanted = run_ort(proto, given)
    proto = typed(proto, wanted)
    graph = OnnxModel.from_proto(proto).compile()
    assert "sx.opaque" not in graph.text()
    again = roundtrip(proto)
    assert {n.domain for n in again.graph.node} == {""}
    runs = [graph.evaluate(dict(given)), run_ort(again, given)]
    if native:
        graph.finalize()
        runs.append(graph.run(dict(given)))
    for found in runs:
        for a, b in zip(found, wanted, strict=True):
            assert np.asarray(a).dtype == b.dtype and tuple(a.shape) == b.shape
            np.testing.assert_allclose(np.asarray(a), b, rtol=rtol, atol=rtol)
    return wanted


# ---- activations and products


def test_activations() -> None:
    x, bias = sample(2, 3, 8), sample(8)
    agree("Gelu", {"x": x}, native=True)
    agree("BiasGelu", {"x": x, "b": bias})
    agree("FastGelu", {"x": x})
    agree("FastGelu", {"x": x, "b": bias})
    agree("QuickGelu", {"x": x})
    agree("QuickGelu", {"x": x}, alpha=0.5)


def test_those_that_only_gpus_have() -> None:
    """onnxruntime has no kernel for these; the formulas are those of its documentation."""
    from math import erf

    x, bias, skip = sample(2, 3, 8), sample(8), sample(2, 3, 8)
    proto, given = one("BiasAdd", {"x": x, "b": bias, "s": skip}, "y")
    graph = OnnxModel.from_proto(typed(proto, [x])).compile()
    np.testing.assert_allclose(np.asarray(graph.evaluate(given)[0]), x + bias + skip, rtol=1e-6, atol=1e-6)
    proto, given = one("BiasSplitGelu", {"x": x, "b": bias}, "y")
    graph = OnnxModel.from_proto(typed(proto, [x])).compile()
    left, right = np.split(x + bias, 2, -1)
    wanted = left * right * 0.5 * (1 + np.vectorize(erf)(right / np.sqrt(2)))
    np.testing.assert_allclose(np.asarray(graph.evaluate(given)[0]), wanted, rtol=1e-5, atol=1e-6)


def test_products() -> None:
    a, b = sample(2, 3, 4), sample(2, 4, 5)
    agree("FusedMatMul", {"a": a, "b": b}, alpha=0.5)
    agree("FusedMatMul", {"a": a.swapaxes(1, 2).copy(), "b": b}, transA=1, native=True)
    agree("FusedMatMul", {"a": a, "b": b.swapaxes(1, 2).copy()}, transB=1, alpha=2.0)
    agree("FusedGemm", {"a": a[0], "b": b[0], "c": sample(5)}, activation="Relu", alpha=0.5)
    agree("FusedGemm", {"a": a[0], "b": b[0]}, activation="LeakyRelu", activation_alpha=0.125)
    rows_first = np.ascontiguousarray(a.transpose(1, 0, 2)), np.ascontiguousarray(b.transpose(1, 0, 2))
    agree("FusedMatMul", {"a": rows_first[0], "b": rows_first[1]}, transBatchA=1, transBatchB=1)
    agree("FusedMatMul", {"a": np.ascontiguousarray(a.transpose(2, 0, 1)), "b": b}, transBatchA=1, transA=1)
    agree("FusedGemm", {"a": a[0], "b": b[0]}, activation="ScaledTanh", activation_alpha=0.5, activation_beta=2.0)
    agree("FusedGemm", {"a": a[0], "b": b[0]}, activation="ParametricSoftplus", activation_alpha=0.5,
          activation_beta=2.0)  # fmt: skip
    stays_opaque("FusedMatMul", {"a": a, "b": b}, of_tomorrow=1)
    stays_opaque("FusedMatMul", {"a": a, "b": b, "c": b})


def test_convolutions() -> None:
    x, w, b = sample(1, 3, 7, 7), sample(4, 3, 3, 3), sample(4)
    agree("FusedConv", {"x": x, "w": w, "b": b}, weights="w b", activation="Relu", pads=[1, 1, 1, 1], strides=[2, 2],
          kernel_shape=[3, 3])  # fmt: skip
    agree("FusedConv", {"x": x, "w": w, "b": b, "z": sample(1, 4, 5, 5)}, weights="w b", activation="Relu")
    agree("FusedConv", {"x": x, "w": w}, weights="w", activation="Clip", activation_params=[-0.5, 1.0])
    agree("FusedConv", {"x": x, "w": w}, weights="w", activation="HardSigmoid", activation_params=[0.25, 0.5])
    agree("FusedConv", {"x": x, "w": w}, weights="w", activation="Tanh", dilations=[2, 2])
    stays_opaque("FusedConv", {"x": x, "w": w}, weights="w", activation="Celu")


# ---- norms


def test_norms() -> None:
    x, skip, scale, bias = sample(2, 3, 8), sample(2, 3, 8), sample(8), sample(8)
    agree("SkipLayerNormalization", {"x": x, "s": skip, "g": scale}, epsilon=1e-5)
    outputs = "y _ _ total"
    agree("SkipLayerNormalization", {"x": x, "s": skip, "g": scale, "b": bias, "c": sample(8)}, outputs, native=True)
    agree("SkipSimplifiedLayerNormalization", {"x": x, "s": skip, "g": scale}, epsilon=1e-5)
    agree("SkipSimplifiedLayerNormalization", {"x": x, "s": skip, "g": scale, "c": bias}, outputs)
    agree("SimplifiedLayerNormalization", {"x": x, "g": scale}, "y v", domain="", epsilon=1e-5, axis=-1)


def test_layer_norm_before_its_opset() -> None:
    """onnxruntime writes it into ai.onnx at any opset."""
    x, scale, bias = sample(2, 3, 8), sample(8), sample(8)
    made = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1, epsilon=1e-5)
    proto = model([made], [info("x", ["a", "b", 8]), info("g", [8]), info("b", [8])], [info("y", ["a", "b", 8])],
                  opset=12, ir_version=7)  # fmt: skip
    feeds = {"x": x, "g": scale, "b": bias}
    wanted = run_ort(proto, feeds)[0]
    np.testing.assert_allclose(run_ort(roundtrip(proto), feeds)[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_embeddings(segments: bool, mask: bool) -> None:
    ids, kinds = RNG.integers(0, 9, (2, 3)).astype("i4"), RNG.integers(0, 2, (2, 3)).astype("i4")
    tables = {"word": sample(9, 8), "place": sample(6, 8), "kind": sample(2, 8), "g": sample(8), "b": sample(8)}
    if not segments:
        tables = {("_kind" if k == "kind" else k): v for k, v in tables.items()}
    feeds: dict[str, Any] = {"ids": ids, ("kinds" if segments else "_kinds"): kinds, **tables}
    if mask:
        feeds["mask"] = np.array([[1, 1, 0], [1, 1, 1]], "i4")
    options: dict[str, Any] = {"mask_index_type": 1} if mask else {}
    agree("EmbedLayerNormalization", feeds, "y count total", weights="word place kind g b", **options)


# ---- attention

B, S, N, D = 2, 3, 2, 4
H = N * D


def test_attention() -> None:
    x, w, b = sample(B, S, H), sample(H, 3 * H, scale=0.5), sample(3 * H)
    base = {"x": x, "w": w, "b": b}
    agree("Attention", base, weights="w b", num_heads=N, native=True)
    agree("Attention", base, weights="w b", num_heads=N, unidirectional=1)
    agree("Attention", base, weights="w b", num_heads=N, scale=0.25)
    raw = np.array([[1, 1, 0], [1, 0, 1]], "i4")
    agree("Attention", base | {"m": raw}, weights="w b", num_heads=N)
    agree("Attention", base | {"m": np.array([2, 3], "i4")}, weights="w b m", num_heads=N)
    full = RNG.integers(0, 2, (B, S, S)).astype("i4") | np.eye(S, dtype="i4")
    agree("Attention", base | {"m": full}, weights="w b", num_heads=N, mask_filter_value=-50.0)
    agree("Attention", base | {"_m": 0, "_p": 0, "e": sample(B, N, S, S)}, weights="w b", num_heads=N)


def test_attention_with_a_past() -> None:
    x, w, b, past = sample(B, S, H), sample(H, 3 * H, scale=0.5), sample(3 * H), sample(2, B, N, 5, D)
    agree("Attention", {"x": x, "w": w, "b": b, "_m": 0, "past": past}, "y present", weights="w b", num_heads=N,
          unidirectional=1)  # fmt: skip


def test_attention_with_values_of_another_width() -> None:
    w = sample(H, 2 * H + 2 * N, scale=0.5)
    agree("Attention", {"x": sample(B, S, H), "w": w, "b": sample(2 * H + 2 * N)}, weights="w b", num_heads=N,
          qkv_hidden_sizes=[H, H, 2 * N])  # fmt: skip


def test_multi_head_attention() -> None:
    q, k, v = sample(B, S, H), sample(B, 5, H), sample(B, 5, H)
    base = {"q": q, "k": k, "v": v}
    agree("MultiHeadAttention", base, num_heads=N, native=True)
    agree("MultiHeadAttention", base | {"b": sample(3 * H)}, num_heads=N, scale=0.3)
    mask = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], "i4")
    agree("MultiHeadAttention", base | {"_b": 0, "m": mask}, num_heads=N)
    agree("MultiHeadAttention", base | {"_b": 0, "_m": 0, "e": sample(1, N, S, 5)}, num_heads=N)
    whole = {"q": q, "k": sample(B, S, H), "v": sample(B, S, H)}
    agree("MultiHeadAttention", whole, num_heads=N, unidirectional=1)
    past = {"_b": 0, "_m": 0, "_e": 0, "pk": sample(B, N, 5, D), "pv": sample(B, N, 5, D)}
    agree("MultiHeadAttention", whole | past, "y k2 v2", num_heads=N)
    own = {"q": q[:, :1].copy(), "k": k[:, :1].copy(), "v": v[:, :1].copy()}
    stays_opaque("MultiHeadAttention", own | past | {"len": np.array([2], "i4")}, num_heads=N)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    angles = RNG.uniform(0, 6, (10, D // 2)).astype("f4")
    tables = {"c": np.cos(angles), "s": np.sin(angles)}
    places = np.array([[0, 1, 2], [3, 9, 4]])
    agree("RotaryEmbedding", {"x": sample(B, S, H), "p": places, **tables}, weights="c s", interleaved=interleaved)
    agree("RotaryEmbedding", {"x": sample(B, N, S, D), "p": places, **tables}, weights="c s", interleaved=interleaved)
    agree("RotaryEmbedding", {"x": sample(B, S, H), "p": np.array([4]), **tables}, weights="c s p",
          interleaved=interleaved)  # fmt: skip
    half = {"c": np.cos(angles[:, :1]).copy(), "s": np.sin(angles[:, :1]).copy()}
    agree("RotaryEmbedding", {"x": sample(B, S, H), "p": places, **half}, weights="c s", interleaved=interleaved,
          num_heads=N, rotary_embedding_dim=2)  # fmt: skip


KV, WIDE = 1, 16  # onnxruntime takes heads of a multiple of 16


def gqa(new: int, past: int | None, lengths: list[int], total: int, rotary: bool = False, **options: Any) -> None:
    feeds: dict[str, Any] = {
        "q": sample(B, new, N * WIDE),
        "k": sample(B, new, KV * WIDE),
        "v": sample(B, new, KV * WIDE),
    }
    room = 0 if past is None else past
    feeds |= {"pk": sample(B, KV, room, WIDE), "pv": sample(B, KV, room, WIDE)}
    feeds |= {"len": np.array(lengths, "i4"), "total": np.array(total, "i4")}
    if rotary:
        angles = RNG.uniform(0, 6, (16, WIDE // 2)).astype("f4")
        feeds |= {"c": np.cos(angles), "s": np.sin(angles)}
    proto, given = one("GroupQueryAttention", feeds, "y k2 v2", "c s", num_heads=N, kv_num_heads=KV,
                       do_rotary=int(rotary), **options)  # fmt: skip
    wanted = run_ort(proto, given)
    graph = OnnxModel.from_proto(typed(proto, wanted)).compile()
    assert "sx.opaque" not in graph.text()
    again = roundtrip(proto)
    for found in (graph.evaluate(dict(given)), run_ort(again, given)):
        np.testing.assert_allclose(np.asarray(found[0]), wanted[0], rtol=2e-5, atol=2e-5)
        for a, b in zip(found[1:], wanted[1:]):  # what lies behind a sequence's last key is nobody's
            assert tuple(a.shape) == b.shape
            for row, last in enumerate(lengths):
                np.testing.assert_allclose(
                    np.asarray(a)[row, :, : last + 1], b[row, :, : last + 1], rtol=1e-5, atol=1e-5
                )


@pytest.mark.parametrize("rotary", [False, True])
def test_group_query_attention(rotary: bool) -> None:
    gqa(3, None, [2, 2], 3, rotary)  # a first call
    gqa(1, 4, [4, 4], 5, rotary)  # the next one
    gqa(1, 8, [4, 6], 7, rotary)  # caches with room, of sequences of different lengths
    gqa(1, 8, [7, 7], 8, rotary, rotary_interleaved=int(rotary))


def test_group_query_attention_options() -> None:
    gqa(3, None, [2, 2], 3, local_window_size=2)
    gqa(1, 6, [6, 6], 7, local_window_size=3)
    gqa(3, None, [2, 2], 3, softcap=2.0, scale=0.7)
    keys = {"k": sample(B, 3, WIDE), "v": sample(B, 3, WIDE), "_p": 0, "_v": 0, "len": np.array([2, 2], "i4")}
    feeds = {"q": sample(B, 3, N * WIDE), **keys, "total": np.array(3, "i4")}
    stays_opaque("GroupQueryAttention", feeds, num_heads=N, kv_num_heads=KV, sliding_window_cache=1)
