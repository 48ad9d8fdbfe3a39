"""Single nodes of ONNX put into a graph that is being built: for functions of users that speak ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, SSAValue

from sardonyx.backends.onnx.options import DEFAULT_OPSET
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.importer import Importer, Scope


def add_node(
    block: Block,
    store: WeightStore,
    op_type: str,
    domain: str,
    inputs: Sequence[SSAValue | None],
    outputs: int,
    attributes: Mapping[str, Any],
    *,
    opsets: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    location: LocationAttr | None = None,
) -> list[SSAValue]:
    """Import one node at the end of a block; returns what it results in.

    Args:
        block: Where the ops go.
        store: Where constants go.
        op_type: The operator.
        domain: Its domain, '' for ai.onnx.
        inputs: Values of the graph; None for one that is left out.
        outputs: How many results are wanted.
        attributes: Numbers, texts, lists of these, or arrays.
        opsets: The versions of domains; ai.onnx is at the default one unless stated.
        functions: Model-local functions, which the node may call.
        location: Where the ops come from.

    Raises:
        InvalidArgumentError: The node breaks the operator's schema.
        UnsupportedError: It uses what Sardonyx has not.
    """
    names = ["" if v is None else f"in{i}" for i, v in enumerate(inputs)]
    results = [f"out{i}" for i in range(outputs)]
    given: dict[str, Any] = {
        k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()
    }
    try:
        node = helper.make_node(op_type, names, results, domain=domain, **given)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the attributes of {op_type} are wrong: {error}") from None
    versions = {"": DEFAULT_OPSET, **(opsets or {})}
    versions.setdefault(domain, 1)
    model = onnx.ModelProto(ir_version=10)
    model.opset_import.extend(helper.make_opsetid(d, v) for d, v in versions.items())
    model.functions.extend(functions)
    importer = Importer(model)
    importer.block, importer.store = block, store
    scope = Scope({n: v for n, v in zip(names, inputs) if v is not None}, importer.opsets)
    last = block.last_op
    importer.nodes([node], scope)
    made = block.first_op if last is None else last.next_op
    while made is not None and location is not None:
        made.location = location
        made = made.next_op
    return [scope.values[name] for name in results]
