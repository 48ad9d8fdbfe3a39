"""The limits: what is within them and what is not, by dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from sardonyx.frontend.verify.tolerance import Limits, compare

F32 = Limits({}, "float32")


def one(expected: object, actual: object, limits: Limits = F32):
    return compare("y", np.asarray(expected), np.asarray(actual), limits)


@pytest.mark.parametrize(
    "dtype, near, far",
    [
        (np.float64, 1 + 9e-7, 1 + 3e-6),
        (np.float32, 1 + 9e-4, 1 + 2e-3),
        (np.float16, 1 + 9e-3, 1 + 2e-2),
        (ml_dtypes.bfloat16, 1 + 3e-2, 1 + 7e-2),
    ],
)
def test_floats_have_the_limit_of_their_dtype(dtype: type, near: float, far: float) -> None:
    want = np.ones(3, dtype)
    for value, ok in ((near, True), (far, False)):
        assert one(want, np.full(3, value).astype(dtype), Limits({}, "float64")).ok is ok


def test_a_wide_result_of_narrow_arithmetic_has_the_narrow_limit() -> None:
    want, got = np.ones(3, np.float32), np.full(3, 1.005, np.float32)
    assert not one(want, got).ok
    assert one(want, got, Limits({}, "float16")).ok


def test_integers_are_equal_or_not_and_quantised_ones_may_be_off_by_steps() -> None:
    assert not one(np.array([1, 2]), np.array([1, 3])).ok
    want, got = np.array([10, 20], np.int8), np.array([12, 20], np.int8)
    assert not one(want, got).ok
    assert one(want, got, Limits({}, "quantised")).ok
    assert not one(want, got + np.int8(1), Limits({}, "quantised")).ok
    assert one(want.astype(np.int64), got.astype(np.int64), Limits({}, "quantised")).ok is False


def test_nan_is_as_good_as_nan_and_infinities_keep_their_sign() -> None:
    assert one([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0]).ok
    wrong = one([np.nan, np.inf, 1.0], [np.nan, -np.inf, 1.0])
    assert not wrong.ok and "NaN or infinite" in wrong.reason and wrong.worst is not None and wrong.worst[0] == (1,)
    assert not one([1.0], [np.nan]).ok


def test_shapes_dtypes_and_containers_are_compared() -> None:
    assert one(np.ones((2, 3)), np.ones((3, 2))).reason == "shape [3, 2], expected [2, 3]"
    assert "dtype int64" in one(np.ones(2), np.ones(2, np.int64)).reason
    assert one(np.ones((0, 3)), np.ones((0, 3))).ok
    assert compare("s", [np.ones(2)], [np.ones(2)], F32).ok
    assert "sequence of 1" in compare("s", [np.ones(2)], [], F32).reason
    assert compare("s", [np.ones(2), np.ones(2)], [np.ones(2), np.zeros(2)], F32).name == "s[1]"
    assert not compare("o", None, np.ones(2), F32).ok
    assert compare("m", {"a": 1.0}, {"a": 1.0}, F32).ok and not compare("m", {"a": 1.0}, {"b": 1.0}, F32).ok


def test_flips_count_rows_whose_largest_element_is_another() -> None:
    want = np.array([[0.1, 0.9], [0.5, 0.5], [0.50001, 0.5]], np.float32)
    got = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.50001]], np.float32)
    found = one(want, got)
    assert (found.flips, found.rows) == (2, 3)


def test_the_error_is_measured_against_the_scale_of_the_tensor() -> None:
    """A sum that cancels is as exact as its terms are."""
    assert one(np.array([1e4, 0.0], np.float32), np.array([1e4, 0.05], np.float32)).ok
    assert not one(np.array([1.0, 0.0], np.float32), np.array([1.0, 0.05], np.float32)).ok


def test_limits_go_to_json_and_back() -> None:
    limits = F32.with_limits(1e-2, None)
    again = Limits.from_json(limits.to_json())
    assert again.of(np.dtype("float32")).rtol == 1e-2 and again.precision == "float32"
