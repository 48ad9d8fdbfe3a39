"""Quantised operators of com.microsoft, held against onnxruntime; values on a rounding edge may fall to either side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_models import one, sample, stays_opaque, typed
from onnx_models import roundtrip, run_ort

from sardonyx import OnnxModel

RNG = np.random.default_rng(23)


def bytes_of(*shape: int, dtype: str = "u1") -> Any:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def weights_of(*shape: int) -> Any:
    """Signed weights of 7 bits: with 8, onnxruntime's kernels for AVX2 add pairs of products in 16 bits."""
    return RNG.integers(-63, 64, shape).astype("i1")


def agree(
    op: str, feeds: dict[str, Any], outputs: str = "y", steps: int = 0, rtol: float = 2e-5, **options: Any
) -> None:
    """Integers differ by at most `steps`, floats by `rtol`."""
    proto, given = one(op, feeds, outputs, **options)
    wanted = run_ort(proto, given)
    proto = typed(proto, wanted)
    graph = OnnxModel.from_proto(proto).compile()
    assert "sx.opaque" not in graph.text()
    again = roundtrip(proto)
    assert {n.domain for n in again.graph.node} == {""}
    for found in (graph.evaluate(dict(given)), run_ort(again, given)):
        for a, b in zip(map(np.asarray, found), wanted, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            if b.dtype.kind in "iu":
                assert np.abs(a.astype(int) - b.astype(int)).max() <= steps
            else:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def number(value: float) -> Any:
    return np.array(value, "f4")


def zero(value: int, dtype: str = "u1") -> Any:
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op: str, dtype: str) -> None:
    feeds = {
        "a": bytes_of(2, 3, 8, dtype=dtype), "sa": number(0.05), "za": zero(7, dtype),
        "b": bytes_of(8, dtype=dtype), "sb": number(0.02), "zb": zero(3, dtype),
        "sc": number(0.1), "zc": zero(9, dtype),
    }  # fmt: skip
    agree(op, feeds, steps=1, weights="sa za sb zb sc zc")


def test_unary() -> None:
    x = {"x": bytes_of(2, 3, 8), "s": number(0.03), "z": zero(100)}
    y = {"t": number(0.0041), "u": zero(2)}
    names = "s z t u"
    agree("QLinearSigmoid", x | y, steps=1, weights=names)
    agree("QLinearLeakyRelu", x | y | {"t": number(0.02)}, steps=1, weights=names, alpha=0.125)
    agree("QLinearSoftmax", x | y, steps=1, weights=names, axis=-1, opset=13)
    agree("QLinearSoftmax", x | y | {"t": number(1 / 256), "u": zero(0)}, steps=1, weights=names, axis=1, opset=11)


def test_pools_and_concat() -> None:
    x = {"x": bytes_of(1, 4, 6, 6), "s": number(0.03), "z": zero(100)}
    y = {"t": number(0.02), "u": zero(90)}
    names = "s z t u"
    kernel: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree("QLinearAveragePool", x | y, steps=1, weights=names, **kernel)
    agree("QLinearAveragePool", x | y, steps=1, weights=names, channels_last=1, **kernel)
    agree("QLinearGlobalAveragePool", x | y, steps=1, weights=names)
    agree("QLinearGlobalAveragePool", x | y, steps=1, weights=names, channels_last=1)
    agree("NhwcMaxPool", {"x": bytes_of(1, 6, 6, 4)}, pads=[1, 1, 0, 0], **kernel)
    feeds = {**y, **x, "b": bytes_of(1, 2, 6, 6), "sb": number(0.01), "zb": zero(30)}
    agree("QLinearConcat", feeds, steps=1, weights=names + " sb zb", axis=1)


def test_where() -> None:
    feeds = {
        "c": RNG.integers(0, 2, (2, 8)).astype(bool), "a": bytes_of(2, 8), "sa": number(0.05), "za": zero(7),
        "b": bytes_of(2, 8), "sb": number(0.02), "zb": zero(3), "sc": number(0.1), "zc": zero(9),
    }  # fmt: skip
    agree("QLinearWhere", feeds, steps=1, weights="sa za sb zb sc zc")


def test_quantisation() -> None:
    scale, zeros = np.array([0.01, 0.02, 0.03], "f4"), np.array([3, 100, 200], "u1")
    agree("QuantizeLinear", {"x": sample(2, 3, 4), "s": scale, "z": zeros}, weights="s z", axis=1)
    agree("QuantizeLinear", {"x": sample(2, 3, 4), "s": number(0.001), "z": zero(7, "u2")}, weights="s z")
    agree("DequantizeLinear", {"x": bytes_of(2, 3, 4), "s": scale, "z": zeros}, weights="s z", axis=1)
    agree(
        "DequantizeLinear", {"x": bytes_of(2, 3, 4, dtype="i2"), "s": number(0.001), "z": zero(5, "i2")}, weights="s z"
    )


def test_integer_products() -> None:
    a, b = bytes_of(2, 3, 8), weights_of(8, 5)
    scales = {"sa": number(0.02), "sb": number(0.05)}
    zeros = {"za": zero(120), "zb": zero(4, "i1")}
    agree("MatMulIntegerToFloat", {"a": a, "b": b, **scales, **zeros}, weights="b")
    per_column = {"sa": number(0.02), "sb": np.linspace(0.01, 0.05, 5, dtype="f4")}
    agree(
        "MatMulIntegerToFloat", {"a": a, "b": b, **per_column, "za": zero(120), "_zb": 0, "c": sample(5)}, weights="b"
    )
    x = sample(2, 3, 8)
    agree("DynamicQuantizeMatMul", {"x": x, "b": b, "sb": number(0.05), "zb": zero(4, "i1")}, weights="b sb zb")
    agree("DynamicQuantizeMatMul", {"x": x, "b": b, "sb": per_column["sb"], "_zb": 0, "c": sample(5)}, weights="b sb")


