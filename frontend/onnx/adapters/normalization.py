"""BatchNormalization's old forms, and GroupNormalization with a scale per group."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext


@adapts("BatchNormalization", until=13)
def _batch_normalization(n: NodeContext) -> Sequence[SSAValue]:
    """Before opset 7 `is_test` chose the mode, then the number of outputs did; `spatial` came to an end with 8."""
    training = not n.attr("is_test", 0) if n.opset < 7 else any(n.wanted(i) for i in range(1, 5))
    if training and (n.wanted(3) or n.wanted(4)):
        raise n.unsupported("its outputs saved_mean and saved_var have no counterpart today")
    operands = [n.required(i) for i in range(5)]
    if not n.attr("spatial", 1):
        if training:
            raise n.unsupported("training with spatial=0 is not supported")
        return [_per_activation(n, *operands)]
    op = n.op("batch_norm", *operands, epsilon=n.attr("epsilon"), momentum=n.attr("momentum"), training_mode=training)
    return op.results if training else op.results[:1]


def _per_activation(
    n: NodeContext, x: SSAValue, scale: SSAValue, bias: SSAValue, mean: SSAValue, var: SSAValue
) -> SSAValue:
    """Statistics of each element of a sample."""
    epsilon = n.constant(n.attr("epsilon"), dtype_of(x))
    deviation = n("sqrt", n("add", var, epsilon))
    return n("add", n("mul", n("div", n("sub", x, mean), deviation), scale), bias)


@adapts("GroupNormalization", until=20)
def _group_normalization(n: NodeContext) -> Sequence[SSAValue]:
    """Scale and bias were per group; each is repeated for the channels of its group."""
    x = n.required(0)
    groups = n.attr("num_groups")
    channels = dims_of(x)[1].static_value if len(dims_of(x)) > 1 else None
    if channels is None:
        raise n.unsupported("the number of channels is not known")
    if groups < 1 or channels % groups:
        raise InvalidArgumentError(f"{channels} channels do not make {groups} groups")

    def per_channel(value: SSAValue) -> SSAValue:
        column = n("reshape", value, n.constant([groups, 1]))
        return n("reshape", n("expand", column, n.constant([groups, channels // groups])), n.constant([-1]))

    scale, bias = per_channel(n.required(1)), per_channel(n.required(2))
    return [n("group_norm", x, scale, bias, epsilon=n.attr("epsilon"), num_groups=groups)]
