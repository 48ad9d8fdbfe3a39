"""What the operators of ai.onnx.ml share: tables in properties, labels, and the transforms of scores.

A *table* is a property that holds an array: a small one stands in the IR as a dense attribute, a large one is a weight.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, StringAttr
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DTYPES, DType, float32, float64, int32, int64
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, dense_array, dense_attribute
from sardonyx.dialects.sx.numeric import sigmoid
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import MissingWeightError

INPUTS = (float32, float64, int64, int32)
"""The dtypes of features."""

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What is done to scores, in the order of TreeEnsemble's numbers."""


def table_attribute(array: Array, store: WeightStore, name: str) -> Attribute:
    """An array as a property: dense if it is small, else a weight of the store; strings are a list of texts."""
    if array.dtype == object:
        return ArrayAttr([StringAttr(text) for text in array.reshape(-1)])
    if array.nbytes <= MAX_DENSE_BYTES:
        return dense_attribute(array)
    weight = store.add(array, name)
    return WeightAttr(WeightRef(weight.key, weight))


def table_of(attr: Attribute) -> Array:
    """The array of a property that `table_attribute` made.

    Raises:
        MissingWeightError: The bytes of the weight are not here.
    """
    if isinstance(attr, DenseIntOrFPElementsAttr):
        return dense_array(attr)
    if isinstance(attr, ArrayAttr):
        return labels_array([text.data for text in attr.data if isinstance(text, StringAttr)])
    if isinstance(attr, WeightAttr):
        if attr.data.source is None:
            raise MissingWeightError(f"the bytes of weight '{attr.data.key}' are not here")
        return attr.data.source.array()
    raise TypeError(f"{attr} is no table")


def is_table(attr: Attribute | None) -> TypeGuard[Attribute]:
    texts = isinstance(attr, ArrayAttr) and all(isinstance(text, StringAttr) for text in attr.data)
    return texts or isinstance(attr, DenseIntOrFPElementsAttr | WeightAttr)


def table(op: SxOp, name: str, default: Array | None = None) -> Any:
    """The flat contents of a property, or the default where it is absent."""
    found = op.properties.get(name)
    return default if found is None else table_of(found).reshape(-1)


def check_tables(op: SxOp, names: tuple[str, ...], constraint: str) -> None:
    """Refuse properties that hold something else than a table (in text written by hand)."""
    for name in names:
        found = op.properties.get(name)
        if found is not None and not is_table(found):
            raise op.fail(f"{constraint} '{name}' is no table")


def string_dtype() -> DType | None:
    """The dtype of texts, where there is one."""
    return DTYPES.get("string")


def labels_dtype(op: SxOp, ints: str, strings: str, constraint: str) -> DType:
    """The dtype of labels that either of two properties states.

    Raises:
        InferenceError: Neither or both do.
    """
    stated = [bool(op.attr(name)) for name in (ints, strings)]
    if stated == [True, False]:
        return int64
    if stated != [False, True]:
        raise op.fail(f"{constraint} one of '{ints}' and '{strings}' has labels")
    text = string_dtype()
    if text is None:
        raise op.fail(f"{constraint} labels that are strings are not supported")
    return text


def labels_array(values: Any) -> Array:
    """Labels as an array from which those of rows are taken."""
    listed = list(values)
    if not listed or isinstance(listed[0], str):
        out = np.empty(len(listed), object)
        out[:] = listed
        return out
    return np.array(listed, np.int64)


def features(x: Array) -> Array:
    """The samples as rows of floats: a vector is one sample, integers are float32."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x.reshape(x.shape[0], math.prod(x.shape[1:]))
    return rows if rows.dtype.kind not in "iu" else rows.astype(np.float32)


# ---- transforms of scores (onnxruntime's definitions: ONNX names them only)


def probit(x: Array) -> Array:
    """sqrt(2) * erfinv(2 x - 1), by Winitzki's approximation as every implementation has it."""
    y = 2 * x - 1
    sign = np.where(y < 0, -1.0, 1.0)
    log = np.log((1 - y) * (1 + y))
    v = 2 / (3.14159 * 0.147) + 0.5 * log
    return math.sqrt(2.0) * sign * np.sqrt(-v + np.sqrt(v * v - log / 0.147))


def softmax(x: Array) -> Array:
    if not x.shape[-1]:
        return x
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_zero(x: Array) -> Array:
    """Softmax over what is not zero; zeros stay zero."""
    if not x.shape[-1]:
        return x
    nonzero = np.abs(x) > 1e-7
    e = np.where(nonzero, np.exp(x - x.max(-1, keepdims=True)), x * np.exp(-x.max(-1, keepdims=True)))
    return e / np.where(nonzero, e, 0.0).sum(-1, keepdims=True)


def transformed(scores: Array, transform: str) -> Array:
    """Scores [N, K] with K of 2 and more, each row transformed."""
    if transform == "PROBIT":
        return probit(scores)
    if transform == "LOGISTIC":
        return sigmoid(scores)
    if transform == "SOFTMAX":
        return softmax(scores)
    if transform == "SOFTMAX_ZERO":
        return softmax_zero(scores)
    return scores


def two_columns(score: Array, transform: str, all_positive: bool) -> Array:
    """The scores of both classes from a single one, [N]: 1 - s and s of a probability, else -s and s.

    Only LOGISTIC transforms them (as onnxruntime has it).
    """
    if transform == "LOGISTIC":
        return np.stack([sigmoid(-score), sigmoid(score)], 1)
    return np.stack([1 - score if all_positive else -score, score], 1)
