"""Native normalisations against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import three_ways
from three_ways import case, check_all, sample

from sardonyx.dialects.sx.layer_norm import LayerNormOp, LpNormalizationOp, RMSNormOp
from sardonyx.dialects.sx.norm import BatchNormOp, GroupNormOp, InstanceNormOp, LRNOp

DTYPES = ["float32", "float64", "float16", "bfloat16"]


def modes(dtype: str) -> tuple[str, ...]:
    return ("static", "dynamic") if dtype == "float32" else ("dynamic",)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_and_rms_norms(dtype: str) -> None:
    x = sample(dtype, 2, 3, 33)
    cases = [
        case(LayerNormOp, x, sample(dtype, 33), sample(dtype, 33, seed=1)),
        case(LayerNormOp, x, sample(dtype, 33), None, epsilon=0.1),
        case(LayerNormOp, x, sample(dtype, 3, 1), sample(dtype, 3, 33), axis=1),
        case(LayerNormOp, x, sample(dtype, 1), None, axis=-3),
        case(LayerNormOp, sample(dtype, 0, 4), sample(dtype, 4), None),
        case(RMSNormOp, x, sample(dtype, 33)),
        case(RMSNormOp, x, sample(dtype, 3, 33), axis=1, epsilon=0.5),
        case(RMSNormOp, x, sample(dtype, 1), axis=0),
    ]
    check_all(cases, modes(dtype))


def test_a_long_row_keeps_its_digits() -> None:
    x = sample("float32", 2, 5000) + np.float32(4)
    check_all([case(LayerNormOp, x, np.ones(5000, np.float32), None)], ("static",))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 5), (2, 17), (6,), (0, 3, 2), (2, 3, 9)])
def test_batch_norms(dtype: str, shape: tuple[int, ...]) -> None:
    channels = shape[1] if len(shape) > 1 else 1
    vectors = [sample(dtype, channels, seed=k) for k in range(3)] + [sample(dtype, channels, low=0.5, seed=3)]
    cases = [case(BatchNormOp, sample(dtype, *shape), *vectors, epsilon=1e-3)]
    if 0 not in shape:
        cases += [case(BatchNormOp, sample(dtype, *shape), *vectors, training_mode=True, momentum=0.75, epsilon=0.1)]
    check_all(cases, modes(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_instance_and_group_norms(dtype: str) -> None:
    x = sample(dtype, 2, 6, 3, 5)
    scale, bias = sample(dtype, 6), sample(dtype, 6, seed=1)
    cases = [case(InstanceNormOp, x, scale, bias, epsilon=1e-2)]
    cases += [case(GroupNormOp, x, scale, bias, num_groups=g, epsilon=1e-2) for g in (1, 2, 6)]
    cases += [case(GroupNormOp, sample(dtype, 3, 6), scale, bias, num_groups=3, epsilon=0.1)]
    check_all(cases, modes(dtype))


def test_groups_that_do_not_divide_end_the_run() -> None:
    x, vector = sample("float32", 2, 5, 3), sample("float32", 5)
    for message in three_ways.both_refuse(GroupNormOp, x, vector, vector, num_groups=2):
        assert "5" in message and "2" in message
    three_ways.both_refuse(InstanceNormOp, x, sample("float32", 4), sample("float32", 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_lp_normalization_and_lrn(dtype: str) -> None:
    x = sample(dtype, 2, 5, 3, 4)
    x[0, 0, 0] = 0
    cases = [case(LpNormalizationOp, x, axis=a, p=p) for a in (0, 1, -1) for p in (1, 2)]
    cases += [case(LpNormalizationOp, np.zeros((2, 3), x.dtype)), case(LpNormalizationOp, sample(dtype, 7))]
    cases += [case(LRNOp, x, size=s, alpha=0.1, beta=0.5, bias=2.0) for s in (1, 2, 3, 9)]
    cases += [case(LRNOp, sample(dtype, 2, 5), size=3)]
    check_all(cases, modes(dtype))
    large = np.array([[1e30, -1e30, 2e30]], np.float32)
    check_all([case(LpNormalizationOp, large), case(LpNormalizationOp, large * np.float32(1e-38))], ("static",))
