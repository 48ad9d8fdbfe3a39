"""`recognize-rotary`: by value, natively and in onnxruntime, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.passes.pipeline import PassManager
from sardonyx.testing import check_pass, three_executions

RNG = np.random.default_rng(6)
PREPARE = "fold-constants,simplify,cse"
ANGLES = RNG.uniform(0, 3, (5, 4)).astype(np.float32)
DOUBLE = np.concatenate([ANGLES, ANGLES], -1)
Value = Any


def halves(x: Value) -> Value:
    return sx.concat([-x[..., 4:], x[..., :4]], axis=-1)


def parts(x: Value) -> Value:
    a, b = sx.split(x, 2, axis=-1)
    return sx.concat([-b, a], axis=-1)


def turned(x: Value, cos: Value, sin: Value, swap: Callable[[Value], Value] = halves) -> Value:
    return x * cos + swap(x) * sin


def tables(f: Value) -> tuple[Value, Value]:
    """As Llama makes them of [batch, sequence, width / 2]."""
    both = sx.concat([f, f], axis=-1)
    return sx.unsqueeze(sx.cos(both) * 1.5, 1), sx.unsqueeze(sx.sin(both) * 1.5, 1)


def half_tables(f: Value) -> tuple[Value, Value]:
    cos, sin = tables(f)
    return sx.astype(cos, sx.float16), sx.astype(sin, sx.float16)


FORMS: dict[str, tuple[Callable[..., Value], str]] = {
    "llama": (lambda x, f: turned(x, *tables(f)), "x: f32[b, 3, s, 8], f: f32[b, s, 4]"),
    "split": (lambda x, f: turned(x, *tables(f), parts), "x: f32[2, 3, 5, 8], f: f32[2, 5, 4]"),
    "other-order": (
        lambda x, f: (lambda c, s: s * halves(x) + c * x)(*tables(f)),
        "x: f32[b, h, 5, 8], f: f32[b, 5, 4]",
    ),
    "one-for-all": (lambda x, f: turned(x, *tables(f)), "x: f32[b, 3, s, 8], f: f32[1, s, 4]"),
    "constants": (lambda x: turned(x, np.cos(DOUBLE), np.sin(DOUBLE)), "x: f32[b, h, 5, 8]"),
    "constants-of-four-axes": (
        lambda x: turned(x, np.cos(DOUBLE)[None, None], np.sin(DOUBLE)[None, None]), "x: f32[2, 3, 5, 8]",
    ),
    "constants-of-three-axes": (
        lambda x: turned(x, np.cos(DOUBLE)[None], np.sin(DOUBLE)[None]), "x: f32[1, h, 5, 8]"
    ),
    "half": (
        lambda x, f: turned(x, *half_tables(f)),
        "x: f16[b, 3, s, 8], f: f32[b, s, 4]",
    ),
    "two-axes": (
        lambda x, f: (lambda t: turned(x, sx.cos(t), sx.sin(t)))(sx.concat([f, f], axis=-1)),
        "x: f32[b, 3, s, 8], f: f32[s, 4]",
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[Callable[..., Value], str, str | None]] = {
    "unlike-halves": (
        lambda x, f, g: (lambda t: turned(x, sx.cos(t), sx.sin(t)))(sx.unsqueeze(sx.concat([f, g], axis=-1), 1)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4], g: f32[b, s, 4]", "the halves of cos or sin are not certainly the same",
    ),
    "unlike-constants": (
        lambda x: turned(x, np.cos(np.concatenate([ANGLES, ANGLES + 1], -1)), np.sin(DOUBLE)),
        "x: f32[b, h, 5, 8]", "the halves of cos or sin are not certainly the same",
    ),
    "scaled-after": (
        lambda x, f, g: (lambda c, s: turned(x, c * g, s))(*tables(f)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4], g: f32[8]", "the halves of cos or sin are not certainly the same",
    ),
    "heads-third": (
        lambda x, f: (lambda t: turned(x, sx.cos(t), sx.sin(t)))(sx.unsqueeze(sx.concat([f, f], axis=-1), 2)),
        "x: f32[b, s, 3, 8], f: f32[b, s, 4]",
        "cos or sin is not the same for all heads, which are the second of 4 axes",
    ),
    "other-items": (
        lambda x, f: turned(x, *tables(f)), "x: f32[2, 3, s, 8], f: f32[c, s, 4]",
        "the numbers of items of x and of cos or sin are not proved to agree",
    ),
    "double": (
        lambda x, f: turned(x, *tables(f)), "x: f64[b, 3, s, 8], f: f64[b, s, 4]", "the operator has no float64",
    ),
    "three-axes": (
        lambda x, f: turned(x, sx.cos(sx.concat([f, f], axis=-1)), sx.sin(sx.concat([f, f], axis=-1))),
        "x: f32[3, s, 8], f: f32[s, 4]", "x is broadcast, or has not 4 axes",
    ),
    "not-negated": (
        lambda x, f: turned(x, *tables(f), lambda v: sx.concat([v[..., 4:], v[..., :4]], axis=-1)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4]", None,
    ),
    "other-half-negated": (
        lambda x, f: turned(x, *tables(f), lambda v: sx.concat([v[..., 4:], -v[..., :4]], axis=-1)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4]", None,
    ),
    "not-swapped": (
        lambda x, f: turned(x, *tables(f), lambda v: sx.concat([-v[..., :4], v[..., 4:]], axis=-1)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4]", None,
    ),
    "uneven": (
        lambda x, f: turned(x, *tables(f), lambda v: sx.concat([-v[..., 3:], v[..., :3]], axis=-1)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4]", None,
    ),
    "another-x": (
        lambda x, f, y: (lambda c, s: x * c + halves(y) * s)(*tables(f)),
        "x: f32[b, 3, s, 8], f: f32[b, s, 4], y: f32[b, 3, s, 8]", None,
    ),
    "along-the-sequence": (
        lambda x: x * np.cos(DOUBLE[:4, :1]) + sx.concat([-x[..., 2:, :], x[..., :2, :]], axis=-2),
        "x: f32[b, 3, 4, 4]", None,
    ),
}  # fmt: skip


def ops_of(module: Any) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("sx.") and op.name != "sx.constant"]


def recognized(function: Callable[..., Any], signature: str) -> Any:
    module = sx.trace(function, signature).graph.module
    return check_pass(f"{PREPARE},recognize-rotary,simplify,fold-constants,cse,remove-dead-nodes", module).module


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str):
    ops = ops_of(recognized(*FORMS[name]))
    assert ops.count("sx.rotary_embedding") == 1
    assert not {"sx.add", "sx.neg"} & set(ops)
    assert (
        not any(op == "sx.concat" for op in ops) or "one-for-all" in name or "constants" in name or name == "two-axes"
    )


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_one(name: str):
    function, signature, reason = OTHERS[name]
    module = sx.trace(function, signature).graph.module
    report = PassManager(f"{PREPARE},recognize-rotary", keep_declines=True).run(module).passes[-1]
    assert not report.changed and "sx.rotary_embedding" not in ops_of(module)
    assert [d.reason for d in report.declines] == ([] if reason is None else [reason])


def test_queries_keys_and_layers_share_their_tables():
    def two(q: Any, k: Any, f: Any) -> Any:
        cos, sin = tables(f)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        return turned(sx.tanh(q), cos, sin), k

    ops = ops_of(recognized(two, "q: f32[b, 4, s, 8], k: f32[b, 2, s, 8], f: f32[1, s, 4]"))
    assert ops.count("sx.rotary_embedding") == 3 and ops.count("sx.cos") == 1 and ops.count("sx.expand") == 2


def test_three_executions_of_what_it_makes():
    module = recognized(*FORMS["one-for-all"])
    x, f = RNG.standard_normal((2, 3, 5, 8)).astype(np.float32), ANGLES[None]
    three_executions(module, [x, f])
