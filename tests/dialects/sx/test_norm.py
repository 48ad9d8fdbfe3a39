"""Normalisation over channels: formulas in float64, training statistics, onnxruntime, symbols, errors."""

import numpy as np
import pytest
from op_case import round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.attributes import fresh_dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

BATCH, INSTANCE, GROUP, LRN = (op(n) for n in ("batch_norm", "instance_norm", "group_norm", "lrn"))
RNG = np.random.default_rng(6)
FLOATS = [t.name for t in dtypes.FLOATS]
TOLERANCE = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 1e-14}
EPSILON = float(np.float32(1e-5))


def example(dtype, *dims):
    return RNG.normal(size=dims).astype(dtypes.DTYPES[dtype].numpy)


def close(got, want, dtype):
    """Within one rounding of the exact result."""
    np.testing.assert_allclose(
        got.astype(np.float64), want, rtol=1.01 * TOLERANCE[dtype], atol=1e-7 if dtype == "float16" else 1e-30
    )


def channels(vector, rank):
    return vector.astype(np.float64).reshape(1, -1, *[1] * (rank - 2))


# ---- batch_norm


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dims", [(2, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_batch_norm(dtype, dims):
    x, (scale, bias, mean) = example(dtype, *dims), (example(dtype, 3) for _ in range(3))
    var = np.abs(example(dtype, 3))
    rank = len(dims)
    want = (x.astype(np.float64) - channels(mean, rank)) / np.sqrt(channels(var, rank) + EPSILON)
    want = want * channels(scale, rank) + channels(bias, rank)
    out, running_mean, running_var = run_all(BATCH, x, scale, bias, mean, var)
    close(out, want, dtype)
    assert running_mean.tolist() == mean.tolist() and running_var.tolist() == var.tolist()


