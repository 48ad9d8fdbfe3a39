"""`recognize-attention`: by value, natively and in onnxruntime, and what only looks like one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import sardonyx as sx
from sardonyx.dialects.module import main_function, output_values
from sardonyx.dialects.sx.attention import AttentionOp
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.passes import pipeline
from sardonyx.passes.finite import bound_of
from sardonyx.passes.pipeline import PassManager
from sardonyx.testing import check_pass, three_executions

RNG = np.random.default_rng(8)
PREPARE = "fold-constants,simplify,cse"
QKV = "q: f32[b, 2, s, 4], k: f32[b, 2, t, 4], v: f32[b, 2, t, 3]"
ADDED, SEEN = QKV + ", m: f32[b, 1, s, t]", QKV + ", m: bool[s, t]"
LOW = np.float32(-np.inf)


def turned(k: Any) -> Any:
    return sx.transpose(k, (0, 1, 3, 2))


def plain(q: Any, k: Any, v: Any) -> Any:
    return sx.softmax(q @ turned(k) * 0.5, axis=-1) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    s, t = (sx.arange(a.shape[2]) for a in (q, k))
    seen = sx.unsqueeze(t, 0) <= sx.unsqueeze(s, 1)
    return sx.softmax(sx.where(seen, q @ turned(k), LOW), axis=-1) @ v


def guarded(q: Any, k: Any, v: Any, m: Any) -> Any:
    """As PyTorch's: the guard stays."""
    found = sx.softmax(sx.where(m, (q * 0.25) @ turned(k), LOW), axis=-1) @ v
    return sx.where(sx.any(m, axis=-1, keepdims=True), found, np.float32(0))


def guarded_inside(q: Any, k: Any, v: Any, m: Any) -> Any:
    """As ONNX's own definition: the guard is the operator's."""
    nothing = sx.max(m, axis=-1, keepdims=True) == LOW
    return sx.where(nothing, np.float32(0), sx.softmax(q @ turned(k) + m, axis=-1)) @ v


def chosen(q: Any, k: Any, v: Any, m: Any) -> Any:
    """As transformers': a mask of large, finite numbers."""
    added = sx.where(m, np.float32(0), np.float32(np.finfo(np.float32).min))
    return sx.softmax(q @ turned(k) / 2.0 + added, axis=-1) @ v


def counted(q: Any, k: Any, v: Any, m: Any) -> Any:
    """As BERT's: (1 - mask) * -10000."""
    added = (1 - sx.astype(m, sx.float32)) * -10000
    return sx.softmax(added + q @ turned(k), axis=-1) @ v


def grouped(q: Any, k: Any, v: Any) -> Any:
    def wide(x: Any) -> Any:
        return sx.reshape(
            sx.broadcast_to(sx.unsqueeze(x, 2), (x.shape[0], 2, 3, 5, x.shape[3])), (-1, 6, 5, x.shape[3])
        )

    return sx.softmax(q @ turned(wide(k)), axis=-1) @ wide(v)


FORMS: dict[str, tuple[Callable[..., Any], str]] = {
    "plain": (plain, QKV),
    "both-scaled": (lambda q, k, v: sx.softmax((q * 0.5) @ turned(k * 0.5), axis=-1) @ v, QKV),
    "scaled-after": (lambda q, k, v: sx.softmax(q @ (turned(k) * 2.0), axis=3) @ v, QKV),
    "other-transpose": (
        lambda q, k, v: sx.softmax(q @ sx.transpose(k, (0, 2, 3, 1)), axis=-1) @ v,
        "q: f32[b, 2, s, 4], k: f32[b, t, 2, 4], v: f32[b, 2, t, 3]",
    ),
    "causal": (causal, QKV),
    "causal-static": (
        causal, "q: f32[2, 1, 4, 3], k: f32[2, 1, 5, 3], v: f32[2, 1, 5, 3]",
    ),
    "guarded": (guarded, SEEN),
    "guarded-inside": (guarded_inside, ADDED),
    "chosen": (chosen, SEEN),
    "counted": (counted, SEEN),
    "grouped": (grouped, "q: f32[b, 6, s, 4], k: f32[b, 2, 5, 4], v: f32[b, 2, 5, 3]"),
}  # fmt: skip
LEFT = {"guarded": ["sx.reduce_max", "sx.where"], "chosen": ["sx.where"], "counted": ["sx.cast", "sx.sub", "sx.mul"],
        "other-transpose": ["sx.transpose"]}  # fmt: skip
