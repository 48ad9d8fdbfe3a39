"""Support vector machines of ai.onnx.ml: `sx.svm_regressor` and `sx.svm_classifier`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.ml_support import (
    INPUTS,
    TRANSFORMS,
    check_tables,
    features,
    labels_array,
    labels_dtype,
    table,
    transformed,
    two_columns,
)
from sardonyx.dialects.sx.numeric import narrow, sigmoid
from sardonyx.dialects.sx.support import check_dtype, is_unranked

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
TABLES = ("coefficients", "support_vectors", "rho", "prob_a", "prob_b", "kernel_params")


class SvmOp(SxOp):
    """What both have in common: tables, the kernel function, and rows of float32 results."""

    def floats(self, name: str) -> Any:
        """A table as float64; empty where it is absent."""
        return table(self, name, np.zeros(0, np.float32)).astype(np.float64)

    def check_common(self) -> None:
        check_dtype(self, self.operands[0], INPUTS, "(C1)")
        check_tables(self, TABLES, "(C3)")
        if not self.floats("coefficients").size or not self.floats("rho").size:
            raise self.fail("(C3) it has no coefficients or no rho")
        if self.attr("kernel_type") not in KERNELS:
            raise self.fail(f"(C3) kernel_type '{self.attr('kernel_type')}' is none of {', '.join(KERNELS)}")
        if self.attr("post_transform") not in TRANSFORMS:
            raise self.fail(f"(C3) post_transform '{self.attr('post_transform')}' is none of {', '.join(TRANSFORMS)}")
        if self.floats("kernel_params").size not in (0, 3):
            raise self.fail("(C3) kernel_params are gamma, coef0 and degree")

    def row_type(self, dtype: DType, *after: int) -> Attribute:
        data = self.operands[0]
        if is_unranked(data):
            return unranked_type(dtype)
        dims = dims_of(data)
        if len(dims) not in (1, 2):
            raise self.fail(f"(C2) the operand has rank {len(dims)}, neither 1 nor 2")
        return tensor_type(dtype, [dims[0] if len(dims) == 2 else Dim.of(1), *after])

    def kernel(self, x: Array, vectors: Array, kind: str) -> Array:
        """The kernel function of each row of `x` with each vector, float64."""
        if x.shape[1] != vectors.shape[1]:
            raise refuse(self, f"(C4) the samples have {x.shape[1]} features, the vectors {vectors.shape[1]}")
        params = self.floats("kernel_params")
        gamma, coef0, degree = params.tolist() if params.size else (0.0, 0.0, 0.0)
        if kind == "RBF":
            squares = np.stack([np.square(x - v).sum(1) for v in vectors], 1)
            return np.exp(-gamma * squares)
        product = x @ vectors.T
        if kind == "LINEAR":
            return product
        product = gamma * product + coef0
        return np.power(product, degree) if kind == "POLY" else np.tanh(product)


@irdl_op_definition
class SvmRegressorOp(SvmOp):
    """`sum of coefficients * kernel(x, support vectors) + rho`, [N, 1]; its sign as -1 or 1 if `one_class`.

    Without support vectors the coefficients are those of a linear model.

    (C1) The dtype is float32, float64, int64 or int32. (C2) The operand is [N, F] or [F]. (C3) The tables fit each
    other, and names are ONNX's. (C4) The samples have as many features as the vectors.
    """

    name = "sx.svm_regressor"
    data = operand_def()
    coefficients = opt_prop_def()
    support_vectors = opt_prop_def()
    rho = opt_prop_def()
    kernel_params = opt_prop_def()
    kernel_type = opt_prop_def(StringAttr)
    n_supports = opt_prop_def(IntegerAttr)
    one_class = opt_prop_def(IntegerAttr)
    post_transform = opt_prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("SVMRegressor", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"kernel_type": "LINEAR", "n_supports": 0, "one_class": 0, "post_transform": "NONE"}

    def infer(self) -> Sequence[Attribute]:
        self.check_common()
        count = self.attr("n_supports")
        if count < 0 or (count and self.floats("support_vectors").size % count):
            raise self.fail(f"(C3) the support vectors do not make {count}")
        if count and self.floats("coefficients").size < count:
            raise self.fail(f"(C3) there are fewer coefficients than {count} support vectors")
        return [self.row_type(float32, 1)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (given,) = slots(arrays)
        x, count = features(given).astype(np.float64), self.attr("n_supports")
        coefficients, rho = self.floats("coefficients"), self.floats("rho")[0]
        if count:
            vectors = self.floats("support_vectors").reshape(count, -1)
            scores = self.kernel(x, vectors, self.attr("kernel_type")) @ coefficients[:count]
        else:
            scores = self.kernel(x, coefficients[None], "LINEAR")[:, 0]
        scores = scores + rho
        if self.attr("one_class"):
            scores = np.where(scores > 0, 1.0, -1.0)
        return [narrow(scores[:, None], np.dtype(np.float32))]


@irdl_op_definition
class SvmClassifierOp(SvmOp):
    """Each row's label, and its scores: one per pair of classes, or with `prob_a` and `prob_b` a probability per class.

    Without `vectors_per_class` it is a linear model with a score per class. Votes of the pairs decide, the first class
    of several with as many.

    (C1) The dtype is float32, float64, int64 or int32. (C2) The operand is [N, F] or [F]. (C3) The tables fit each
    other, names are ONNX's, and one of `classlabels_ints` and `classlabels_strings` has labels. (C4) The samples have
    as many features as the vectors.
    """

    name = "sx.svm_classifier"
    data = operand_def()
    coefficients = opt_prop_def()
    support_vectors = opt_prop_def()
    vectors_per_class = opt_prop_def()
    rho = opt_prop_def()
    prob_a = opt_prop_def()
    prob_b = opt_prop_def()
    kernel_params = opt_prop_def()
    kernel_type = opt_prop_def(StringAttr)
    classlabels_ints = opt_prop_def()
    classlabels_strings = opt_prop_def()
    post_transform = opt_prop_def(StringAttr)
    label = result_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("SVMClassifier", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"kernel_type": "LINEAR", "post_transform": "NONE"}

    @property
    def labels(self) -> Array:
        return labels_array(self.attr("classlabels_ints") or self.attr("classlabels_strings"))

    def infer(self) -> Sequence[Attribute]:
        self.check_common()
        dtype = labels_dtype(self, "classlabels_ints", "classlabels_strings", "(C3)")
        classes = len(self.labels)
        per_class = self.attr("vectors_per_class") or ()
        pairs, total = classes * (classes - 1) // 2, sum(per_class)
        proba = self.floats("prob_a").size
        if proba != self.floats("prob_b").size:
            raise self.fail("(C3) prob_a and prob_b differ in length")
        width = classes
        if total:
            if len(per_class) != classes or min(per_class) < 0 or self.floats("support_vectors").size % total:
                raise self.fail(f"(C3) the support vectors do not fit {classes} classes")
            if self.floats("coefficients").size < (classes - 1) * total or self.floats("rho").size < pairs:
                raise self.fail(f"(C3) the coefficients or rho do not fit {pairs} pairs of {classes} classes")
            if 0 < proba < pairs:
                raise self.fail(f"(C3) prob_a and prob_b do not fit {pairs} pairs of classes")
            if not proba:
                width = pairs if classes > 2 else 2
        elif self.floats("coefficients").size % classes:
            raise self.fail(f"(C3) the coefficients do not fit {classes} classes")
        return [self.row_type(dtype), self.row_type(float32, width)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (given,) = slots(arrays)
        x = features(given).astype(np.float64)
        labels, transform = self.labels, self.attr("post_transform")
        classes = len(labels)
        proba = bool(self.floats("prob_a").size)
        votes: Array | None = None
        pairs = classes * (classes - 1) // 2
        if self.attr("vectors_per_class") and sum(self.attr("vectors_per_class")):
            decisions, votes = self._pairs(x, classes)
            scores = self._coupled(decisions, classes) if proba else decisions
        else:
            matrix = self.floats("coefficients").reshape(classes, -1)
            scores = self.kernel(x, matrix, "LINEAR") + self.floats("rho")[0]
        best = (scores if votes is None else votes).argmax(1)
        if pairs == 1 and not proba:
            # onnxruntime's rule for two classes; votes count as weight 0.
            weight = np.zeros(len(x)) if votes is not None else scores.max(1)
            positive = bool((self.floats("coefficients") >= 0).all())
            best = np.where((weight >= 0.5) if positive else (weight > 0), 1, best)
        if votes is not None and not proba and classes <= 2:
            return [labels[best], narrow(self._two(scores[:, 0], transform), np.dtype(np.float32))]
        found = labels[best]
        if classes == 1:
            found = labels_array(("0", "1") if self.attr("classlabels_strings") else (0, 1))[
                (scores[:, 0] > 0).astype(int)
            ]
            return [found, narrow(scores, np.dtype(np.float32))]
        return [found, narrow(transformed(scores, transform), np.dtype(np.float32))]

    def _two(self, score: Array, transform: str) -> Array:
        if transform == "NONE":
            return np.stack([-score, score], 1)
        if transform == "PROBIT":
            return transformed(np.stack([1 - score, score], 1), transform)
        return two_columns(score, transform, True)

    def _pairs(self, x: Array, classes: int) -> tuple[Array, Array]:
        """The decision of each pair of classes, and each class's votes, in libsvm's layout of coefficients."""
        per_class = list(self.attr("vectors_per_class"))
        total = sum(per_class)
        vectors = self.floats("support_vectors").reshape(total, -1)
        coefficients = self.floats("coefficients")[: (classes - 1) * total].reshape(classes - 1, total)
        kernels, rho = self.kernel(x, vectors, self.attr("kernel_type")), self.floats("rho")
        ends = np.cumsum(per_class).tolist()
        at = [slice(end - size, end) for end, size in zip(ends, per_class)]
        decisions: list[Array] = []
        votes = np.zeros((len(x), classes), np.int64)
        for i in range(classes):
            for j in range(i + 1, classes):
                found = kernels[:, at[i]] @ coefficients[j - 1, at[i]] + kernels[:, at[j]] @ coefficients[i, at[j]]
                found = found + rho[len(decisions)]
                decisions.append(found)
                votes[:, i] += found > 0
                votes[:, j] += found <= 0
        return np.stack(decisions, 1) if decisions else np.zeros((len(x), 0)), votes

    def _coupled(self, decisions: Array, classes: int) -> Array:
        """Probabilities of the classes from those of the pairs (Wu, Lin and Weng 2004, as libsvm has it)."""
        a, b = self.floats("prob_a"), self.floats("prob_b")
        out = np.empty((len(decisions), classes))
        for row, scores in enumerate(decisions):
            r = np.zeros((classes, classes))
            index = 0
            for i in range(classes):
                for j in range(i + 1, classes):
                    p = float(np.clip(1 - sigmoid(scores[index] * a[index] + b[index]), 1e-7, 1 - 1e-7))
                    r[i, j], r[j, i] = p, 1 - p
                    index += 1
            out[row] = _multiclass_probability(r)
        return out


def _multiclass_probability(r: Array) -> Array:
    k = len(r)
    q = -r.T * r
    np.fill_diagonal(q, np.square(r).sum(0) - np.square(np.diag(r)))
    p = np.full(k, 1.0 / k)
    for _ in range(100):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            step = (pqp - qp[t]) / q[t, t]
            p[t] += step
            pqp = (pqp + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            qp = (qp + step * q[t]) / (1 + step)
            p /= 1 + step
    return p
