"""Operators of ai.onnx.ml that are compositions: linear models, scaling, encoding and choosing of features.

Each becomes the ops of its formula (as onnxruntime computes it, where ONNX only names it), so that it runs natively, is
optimised with the rest, and is exported as operators of ai.onnx.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import float32, float64, int64
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.ml_support import TRANSFORMS, labels_array, string_dtype
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext, rank_of

ML = "ai.onnx.ml"


def rows(n: NodeContext, x: SSAValue) -> SSAValue:
    """Samples as a matrix: a vector is one sample."""
    rank = rank_of(x)
    if rank is None or rank > 2 or rank == 0:
        raise n.unsupported(f"its operand has {'an unknown rank' if rank is None else f'rank {rank}'}, not 1 or 2")
    return x if rank == 2 else n("unsqueeze", x, n.constant([0]))


def as_float(n: NodeContext, x: SSAValue) -> SSAValue:
    return x if dtype_of(x) == float32 else n("cast", x, to=float32)


def numbers(n: NodeContext, name: str) -> Any:
    """A list of floats, rounded as ONNX keeps them; empty where it is missing."""
    return np.array(n.attr(name) or (), np.float32)


def transform_of(n: NodeContext) -> str:
    found = n.attr("post_transform", "NONE")
    if found not in TRANSFORMS:
        raise InvalidArgumentError(f"its post_transform '{found}' is none of {', '.join(TRANSFORMS)}")
    return found


def transformed(n: NodeContext, scores: SSAValue, transform: str) -> SSAValue:
    """Rows of two and more scores, each transformed."""
    if transform == "LOGISTIC":
        return n("sigmoid", scores)
    if transform == "SOFTMAX":
        return n("softmax", scores, axis=-1)
    if transform == "PROBIT":
        return _probit(n, scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(n, scores)
    return scores


def _probit(n: NodeContext, scores: SSAValue) -> SSAValue:
    """sqrt(2) * erfinv(2 x - 1), by Winitzki's approximation."""

    def number(value: float) -> SSAValue:
        return n.constant(value, float32)

    one = number(1.0)
    y = n("sub", n("mul", scores, number(2.0)), one)
    log = n("log", n("mul", n("sub", one, y), n("add", one, y)))
    v = n("add", n("mul", log, number(0.5)), number(2 / (3.14159 * 0.147)))
    root = n("sqrt", n("sub", n("mul", v, v), n("div", log, number(0.147))))
    size = n("mul", n("sqrt", n("sub", root, v)), number(math.sqrt(2.0)))
    return n("where", n("less", y, number(0.0)), n("neg", size), size)


def _softmax_zero(n: NodeContext, scores: SSAValue) -> SSAValue:
    """Softmax over what is not zero; zeros stay zero."""
    axes = n.constant([-1])
    greatest = n("reduce_max", scores, axes, keepdims=True)
    nonzero = n("greater", n("abs", scores), n.constant(1e-7, float32))
    e = n("exp", n("sub", scores, greatest))
    kept = n("where", nonzero, e, n("mul", scores, n("exp", n("neg", greatest))))
    total = n("reduce_sum", n("where", nonzero, e, n.constant(0.0, float32)), axes, keepdims=True)
    return n("div", kept, total)


def labels(n: NodeContext, ints: str, strings: str) -> Any:
    """The labels of a classifier; raises where both or none are stated."""
    stated = [n.attr(name) or () for name in (ints, strings)]
    if bool(stated[0]) == bool(stated[1]):
        raise InvalidArgumentError(f"one of '{ints}' and '{strings}' has labels")
    if stated[1] and string_dtype() is None:
        raise n.unsupported("labels that are strings are not supported")
    return labels_array(stated[0] or stated[1])


def label_constant(n: NodeContext, values: Any) -> SSAValue:
    return n.importer.add(ConstantOp.of(labels_array(list(values)), n.importer.store, "labels")).results[0]


# ---- linear models


