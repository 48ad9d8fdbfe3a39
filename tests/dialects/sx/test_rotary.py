"""`sx.rotary_embedding`: against onnxruntime and plain NumPy, natively, and in all opsets."""

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

ROTARY = op("rotary_embedding")
Rotary = BY_NAME["sx.rotary_embedding"]
RNG = np.random.default_rng(12)


def sample(*extents: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=extents).astype(dtype)


X, COS, SIN = sample(2, 3, 5, 6), sample(2, 5, 3), sample(2, 5, 3)
CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "halves": ((X, COS, SIN), {}),
    "neighbours": ((X, COS, SIN), {"interleaved": True}),
    "a-part": ((X, COS[..., :2], SIN[..., :2]), {"rotary_embedding_dim": 4}),
    "a-part-neighbours": ((X, COS[..., :1], SIN[..., :1]), {"rotary_embedding_dim": 2, "interleaved": True}),
    "one": ((X[:1, :1, :1], COS[:1, :1], SIN[:1, :1]), {}),
}


def plain(x: Any, cos: Any, sin: Any, interleaved: bool = False, rotary_embedding_dim: int = 0) -> Any:
    """The same in NumPy, pair by pair, by complex numbers."""
    out = x.astype(np.float64)
    count = rotary_embedding_dim or x.shape[3]
    for i in range(count // 2):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + count // 2)
        pair = x[..., a].astype(np.complex128) + 1j * x[..., b]
        pair = pair * (cos[:, None, :, i] + 1j * sin[:, None, :, i])
        out[..., a], out[..., b] = pair.real, pair.imag
    return out


@pytest.mark.parametrize("name", CASES)
def test_values(name: str):
    slots, properties = CASES[name]
    np.testing.assert_allclose(run(ROTARY, *slots, **properties), plain(*slots, **properties), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("opset", [13, 23])
def test_exported(opset: int):
    """23 has the operator; below it stands in parts. onnxruntime is the judge."""
    for name, (slots, properties) in CASES.items():
        for mode in ("static", "dynamic"):
            graph = build([case(Rotary, *slots, **properties)], mode)
            exported = export(graph.module, WeightStore(), ExportOptions(opset_version=opset, optimize=False))
            proto = whole_proto(exported)
            found = {n.op_type for n in proto.graph.node}
            assert ("RotaryEmbedding" in found) == (opset >= 23), found
            feeds = {v.name: a for v, a in zip(proto.graph.input, graph.feeds, strict=True)}
            want = plain(*slots, **properties)
            np.testing.assert_allclose(run_ort(proto, feeds)[0], want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_natively():
    check_all(
        [case(Rotary, *slots, **properties) for slots, properties in CASES.values()], modes=("dynamic", "constant")
    )
    half = [case(Rotary, *(a.astype("float16") for a in (X, COS, SIN)))]
    empty = [
        case(Rotary, X[:0], COS[:0], SIN[:0]),
        case(Rotary, X[:, :, :0], COS[:, :0], SIN[:, :0], interleaved=True),
        case(Rotary, X[:, :0], COS, SIN),
        case(Rotary, X[..., :0], COS[..., :0], SIN[..., :0]),
    ]
    check_all([*half, *empty], modes=("static",))


def test_dims_and_text():
    x, c, s = value("float32", ["b", 4, "s", 8]), value("float32", ["b", "s", 4]), value("float32", ["b", "s", 4])
    made = Rotary.make(x, c, s, interleaved=True)
    assert shape(made) == ["b", "4", "s", "8"] and "interleaved = true" in round_trip(made)
    assert shape(Rotary.make(value("float32", None), c, s)) is None


@pytest.mark.parametrize(
    ("dims", "properties", "constraint"),
    [
        (([2, 3, 6], [2, 3, 3], [2, 3, 3]), {}, "C2"),
        (([2, 3, 5, 6], [2, 1, 5, 3], [2, 5, 3]), {}, "C2"),
        (([2, 3, 5, 6], [1, 5, 3], [2, 5, 3]), {}, "C3"),
        (([2, 3, 5, 6], [2, 5, 3], [2, 3, 3]), {}, "C3"),
        (([2, 3, 5, 6], [2, 5, 6], [2, 5, 3]), {}, "C4"),
        (([2, 3, 5, 6], [2, 5, 4], [2, 5, 4]), {"rotary_embedding_dim": 8}, "C4"),
        (([2, 3, 5, 6], [2, 5, 1], [2, 5, 1]), {"rotary_embedding_dim": 3}, "C4"),
        (([2, 3, 5, 5], [2, 5, 2], [2, 5, 2]), {}, "C4"),
    ],
)
def test_constraints(dims: Any, properties: Any, constraint: str):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        Rotary.make(*(value("float32", d) for d in dims), **properties)


def test_dtypes_and_what_data_breaks():
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        Rotary.make(value("float32", [1, 1, 2, 2]), *[value("float16", [1, 2, 1])] * 2)
    with pytest.raises(InferenceError, match=r"\(C1\)"):
        Rotary.make(value("float64", [1, 1, 2, 2]), *[value("float64", [1, 2, 1])] * 2)
    unranked = Rotary.make(*[value("float32", None)] * 3)
    for slots in ((X, COS[:1], SIN), (X, COS, SIN[:, :2]), (X[..., :5], COS[..., :2], SIN[..., :2]), (X[0], COS, SIN)):
        with pytest.raises(ExecutionError):
            unranked.evaluate(EvalContext(), *slots)
