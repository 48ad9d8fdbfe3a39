"""Suppression of boxes that overlap better ones: `sx.non_max_suppression`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked


def corners(boxes: Array, centered: bool) -> tuple[Array, Array, Array, Array]:
    """The least and greatest y and x of boxes [n, 4], given by opposite corners (y, x) or by centre and size (x, y)."""
    a, b, c, d = (boxes[:, i] for i in range(4))
    if centered:
        half_w, half_h = c / np.float32(2), d / np.float32(2)
        return b - half_h, b + half_h, a - half_w, a + half_w
    return np.minimum(a, c), np.maximum(a, c), np.minimum(b, d), np.maximum(b, d)


def kept(boxes: Array, scores: Array, limit: int, iou: float, threshold: float | None, centered: bool) -> list[int]:
    """The boxes of one class that stay, best first: none overlaps a better one by more than `iou`.

    Of equal scores the first box is better. Overlaps are computed in float32, as boxes are given.
    """
    low_y, high_y, low_x, high_x = corners(boxes, centered)
    area = (high_y - low_y) * (high_x - low_x)
    # NaN is no score that a threshold lets pass, and the worst one without a threshold.
    ranked = np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")
    if threshold is not None:
        ranked = ranked[scores[ranked] > threshold]
    out: list[int] = []
    while ranked.size and len(out) < limit:
        best, ranked = int(ranked[0]), ranked[1:]
        out.append(best)
        height = np.minimum(high_y[best], high_y[ranked]) - np.maximum(low_y[best], low_y[ranked])
        width = np.minimum(high_x[best], high_x[ranked]) - np.maximum(low_x[best], low_x[ranked])
        shared = np.maximum(height, np.float32(0)) * np.maximum(width, np.float32(0))
        union = area[best] + area[ranked] - shared
        # A box without an area overlaps nothing.
        proper = (area[best] > 0) & (area[ranked] > 0) & (union > 0)
        overlap = np.divide(shared, union, out=np.zeros_like(shared), where=proper)
        ranked = ranked[~(proper & (overlap > iou))]
    return out


@irdl_op_definition
class NonMaxSuppressionOp(SxOp):
    """The boxes of each batch and class that stay once those that overlap a better one are dropped.

    `boxes` [batches, boxes, 4] are two opposite corners (y, x), or with `center_point_box` centre x, y, width and
    height; `scores` [batches, classes, boxes]. A box is dropped where its overlap (intersection over union) with one
    that stays is more than `iou_threshold` (0 without it), or its score not more than `score_threshold` (without it
    no score is too low); at most `max_output_boxes_per_class` stay (none without it). The result has a row (batch,
    class, box) for each, best first in its class.

    (C1) `boxes`, `scores` and the thresholds are float32, `max_output_boxes_per_class` int64. (C2) `boxes` and `scores`
    have rank 3 and agree in batches and boxes; the last extent of `boxes` is 4. (C3) Thresholds and limit are one
    element each. (C4) `iou_threshold` is in [0, 1].
    """

    name = "sx.non_max_suppression"
    boxes = operand_def()
    scores = operand_def()
    max_output_boxes_per_class = opt_operand_def()
    iou_threshold = opt_operand_def()
    score_threshold = opt_operand_def()
    center_point_box = opt_prop_def(IntegerAttr)
    selected_indices = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("NonMaxSuppression", since=10)
    DEFAULTS: ClassVar = {"center_point_box": 0}
    DTYPES: ClassVar[Sequence[DType]] = (float32,)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.boxes, self.DTYPES, "(C1)", "boxes")
        check_dtype(self, self.scores, self.DTYPES, "(C1)", "scores")
        self._check_one(self.max_output_boxes_per_class, int64, "max_output_boxes_per_class")
        self._check_one(self.iou_threshold, float32, "iou_threshold")
        self._check_one(self.score_threshold, float32, "score_threshold")
        if not is_unranked(self.boxes) and not is_unranked(self.scores):
            boxes, scores = dims_of(self.boxes), dims_of(self.scores)
            if len(boxes) != 3 or len(scores) != 3 or equal(boxes[2], 4) is Proof.REFUTED:
                shown = f"{format_dims(boxes)} and scores {format_dims(scores)}"
                raise self.fail(f"(C2) boxes {shown} are not [batches, boxes, 4] and [batches, classes, boxes]")
            merge(self, boxes[0], scores[0], "(C2) boxes and scores differ in the number of batches")
            merge(self, boxes[1], scores[2], "(C2) boxes and scores differ in the number of boxes")
        return [tensor_type(int64, [fresh_dim(), 3])]

    def _check_one(self, value: SSAValue | None, dtype: DType, what: str) -> None:
        if value is None:
            return
        if dtype_of(value) != dtype:
            raise self.fail(f"(C1) {what} has dtype {dtype_of(value)}, not {dtype}")
        if not is_unranked(value) and equal(Dim.product(dims_of(value)), 1) is Proof.REFUTED:
            raise self.fail(f"(C3) {what} has shape {format_dims(dims_of(value))}, not one element")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        boxes, scores, *rest = slots(arrays)
        if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[2] != 4 or scores.shape[::2] != boxes.shape[:2]:
            raise refuse(self, f"boxes of shape {list(boxes.shape)} and scores of {list(scores.shape)} don't fit")
        if any(a is not None and a.size != 1 for a in rest):
            raise refuse(self, "thresholds and limit are one element each")
        limit, iou, threshold = (None if a is None else a.reshape(-1)[0] for a in rest)
        overlap = 0.0 if iou is None else float(iou)
        if not 0 <= overlap <= 1:
            raise refuse(self, f"iou_threshold is {overlap}, not in [0, 1]")
        centered = bool(self.attr("center_point_box"))
        rows: list[tuple[int, int, int]] = []
        for batch in range(boxes.shape[0]):
            for number in range(scores.shape[1]):
                chosen = kept(boxes[batch], scores[batch, number], int(limit or 0), overlap, threshold, centered)
                rows.extend((batch, number, box) for box in chosen)
        return [np.array(rows, np.int64).reshape(len(rows), 3)]
