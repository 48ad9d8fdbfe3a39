"""`sx.attention`: against onnxruntime and plain NumPy, natively, and in all opsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import run_ort
from op_case import round_trip, run, shape, value
from sized import op
from three_ways import build, case, check_all

from sardonyx.backends.onnx.build import build as export
from sardonyx.backends.onnx.options import ExportOptions
from sardonyx.backends.onnx.write import whole_proto
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import ExecutionError, InferenceError

ATTENTION = op("attention")
Attention = BY_NAME["sx.attention"]
RNG = np.random.default_rng(11)


def sample(*extents: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=extents).astype(dtype)


Q, K, V = sample(2, 4, 3, 5), sample(2, 4, 7, 5), sample(2, 4, 7, 6)
SEEN = RNG.random((3, 7)) < 0.6
SEEN[0], SEEN[1, 0] = False, True
ADDED = np.where(RNG.random((2, 1, 3, 7)) < 0.7, sample(2, 1, 3, 7), -np.inf).astype(np.float32)
ADDED[1, 0, 2] = -np.inf
FLAT = (sample(2, 3, 20), sample(2, 7, 10), sample(2, 7, 12))
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "plain": ((Q, K, V), {}),
    "scale": ((Q, K, V, None), {"scale": 0.3}),
    "bool": ((Q, K, V, SEEN), {}),
    "float": ((Q, K, V, ADDED), {"scale": 1.0}),
    "causal": ((Q, K, V), {"is_causal": True}),
    "causal-bool": ((Q, K, V, SEEN), {"is_causal": True}),
    "causal-float": ((Q, K, V, ADDED), {"is_causal": True}),
    "groups": ((Q, K[:, :2], V[:, :2]), {}),
    "flat": (FLAT, {"q_num_heads": 4, "kv_num_heads": 2}),
    "flat-bool": ((*FLAT, SEEN), {"q_num_heads": 4, "kv_num_heads": 2}),
}


def plain(q: Any, k: Any, v: Any, mask: Any = None, is_causal: bool = False, scale: float | None = None, **heads: Any):
    """The same in NumPy, one head and one row at a time."""
    if heads:
        n, m = heads["q_num_heads"], heads["kv_num_heads"]
        q, k, v = (a.reshape(*a.shape[:2], c, -1).swapaxes(1, 2) for a, c in ((q, n), (k, m), (v, m)))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    group = q.shape[1] // k.shape[1]
    full = None if mask is None else np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
    for b, h, i in np.ndindex(*q.shape[:3]):
        row = k[b, h // group].astype(np.float64) @ q[b, h, i] * (q.shape[3] ** -0.5 if scale is None else scale)
        see = np.arange(k.shape[2]) <= i if is_causal else np.ones(k.shape[2], bool)
        if full is not None and full.dtype == bool:
            see = see & full[b, h, i]
        elif full is not None:
            row, see = row + full[b, h, i], see & (full[b, h, i] > -np.inf)
        if see.any():
            power = np.where(see, np.exp(row - row[see].max()), 0)
            out[b, h, i] = power / power.sum() @ v[b, h // group].astype(np.float64)
    return out.swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1) if heads else out


@pytest.mark.parametrize("name", CASES)
def test_values(name: str):
    slots, properties = CASES[name]
    np.testing.assert_allclose(run(ATTENTION, *slots, **properties), plain(*slots, **properties), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("opset", [13, 24])
def test_exported(opset: int):
    """24 has the operator; below it stands in parts. onnxruntime is the judge."""
    for name, (slots, properties) in CASES.items():
        graph = build([case(Attention, *slots, **properties)], "dynamic")
        exported = export(graph.module, WeightStore(), ExportOptions(opset_version=opset, optimize=False))
        proto = whole_proto(exported)
        found = {n.op_type for n in proto.graph.node}
        assert ("Attention" in found) == (opset >= 24), found
        feeds = {v.name: a for v, a in zip(proto.graph.input, graph.feeds, strict=True)}
        want = plain(*slots, **properties)
        np.testing.assert_allclose(run_ort(proto, feeds)[0], want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_natively():
    check_all(
        [case(Attention, *slots, **properties) for slots, properties in CASES.values()], modes=("dynamic", "constant")
    )
    half = [case(Attention, *(a.astype(t) for a in (Q, K, V)), scale=0.5) for t in ("float16", "float64")]
    empty = [
        case(Attention, Q[:0], K[:0], V[:0]),
        case(Attention, Q[:, :, :0], K, V, is_causal=True),
        case(Attention, Q, K[:, :, :0], V[:, :, :0]),
    ]
    check_all([*half, *empty], modes=("static",))


def test_dims_and_text():
    q, k, v = (value("float32", dims) for dims in (["b", 4, "s", 8], ["b", 2, "t", 8], ["b", 2, "t", "e"]))
    assert shape(Attention.make(q, k, v)) == ["b", "4", "s", "e"]
    flat = [value("float32", ["b", "s", 32]), value("float32", ["b", "t", 16]), value("float32", ["b", "t", 16])]
    made = Attention.make(*flat, q_num_heads=4, kv_num_heads=2, is_causal=True)
    assert shape(made) == ["b", "s", "32"] and "is_causal = true" in round_trip(made)
    assert shape(Attention.make(value("float32", None), k, v)) is None


@pytest.mark.parametrize(
    ("dims", "properties", "constraint"),
    [
        (([2, 4, 3, 5], [2, 3, 7, 5], [2, 3, 7, 5]), {}, "C3"),
        (([2, 4, 3, 5], [2, 4, 7, 6], [2, 4, 7, 5]), {}, "C3"),
        (([2, 4, 3, 5], [2, 4, 7, 5], [2, 4, 8, 5]), {}, "C3"),
        (([2, 4, 3, 5], [3, 4, 7, 5], [3, 4, 7, 5]), {}, "C3"),
        (([2, 3, 5], [2, 7, 5], [2, 7, 5]), {}, "C2"),
        (([2, 3, 5], [2, 7, 5], [2, 7, 5]), {"q_num_heads": 2, "kv_num_heads": 1}, "C3"),
        (([2, 3, 6], [2, 7, 6], [2, 7, 6]), {"q_num_heads": 2}, "C3"),
        (([2, 4, 3, 5], [2, 4, 7, 5], [2, 4, 7, 5], [7]), {}, "C2"),
        (([2, 4, 3, 5], [2, 4, 7, 5], [2, 4, 7, 5], [3, 6]), {}, "C4"),
    ],
)
def test_constraints(dims: Any, properties: Any, constraint: str):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        Attention.make(*(value("float32", d) for d in dims), **properties)


def test_dtypes_and_what_data_breaks():
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        Attention.make(value("float32", [1, 1, 2, 2]), *[value("float64", [1, 1, 2, 2])] * 2)
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        Attention.make(*[value("float32", [1, 1, 2, 2])] * 3, value("int64", [2, 2]))
    unranked = Attention.make(*[value("float32", None)] * 3)
    for slots in ((Q, K[:, :3], V[:, :3]), (Q, K, V[:1]), (Q, K[:, :0], V[:, :0])):
        with pytest.raises(ExecutionError):
            unranked.evaluate(EvalContext(), *slots, None)
