"""Native suppression of boxes against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import Case, both_refuse, case, check_all

from sardonyx.dialects.sx.nms import NonMaxSuppressionOp


def boxes(batches: int, classes: int, count: int, *rest: float | None, seed: int = 0, **properties: Any) -> Case:
    """A case with random boxes, and scores of which some are equal; `rest` are limit and thresholds."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 2, (batches, count, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (batches, classes, count)).round(2).astype(np.float32)
    slots = [
        None if v is None else np.array([v], dtype)
        for v, dtype in zip(rest, (np.int64, np.float32, np.float32), strict=True)
    ]
    return case(NonMaxSuppressionOp, places, scores, *slots, **properties)


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_boxes(mode: str) -> None:
    cases = [
        boxes(1, 1, 6, 3, 0.5, 0.0), boxes(2, 3, 50, 10, 0.3, 0.2), boxes(1, 2, 0, 3, 0.5, None),
        boxes(0, 2, 4, 3, 0.5, None), boxes(1, 2, 100, 1000, 0.0, 0.1), boxes(1, 1, 5, None, 0.5, None),
        boxes(1, 1, 300, 20, None, None), boxes(1, 2, 33, -4, 0.5, None),
    ]  # fmt: skip
    check_all(cases, (mode,))


def test_boxes_by_centre_and_size() -> None:
    check_all([boxes(2, 3, 50, 10, 0.3, None, center_point_box=1)], ("static",))


def test_scores_and_corners_that_are_no_numbers() -> None:
    case_ = boxes(1, 1, 20, 20, 0.4, None)
    places, scores = case_.slots[0].copy(), case_.slots[1].copy()
    scores[0, 0, 3:6] = np.nan, -np.inf, np.inf
    places[0, 7:10, 1] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        check_all([case(NonMaxSuppressionOp, places, scores, *case_.slots[2:4], threshold) for threshold in
                   (None, np.array([0.1], np.float32))], ("static",))  # fmt: skip


def test_a_threshold_that_is_none_ends_the_run() -> None:
    for bad in (-0.5, 1.5, np.nan):
        one = boxes(1, 1, 4, 3, bad, None)
        for message in both_refuse(NonMaxSuppressionOp, *one.slots):
            assert "iou_threshold" in message


def test_what_does_not_fit_ends_the_run() -> None:
    one = boxes(1, 1, 4, 3, 0.5, None)
    both_refuse(NonMaxSuppressionOp, one.slots[0][:, :3], *one.slots[1:])
    both_refuse(NonMaxSuppressionOp, one.slots[0][..., :3], *one.slots[1:])
    both_refuse(NonMaxSuppressionOp, *one.slots[:2], np.array([1, 2]), *one.slots[3:])