def test_qgemm() -> None:
    a, b = bytes_of(3, 8), weights_of(8, 5)
    base = {"a": a, "sa": number(0.02), "za": zero(120), "b": b, "sb": number(0.05), "zb": zero(0, "i1")}
    bias = {"c": RNG.integers(-500, 500, 5).astype("i4")}
    names = "sa za b sb zb c t u"
    agree("QGemm", base | bias, weights=names)
    agree("QGemm", base | bias | {"t": number(0.2), "u": zero(100)}, steps=1, weights=names)
    turned = base | {"a": a.T.copy(), "b": b.T.copy()}
    agree("QGemm", turned, weights=names, transA=1, transB=1, alpha=0.5)


def packed(whole: Any, bits: int) -> Any:
    per_byte = 8 // bits
    parts = whole.reshape(-1, per_byte).astype(np.uint8)
    out = np.zeros(len(parts), np.uint8)
    for i in range(per_byte):
        out |= parts[:, i] << np.uint8(i * bits)
    return out


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_matmul_nbits(bits: int, zeros: bool) -> None:
    n, k, block = 6, 40, 16
    blocks = -(-k // block)
    whole = RNG.integers(0, 1 << bits, (n, blocks * block))
    feeds: dict[str, Any] = {
        "a": sample(2, 3, k), "b": packed(whole, bits).reshape(n, blocks, -1),
        "s": RNG.uniform(0.01, 0.1, n * blocks).astype("f4"),
    }  # fmt: skip
    if zeros:
        per_row = -(-blocks * bits // 8) * 8 // bits
        feeds["z"] = packed(RNG.integers(0, 1 << bits, (n, per_row)), bits)
    options: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": block}
    agree("MatMulNBits", feeds, rtol=2e-4, weights="b s z", **options)
    agree("MatMulNBits", feeds, rtol=2e-4, **options)  # unpacked when it runs
    if bits == 4 and not zeros:
        floats = feeds | {"z": RNG.uniform(0, 15, (n, blocks)).astype("f4")}
        agree("MatMulNBits", floats, rtol=2e-4, weights="b s z", **options)
        groups = feeds | {"_z": 0, "g": RNG.permutation(np.arange(blocks * block) // block).astype("i4")}
        agree("MatMulNBits", groups, rtol=2e-4, weights="b s g", **options)
        stays_opaque("MatMulNBits", feeds, weight_prepacked=1, **options)


def test_convolutions() -> None:
    x, w = bytes_of(1, 3, 6, 6), weights_of(4, 3, 3, 3)
    per_channel = {"sw": np.linspace(0.01, 0.05, 4, dtype="f4"), "zw": np.zeros(4, "i1")}
    base = {"x": x, "sx": number(0.02), "zx": zero(120), "w": w, **per_channel, "sy": number(0.3), "zy": zero(110)}
    names = "sx zx w sw zw sy zy b"
    agree("QLinearConv", base, steps=1, weights=names)
    last = base | {"x": bytes_of(1, 6, 6, 3), "b": RNG.integers(-500, 500, 4).astype("i4")}
    agree("QLinearConv", last, steps=1, weights=names, channels_last=1, pads=[1, 1, 1, 1], strides=[2, 2])
    grouped = base | {"x": bytes_of(1, 4, 6, 6), "w": weights_of(4, 2, 3, 3)}
    agree("QLinearConv", grouped, steps=1, weights=names, group=2, auto_pad="SAME_UPPER")


@pytest.mark.parametrize("mask", [False, True])
def test_embeddings(mask: bool) -> None:
    tables = {
        "word": bytes_of(9, 8),
        "place": bytes_of(6, 8),
        "kind": bytes_of(2, 8),
        "g": bytes_of(8),
        "b": bytes_of(8),
    }
    scales = {f"{k}_s": number(v) for k, v in zip(tables, (0.02, 0.01, 0.03, 0.01, 0.02))}
    zeros = {f"{k}_z": zero(v) for k, v in zip(tables, (120, 130, 110, 100, 128))}
    ids, kinds = RNG.integers(0, 9, (2, 3)).astype("i4"), RNG.integers(0, 2, (2, 3)).astype("i4")
    feeds = {"ids": ids, "kinds": kinds, **tables, ("m" if mask else "_m"): np.array([[1, 1, 0], [1, 1, 1]], "i4")}
    names = " ".join((*tables, *scales, *zeros))
    agree("QEmbedLayerNormalization", feeds | scales | zeros, "y count", rtol=1e-4, weights=names, epsilon=1e-5)


@pytest.mark.parametrize("mask", [False, True])
def test_quantized_attention(mask: bool) -> None:
    x, w = bytes_of(2, 3, 8), weights_of(8, 24)
    feeds = {"x": x, "w": w, "b": sample(24), "sx": number(0.02), "sw": number(0.01)}
    feeds |= {"m": np.array([[1, 1, 0], [1, 1, 1]], "i4")} if mask else {"_m": 0}
    agree("QAttention", feeds | {"zx": zero(110), "zw": zero(0, "i1")}, weights="w b sx sw zx zw", num_heads=2)