def test_batch_norm_against_onnxruntime():
    x = example("float32", 2, 3, 4, 5)
    vectors = [example("float32", 3), example("float32", 3), example("float32", 3), np.abs(example("float32", 3))]
    got = run_all(BATCH, x, *vectors, epsilon=0.25)[0]
    np.testing.assert_allclose(
        got, run_node("BatchNormalization", [x, *vectors], epsilon=0.25)[0], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm_in_training(dtype):
    x, scale, bias, mean = example(dtype, 4, 2, 3), example(dtype, 2), example(dtype, 2), example(dtype, 2)
    var = np.abs(example(dtype, 2))
    exact = x.astype(np.float64)
    batch_mean, batch_var = exact.mean((0, 2)), exact.var((0, 2))
    out, running_mean, running_var = run_all(
        BATCH, x, scale, bias, mean, var, training_mode=True, momentum=0.75, epsilon=0.125
    )
    want = (exact - channels(batch_mean, 3)) / np.sqrt(channels(batch_var, 3) + 0.125) * channels(scale, 3) + channels(
        bias, 3
    )
    close(out, want, dtype)
    close(running_mean, mean.astype(np.float64) * 0.75 + batch_mean * 0.25, dtype)
    close(running_var, var.astype(np.float64) * 0.75 + batch_var * 0.25, dtype)


def test_batch_norm_of_rank_1_and_mixed_dtypes():
    x, one = example("float16", 5), np.ones(1, np.float32)
    mean, var = np.array([0.5]), np.array([4.0])
    out, running_mean, _ = run_all(BATCH, x, one, one, mean, var)
    assert out.dtype == np.float16 and running_mean.dtype == np.float64
    close(out, (x.astype(np.float64) - 0.5) / np.sqrt(4 + EPSILON) + 1, "float16")
    with pytest.raises(InferenceError, match=r"\(C2\)"):
        BATCH.make(value("float32", [5]), *[value("float32", [2])] * 4)


def test_batch_norm_of_no_elements():
    vectors = [np.ones(3, np.float32)] * 4
    assert run_all(BATCH, np.zeros((0, 3, 2), np.float32), *vectors)[0].shape == (0, 3, 2)
    out, mean, _ = run_all(BATCH, np.zeros((0, 3, 2), np.float32), *vectors, training_mode=True)
    assert out.shape == (0, 3, 2) and np.isnan(mean).all()


def test_batch_norm_of_symbols():
    vectors = [value("float32", [4])] * 4
    made = BATCH.make(value("float32", ["b", fresh_dim(), "h"]), *vectors)
    assert [shape(made, i) for i in range(3)] == [["b", "4", "h"], ["4"], ["4"]]
    made = BATCH.make(value("float32", None), *vectors)
    assert [shape(made, i) for i in range(3)] == [None, ["4"], ["4"]]
    assert shape(BATCH.make(value("float32", ["b", "c"]), *[value("float32", ["k"])] * 4)) == ["b", "c"]


@pytest.mark.parametrize(
    ("x", "vectors", "constraint"),
    [
        (("int32", [1, 2]), [("float32", [2])] * 4, "C1"),
        (("float32", [1, 2]), [("int32", [2])] * 4, "C1"),
        (("float32", [1, 2]), [("float32", [2]), ("float64", [2]), ("float32", [2]), ("float32", [2])], "C1"),
        (("float32", [1, 2]), [("float32", [2])] * 3 + [("float64", [2])], "C1"),
        (("float32", []), [("float32", [1])] * 4, "C2"),
        (("float32", [1, 2]), [("float32", [3])] * 4, "C2"),
        (("float32", [1, 2]), [("float32", [2, 1])] * 4, "C2"),
    ],
)
def test_batch_norm_constraints(x, vectors, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        BATCH.make(value(*x), *(value(*v) for v in vectors))


# ---- instance_norm and group_norm


@pytest.mark.parametrize("dtype", FLOATS)
def test_instance_norm(dtype):
    x, scale, bias = example(dtype, 2, 3, 4, 5), example(dtype, 3), example(dtype, 3)
    exact = x.astype(np.float64)
    want = (exact - exact.mean((2, 3), keepdims=True)) / np.sqrt(exact.var((2, 3), keepdims=True) + 0.5)
    close(run(INSTANCE, x, scale, bias, epsilon=0.5), want * channels(scale, 4) + channels(bias, 4), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(dtype, groups):
    x, scale, bias = example(dtype, 2, 4, 3), example(dtype, 4), example(dtype, 4)
    exact = x.astype(np.float64).reshape(2, groups, -1)
    want = (exact - exact.mean(2, keepdims=True)) / np.sqrt(exact.var(2, keepdims=True) + EPSILON)
    close(
        run(GROUP, x, scale, bias, num_groups=groups),
        want.reshape(x.shape) * channels(scale, 3) + channels(bias, 3),
        dtype,
    )


def test_against_onnxruntime():
    x, scale, bias = example("float32", 2, 4, 3, 5), example("float32", 4), example("float32", 4)
    want = run_node("InstanceNormalization", [x, scale, bias])[0]
    np.testing.assert_allclose(run(INSTANCE, x, scale, bias), want, rtol=1e-4, atol=1e-5)
    want = run_node("GroupNormalization", [x, scale, bias], num_groups=2)[0]
    np.testing.assert_allclose(run(GROUP, x, scale, bias, num_groups=2), want, rtol=1e-4, atol=1e-5)


def test_norms_of_no_elements_and_symbols():
    assert run(INSTANCE, np.zeros((0, 2, 3)), np.ones(2), np.ones(2)).shape == (0, 2, 3)
    assert run(INSTANCE, np.zeros((1, 2, 0)), np.ones(2), np.ones(2)).shape == (1, 2, 0)
    assert run(GROUP, np.zeros((0, 2, 3)), np.ones(2), np.ones(2), num_groups=2).shape == (0, 2, 3)
    x, c = value("float32", ["b", "c", "h"]), value("float32", [6])
    assert shape(INSTANCE.make(x, c, c)) == ["b", "6", "h"]
    assert shape(GROUP.make(value("float32", None), c, c, num_groups=3)) is None


@pytest.mark.parametrize(
    ("cls", "x", "vector", "properties", "constraint"),
    [
        (INSTANCE, ("float32", [1, 2, 3]), ("float64", [2]), {}, "C1"),
        (INSTANCE, ("int32", [1, 2, 3]), ("int32", [2]), {}, "C1"),
        (INSTANCE, ("float32", [1, 2]), ("float32", [2]), {}, "C2"),
        (INSTANCE, ("float32", [1, 2, 3]), ("float32", [3]), {}, "C2"),
        (GROUP, ("float32", [1, 2, 3]), ("float64", [2]), {"num_groups": 1}, "C1"),
        (GROUP, ("float32", [2]), ("float32", [2]), {"num_groups": 1}, "C2"),
        (GROUP, ("float32", [1, 4, 3]), ("float32", [2]), {"num_groups": 2}, "C2"),
        (GROUP, ("float32", [1, 4, 3]), ("float32", [4]), {"num_groups": 3}, "C3"),
        (GROUP, ("float32", [1, 4, 3]), ("float32", [4]), {"num_groups": 0}, "C3"),
    ],
)
def test_norm_constraints(cls, x, vector, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(value(*x), value(*vector), value(*vector), **properties)


def test_runs_that_are_refused():
    ctx, ones = EvalContext(), np.ones(3)
    x, v = value("float64", ["b", "c", "h"]), value("float64", ["k"])
    with pytest.raises(ExecutionError, match="vectors"):
        INSTANCE.make(x, v, v).evaluate(ctx, np.ones((1, 2, 3)), ones, ones)
    with pytest.raises(ExecutionError, match="vectors"):
        BATCH.make(x, v, v, v, v).evaluate(ctx, np.ones((1, 2, 3)), ones, ones, ones, ones)
    with pytest.raises(ExecutionError, match="groups"):
        GROUP.make(x, v, v, num_groups=2).evaluate(ctx, np.ones((1, 3, 3)), ones, ones)


# ---- lrn


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_lrn(dtype, size):
    x = example(dtype, 2, 5, 3)
    exact = x.astype(np.float64)
    total = np.zeros(exact.shape)
    for c in range(5):
        first, last = max(0, c - (size - 1) // 2), min(4, c + -(-(size - 1) // 2))
        total[:, c] = np.square(exact[:, first : last + 1]).sum(1)
    want = exact / (1.5 + 0.25 / size * total) ** 0.5
    close(run(LRN, x, size=size, alpha=0.25, beta=0.5, bias=1.5), want, dtype)


def test_lrn_against_onnxruntime_and_its_limits():
    x = example("float32", 2, 5, 3, 2)
    np.testing.assert_allclose(run(LRN, x, size=3), run_node("LRN", [x], size=3)[0], rtol=1e-6)
    assert run(LRN, np.zeros((2, 0, 3), np.float32), size=3).shape == (2, 0, 3)
    assert shape(LRN.make(value("float32", ["b", 3, "h"]), size=2)) == ["b", "3", "h"]
    for x, size, constraint in (
        (("int32", [1, 2]), 1, "C1"),
        (("float32", [2]), 1, "C2"),
        (("float32", [1, 2]), 0, "C3"),
    ):
        with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
            LRN.make(value(*x), size=size)


def test_text():
    x, c = value("float32", ["n", 4, 2]), [value("float32", [4]) for _ in range(4)]
    assert "epsilon" not in round_trip(BATCH.make(x, *c, epsilon=1e-5))
    assert "training_mode = true" in round_trip(BATCH.make(x, *c, training_mode=True))
    assert "num_groups = 2" in round_trip(GROUP.make(x, c[0], c[1], num_groups=2))
    assert "sx.instance_norm" in round_trip(INSTANCE.make(x, c[0], c[1]))
    assert "size = 3" in round_trip(LRN.make(x, size=3))
