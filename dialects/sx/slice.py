"""Strided parts of a tensor: `sx.slice`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, DType, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_vector, elements, flat, objects, refuse, run_axes, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axes, same_dtype
from sardonyx.dialects.values import Contents, known_ints

UNBOUNDED = (1 << 31) - 1
"""Bounds from here on mean 'to the end', as exporters write them (the largest int32 or int64)."""


def slice_positions(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """The first position and the number of positions that ONNX's rules for Slice take from `size` elements.

    The bounds are clamped to [0, size] for a positive step; for a negative one `start` to [0, size - 1] and `end` to
    [-1, size - 1].
    """
    start += size if start < 0 else 0
    end += size if end < 0 else 0
    if step > 0:
        start, end = min(max(start, 0), size), min(max(end, 0), size)
        return start, max(0, -((start - end) // step))
    if size == 0:
        return 0, 0
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return start, max(0, -((start - end) // step))


def slice_extent(size: Dim, start: Dim | None, end: Dim | None, step: int) -> Dim | None:
    """The number of positions as a Dim, None where no exact expression is known.

    Exact for bounds that are constants, are never negative, or are `size - 1` or `size - 2`: such a bound is negative
    only where counting from the end clamps it to 0 too.
    """
    if start is None or end is None:
        return None
    n, first, last = size.static_value, start.static_value, end.static_value
    if n is not None and first is not None and last is not None:
        return Dim.of(slice_positions(n, first, last, step)[1])
    return _forward(size, start, end, step) if step > 0 else _backward(size, start, end, -step)


def _from_start(size: Dim, bound: Dim) -> Dim | None:
    """A bound that counts from the start: what clamping at 0 makes exact; None for one that isn't known to."""
    low = bound.bounds[0]
    if low is not None and low >= 0:
        return bound
    return bound if (size - bound).static_value in (1, 2) else None


def _forward(size: Dim, start: Dim, end: Dim, step: int) -> Dim | None:
    stop = _stop(size, end)
    if stop is None:
        return None
    first = size + start if (start.static_value or 0) < 0 else _from_start(size, start)
    if first is None:
        return None
    low = first.bounds[0]
    # stop - max(first, 0), so that two bounds counted from the end give a constant.
    span = stop - first if low is not None and low >= 0 else Dim.min(stop - first, stop)
    return Dim.max(0, span.ceildiv(step))


def _stop(size: Dim, end: Dim) -> Dim | None:
    """Where a forward slice stops, at most `size`; may be negative, which means 0."""
    value = end.static_value
    if value is not None and value >= UNBOUNDED:
        return size
    if value is not None and value < 0:
        return size + value
    bound = _from_start(size, end)
    return None if bound is None else Dim.min(bound, size)


def _backward(size: Dim, start: Dim, end: Dim, step: int) -> Dim | None:
    value = start.static_value
    if value == -1 or (value is not None and value >= UNBOUNDED):
        first = size - 1
    elif value is not None and value < 0:
        first = Dim.min(Dim.max(size + value, 0), size - 1)
    else:
        bound = _from_start(size, start)
        if bound is None:
            return None
        first = bound if size - bound == Dim.of(1) else Dim.min(Dim.max(bound, 0), size - 1)
    value = end.static_value
    if value is not None and value < -UNBOUNDED:
        stop = Dim.of(-1)
    elif value is not None and value < 0:
        stop = Dim.max(size + value, -1)
    elif value is not None or (end.bounds[0] or 0) >= 0 and end.bounds[0] is not None:
        stop = end
    else:
        return None
    return Dim.max(0, (first - stop).ceildiv(step))