def _linear(n: NodeContext, x: SSAValue, coefficients: Any, intercepts: Any, targets: int) -> SSAValue:
    if targets < 1 or coefficients.size % targets:
        raise InvalidArgumentError(f"{coefficients.size} coefficients do not make {targets} targets")
    width = coefficients.size // targets
    stated = dims_of(x)[1].static_value
    if stated is not None and stated != width:
        raise InvalidArgumentError(f"the samples have {stated} features, the coefficients are for {width}")
    matrix = n.constant(np.ascontiguousarray(coefficients.reshape(targets, width)), float32)
    bias = n.constant(intercepts, float32) if intercepts.size else None
    return n("gemm", x, matrix, bias, transB=True)


@adapts("LinearRegressor", domain=ML)
def _linear_regressor(n: NodeContext) -> Sequence[SSAValue]:
    x = as_float(n, rows(n, n.required(0)))
    targets, intercepts = n.attr("targets", 1), numbers(n, "intercepts")
    if intercepts.size not in (0, targets):
        raise InvalidArgumentError(f"it has {intercepts.size} intercepts for {targets} targets")
    scores = _linear(n, x, numbers(n, "coefficients"), intercepts, targets)
    transform = transform_of(n)
    # Of a single score only PROBIT makes another one.
    return [scores if targets == 1 and transform != "PROBIT" else transformed(n, scores, transform)]


