"""Lowering of non_max_suppression: one thread a class, then the lists of the classes one behind the other.

The boxes of a class that pass the score's threshold are sorted by score; each is then compared over lanes with those
that stay so far, whose corners lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.selected import add_up
from sardonyx.backends.llvm.lowering.sorting import LONGEST, MOST_CHUNKS, PairLists, Pairs, key_of
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, float32, int64
from sardonyx.dialects.kernel.ops import ChunkOp
from sardonyx.dialects.sx.nms import NonMaxSuppressionOp

CORNERS = 5
"""What is kept of a box: least and greatest y and x, and the area."""
WORST = 0x7F800000
"""The key of the score -inf, and of NaN, in descending order."""


@lowers(NonMaxSuppressionOp)
def _non_max_suppression(plan: Plan, op: NonMaxSuppressionOp) -> None:
    body, boxes, scores = plan.body, dims_of(op.boxes), dims_of(op.scores)
    plan.require_equal(boxes[2], Dim.of(4), "a box has {0} numbers, not {1}")
    plan.require_equal(boxes[0], scores[0], "boxes has {0} batches, scores {1}")
    plan.require_equal(boxes[1], scores[2], "there are {0} boxes, but scores for {1}")
    for value in (op.max_output_boxes_per_class, op.iou_threshold, op.score_threshold):
        for d in () if value is None else dims_of(value):
            plan.require_equal(d, Dim.of(1), "thresholds and limit are one element each, not {0}")
    if op.iou_threshold is not None:
        overlap = body.load(plan.buffer(op.iou_threshold), 0)
        inside = body.both(
            body.compare_scalars("ge", float32, overlap, body.const(float32, 0)),
            body.compare_scalars("le", float32, overlap, body.const(float32, 1)),
        )
        body.require(inside, plan.failure("iou_threshold is not in [0, 1]"))
    count, classes = plan.dim(boxes[1]), plan.product(plan.dim(scores[0]), plan.dim(scores[1]))
    body.require(body.compare("slt", count, LONGEST), plan.failure("{0} boxes are too many to sort"), count)
    limit = body.index(0)
    if op.max_output_boxes_per_class is not None:
        limit = plan.read_ints(op.max_output_boxes_per_class, 1)[0]
    limit = body.index_math("max", 0, body.index_math("min", limit, count))
    chosen = plan.workspace(int64, [classes, limit])
    starts = plan.workspace(int64, [body.plus(classes, 1)])
    lists = PairLists(plan, float32, classes, body.plus(count, 1))
    held = plan.workspace(float32, [body.index_math("min", classes, MOST_CHUNKS), CORNERS, limit])
    kernel = plan.kernel("non_max_suppression")
    classes_inside = _Classes(op, kernel, lists, (count, limit), (chosen, starts, held))
    kernel.loop(kernel.outer(classes), classes_inside.one, parallel=True)
    kernel.launch()
    add_up(plan, starts, classes)
    total = body.to_index(body.load(starts, classes), int64)
    plan.bind(dims_of(op.selected_indices)[0], total, "the number of boxes that stay")
    kernel = plan.kernel("selected_boxes")
    source, places, target = kernel.read_buffer(chosen), kernel.read_buffer(starts), kernel.write(op.selected_indices)
    most, per_batch = kernel.outer(limit), kernel.extent(scores[1])

    def one_class(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        batch = b.index_math("floordiv", number, per_batch)
        own = b.minus(number, b.times(batch, per_batch))
        first = b.to_index(b.load(places, number), int64)
        behind = b.to_index(b.load(places, b.plus(number, 1)), int64)

        def row(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            at = c.times(c.plus(first, i), 3)
            c.store(c.from_index(batch, int64), target, at)
            c.store(c.from_index(own, int64), target, c.plus(at, 1))
            c.store(c.load(source, c.plus(c.times(number, most), i)), target, c.plus(at, 2))

        b.loop(b.minus(behind, first), row)

    kernel.loop(kernel.outer(classes), one_class)
    kernel.launch()


class _Classes:
    """The kernel's loop over the classes of all batches: its arguments, and what is done for one class."""

    def __init__(
        self,
        op: NonMaxSuppressionOp,
        kernel: Kernel,
        lists: PairLists,
        sizes: tuple[SSAValue, SSAValue],
        buffers: tuple[SSAValue, SSAValue, SSAValue],
    ) -> None:
        self.centered = bool(op.attr("center_point_box"))
        self.boxes, self.scores = kernel.read(op.boxes), kernel.read(op.scores)
        self.count, self.limit = (kernel.outer(s) for s in sizes)
        self.per_batch = kernel.extent(dims_of(op.scores)[1])
        self.overlap = kernel.const(float32, 0)
        if op.iou_threshold is not None:
            self.overlap = kernel.load(kernel.read(op.iou_threshold), 0)
        self.least = None if op.score_threshold is None else kernel.load(kernel.read(op.score_threshold), 0)
        self.lists = lists.inside(kernel)
        self.chosen, self.counts, self.held = (kernel.write_buffer(buffer) for buffer in buffers)

    def one(self, b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        """Find the boxes of a class that stay."""
        pairs = self.lists.of_chunk(b)
        passed = self._passed(b, pairs, number)
        order = pairs.sort(b, b.index(0), pairs.capacity, passed)[0]
        batch = b.index_math("floordiv", number, self.per_batch)
        kept = b.times(b.add(ChunkOp()), b.times(self.limit, CORNERS))

        def candidate(c: Body, i: SSAValue, stay: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def look(d: Body) -> Sequence[SSAValue]:
                place = pairs.place(d, d.plus(order, i))
                box = self._corners(d, d.times(d.plus(d.times(batch, self.count), place), 4))
                dropped = self._overlaps(d, kept, stay[0], box)
                return d.when(dropped, lambda e: [stay[0]], lambda e: self._keep(e, number, kept, stay[0], box, place))

            return c.when(c.compare("slt", stay[0], self.limit), look, lambda d: [stay[0]])

        (stay,) = b.loop(passed, candidate, [("serial", b.index(0))])
        b.store(b.from_index(stay, int64), self.counts, number)

    def _passed(self, b: Body, pairs: Pairs, number: SSAValue) -> SSAValue:
        """List the boxes with a sufficient score, NaN as the worst; gives how many."""
        first = b.times(number, self.count)

        def one(c: Body, i: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
            score = c.load(self.scores, c.plus(first, i))
            is_number = c.compare_scalars("eq", float32, score, score)
            key = c.select(is_number, key_of(c, score, float32, descending=True), c.const(pairs.held, WORST))
            pairs.put(c, found[0], key, i)
            if self.least is None:
                return [c.plus(found[0], 1)]
            passes = c.compare_scalars("gt", float32, score, self.least)
            return [c.plus(found[0], c.to_index(passes, bool_))]

        return b.loop(self.count, one, [("serial", b.index(0))])[0]

    def _corners(self, b: Body, at: SSAValue) -> list[SSAValue]:
        """Least and greatest y, least and greatest x, and the area of a box."""
        x = [b.load(self.boxes, b.plus(at, i)) for i in range(4)]

        def of(fn: str, a: SSAValue, c: SSAValue) -> SSAValue:
            return b.arithmetic(fn, float32, a, c)

        if self.centered:
            half = [of("div", v, b.const(float32, 2)) for v in x[2:]]
            sides = [of(fn, x[axis], half[axis]) for axis in (1, 0) for fn in ("sub", "add")]
        else:
            sides = [of(fn, x[axis], x[axis + 2]) for axis in (0, 1) for fn in ("min", "max")]
        area = of("mul", of("sub", sides[1], sides[0]), of("sub", sides[3], sides[2]))
        return [*sides, area]

    def _overlaps(self, b: Body, kept: SSAValue, count: SSAValue, box: Sequence[SSAValue]) -> SSAValue:
        """Whether the box overlaps one that stays by more than the threshold."""
        zero = b.const(float32, 0)

        def one(c: Body, j: SSAValue, seen: Sequence[SSAValue]) -> list[SSAValue]:
            other = [c.load(self.held, c.plus(c.plus(kept, c.times(self.limit, side)), j)) for side in range(CORNERS)]

            def of(fn: str, x: SSAValue, y: SSAValue) -> SSAValue:
                return c.arithmetic(fn, float32, x, y)

            def above(x: SSAValue, y: SSAValue) -> SSAValue:
                return c.compare_scalars("gt", float32, x, y)

            height = of("sub", of("min", other[1], box[1]), of("max", other[0], box[0]))
            width = of("sub", of("min", other[3], box[3]), of("max", other[2], box[2]))
            shared = of("mul", of("max", height, zero), of("max", width, zero))
            union = of("sub", of("add", other[4], box[4]), shared)
            # A box without an area overlaps nothing.
            proper = c.both(c.both(above(other[4], zero), above(box[4], zero)), above(union, zero))
            return [c.either(seen[0], c.both(proper, above(of("div", shared, union), self.overlap)))]

        return b.loop(count, one, [("or", b.const(bool_, False))], vector=True)[0]

    def _keep(
        self, b: Body, number: SSAValue, kept: SSAValue, count: SSAValue, box: Sequence[SSAValue], place: SSAValue
    ) -> list[SSAValue]:
        for side, value in enumerate(box):
            b.store(value, self.held, b.plus(b.plus(kept, b.times(self.limit, side)), count))
        b.store(b.from_index(place, int64), self.chosen, b.plus(b.times(number, self.limit), count))
        return [b.plus(count, 1)]