@irdl_op_definition
class SliceOp(SxOp):
    """Every `steps[i]`-th element from `starts[i]` to `ends[i]` (exclusive) along axis `axes[i]`.

    Without `axes` the first axes are meant, without `steps` each step is 1. Negative bounds count from the end; see
    `slice_positions` for the clamping.

    (C1) The dtype is one of `DTYPES`; the bounds, axes and steps are vectors of int64 or int32, of one dtype.
    (C2) These vectors have one length, at most the rank. (C3) `axes` are in [-rank, rank) and don't repeat.
    (C4) No step is 0.
    """

    name = "sx.slice"
    data = operand_def()
    starts = operand_def()
    ends = operand_def()
    axes = opt_operand_def()
    steps = opt_operand_def()
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("Slice", since=10)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def _vectors(self) -> list[tuple[str, SSAValue]]:
        named = {"starts": self.starts, "ends": self.ends, "axes": self.axes, "steps": self.steps}
        return [(name, value) for name, value in named.items() if value is not None]

    def known_bounds(self) -> list[tuple[int | None, Dim | None, Dim | None, int | None]] | None:
        """What is known of each entry: (axis, start, end, step); None where the number of entries isn't known."""
        length = next((n for _, v in self._vectors() if (n := _length(v)) is not None), None)
        if length is None:
            return None
        axes: Contents = tuple(map(Dim.of, range(length))) if self.axes is None else elements(self.axes, length)
        steps: Contents = (Dim.of(1),) * length if self.steps is None else elements(self.steps, length)
        starts, ends = elements(self.starts, length), elements(self.ends, length)
        return [
            (None if a is None else a.static_value, s, e, None if st is None else st.static_value)
            for a, s, e, st in zip(axes, starts, ends, steps, strict=True)
        ]

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        lengths = {name: check_vector(self, v, "(C1)", name, (int64, int32)) for name, v in self._vectors()}
        same_dtype(self, [v for _, v in self._vectors()], "(C1)")
        stated = {n for n in lengths.values() if n is not None}
        if len(stated) > 1:
            raise self.fail(f"(C2) the lengths differ: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
        if is_unranked(self.data):
            return [unranked_type(dtype)]
        dims = list(dims_of(self.data))
        entries = self.known_bounds()
        if entries is None:
            return [tensor_type(dtype, [fresh_dim() for _ in dims])]
        if len(entries) > len(dims):
            raise self.fail(f"(C2) {len(entries)} slices for rank {len(dims)}")
        known = normalize_axes(self, [a for a, *_ in entries if a is not None], len(dims), "(C3)")
        if any(step == 0 for *_, step in entries):
            raise self.fail("(C4) a step is 0")
        if len(known) < len(entries):
            return [tensor_type(dtype, [fresh_dim() for _ in dims])]
        for axis, (_, start, end, step) in zip(known, entries, strict=True):
            extent = None if step is None else slice_extent(dims[axis], start, end, step)
            dims[axis] = fresh_dim() if extent is None else extent
        return [tensor_type(dtype, dims)]

    def infer_values(self) -> Sequence[Contents | None]:
        data = objects(self.data)
        starts, ends, axes, steps = (known_ints(v) for v in (self.starts, self.ends, self.axes, self.steps))
        hidden = (self.axes is not None and axes is None) or (self.steps is not None and steps is None)
        if data is None or starts is None or ends is None or hidden:
            return [None]
        return [flat(self._cut(data, starts, ends, axes, steps))]

    def _cut(
        self,
        data: Array,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int] | None,
        steps: Sequence[int] | None,
    ) -> Array:
        axes = range(len(starts)) if axes is None else axes
        steps = [1] * len(starts) if steps is None else steps
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise refuse(self, "starts, ends, axes and steps have different lengths")
        index: list[slice] = [slice(None)] * data.ndim
        for axis, start, end, step in zip(run_axes(self, axes, data.ndim), starts, ends, steps, strict=True):
            if step == 0:
                raise refuse(self, "a step is 0")
            first, count = slice_positions(data.shape[axis], start, end, step)
            stop = first + count * step
            # A stop below 0 would count from the end again.
            index[axis] = slice(first, None if stop < 0 else stop, step) if count else slice(0, 0)
        return data[tuple(index)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, starts, ends, axes, steps = slots(arrays)
        axes, steps = (None if v is None else v.tolist() for v in (axes, steps))
        return [self._cut(data, starts.tolist(), ends.tolist(), axes, steps)]


def _length(value: SSAValue) -> int | None:
    return None if is_unranked(value) else dims_of(value)[0].static_value
