"""Decompositions of ops that sample or place elements; see `decompose`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from sardonyx.backends.onnx.decompose import Values, decomposes
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.sx.resize import known_floats
from sardonyx.dialects.sx.support import is_unranked
from sardonyx.dialects.values import known_ints


@decomposes("resize")
def _resize(op: SxOp, b: Expansion, opset: int) -> Values:
    """`axes` before opset 18: scales, sizes and regions of all axes."""
    x, roi, scales, sizes = (*op.slots, None, None, None)[:4]
    axes = op.attr("axes")
    later = op.attr("antialias") or op.attr("keep_aspect_ratio_policy") != "stretch"
    if x is None or axes is None or later or is_unranked(x) or opset >= 18:
        return None
    rank = rank_of(x)
    at = [a % rank for a in axes]

    def spread(part: SSAValue, value: float) -> SSAValue:
        """The part's entries at their axes, `value` at the others: a constant where the part is one."""
        known = known_floats(part)
        if known is None:
            return b("scatter_elements", b.constant([value] * rank, dtype_of(part)), b.constant(at, int64), part)
        whole = [value] * rank
        for axis, entry in zip(at, known, strict=True):
            whole[axis] = entry
        return b.constant(whole, dtype_of(part))

    if roi is not None:
        halves = b.ops("split", roi, b.constant([len(at)] * 2, int64), axis=0, results=2).results
        roi = b("concat", [spread(half, v) for half, v in zip(halves, (0, 1), strict=True)], axis=0)
    if sizes is not None:
        known, dims = known_ints(sizes), [d.static_value for d in dims_of(x)]
        if known is None or None in dims:
            sizes = b("scatter_elements", b("shape", x), b.constant(at, int64), sizes)
        else:
            sizes = b.constant([known[at.index(i)] if i in at else d for i, d in enumerate(dims)], int64)
    scales = None if scales is None else spread(scales, 1)
    properties = {k: v for k, v in op.python_properties().items() if k != "axes"}
    return [b("resize", x, roi, scales, sizes, **properties)]


@decomposes("tensor_scatter")
def _tensor_scatter(op: SxOp, b: Expansion, opset: int) -> Values:
    """Before opset 24: the positions along the axis are computed, and ScatterElements writes there."""
    cache, update, write = (*op.slots, None)[:3]
    if cache is None or update is None or is_unranked(cache) or is_unranked(update):
        return None
    rank = rank_of(cache)
    axis = op.attr("axis") % rank
    zero, one = b.constant(0, int64), b.constant(1, int64)
    shape = b("shape", update)
    count = b("gather", shape, b.constant(axis, int64), axis=0)
    behind = rank - 1 - axis
    at = b("range", zero, count, one)
    if behind:
        at = b("unsqueeze", at, b.constant(range(1, 1 + behind), int64))
    if write is not None:
        at = b("add", at, b("unsqueeze", write, b.constant(range(1, rank), int64)))
    if op.attr("mode") == "circular":
        room = b("gather", b("shape", cache), b.constant(axis, int64), axis=0)
        at = b("mod", at, room)
    return [b("scatter_elements", cache, b("expand", at, shape), update, axis=axis)]


@decomposes("affine_grid")
def _affine_grid(op: SxOp, b: Expansion, opset: int) -> Values:
    """Before opset 20: the map's columns times the places along each axis, and its last column."""
    theta, size = op.operands
    if is_unranked(size) or (entries := dims_of(size)[0].static_value) is None:
        return None
    rows = entries - 2
    dtype = dtype_of(theta)
    one, two, zero = (b.constant(v, int64) for v in (1, 2, 0))
    spread = b.constant(range(1, rows + 1), int64)

    def column(index: int) -> SSAValue:
        return b("unsqueeze", b("gather", theta, b.constant(index, int64), axis=2), spread)

    total = column(rows)
    for axis in range(rows):
        count = b("gather", size, b.constant(2 + axis, int64), axis=0)
        steps = b("sub", b("mul", b("range", zero, count, one), two), b("sub", count, one))
        divisor = b("max", [one, b("sub", count, one) if op.attr("align_corners") else count])
        place = b("div", b.cast(steps, dtype), b.cast(divisor, dtype))
        place = b("unsqueeze", place, b.constant(range(1, rows + 1 - axis), int64))
        total = b("add", total, b("mul", place, column(rows - 1 - axis)))
    return [total]


@decomposes("bernoulli")
def _bernoulli(op: SxOp, b: Expansion, opset: int) -> Values:
    """Before opset 15: uniform numbers that are less than the probability."""
    (x,) = op.operands
    drawn = b("less", b("random_uniform_like", x, seed=op.attr("seed")), x)
    return [b.cast(drawn, dtype_of(op.results[0]))]