OTHERS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "no-transpose": (lambda q, k, v: sx.softmax(q @ k, axis=-1) @ v,
                     "q: f32[b, 2, s, 4], k: f32[b, 2, 4, t], v: f32[b, 2, t, 3]", "the keys are not transposed"),
    "other-axis": (lambda q, k, v: sx.softmax(q @ turned(k), axis=-2) @ v, QKV, "another axis than the last"),
    "added": (lambda q, k, v, m: sx.softmax(q @ turned(k) + m, axis=-1) @ v, ADDED, "rows-see"),
    "chosen-inf": (lambda q, k, v, m: sx.softmax(sx.where(m, q @ turned(k), LOW), axis=-1) @ v, SEEN, "rows-see"),
    "anti-causal": (lambda q, k, v: sx.softmax(sx.where(
        sx.unsqueeze(sx.arange(q.shape[2]), 1) <= sx.unsqueeze(sx.arange(k.shape[2]), 0), q @ turned(k), LOW
    ), axis=-1) @ v, QKV, "rows-see"),
    "three-axes": (lambda q, k, v: sx.softmax(q @ sx.transpose(k, (0, 2, 1)), axis=-1) @ v,
                   "q: f32[b, s, 4], k: f32[b, t, 4], v: f32[b, t, 3]", "rank 3"),
    "half": (plain, QKV.replace("f32", "f16"), "16 bits"),
    "other-heads": (plain, "q: f32[b, h, s, 4], k: f32[b, i, t, 4], v: f32[b, i, t, 3]", "not proved to agree"),
    "read": (lambda q, k, v: (plain(q, k, v), q @ turned(k) * 0.5), QKV, "read elsewhere"),
    "mask-broadcasts": (
        lambda q, k, v, m: sx.softmax(q @ turned(k) + sx.where(m, np.float32(0), np.float32(-9)), axis=-1) @ v,
        QKV + ", m: bool[s, 1]", "broadcast",
    ),
}  # fmt: skip


def ops_of(module: Any) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("sx.") and op.name != "sx.constant"]


def module_of(function: Callable[..., Any], signature: str) -> Any:
    return sx.trace(function, signature).graph.module


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str):
    found = check_pass(f"{PREPARE},recognize-attention,cse", module_of(*FORMS[name]), inputs=3).module
    assert sorted(ops_of(found)) == sorted(["sx.attention", *LEFT.get(name, ())])
    assert ("is_causal = true" in str(found)) == name.startswith("causal")


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_one(name: str):
    function, signature, reason = OTHERS[name]
    module = module_of(function, signature)
    report = PassManager(f"{PREPARE},recognize-attention", keep_declines=True).run(module).passes[-1]
    assert not report.changed
    assert any(reason in d.reason for d in report.declines), [d.reason for d in report.declines]


def test_rows_see_takes_the_user_at_his_word():
    for name in ("added", "chosen-inf"):
        module = module_of(*OTHERS[name][:2])
        PassManager(f"{PREPARE},recognize-attention{{rows-see=true}}", check=0).run(module)
        assert ops_of(module) == ["sx.attention"]


def test_scales_multiply():
    module = module_of(lambda q, k, v: sx.softmax((q / 4.0) @ turned(k * 3.0) * 0.5, axis=-1) @ v, QKV)
    pipeline.run(module, f"{PREPARE},recognize-attention")
    (attention,) = [op for op in module.walk() if isinstance(op, AttentionOp)]
    assert math.isclose(attention.attr("scale"), 0.375)


