"""QuantizeLinear and DequantizeLinear: dtypes are attributes, and one axis was the second before opset 13."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.dtypes import DType
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext


def _dtype(n: NodeContext, name: str) -> DType | None:
    """The dtype that an attribute states; 0 states none."""
    number = n.attr(name, 0)
    return dtype_from_onnx(number, f"its attribute '{name}'") if number else None


@adapts("QuantizeLinear")
def _quantize(n: NodeContext) -> Sequence[SSAValue]:
    return [
        n(
            "quantize_linear", n.required(0), n.required(1), n.input(2), axis=n.attr("axis", 1),
            block_size=n.attr("block_size", 0), output_dtype=_dtype(n, "output_dtype"),
            precision=_dtype(n, "precision"), saturate=bool(n.attr("saturate", 1)),
        )
    ]  # fmt: skip


@adapts("DequantizeLinear")
def _dequantize(n: NodeContext) -> Sequence[SSAValue]:
    return [
        n(
            "dequantize_linear", n.required(0), n.required(1), n.input(2), axis=n.attr("axis", 1),
            block_size=n.attr("block_size", 0), output_dtype=_dtype(n, "output_dtype"),
        )
    ]  # fmt: skip
