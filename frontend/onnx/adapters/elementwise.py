"""Elementwise operators: broadcasting by attribute (before opset 7), Clip, PRelu, Cast, Dropout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import bool_
from sardonyx.dialects.sx import BY_ONNX
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext, constant_item, rank_of


@adapts("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less", until=6)
def _broadcast_by_attribute(n: NodeContext) -> Sequence[SSAValue]:
    """`broadcast=1`: the second operand's axes are some of the first's, from `axis` on (the last ones without it)."""
    a, b = n.required(0), n.required(1)
    axis = n.attr("axis")
    ranks = rank_of(a), rank_of(b)
    if n.attr("broadcast", 0) and axis is not None and ranks[1] != 0:
        if ranks[0] is None or ranks[1] is None:
            raise n.unsupported("its operands have no known rank, which the attribute 'axis' needs")
        axis = axis + ranks[0] if axis < 0 else axis
        behind = ranks[0] - axis - ranks[1]
        if axis < 0 or behind < 0:
            raise InvalidArgumentError(f"its axis {axis} does not fit ranks {ranks[0]} and {ranks[1]}")
        if behind:
            b = n("unsqueeze", b, n.constant([ranks[1] + i for i in range(behind)]))
    name = BY_ONNX["", n.node.op_type].name.removeprefix("sx.")
    return [n(name, a, b)]


@adapts("PRelu", until=6)
def _prelu(n: NodeContext) -> Sequence[SSAValue]:
    """A slope per channel is a vector."""
    x, slope = n.required(0), n.required(1)
    ranks = rank_of(x), rank_of(slope)
    if ranks[1] == 1 and dims_of(slope)[0] != 1:
        if ranks[0] is None:
            raise n.unsupported("its operand has no known rank")
        if ranks[0] > 2:
            slope = n("unsqueeze", slope, n.constant([*range(1, ranks[0] - 1)]))
    return [n("prelu", x, slope)]


@adapts("Clip", until=10)
def _clip_by_attributes(n: NodeContext) -> Sequence[SSAValue]:
    x = n.required(0)
    bounds = [n.constant(n.attr(name), dtype_of(x)) if n.has(name) else None for name in ("min", "max")]
    return [n("clip", x, *bounds)]


@adapts("Clip")
def _clip(n: NodeContext) -> Sequence[SSAValue]:
    """Bounds are scalars; models have them as vectors of one element too."""
    bounds: list[SSAValue | None] = []
    for bound in (n.input(1), n.input(2)):
        if bound is not None and rank_of(bound) == 1 and dims_of(bound)[0] == 1:
            bound = n("squeeze", bound, n.constant([0]))
        bounds.append(bound)
    return [n("clip", n.required(0), *bounds)]


_CAST_NAMES = {"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "STRING": 8,
               "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13}  # fmt: skip


@adapts("Cast")
def _cast(n: NodeContext) -> Sequence[SSAValue]:
    to = n.attr("to")
    number = _CAST_NAMES.get(to.upper(), 0) if isinstance(to, str) else to
    dtype = dtype_from_onnx(number, "its attribute 'to'")
    return [n("cast", n.required(0), to=dtype, saturate=bool(n.attr("saturate", 1)), round_mode=n.attr("round_mode"))]


@adapts("Dropout", until=6)
def _dropout_1(n: NodeContext) -> Sequence[SSAValue]:
    """`is_test` chose the mode, which was training by default; the mask had the operand's dtype."""
    ratio = n.attr("ratio")
    if n.attr("is_test", 0) or not ratio:
        return _keep_all(n)
    x = n.required(0)
    op = n.op("dropout", x, n.constant(ratio, dtype_of(x)), n.constant(True, bool_))
    return [op.results[0], n("cast", op.results[1], to=dtype_of(x))] if n.wanted(1) else op.results[:1]


def _keep_all(n: NodeContext) -> Sequence[SSAValue]:
    """At inference the identity; nothing is dropped, so the mask is true everywhere."""
    x = n.required(0)
    out = [n("identity", x)]
    if n.wanted(1):
        dtype = bool_ if n.opset >= 10 else dtype_of(x)
        out.append(n("constant_of_shape", n("shape", x), value=dense_attribute(np.ones(1, dtype.numpy))))
    return out


adapts("Dropout", until=11)(_keep_all)


@adapts("Dropout")
def _dropout_12(n: NodeContext) -> Sequence[SSAValue]:
    """The mode is an input; a constant one, or a ratio of 0, needs no random numbers."""
    if n.input(2) is None or constant_item(n.input(2)) is False or constant_item(n.input(1)) == 0:
        return _keep_all(n)
    return n.op("dropout", n.required(0), n.input(1), n.input(2), seed=n.attr("seed")).results