def heads(x: Any, count: int) -> Any:
    return sx.transpose(sx.reshape(x, (*x.shape[:2], count, 4)), (0, 2, 1, 3))


def flat(q: Any, k: Any, v: Any) -> Any:
    found = plain(heads(q, 6), heads(k, 6), heads(v, 6))
    return sx.reshape(sx.transpose(found, (0, 2, 1, 3)), (*q.shape[:2], 24))


def test_heads_that_are_split_and_joined_around_it():
    signature = "q: f32[b, s, 24], k: f32[b, t, 24], v: f32[b, t, 24]"
    module = check_pass(f"{PREPARE},recognize-attention", module_of(flat, signature), changes=True, inputs=3).module
    assert ops_of(module) == ["sx.attention"] and "q_num_heads = 6" in str(module)
    three_executions(module, [RNG.normal(size=(2, n, 24)).astype(np.float32) for n in (3, 5, 5)])


@pytest.mark.parametrize("name", ["plain", "causal", "guarded-inside", "grouped"])
def test_what_decomposing_makes_is_recognized(name: str):
    module = module_of(*FORMS[name])
    pipeline.run(module, f"{PREPARE},recognize-attention")
    whole = str(module)
    report = pipeline.run(module, "decompose-operators{names=Attention}")
    assert report.changed and "sx.attention" not in str(module)
    pipeline.run(module, f"{PREPARE},recognize-attention")
    assert ops_of(module) == ["sx.attention"] and ("is_causal" in str(module)) == ("is_causal" in whole)


@pytest.mark.parametrize("mask", [None, TensorProto.FLOAT, TensorProto.BOOL])
def test_onnx_s_own_definition_is_recognized(mask: int | None):
    shapes = {"q": ["b", 2, "s", 4], "k": ["b", 2, "t", 4], "v": ["b", 2, "t", 4]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in shapes.items()]
    if mask is not None:
        inputs.append(helper.make_tensor_value_info("m", mask, ["s", "t"]))
    node = helper.make_node("Attention", [i.name for i in inputs], ["y"], scale=0.25)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes["q"])
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    module = OnnxModel.from_proto(model).compile().module
    assert "sx.attention" not in ops_of(module) and "sx.softmax" in ops_of(module)
    pipeline.run(module, "optimize,recognize-attention,remove-dead-nodes")
    (attention,) = [op for op in module.walk() if isinstance(op, AttentionOp)]
    assert math.isclose(attention.attr("scale"), 0.25, rel_tol=1e-6)
    assert (attention.mask is None) == (mask is None) and "sx.softmax" not in ops_of(module)


def test_three_executions_of_what_it_makes():
    def several(q: Any, k: Any, v: Any, m: Any) -> Any:
        return causal(q * q, k, v), guarded(q, k, v, m), plain(q, k + k, v)

    module = module_of(several, SEEN)
    pipeline.run(module, f"{PREPARE},recognize-attention")
    assert ops_of(module).count("sx.attention") == 3
    seen = RNG.random((3, 5)) < 0.5
    seen[1] = False
    q, k, v = (RNG.normal(size=(2, 2, *n)).astype(np.float32) for n in ((3, 4), (5, 4), (5, 3)))
    three_executions(module, [q, k, v, seen])


def test_bounds():
    def bounded(m: Any, i: Any, x: Any) -> Any:
        known = sx.where(m, np.float32(-3), np.float32(2))
        return known * 4 + sx.astype(m, sx.float32), sx.astype(i, sx.float32), x, known * 3e38, sx.unsqueeze(known, 0)

    module = module_of(bounded, "m: bool[2], i: i32[2], x: f32[2]")
    bounds = [bound_of(v) for v in output_values(module)]
    assert bounds == [13.0, 2.0**32, math.inf, math.inf, 3.0]
    assert main_function(module) is not None
