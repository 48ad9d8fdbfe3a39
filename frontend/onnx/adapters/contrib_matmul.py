"""Fused products and convolutions of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.sx import BY_ONNX
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.contrib import add, contrib
from sardonyx.frontend.onnx.node import NodeContext, rank_of


def transposed(n: NodeContext, x: SSAValue) -> SSAValue:
    """With the last two axes changed; a vector has only one."""
    rank = rank_of(x)
    if rank is None:
        raise n.unsupported("an input has an unknown rank")
    if rank < 2:
        return x
    return n("transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


@contrib("FusedMatMul", "TransposeMatMul")
def _fused_matmul(n: NodeContext) -> Sequence[SSAValue]:
    """alpha * A B, each transposed where asked for; the rows may also stand before the batches."""
    a, b = n.required(0), n.required(1)
    a = _rows_last(n, a) if n.attr("transBatchA", 0) else a
    b = _rows_last(n, b) if n.attr("transBatchB", 0) else b
    a = transposed(n, a) if n.attr("transA", 0) else a
    b = transposed(n, b) if n.attr("transB", 0) else b
    out, alpha = n("matmul", a, b), n.attr("alpha", 1.0)
    return [out if alpha == 1.0 else n("mul", out, n.constant(alpha, dtype_of(out)))]


def _rows_last(n: NodeContext, x: SSAValue) -> SSAValue:
    """[M, …, K] as […, M, K]."""
    rank = rank_of(x)
    if rank is None:
        raise n.unsupported("an input has an unknown rank")
    return n("transpose", x, perm=(*range(1, rank - 1), 0, rank - 1)) if rank > 2 else x


@contrib("FusedGemm")
def _fused_gemm(n: NodeContext) -> Sequence[SSAValue]:
    out = n(
        "gemm", n.required(0), n.required(1), n.input(2), alpha=n.attr("alpha", 1.0), beta=n.attr("beta", 1.0),
        transA=bool(n.attr("transA", 0)), transB=bool(n.attr("transB", 0)),
    )  # fmt: skip
    names = [f"activation_{name}" for name in ("alpha", "beta", "gamma")]
    return [_activated(n, out, [n.attr(name) for name in names if n.has(name)])]


@contrib("FusedConv")
def _fused_conv(n: NodeContext) -> Sequence[SSAValue]:
    """The activation of a convolution, with a further tensor added to it before."""
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    out = n("conv", n.required(0), n.required(1), n.input(2), **{a: n.attr(a) for a in names if n.has(a)})
    return [_activated(n, add(n, out, n.input(3)), list(n.attr("activation_params") or ()))]


_PARAMETERS = {"Relu": (), "Sigmoid": (), "Tanh": (), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
               "Clip": ("min", "max"), "HardSwish": (), "Elu": ("alpha",), "ThresholdedRelu": ("alpha",),
               "Selu": ("alpha", "gamma"), "Softplus": (), "Softsign": (), "ParametricSoftplus": ("alpha", "beta"),
               "ScaledTanh": ("alpha", "beta")}  # fmt: skip


def _activated(n: NodeContext, x: SSAValue, parameters: list[float]) -> SSAValue:
    name = n.attr("activation") or ""
    if not name:
        return x
    known = _PARAMETERS.get(name)
    if known is None:
        raise n.unsupported(f"its activation '{name}' is not supported")
    if name == "Clip":
        low, high = (n.constant(np.float32(p), dtype_of(x)) for p in (parameters + [None, None])[:2])
        return n("clip", x, low, high)
    if name in ("ParametricSoftplus", "ScaledTanh"):  # alpha * f(beta * x)
        if len(parameters) < 2:
            raise InvalidArgumentError(f"its activation '{name}' has no alpha or no beta")
        outer, inner = (n.constant(np.float32(p), dtype_of(x)) for p in parameters[:2])
        return n("mul", n("softplus" if name == "ParametricSoftplus" else "tanh", n("mul", x, inner)), outer)
    op = BY_ONNX["", name].name.removeprefix("sx.")
    return n(op, x, **{key: float(value) for key, value in zip(known, parameters)})
