"""Models of one operator of com.microsoft for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_models import info, model, roundtrip

RNG = np.random.default_rng(11)


def sample(*shape: int, scale: float = 1.0) -> Any:
    return (RNG.normal(size=shape) * scale).astype("f4")


def one(op: str, feeds: dict[str, Any], outputs: str, weights: str = "", domain: str = "com.microsoft", **attributes):
    """A model of one node; `_` in the feeds' names stands for an input that is left out.

    The first two dims of float inputs that are not weights are symbols of their size.
    """
    names = ["" if k.startswith("_") else k for k in feeds]
    outs = ["" if o == "_" else o for o in outputs.split()]
    made = helper.make_node(op, names, outs, name="it", domain=domain, **attributes)
    given = {k: np.asarray(v) for k, v in feeds.items() if not k.startswith("_")}
    fixed = {k: v for k, v in given.items() if k in weights.split()}
    inputs = []
    for k, v in given.items():
        if k not in fixed:
            dims = [f"n{d}" if i < 2 and v.ndim > 1 else d for i, d in enumerate(v.shape)]
            inputs.append(info(k, dims, helper.np_dtype_to_tensor_dtype(v.dtype)))
    shaped = model([made], inputs, [helper.make_empty_tensor_value_info(o) for o in outs if o], fixed, 17, 8,
                   domains={"com.microsoft": 1})  # fmt: skip
    return shaped, {k: v for k, v in given.items() if k not in fixed}


def typed(proto: onnx.ModelProto, results: list[Any]) -> onnx.ModelProto:
    """With outputs of the types that were computed, and no shapes."""
    for out, array in zip(proto.graph.output, results, strict=True):
        out.CopyFrom(info(out.name, None, helper.np_dtype_to_tensor_dtype(array.dtype)))
    return proto


def stays_opaque(op: str, feeds: dict[str, Any], outputs: str = "y", **options: Any) -> None:
    """A form that we don't know passes through unchanged, and no half of it is left."""
    proto, _ = one(op, feeds, outputs, **options)
    proto = typed(proto, [np.zeros(1, "f4") for _ in proto.graph.output])
    again = roundtrip(proto)
    assert [n.op_type for n in again.graph.node] == [op] and again.graph.node[0].domain == "com.microsoft"
    assert [i.version for i in again.opset_import if i.domain == "com.microsoft"] == [1]
