"""Tree ensembles: their tables become properties that are dense or weights, and are held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from sardonyx.dialects.sx.ml_support import table_attribute
from sardonyx.dialects.sx.tree import TreeEnsembleClassifierOp, TreeEnsembleOp, TreeEnsembleRegressorOp, TreeOp
from sardonyx.dialects.sx.tree_eval import MODES, TreeFault
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext

_FLOATS = frozenset({"nodes_values", "nodes_hitrates", "base_values", "class_weights", "target_weights"})


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
