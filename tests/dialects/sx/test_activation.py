"""Activations: against mpmath's formulas to half a unit in the last place, onnxruntime, special values, inference."""

import mpmath
import numpy as np
import pytest
from exact import worst_ulp
from op_case import op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.errors import ExecutionError, InferenceError

INF, NAN = np.inf, np.nan
X = [0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 3.0, -3.0, 1e-4, -1e-4, 7.3, -7.3, 30.0, -30.0, 300.0, 3e4]
FLOATS = [t.name for t in dtypes.FLOATS]
A, B = 0.30000001192092896, 0.699999988079071  # float32's 0.3 and 0.7


def expm1(v):
    return mpmath.exp(v) - 1


def logistic(v):
    return 1 / (1 + mpmath.exp(-v))


def softplus(v):
    return mpmath.log(1 + mpmath.exp(v))


def gelu_tanh(v):
    return v / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (v + mpmath.mpf("0.044715") * v**3)))


def unit(v):
    return max(mpmath.mpf(0), min(mpmath.mpf(1), v))


LEAK, SELU_A, SELU_G = 0.009999999776482582, 1.6732631921768188, 1.0507010221481323
CASES = [
    ("relu", {}, lambda v: max(v, mpmath.mpf(0))),
    ("leaky_relu", {}, lambda v: v if v >= 0 else LEAK * v),
    ("leaky_relu", {"alpha": 0.3}, lambda v: v if v >= 0 else A * v),
    ("elu", {}, lambda v: v if v >= 0 else expm1(v)),
    ("elu", {"alpha": 0.7}, lambda v: v if v >= 0 else B * expm1(v)),
    ("selu", {}, lambda v: SELU_G * (v if v > 0 else SELU_A * expm1(v))),
    ("selu", {"alpha": 0.3, "gamma": 0.7}, lambda v: B * (v if v > 0 else A * expm1(v))),
    ("celu", {}, lambda v: v if v >= 0 else expm1(v)),
    ("celu", {"alpha": 0.3}, lambda v: v if v >= 0 else A * expm1(v / A)),
    ("sigmoid", {}, logistic),
    ("hard_sigmoid", {}, lambda v: unit(0.20000000298023224 * v + 0.5)),
    ("hard_sigmoid", {"alpha": 0.3, "beta": 0.7}, lambda v: unit(A * v + B)),
    ("hard_swish", {}, lambda v: v * unit(v / 6 + mpmath.mpf(1) / 2)),
    ("tanh", {}, mpmath.tanh),
    ("softplus", {}, softplus),
    ("softsign", {}, lambda v: v / (1 + abs(v))),
    ("gelu", {}, lambda v: v * mpmath.ncdf(v)),
    ("gelu", {"approximate": "tanh"}, gelu_tanh),
    ("mish", {}, lambda v: v * mpmath.tanh(softplus(v))),
    ("swish", {}, lambda v: v * logistic(v)),
    ("swish", {"alpha": 0.3}, lambda v: v * logistic(A * v)),
    ("thresholded_relu", {}, lambda v: v if v > 1 else mpmath.mpf(0)),
    ("thresholded_relu", {"alpha": 0.3}, lambda v: v if v > A else mpmath.mpf(0)),
    ("shrink", {}, lambda v: v if abs(v) > 0.5 else mpmath.mpf(0)),
    ("shrink", {"lambd": 0.3, "bias": 0.7}, lambda v: v + B if v < -A else v - B if v > A else mpmath.mpf(0)),
]
IDS = [name + "".join(f"-{v}" for v in props.values()) for name, props, _ in CASES]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, properties, function", CASES, ids=IDS)
def test_formulas_are_rounded_once(name, properties, function, dtype):
    if dtypes.DTYPES[dtype] not in op(name).DTYPES:
        return  # see test_c1_refuses_other_dtypes
    x = np.array(X).astype(dtypes.DTYPES[dtype].numpy)
    # Far below zero gelu magnifies the rounding of its argument x² times.
    assert worst_ulp(function, x, run(op(name), x, **properties)) <= (256 if dtype == "float64" else 0.5001)


NOT_IN_ORT = ("swish",)


@pytest.mark.parametrize("name, properties", [c[:2] for c in CASES if c[0] not in NOT_IN_ORT])
def test_against_onnxruntime(name, properties):
    x = np.array(X, np.float32)
    if name in ("mish", "softplus"):
        x = x[x < 80]  # onnxruntime overflows
    (want,) = run_node(op(name).ONNX.name, [x], **properties)
    np.testing.assert_allclose(run(op(name), x, **properties), want, rtol=1e-4, atol=1e-5)