@adapts("LinearClassifier", domain=ML)
def _linear_classifier(n: NodeContext) -> Sequence[SSAValue]:
    """A single score decides between two labels, by its sign; else the first of the greatest does."""
    x = as_float(n, rows(n, n.required(0)))
    known, intercepts = labels(n, "classlabels_ints", "classlabels_strings"), numbers(n, "intercepts")
    coefficients, transform = numbers(n, "coefficients"), transform_of(n)
    features = dims_of(x)[1].static_value
    count = intercepts.size or (coefficients.size // features if features else len(known))
    if features and coefficients.size > count * features:
        coefficients = coefficients[: count * features]  # onnxruntime reads no more, and models rely on it
    scores = _linear(n, x, coefficients, intercepts, count)
    if count > 1:
        if count > len(known):
            raise InvalidArgumentError(f"it has {count} scores, but {len(known)} labels")
        label = n("gather", label_constant(n, known), n("arg_max", scores, axis=1, keepdims=False))
        return [label, transformed(n, scores, transform)]
    pair = known if len(known) == 2 else labels_array(("0", "1") if known.dtype == object else (0, 1))
    positive = n("greater", n("squeeze", scores, n.constant([1])), n.constant(0.0, float32))
    label = n("where", positive, label_constant(n, pair[1:]), label_constant(n, pair[:1]))
    if len(known) != 2:
        return [label, _probit(n, scores) if transform == "PROBIT" else scores]
    if transform == "LOGISTIC":
        both = [n("sigmoid", n("neg", scores)), n("sigmoid", scores)]
    else:
        both = [n("sub", n.constant(1.0, float32), scores), scores]
        both = [_probit(n, s) for s in both] if transform == "PROBIT" else both
    return [label, n("concat", both, axis=1)]


# ---- features


@adapts("Scaler", domain=ML)
def _scaler(n: NodeContext) -> Sequence[SSAValue]:
    """(x - offset) * scale, one of each for all features or one per feature; doubles are rounded at the end."""
    x = n.required(0)
    dtype = float64 if dtype_of(x) == float64 else float32
    out = x if dtype_of(x) == dtype else n("cast", x, to=dtype)
    for op, name in (("sub", "offset"), ("mul", "scale")):
        values = numbers(n, name)
        if values.size:
            out = n(op, out, _per_feature(n, x, values, dtype, name))
    return [as_float(n, out)]


def _per_feature(n: NodeContext, x: SSAValue, values: Any, dtype: Any, name: str) -> SSAValue:
    width = None if rank_of(x) in (None, 0) else dims_of(x)[-1].static_value
    if values.size != 1 and width not in (None, values.size):
        raise InvalidArgumentError(f"its '{name}' has {values.size} values for {width} features")
    return n.constant(values.reshape(()) if values.size == 1 else values, dtype)


@adapts("Binarizer", domain=ML)
def _binarizer(n: NodeContext) -> Sequence[SSAValue]:
    x = n.required(0)
    dtype = dtype_of(x)
    given = as_float(n, x) if dtype.is_integer else x
    above = n("greater", given, n.constant(n.attr("threshold", 0.0) or 0.0, dtype_of(given)))
    return [n("cast", above, to=dtype)]


@adapts("Imputer", domain=ML)
def _imputer(n: NodeContext) -> Sequence[SSAValue]:
    x = n.required(0)
    dtype = dtype_of(x)
    kind = "float" if dtype.is_float else "int64"
    values, missing = n.attr(f"imputed_value_{kind}s") or (), n.attr(f"replaced_value_{kind}", 0) or 0
    if not values:
        raise InvalidArgumentError(f"it has no imputed_value_{kind}s for elements of {dtype}")
    if dtype.is_float and math.isnan(missing):
        absent = n("is_nan", x)
    else:
        absent = n("equal", x, n.constant(missing, dtype))
    array = np.array(values, np.float32 if dtype.is_float else np.int64)
    return [n("where", absent, _per_feature(n, x, array, dtype, f"imputed_value_{kind}s"), x)]


@adapts("Normalizer", domain=ML)
def _normalizer(n: NodeContext) -> Sequence[SSAValue]:
    """Each row by its greatest element, the sum of its absolute values, or its length; rows of 0 stay."""
    x = n.required(0)
    if rank_of(x) not in (1, 2):
        raise n.unsupported("its operand is neither a vector nor a matrix")
    kind = n.attr("norm", "MAX")
    dtype = dtype_of(x)
    given, axes = as_float(n, x), n.constant([-1])
    if kind == "MAX":
        size = n("reduce_max", given, axes, keepdims=True)
    elif kind == "L1":
        size = n("reduce_l1", given, axes, keepdims=True)
    elif kind == "L2":
        wide = x if dtype == float64 else given
        size = as_float(n, n("reduce_l2", wide, axes, keepdims=True))
    else:
        raise InvalidArgumentError(f"its norm '{kind}' is none of MAX, L1, L2")
    zero, one = n.constant(0.0, float32), n.constant(1.0, float32)
    return [n("div", given, n("where", n("equal", size, zero), one, size))]


@adapts("ArrayFeatureExtractor", domain=ML)
def _array_feature_extractor(n: NodeContext) -> Sequence[SSAValue]:
    """Columns by number; a vector is taken as a row."""
    x, at = n.required(0), n.required(1)
    if rank_of(x) == 1:
        x = n("unsqueeze", x, n.constant([0]))
    if rank_of(at) != 1:
        at = n("reshape", at, n.constant([-1]))
    return [n("gather", x, at, axis=-1)]


@adapts("FeatureVectorizer", domain=ML)
def _feature_vectorizer(n: NodeContext) -> Sequence[SSAValue]:
    """The inputs' columns side by side, each input cut or filled with 0 to the width that is stated for it."""
    widths = n.attr("inputdimensions") or ()
    if widths and len(widths) != len(n.inputs):
        raise InvalidArgumentError(f"inputdimensions has {len(widths)} widths for {len(n.inputs)} inputs")
    parts: list[SSAValue] = []
    for index in range(len(n.inputs)):
        x = as_float(n, n.required(index))
        if rank_of(x) == 1:
            x = n("unsqueeze", x, n.constant([1]))
        if rank_of(x) != 2:
            raise n.unsupported(f"its input {index} is neither a vector nor a matrix")
        if widths and dims_of(x)[1].static_value != widths[index]:
            wide = n("pad", x, n.constant([0, widths[index]]), None, n.constant([1]))
            x = n("slice", wide, n.constant([0]), n.constant([widths[index]]), n.constant([1]))
        parts.append(x)
    return [n("concat", parts, axis=1)]


@adapts("OneHotEncoder", domain=ML)
def _one_hot_encoder(n: NodeContext) -> Sequence[SSAValue]:
    """Numbers that may be of no category are compared with all; what may refuse is an op of its own."""
    x = n.required(0)
    cats, names = n.attr("cats_int64s") or (), n.attr("cats_strings") or ()
    if not n.attr("zeros", 1) or names or not cats:
        return [
            n(
                "one_hot_encoder",
                x,
                cats_int64s=cats or None,
                cats_strings=names or None,
                zeros=bool(n.attr("zeros", 1)),
            )
        ]
    whole = x if dtype_of(x) == int64 else n("cast", x, to=int64)
    found = n("equal", n("unsqueeze", whole, n.constant([-1])), n.constant(cats))
    return [n("cast", found, to=float32)]
