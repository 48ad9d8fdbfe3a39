"""Which elements a resized axis takes, by what weights: tables that resize's kernels read.

Where extents and scales are numbers the tables are constants, made by the functions of the reference
(`sardonyx.dialects.sx.resample`). Otherwise a kernel makes them in the run, by the same formulas in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.dtypes import DType, bool_, float64, int64
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.resample import Sampling, taps
from sardonyx.dialects.sx.resize import ResizeOp
from sardonyx.dialects.sx.support import float_attr


@dataclass
class Table:
    """One resized axis.

    Element c of the result is the sum over t of `weights[t, c]` times element `places[t, c]` of the operand, both
    tables [taps, count]; without `weights` it is element `places[0, c]`. `outside` [count] is true where
    `extrapolation_value` stands (tf_crop_and_resize), `size` and `count` are indices of the plan.
    """

    axis: int
    size: SSAValue
    count: SSAValue
    taps: IndexLike
    places: SSAValue
    weights: SSAValue | None
    outside: SSAValue | None = None
    repeats: int | None = None
    """Each element stands so many times in a row, and nothing else does."""
    known: tuple[Array, Array] | None = None
    """Places and weights [count, taps], where they were known when the graph was compiled."""


@dataclass
class Stretch:
    """One resized axis whose extents or scale only the run knows; `roi` is (buffer, dtype, start's, end's place)."""

    axis: int
    size: SSAValue
    count: SSAValue
    scale: Number
    roi: tuple[SSAValue, DType, int, int] | None = None
    repeats: int | None = None


MOST_REPEATS = 8


def repeats_by(op: ResizeOp, scale: float) -> int | None:
    """How often each element stands in a row, for nearest ones and a scale that is a small number.

    Element k * q + p of the result is q: for centered coordinates q - 1/2 + (p + 1/2) / k however halves are rounded,
    since there are none, and for others q + p / k rounded down.
    """
    times = int(scale) if 2 <= scale <= MOST_REPEATS and scale == int(scale) else None
    found = op.attr("coordinate_transformation_mode"), op.attr("nearest_mode")
    centered = found[0] in ("half_pixel", "half_pixel_symmetric") and found[1].startswith("round")
    return times if op.attr("mode") == "nearest" and (centered or found == ("asymmetric", "floor")) else None


def is_identity(op: ResizeOp, one: Sampling) -> bool:
    """Whether an axis stays as it is."""
    transformation = op.attr("coordinate_transformation_mode")
    if one.size != one.count or transformation == "tf_crop_and_resize":
        return False
    return bool(np.array_equal(one.coordinates(transformation), np.arange(one.size)))


def constant_table(plan: Plan, op: ResizeOp, axis: int, one: Sampling, wide: DType) -> Table:
    """The table of an axis of which all is known."""
    transformation, mode = op.attr("coordinate_transformation_mode"), op.attr("mode")
    at = one.coordinates(transformation)
    outside = None
    if transformation == "tf_crop_and_resize":
        beyond = ~((at >= 0) & (at <= one.size - 1))
        at = np.where(beyond, 0.0, at)
        outside = plan.constant_array(np.ascontiguousarray(beyond), bool_)
    index, weights = taps(
        at, one.size, mode, one.scale, op.attr("nearest_mode"), float_attr(op, "cubic_coeff_a"),
        bool(op.attr("antialias")), bool(op.attr("exclude_outside")),
    )  # fmt: skip
    places = plan.constant_array(np.ascontiguousarray(index.T), int64)
    table = None
    if mode != "nearest":
        table = plan.constant_array(np.ascontiguousarray(weights.T.astype(wide.numpy)), wide)
    size, count = plan.body.index(one.size), plan.body.index(one.count)
    repeats = one.count // one.size if one.size and one.count % one.size == 0 else 0
    alike = 2 <= repeats <= MOST_REPEATS and np.array_equal(index[:, 0], np.arange(one.count) // repeats)
    return Table(
        axis, size, count, index.shape[1], places, table, outside, repeats if alike else None, (index, weights)
    )


def together(plan: Plan, table: Table, inner: int, wide: DType) -> Table:
    """The table of an axis and the `inner` elements behind each of its places, as one axis.

    A row of few channels behind each place is too short for vectors; with the places it makes a long one.
    """
    if table.known is None:
        raise ValueError("the table is not known before the run")
    index, weights = table.known
    places = (index[:, None, :] * inner + np.arange(inner)[None, :, None]).reshape(-1, index.shape[1])
    factors = np.repeat(weights, inner, 0)
    made = plan.constant_array(np.ascontiguousarray(places.T), int64)
    held = None
    if table.weights is not None:
        held = plan.constant_array(np.ascontiguousarray(factors.T.astype(wide.numpy)), wide)
    size, count = (plan.body.times(n, inner) for n in (table.size, table.count))
    return Table(table.axis, size, count, table.taps, made, held)


def run_table(plan: Plan, op: ResizeOp, one: Stretch, wide: DType) -> Table:
    """The table of an axis, made by a kernel in the run."""
    mode, body = op.attr("mode"), plan.body
    crop = op.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    reach: Number | None = None
    count_taps: IndexLike = 1
    if mode != "nearest":
        radius = 1 if mode == "linear" else 2
        count_taps = 2 * radius
        if op.attr("antialias"):
            reach = radius / one.scale.min(1.0)
            wanted = reach.ceil().to_index() * 2
            # A result with elements needs no more; one without must not ask for what its scale would.
            count_taps = wanted.clip(2 * radius, Number.index(body, one.size) * (8 * radius) + 2).value
    places = plan.workspace(int64, [count_taps, one.count])
    weights = None if mode == "nearest" else plan.workspace(wide, [count_taps, one.count])
    outside = plan.workspace(bool_, [one.count]) if crop else None
    table = Table(one.axis, one.size, one.count, count_taps, places, weights, outside, one.repeats)
    kernel = plan.kernel("resize_table")
    _Maker(kernel, op, one, table, wide).make()
    kernel.launch()
    return table


class _Maker:
    """Builds the kernel that fills one table."""

    def __init__(self, kernel: Kernel, op: ResizeOp, one: Stretch, table: Table, wide: DType) -> None:
        self.kernel, self.op, self.wide, self.table = kernel, op, wide, table
        self.extent = Number.index(kernel, kernel.outer(one.size))
        self.bound = Number.index(kernel, kernel.outer(one.count))
        self.size, self.count = self.extent.to(float64), self.bound.to(float64)
        self.scale = Number(kernel, kernel.outer(one.scale.value), float64)
        self.exact = self.scale.eq(self.count / self.size)
        self.length = self.exact.where(self.count, self.scale * self.size)
        self.places = kernel.write_buffer(table.places)
        self.weights = None if table.weights is None else kernel.write_buffer(table.weights)
        self.outside = None if table.outside is None else kernel.write_buffer(table.outside)
        self.start = self.end = None
        if one.roi is not None:
            buffer, dtype, first, last = one.roi
            region = kernel.read_buffer(buffer)
            self.start = Number.load(kernel, region, first, dtype, float64)
            self.end = Number.load(kernel, region, last, dtype, float64)

    def make(self) -> None:
        def body(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            c = Number.index(b, index)
            at = self._coordinate(c.to(float64))
            if self.outside is not None:
                beyond = ~(at.ge(0.0) & at.le(self.size - 1.0))
                beyond.store(self.outside, c, bool_, b)
                at = beyond.where(Number.const(b, 0.0), at)
            if self.weights is None:
                self._place(self._nearest(at)).store(self.places, c, int64, b)
            else:
                self._taps(b, c, at)

        self.kernel.loop(self.bound.value, body)

    def _place(self, x: Number) -> Number:
        return x.clip(0.0, self.size - 1.0).to_index()

    def _unscaled(self, x: Number) -> Number:
        return self.exact.where(x * self.size / self.count, x / self.scale)

    def _coordinate(self, x: Number) -> Number:
        """`Sampling.coordinates`."""
        transformation = self.op.attr("coordinate_transformation_mode")
        single, nothing = self.length.eq(1.0), Number.const(self.kernel, 0.0)
        if transformation == "align_corners":
            return single.where(nothing, x * (self.size - 1.0) / (self.length - 1.0))
        if transformation == "asymmetric":
            return self._unscaled(x)
        if self.start is not None and self.end is not None:
            span = (self.end - self.start) * (self.size - 1.0)
            inside = single.where(span / 2.0, x * span / (self.length - 1.0))
            return self.start * (self.size - 1.0) + inside
        centered = self._unscaled(x + 0.5) - 0.5
        if transformation == "pytorch_half_pixel":
            return single.where(nothing, centered)
        if transformation == "half_pixel_symmetric":
            return self.size / 2.0 * (1.0 - self.count / self.length) + centered
        return centered

    def _nearest(self, x: Number) -> Number:
        mode = self.op.attr("nearest_mode")
        if mode in ("floor", "ceil"):
            return x.fn(mode)
        return (x - 0.5).ceil() if mode == "round_prefer_floor" else (x + 0.5).floor()

    def _kernel_at(self, distance: Number) -> Number:
        d = distance.abs()
        if self.op.attr("mode") == "linear":
            return (1.0 - d).max(0.0)
        a = float_attr(self.op, "cubic_coeff_a")
        near = ((a + 2) * d - (a + 3)) * d * d + 1.0
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return d.le(1.0).where(near, d.lt(2.0).where(far, 0.0))

    def _taps(self, b: Body, c: Number, at: Number) -> None:
        """The neighbours of one coordinate: their sum first where it has to become 1."""
        op, weights = self.op, self.weights
        if weights is None:
            return
        antialias, exclude = bool(op.attr("antialias")), bool(op.attr("exclude_outside"))
        radius = 1 if op.attr("mode") == "linear" else 2
        lowest: Number = Number.const(self.kernel, float(1 - radius))
        stretch: Number | None = None
        if antialias:
            stretch = self.scale.min(1.0)
            lowest = (-(radius / stretch)).floor() + 1.0
        base = at.floor() + lowest
        number = self.kernel.outer(self.table.taps)

        def tap(inner: Body, t: SSAValue) -> tuple[Number, Number]:
            place = base + Number.index(inner, t).to(float64)
            distance = place - at
            weight = self._kernel_at(distance if stretch is None else distance * stretch)
            if exclude:
                weight = (place.lt(0.0) | place.gt(self.size - 1.0)).where(Number.const(inner, 0.0), weight)
            return place, weight

        total: Number | None = None
        if antialias or exclude:

            def add(inner: Body, t: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                return [(Number(inner, carried[0], float64) + tap(inner, t)[1]).value]

            summed = Number(b, b.loop(number, add, [("serial", b.const(float64, 0))])[0], float64)
            total = summed.eq(0.0).where(Number.const(b, 1.0), summed)

        def put(inner: Body, t: SSAValue, _: Sequence[SSAValue]) -> None:
            place, weight = tap(inner, t)
            row = Number.index(inner, t) * self.bound + c
            self._place(place).store(self.places, row, int64, inner)
            (weight if total is None else weight / total).store(weights, row, self.wide, inner)

        b.loop(number, put)
