"""Reductions whose axes were an attribute, and the softmax family before opset 13."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.sx import BY_ONNX
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext, rank_of

_OTHERS = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
           "ReduceLogSumExp", "ReduceSumSquare")  # fmt: skip


def _by_attribute(n: NodeContext) -> Sequence[SSAValue]:
    axes = n.attr("axes")
    operand = None if axes is None else n.constant(axes)
    name = BY_ONNX["", n.node.op_type].name.removeprefix("sx.")
    return [n(name, n.required(0), operand, keepdims=bool(n.attr("keepdims", 1)))]


adapts("ReduceSum", until=12)(_by_attribute)
adapts(*_OTHERS, until=17)(_by_attribute)


@adapts("Softmax", "LogSoftmax", "Hardmax", until=12)
def _softmax_of_a_matrix(n: NodeContext) -> Sequence[SSAValue]:
    """The operand is taken as a matrix, cut in two at `axis`; today's op does that where one axis at most isn't 1."""
    x = n.required(0)
    axis, rank = n.attr("axis", 1), rank_of(x)
    name = BY_ONNX["", n.node.op_type].name.removeprefix("sx.")
    if rank is not None:
        if not -rank <= axis <= rank:
            raise InvalidArgumentError(f"its axis {axis} is out of range for rank {rank}")
        joined = [] if axis == rank else list(range(axis % rank, rank))
        long = [a for a in joined if dims_of(x)[a].static_value != 1] or joined[-1:]
        if len(long) == 1:
            return [n(name, x, axis=long[0])]
    return [n("reshape", n(name, n("flatten", x, axis=axis), axis=-1), n("shape", x))]
