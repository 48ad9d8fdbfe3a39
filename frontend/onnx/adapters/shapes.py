"""Operators on shapes: what was an attribute and became an input."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.generic import import_generically
from sardonyx.frontend.onnx.node import NodeContext, constant_item, rank_of


@adapts("Reshape", until=4)
def _reshape(n: NodeContext) -> Sequence[SSAValue]:
    return [n("reshape", n.required(0), n.constant(n.attr("shape", ())))]


@adapts("Squeeze", until=12)
def _squeeze(n: NodeContext) -> Sequence[SSAValue]:
    axes = n.attr("axes")
    return [n("squeeze", n.required(0), None if axes is None else n.constant(axes))]


@adapts("Unsqueeze", until=12)
def _unsqueeze(n: NodeContext) -> Sequence[SSAValue]:
    return [n("unsqueeze", n.required(0), n.constant(n.attr("axes")))]


@adapts("Squeeze", "Unsqueeze")
def _scalar_axes(n: NodeContext) -> Sequence[SSAValue]:
    """Axes are a vector, but ONNX's own functions give a scalar where there is one."""
    axes = n.input(1)
    if axes is not None and rank_of(axes) == 0:
        n.inputs[1] = n("reshape", axes, n.constant([1]))
    return import_generically(n, "") or ()


@adapts("Range")
def _range(n: NodeContext) -> Sequence[SSAValue]:
    """Bounds are scalars, but ONNX's own functions give vectors of one element."""
    for index in range(3):
        bound = n.required(index)
        if static_shape(bound) == (1,):
            n.inputs[index] = n("reshape", bound, n.constant(()))
    return import_generically(n, "") or ()


@adapts("Slice", until=9)
def _slice(n: NodeContext) -> Sequence[SSAValue]:
    starts, ends, axes = n.attr("starts"), n.attr("ends"), n.attr("axes")
    at = None if axes is None else n.constant(axes)
    return [n("slice", n.required(0), n.constant(starts), n.constant(ends), at)]


@adapts("Pad", until=10)
def _pad(n: NodeContext) -> Sequence[SSAValue]:
    """`pads` was called `paddings` in opset 1."""
    x = n.required(0)
    pads = n.attr("paddings" if n.opset < 2 else "pads")
    value = n.attr("value")
    fill = n.constant(value, dtype_of(x)) if value else None
    return [n("pad", x, n.constant(pads), fill, mode=n.attr("mode", "constant"))]


@adapts("Split", until=17)
def _split(n: NodeContext) -> Sequence[SSAValue]:
    """The sizes were an attribute (in opset 1 an input too); without them the parts are equal."""
    sizes = n.input(1)
    stated = n.attr("split") if n.opset < 13 else None
    if sizes is None and stated is not None:
        sizes = n.constant(stated)
    count = len(n.node.output)
    whole = None if sizes is not None else count
    op = n.op("split", n.required(0), sizes, axis=n.attr("axis", 0), num_outputs=whole, results=count)
    return op.results


@adapts("Split")
def _split_18(n: NodeContext) -> Sequence[SSAValue]:
    count = len(n.node.output)
    stated = n.attr("num_outputs")
    if n.input(1) is None and stated is None:
        stated = count  # ONNX wants one of them; others leave both out
    op = n.op("split", n.required(0), n.input(1), axis=n.attr("axis", 0), num_outputs=stated, results=count)
    return op.results


@adapts("Tile", until=5)
def _tile(n: NodeContext) -> Sequence[SSAValue]:
    """One axis and its number of repeats, as scalars of the operand's dtype."""
    x = n.required(0)
    tiles, axis, rank = constant_item(n.input(1)), constant_item(n.input(2)), rank_of(x)
    if not isinstance(tiles, int | float) or not isinstance(axis, int | float) or rank is None:
        raise n.unsupported("its inputs tiles and axis, and the rank of its operand, have to be known")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"its axis {axis} is out of range for rank {rank}")
    repeats = [1] * rank
    repeats[int(axis)] = int(tiles)
    return [n("tile", x, n.constant(repeats))]


@adapts("Concat", until=3)
def _concat(n: NodeContext) -> Sequence[SSAValue]:
    """The axis had a default."""
    return [n("concat", [n.required(i) for i in range(len(n.inputs))], axis=n.attr("axis", 1))]


@adapts("Shape", until=14)
def _shape(n: NodeContext) -> Sequence[SSAValue]:
    return [n("shape", n.required(0))]
