"""Constant, in all the ways in which it states its value, and ConstantOfShape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.tensors import array_from_proto
from sardonyx.dialects.sx.constant import ConstantOp, dense_attribute
from sardonyx.dialects.sx.strings import string_array
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext

_PLAIN: dict[str, Any] = {
    "value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64,
}  # fmt: skip


@adapts("Constant")
def _constant(n: NodeContext) -> Sequence[SSAValue]:
    stated = [a for a in n.node.attribute if a.name.startswith(("value", "sparse_value"))]
    if len(stated) != 1:
        raise InvalidArgumentError(f"a Constant has one value, not {len(stated)}")
    attribute = stated[0]
    if attribute.name == "value":
        array = n.attr("value")
    elif attribute.name == "sparse_value":
        array = dense_of_sparse(attribute.sparse_tensor, "attribute 'sparse_value'")
    elif attribute.name in _PLAIN:
        array = np.array(n.attr(attribute.name), _PLAIN[attribute.name])
    else:
        texts = n.attr(attribute.name)
        array = string_array([texts], ()) if isinstance(texts, str) else string_array(texts, (len(texts),))
    name = n.node.output[0] or "constant"
    return [n.importer.add(ConstantOp.of(array, n.importer.store, name, n.location)).results[0]]


@adapts("ConstantOfShape")
def _constant_of_shape(n: NodeContext) -> Sequence[SSAValue]:
    value = n.attr("value")
    if value is not None and value.size != 1:
        raise InvalidArgumentError(f"its value has {value.size} elements, not one")
    return [n("constant_of_shape", n.required(0), value=None if value is None else dense_attribute(value.reshape(1)))]


def dense_of_sparse(proto: onnx.SparseTensorProto, where: str) -> np.ndarray[Any, Any]:
    """The array of a sparse tensor.

    Raises:
        InvalidArgumentError: Its dims, values and indices disagree.
    """
    values = array_from_proto(proto.values, where)
    indices = array_from_proto(proto.indices, where)
    shape = tuple(proto.dims)
    if any(d < 0 for d in shape) or values.ndim != 1 or np.prod([float(d) for d in shape]) > 2**31:
        raise InvalidArgumentError(f"{where}: dims {list(shape)} are wrong or too large for a sparse tensor")
    if indices.ndim == 2 and indices.shape == (len(values), len(shape)):
        inside = bool(((indices >= 0) & (indices < np.array(shape, np.int64))).all())
        flat = np.ravel_multi_index(tuple(indices.T), shape) if inside and len(values) else np.zeros(0, np.int64)
    else:
        inside = indices.shape == (len(values),) and bool(((indices >= 0) & (indices < np.prod(shape))).all())
        flat = indices
    if not inside:
        raise InvalidArgumentError(f"{where}: its indices do not fit its dims and values")
    out = np.zeros(shape, values.dtype)
    out.reshape(-1)[flat] = values
    return out
