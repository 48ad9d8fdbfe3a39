"""Operators of ai.onnx.ml with tables, which become properties that are dense or weights; trees are checked as such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.sx.linear_ml import TABLES as SVM_TABLES, SvmClassifierOp, SvmRegressorOp
from sardonyx.dialects.sx.ml_encode import LabelEncoderOp
from sardonyx.dialects.sx.ml_support import table_attribute
from sardonyx.dialects.sx.tree import TreeEnsembleClassifierOp, TreeEnsembleOp, TreeEnsembleRegressorOp, TreeOp
from sardonyx.dialects.sx.tree_eval import MODES, TreeFault
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext

_FLOATS = frozenset(
    {
        "nodes_values", "nodes_hitrates", "base_values", "class_weights", "target_weights", "keys_floats",
        "values_floats", *SVM_TABLES,
    }
)  # fmt: skip


@adapts("TreeEnsemble", "TreeEnsembleRegressor", "TreeEnsembleClassifier", domain="ai.onnx.ml")
def _trees(n: NodeContext) -> Sequence[SSAValue]:
    classes: dict[str, type[TreeOp]] = {
        "TreeEnsemble": TreeEnsembleOp,
        "TreeEnsembleRegressor": TreeEnsembleRegressorOp,
        "TreeEnsembleClassifier": TreeEnsembleClassifierOp,
    }
    cls = classes[n.node.op_type]
    properties: dict[str, Any] = {}
    for prop in cls.get_irdl_definition().properties:
        if prop in cls.TABLES:
            properties[prop] = _table(n, prop)
        else:
            properties[prop] = n.attr(prop) or None if prop.startswith("classlabels") else n.attr(prop)
    op = n.importer.add(cls.make(n.required(0), location=n.location, **properties))
    try:
        op.forest()
    except TreeFault as error:
        raise InvalidArgumentError(str(error)) from None
    return op.results


def _table(n: NodeContext, name: str) -> Attribute | None:
    """The array of an attribute, or of its form with elements of another dtype (`…_as_tensor`)."""
    value = n.attr(name)
    if value is None or (isinstance(value, tuple) and not value):
        value = n.attr(f"{name}_as_tensor") if n.has(f"{name}_as_tensor") else None
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        array = value
    elif value and isinstance(value[0], str):
        array = np.array([_mode(v) for v in value], np.uint8)
    elif name in _FLOATS:
        array = np.array(value, np.float32)
    else:
        array = np.array(value, np.int64)
    return table_attribute(array, n.importer.store, f"{n.node.name or n.node.output[0]}.{name}")


_BY_NAME = {name: index for index, name in enumerate(MODES)}


def _mode(name: str) -> int:
    found = _BY_NAME.get(name)
    if found is None or name == "BRANCH_MEMBER":
        raise InvalidArgumentError(f"its attribute 'nodes_modes' has '{name}', which is no mode")
    return found


@adapts("SVMRegressor", "SVMClassifier", domain="ai.onnx.ml")
def _svm(n: NodeContext) -> Sequence[SSAValue]:
    cls = SvmRegressorOp if n.node.op_type == "SVMRegressor" else SvmClassifierOp
    properties: dict[str, Any] = {}
    for prop in cls.get_irdl_definition().properties:
        if prop in SVM_TABLES:
            properties[prop] = _table(n, prop)
        else:
            properties[prop] = n.attr(prop) if n.attr(prop) != () else None
    op = n.importer.add(cls.make(n.required(0), location=n.location, **properties))
    return op.results


@adapts("LabelEncoder", domain="ai.onnx.ml", until=1)
def _label_encoder_1(n: NodeContext) -> Sequence[SSAValue]:
    """A list of names: strings become their numbers, numbers the strings."""
    names, x = n.attr("classes_strings") or (), n.required(0)
    numbers = table_attribute(np.arange(len(names)), n.importer.store, "labels")
    forward = dtype_of(x) != int64
    keys = {"keys_strings": names} if forward else {"keys_int64s": numbers}
    values = {"values_int64s": numbers} if forward else {"values_strings": names}
    defaults = {"default_int64": n.attr("default_int64"), "default_string": n.attr("default_string")}
    return [n("label_encoder", x, **keys, **values, **defaults)]


@adapts("LabelEncoder", domain="ai.onnx.ml")
def _label_encoder(n: NodeContext) -> Sequence[SSAValue]:
    properties: dict[str, Any] = {}
    for prop in LabelEncoderOp.get_irdl_definition().properties:
        value = n.attr(prop) if n.has(prop) else None
        if value is None or (isinstance(value, tuple) and not value):
            continue
        if prop.endswith("_strings") or prop.startswith("default_") and prop != "default_tensor":
            properties[prop] = value
        else:
            properties[prop] = _table(n, prop)
    return [n("label_encoder", n.required(0), **properties)]


@adapts("CategoryMapper", domain="ai.onnx.ml")
def _category_mapper(n: NodeContext) -> Sequence[SSAValue]:
    names = ("cats_int64s", "cats_strings", "default_int64", "default_string")
    return [n("category_mapper", n.required(0), **{name: n.attr(name) for name in names})]
