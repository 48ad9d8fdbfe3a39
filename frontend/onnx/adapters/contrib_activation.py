"""Fused activations and sums of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.frontend.onnx.contrib import add, contrib
from sardonyx.frontend.onnx.node import NodeContext


@contrib("Gelu")
def _gelu(n: NodeContext) -> Sequence[SSAValue]:
    return [n("gelu", n.required(0))]


@contrib("BiasGelu")
def _bias_gelu(n: NodeContext) -> Sequence[SSAValue]:
    return [n("gelu", n("add", n.required(0), n.required(1)))]


@contrib("FastGelu")
def _fast_gelu(n: NodeContext) -> Sequence[SSAValue]:
    return [n("gelu", add(n, n.required(0), n.input(1)), approximate="tanh")]


@contrib("QuickGelu")
def _quick_gelu(n: NodeContext) -> Sequence[SSAValue]:
    """x * sigmoid(alpha * x)"""
    return [n("swish", n.required(0), alpha=n.attr("alpha", 1.702))]


@contrib("BiasAdd")
def _bias_add(n: NodeContext) -> Sequence[SSAValue]:
    return [n("add", n("add", n.required(0), n.required(1)), n.required(2))]


@contrib("BiasSplitGelu")
def _bias_split_gelu(n: NodeContext) -> Sequence[SSAValue]:
    """The first half of x + bias, times the GELU of the second one."""
    left, right = n.op("split", n("add", n.required(0), n.required(1)), axis=-1, num_outputs=2, results=2).results
    return [n("mul", left, n("gelu", right))]
