"""Random numbers: `sx.random_normal`, `sx.random_uniform`, their `_like` forms, `sx.bernoulli`,
`sx.multinomial`, `sx.dropout`.

With a seed an op gives the same numbers in every run, without one new ones in each; see `philox`. They have the stated
distribution, but are the numbers of no other library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dtypes import ALL, FLOATS, DType, bool_, float32, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import philox
from sardonyx.dialects.sx.dft import check_scalar
from sardonyx.dialects.sx.extents import check_allocation, check_run_allocation, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, float_attr, format_dims, is_unranked
from sardonyx.errors import InvalidArgumentError


class RandomOp(SxOp):
    """An op that draws random numbers: it is never merged with an equal one nor evaluated ahead of a run."""

    dtype = opt_prop_def(Attribute)
    seed = opt_prop_def(FloatAttr)
    output = result_def()
    DETERMINISTIC: ClassVar = False
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def target(self, default: DType) -> DType:
        """The dtype of the result."""
        try:
            found = default if self.dtype is None else DType.of(self.dtype)
        except InvalidArgumentError:
            raise self.fail(f"(C1) {self.dtype} is not a dtype") from None
        if found not in self.DTYPES:
            raise self.fail(f"(C1) the dtype is {found}; allowed: {', '.join(map(str, self.DTYPES))}")
        return found

    def key(self) -> int:
        seed = self.attr("seed")
        return philox.key_of(None if seed is None else float(seed))

    def _sample(self, count: int) -> Array:
        raise NotImplementedError

    def _draw(self, shape: Sequence[int], dtype: DType) -> Array:
        check_run_allocation(self, np.dtype(np.float64), shape)
        count = int(np.prod(shape, dtype=np.int64))
        return narrow(self._sample(count).reshape(shape), dtype)


class _Normal(RandomOp):
    mean = opt_prop_def(FloatAttr)
    scale = opt_prop_def(FloatAttr)

    def _sample(self, count: int) -> Array:
        return float_attr(self, "mean") + float_attr(self, "scale") * philox.normal(self.key(), count)


class _Uniform(RandomOp):
    high = opt_prop_def(FloatAttr)
    low = opt_prop_def(FloatAttr)

    def _sample(self, count: int) -> Array:
        low, high = float_attr(self, "low"), float_attr(self, "high")
        return low + (high - low) * philox.uniform(self.key(), count)

    def _draw(self, shape: Sequence[int], dtype: DType) -> Array:
        out = super()._draw(shape, dtype)
        # Rounding to the dtype may reach the bound, which does not belong to the range.
        low, high = (np.asarray(float_attr(self, name)).astype(dtype.numpy) for name in ("low", "high"))
        return (
            out
            if not high > low
            else np.where(out >= high, np.nextafter(high, low) if dtype != "bfloat16" else low, out)
        )


class _Shaped(RandomOp):
    shape = prop_def(DenseArrayBase)

    def infer(self) -> Sequence[Attribute]:
        dtype = self.target(float32)
        check_allocation(self, dtype, self.attr("shape"), "(C2)")
        return [tensor_type(dtype, self.attr("shape"))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [self._draw(tuple(self.attr("shape")), self.target(float32))]


class _Like(RandomOp):
    input = operand_def()

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.input, ALL, "(C1)")
        return [broadcast_type(self, self.target(dtype_of(self.input)), [self.input], "(C1)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [self._draw(slots(arrays)[0].shape, self.target(dtype_of(self.input)))]


@irdl_op_definition
class RandomNormalOp(_Normal, _Shaped):
    """A tensor of `shape` with numbers of the normal distribution with `mean` and standard deviation `scale`.

    (C1) `dtype` (by default float32) is one of `DTYPES`. (C2) No extent is negative, and the tensor is not too large.
    """

    name = "sx.random_normal"
    ONNX: ClassVar = OnnxForm("RandomNormal", since=1)
    DEFAULTS: ClassVar = {"dtype": float32, "mean": 0.0, "scale": 1.0}


@irdl_op_definition
class RandomUniformOp(_Uniform, _Shaped):
    """A tensor of `shape` with numbers of the uniform distribution over [low, high).

    (C1) `dtype` (by default float32) is one of `DTYPES`. (C2) No extent is negative, and the tensor is not too large.
    """

    name = "sx.random_uniform"
    ONNX: ClassVar = OnnxForm("RandomUniform", since=1)
    DEFAULTS: ClassVar = {"dtype": float32, "low": 0.0, "high": 1.0}


@irdl_op_definition
class RandomNormalLikeOp(_Normal, _Like):
    """`sx.random_normal` in the shape of `input` and, without `dtype`, in its dtype.

    (C1) The result's dtype is one of `DTYPES`.
    """

    name = "sx.random_normal_like"
    ONNX: ClassVar = OnnxForm("RandomNormalLike", since=1)
    DEFAULTS: ClassVar = {"mean": 0.0, "scale": 1.0}


@irdl_op_definition
class RandomUniformLikeOp(_Uniform, _Like):
    """`sx.random_uniform` in the shape of `input` and, without `dtype`, in its dtype.

    (C1) The result's dtype is one of `DTYPES`.
    """

    name = "sx.random_uniform_like"
    ONNX: ClassVar = OnnxForm("RandomUniformLike", since=1)
    DEFAULTS: ClassVar = {"low": 0.0, "high": 1.0}


@irdl_op_definition
class BernoulliOp(RandomOp):
    """1 with the probability that the operand's element states, else 0, as `dtype` (without it the operand's).

    ONNX's text and reference say so; the function by which it defines the operator too, and which onnxruntime runs,
    gives 0 with that probability instead.

    (C1) The operand's dtype is a float, the result's one of `DTYPES`.
    """

    name = "sx.bernoulli"
    input = operand_def()
    ONNX: ClassVar = OnnxForm("Bernoulli", since=15)
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, FLOATS, "(C1)")
        return [broadcast_type(self, self.target(dtype), [self.input], "(C1)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        drawn = philox.uniform(self.key(), x.size).reshape(x.shape) < double(x)
        return [drawn.astype(self.target(dtype_of(self.input)).numpy)]


@irdl_op_definition
class MultinomialOp(RandomOp):
    """`sample_size` classes drawn for each row of `input` [rows, classes], which holds logarithms of their weights.

    (C1) `dtype` (by default int32) is one of `DTYPES`, that of the operand a float. (C2) The rank is 2. (C3)
    `sample_size` is positive. (C4) There is a class, and each row has a finite weight.
    """

    name = "sx.multinomial"
    input = operand_def()
    sample_size = opt_prop_def(IntegerAttr)
    ONNX: ClassVar = OnnxForm("Multinomial", since=7)
    DEFAULTS: ClassVar = {"dtype": int32, "sample_size": 1}
    DTYPES: ClassVar[Sequence[DType]] = (int32, int64)

    def infer(self) -> Sequence[Attribute]:
        dtype = self.target(int32)
        check_dtype(self, self.input, FLOATS, "(C1)")
        if self.attr("sample_size") < 1:
            raise self.fail(f"(C3) sample_size is {self.attr('sample_size')}")
        rows = fresh_dim()
        if not is_unranked(self.input):
            dims = dims_of(self.input)
            if len(dims) != 2:
                raise self.fail(f"(C2) the operand is {format_dims(dims)}, not of rank 2")
            if dims[1].static_value == 0:
                raise self.fail("(C4) there is no class to draw")
            rows = dims[0]
        check_allocation(self, dtype, [rows, self.attr("sample_size")], "(C3)")
        return [tensor_type(dtype, [rows, self.attr("sample_size")])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim != 2 or not x.shape[1]:
            raise refuse(self, f"an operand of shape {list(x.shape)} has no classes")
        count = self.attr("sample_size")
        check_run_allocation(self, np.dtype(np.float64), [len(x), max(count, x.shape[1])])
        logits = double(x)
        largest = logits.max(1, keepdims=True, initial=-np.inf)
        if not np.isfinite(largest).all():
            raise refuse(self, "the weights of a row are all 0, infinite or NaN")
        sums = np.cumsum(np.exp(logits - largest), 1)
        draws = philox.uniform(self.key(), len(x) * count).reshape(len(x), count) * sums[:, -1:]
        out = [np.searchsorted(row, draw, side="right") for row, draw in zip(sums, draws, strict=True)]
        found = np.array(out, np.int64).reshape(len(x), count)
        return [np.minimum(found, x.shape[1] - 1).astype(self.target(int32).numpy)]


@irdl_op_definition
class DropoutOp(SxOp):
    """In training each element is dropped (0) with probability `ratio` (0.5 without it) and the others divided by
    `1 - ratio`; else the operand itself. `mask` is true for what stays.

    `training_mode` is false without the operand. `seed` as for other random ops.

    (C1) The operand's dtype and that of `ratio` are in `DTYPES`; `training_mode` is bool; both are one element. (C2)
    `ratio` is in [0, 1).
    """

    name = "sx.dropout"
    data = operand_def()
    ratio = opt_operand_def()
    training_mode = opt_operand_def()
    seed = opt_prop_def(IntegerAttr)
    output = result_def()
    mask = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("Dropout", since=12)
    DETERMINISTIC: ClassVar = False
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        check_scalar(self, self.ratio, self.DTYPES, "(C1)", "ratio")
        check_scalar(self, self.training_mode, (bool_,), "(C1)", "training_mode")
        if is_unranked(self.data):
            return [unranked_type(dtype), unranked_type(bool_)]
        return [tensor_type(dtype, dims_of(self.data)), tensor_type(bool_, dims_of(self.data))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, ratio, training = slots(arrays)
        if any(a is not None and a.size != 1 for a in (ratio, training)):
            raise refuse(self, "ratio and training_mode are one element each")
        share = 0.5 if ratio is None else float(double(ratio).reshape(-1)[0])
        if not 0 <= share < 1:
            raise refuse(self, f"ratio is {share}, not in [0, 1)")
        if training is None or not training.reshape(-1)[0] or share == 0:
            return [x.copy(), np.ones(x.shape, bool)]
        mask = (philox.uniform(philox.key_of(self.attr("seed")), x.size) >= share).reshape(x.shape)
        return [narrow(np.where(mask, double(x) / (1 - share), 0.0), x.dtype), mask]
