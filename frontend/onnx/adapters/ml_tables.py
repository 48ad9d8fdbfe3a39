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
from sardonyx.frontend.onnx.node import NodeContext, attribute_value


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
    """The array of an attribute, or of its form with elements of another dtype (`…_as_tensor`).

    Lists of millions of entries are common, so they become arrays without a detour.
    """
    proto = n.stated(name)
    if proto is None or not (proto.HasField("t") or proto.ints or proto.floats or proto.strings):
        proto = n.stated(f"{name}_as_tensor")
    if proto is None:
        return None
    if proto.HasField("t"):
        array = attribute_value(proto)
    elif proto.strings:
        array = _modes(proto.strings)
    elif proto.floats:
        array = np.fromiter(proto.floats, np.float32, len(proto.floats))
    elif proto.ints:
        array = np.fromiter(proto.ints, np.int64, len(proto.ints))
    else:
        return None
    return table_attribute(array, n.importer.store, f"{n.node.name or n.node.output[0]}.{name}")


_BY_NAME = {name.encode(): index for index, name in enumerate(MODES) if name != "BRANCH_MEMBER"}


def _modes(names: Sequence[bytes]) -> np.ndarray[Any, Any]:
    try:
        return np.fromiter(map(_BY_NAME.__getitem__, names), np.uint8, len(names))
    except KeyError as error:
        shown = error.args[0].decode(errors="replace")
        raise InvalidArgumentError(f"its attribute 'nodes_modes' has '{shown}', which is no mode") from None


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