SPECIAL = {
    "relu": ([NAN, INF, -INF, -0.0, 0.0], [NAN, INF, 0, -0.0, 0]),
    "leaky_relu": ([NAN, INF, -INF, -0.0], [NAN, INF, -INF, -0.0]),
    "elu": ([NAN, INF, -INF, -0.0], [NAN, INF, -1, -0.0]),
    "selu": ([NAN, INF, -0.0], [NAN, INF, -0.0]),
    "celu": ([NAN, INF, -INF, 1000], [NAN, INF, -1, 1000]),
    "sigmoid": ([NAN, INF, -INF, 0], [NAN, 1, 0, 0.5]),
    "hard_sigmoid": ([NAN, INF, -INF], [NAN, 1, 0]),
    "hard_swish": ([NAN, INF, -INF, -3], [NAN, INF, NAN, -0.0]),
    "tanh": ([NAN, INF, -INF, -0.0], [NAN, 1, -1, -0.0]),
    "softplus": ([NAN, INF, -INF], [NAN, INF, 0]),
    "softsign": ([NAN, INF, -0.0], [NAN, NAN, -0.0]),
    "gelu": ([NAN, INF, -INF, -0.0], [NAN, INF, NAN, -0.0]),
    "mish": ([NAN, INF, -INF, -0.0], [NAN, INF, NAN, -0.0]),
    "swish": ([NAN, INF, -INF, -0.0], [NAN, INF, NAN, -0.0]),
    "thresholded_relu": ([NAN, INF, -INF, 1], [0, INF, 0, 0]),
    "shrink": ([NAN, INF, -INF, 0.5, -0.5], [0, INF, -INF, 0, 0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name):
    x, want = (np.array(v, np.float32) for v in SPECIAL[name])
    got = run(op(name), x)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("name", SPECIAL)
def test_shapes_are_kept(name):
    assert run(op(name), np.float32(0.5)).shape == ()
    assert run(op(name), np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_float_attributes_have_the_precision_of_float32():
    x = np.array([-1.0])
    assert run(op("leaky_relu"), x, alpha=0.1)[0] == -float(np.float32(0.1))
    assert run(op("elu"), np.array([-np.inf]), alpha=0.1)[0] == -float(np.float32(0.1))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_relu_of_integers(dtype):
    x = np.array([-128, -1, 0, 1, 127], dtype)
    assert run(op("relu"), x).tolist() == [0, 0, 0, 1, 127]


def test_shrink_of_integers_truncates_and_saturates():
    x = np.array([-128, -3, 0, 3, 127], np.int8)
    assert run(op("shrink"), x, lambd=1.0, bias=-1.5).tolist() == [-128, -4, 0, 4, 127]
    assert run(op("shrink"), np.array([1, 5], np.uint8), lambd=2.0, bias=6.0).tolist() == [0, 0]


def test_gelu_refuses_other_approximations():
    with pytest.raises(InferenceError, match=r"^\(C2\) approximate is 'fast'; allowed: none, tanh"):
        op("gelu").make(value("float32", [2]), approximate="fast")


@pytest.mark.parametrize("name, dtype", [("relu", "uint8"), ("gelu", "int32"), ("shrink", "bfloat16"), ("elu", "bool")])
def test_c1_refuses_other_dtypes(name, dtype):
    with pytest.raises(InferenceError, match=r"^\(C1\) "):
        op(name).make(value(dtype, [2]))


# ---- prelu


@pytest.mark.parametrize("slope", [(), (1,), (4,), (3, 1), (1, 3, 4), (2, 3, 4)])
def test_prelu_broadcasts_its_slope(slope):
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(2, 3, 4)).astype(np.float32), rng.normal(size=slope).astype(np.float32)
    got = run(op("prelu"), x, s)
    np.testing.assert_array_equal(got, np.where(x < 0, x * s, x))
    np.testing.assert_array_equal(got, run_node("PRelu", [x, s])[0])


def test_prelu_of_special_values_integers_and_halves():
    x = np.array([NAN, INF, -INF, -0.0], np.float32)
    np.testing.assert_array_equal(run(op("prelu"), x, np.float32(0)), [NAN, INF, NAN, -0.0])
    assert run(op("prelu"), np.array([-(2**30), 5], np.int32), np.int32(4)).tolist() == [0, 5]
    assert run(op("prelu"), np.array([2**31, 5], np.uint32), np.uint32(3)).tolist() == [2**31, 5]
    for dtype in (dtypes.float16, dtypes.bfloat16):
        halves = np.array([-1.5, 2], dtype.numpy)
        assert run(op("prelu"), halves, np.array([0.5], dtype.numpy)).astype(float).tolist() == [-0.75, 2]
    assert run(op("prelu"), np.zeros((0, 3), np.float32), np.ones(3, np.float32)).shape == (0, 3)


def test_prelu_types_and_refusals():
    prelu = op("prelu")
    assert shape(prelu.make(value("float32", ["n", "c", 4]), value("float32", ["c", 1]))) == ["n", "c", "4"]
    assert shape(prelu.make(value("float32", None), value("float32", [3]))) is None
    for dims, slope in ([[2, 3], [2]], [[3], [1, 3]], [["n", 3], [4]], [[1], [3]]):
        with pytest.raises(InferenceError, match=r"^\(C2\) slope .* does not broadcast to"):
            prelu.make(value("float32", dims), value("float32", slope))
    with pytest.raises(InferenceError, match=r"^\(C1\) the operands have different dtypes"):
        prelu.make(value("float32", [3]), value("float64", [3]))
    with pytest.raises(InferenceError, match=r"^\(C1\) .* int8"):
        prelu.make(value("int8", [3]), value("int8", [3]))
    with pytest.raises(ExecutionError, match=r"\(C2\) slope \[3\] does not broadcast to \[1\]"):
        _evaluate_prelu(np.ones(1, np.float32), np.ones(3, np.float32))


def _evaluate_prelu(x, slope):
    from sardonyx.dialects.evaluate import EvalContext, evaluate_op

    made = op("prelu").make(value("float32", ["n"]), value("float32", ["m"]))
    evaluate_op(made, EvalContext({made.input: x, made.slope: slope}))


@pytest.mark.parametrize("name, properties, function", CASES, ids=IDS)
def test_text_round_trip(name, properties, function):
    line = round_trip(op(name).make(value("float32", ["n", 3]), **properties))
    assert line.startswith(f"%0 = sx.{name} %x0 ") and ("{" in line) == bool(properties)


def test_a_property_with_its_default_is_not_printed():
    assert "{" not in round_trip(op("elu").make(value("float32", [3]), alpha=1.0))
    assert "slope" not in round_trip(op("prelu").make(value("float32", ["n", 3]), value("float32", [3])))
