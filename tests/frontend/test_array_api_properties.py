"""What hypothesis' strategies for the array API draw: indices, masks, shapes that broadcast, axes.

The strategies themselves ask the namespace for dtypes, limits, filled and reshaped arrays, and warn where it has not
what the standard has; warnings are errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import sardonyx as sx

FEW = settings(
    max_examples=20, deadline=None, derandomize=True,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)  # fmt: skip
SPACE: Any = make_strategies_namespace(sx, api_version="2024.12")
DTYPES = SPACE.real_dtypes() | SPACE.boolean_dtypes()
SHAPES = SPACE.array_shapes(min_dims=0, min_side=0)


def agree(found: sx.Tensor, expected: Any) -> None:
    assert (np.asarray(found).dtype, found.shape) == (expected.dtype, np.shape(expected))
    np.testing.assert_array_equal(np.asarray(found), expected)


@FEW
@given(st.data())
def test_indices(data: Any) -> None:
    shape = data.draw(SHAPES)
    x = data.draw(SPACE.arrays(DTYPES, shape))
    key = data.draw(SPACE.indices(shape=shape, allow_newaxis=True))
    agree(x[key], np.asarray(x)[key])


@FEW
@given(st.data())
def test_masks(data: Any) -> None:
    shape = data.draw(SHAPES)
    x, mask = data.draw(SPACE.arrays(DTYPES, shape)), data.draw(SPACE.arrays(sx.bool, shape))
    agree(x[mask], np.asarray(x)[np.asarray(mask)])
    written = sx.asarray(x, copy=True)
    written[mask] = x[mask]
    agree(written, np.asarray(x))


@FEW
@given(st.data())
def test_shapes_that_broadcast(data: Any) -> None:
    shapes = data.draw(SPACE.mutually_broadcastable_shapes(2, min_side=0))
    dtype = data.draw(SPACE.real_dtypes())
    a, b = (data.draw(SPACE.arrays(dtype, shape)) for shape in shapes.input_shapes)
    with np.errstate(all="ignore"):
        expected = np.asarray(a) + np.asarray(b)
    assert sx.broadcast_shapes(*shapes.input_shapes) == tuple(shapes.result_shape)
    agree(a + b, expected)


@FEW
@given(st.data())
def test_reductions_over_axes(data: Any) -> None:
    shape = data.draw(SPACE.array_shapes(min_dims=1))
    x = data.draw(SPACE.arrays(SPACE.real_dtypes(), shape))
    axes = data.draw(SPACE.valid_tuple_axes(len(shape), min_size=1))
    agree(sx.max(x, axis=axes, keepdims=True), np.asarray(x).max(axis=axes, keepdims=True))
