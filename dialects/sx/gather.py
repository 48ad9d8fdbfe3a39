"""Elements by index: `sx.gather`, `sx.gather_elements`, `sx.gather_nd`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, less_equal
from sardonyx.dialects.dtypes import ANY, DType, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import flat, merge, numbers, objects, refuse, run_axis, slots
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, normalize_axis
from sardonyx.dialects.values import Contents, known_ints


def positions(op: SxOp, indices: Array, size: int, axis: int) -> Array:
    """Non-negative positions for indices that may count from the end.

    Raises:
        ExecutionError: One is outside [-size, size); it is named.
    """
    found = indices.astype(np.int64)
    bad = (found < -size) | (found >= size)
    if bad.any():
        index = int(found[bad].reshape(-1)[0])
        raise refuse(op, f"index {index} is out of range for axis {axis} with {size} elements")
    return np.where(found < 0, found + size, found)


def check_known(op: SxOp, indices: SSAValue, size: Dim, axis: int, constraint: str) -> None:
    """Refuse known indices that a static extent doesn't hold."""
    known, extent = known_ints(indices), size.static_value
    if known is None or extent is None:
        return
    for index in known:
        if not -extent <= index < extent:
            raise op.fail(f"{constraint} index {index} is out of range for axis {axis} with {extent} elements")


@irdl_op_definition
class GatherOp(SxOp):
    """The slices of the operand along `axis` at `indices`, whose shape stands in place of that axis.

    (C1) The dtype is one of `DTYPES`, that of `indices` int64 or int32. (C2) The rank is at least 1 and `axis` in
    [-rank, rank). (C3) The indices are in [-size, size) of the axis.
    """

    name = "sx.gather"
    data = operand_def()
    indices = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Gather", since=11)
    DEFAULTS: ClassVar = {"axis": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        check_dtype(self, self.indices, (int64, int32), "(C1)", "indices")
        if is_unranked(self.data) or is_unranked(self.indices):
            return [unranked_type(dtype)]
        dims = dims_of(self.data)
        axis = self.attr("axis")
        if not dims:
            raise self.fail("(C2) the operand has rank 0")
        axis = normalize_axis(self, axis, len(dims), "(C2)")
        check_known(self, self.indices, dims[axis], axis, "(C3)")
        return [tensor_type(dtype, [*dims[:axis], *dims_of(self.indices), *dims[axis + 1 :]])]

    def infer_values(self) -> Sequence[Contents | None]:
        data, indices = objects(self.data), objects(self.indices)
        if data is None or indices is None:
            return [None]
        axis = run_axis(self, self.attr("axis"), data.ndim)
        known = [None if d is None else d.static_value for d in indices.reshape(-1)]
        # Index `size` stands for an unknown one.
        size = data.shape[axis]
        padded = np.concatenate([data, np.full_like(data[tuple([slice(None)] * axis + [slice(1)])], None)], axis)
        if padded.shape[axis] == size:
            return [None]
        at = np.array([size if i is None else i % size for i in known], np.int64).reshape(indices.shape)
        return [flat(np.take(padded, at, axis))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, indices = slots(arrays)
        axis = run_axis(self, self.attr("axis"), data.ndim)
        at = positions(self, indices, data.shape[axis], axis)
        if not at.size:
            shape = data.shape
            return [np.zeros(shape[:axis] + at.shape + shape[axis + 1 :], data.dtype)]
        return [np.take(data, at, axis)]


@irdl_op_definition
class GatherElementsOp(SxOp):
    """Element i of the result is the operand's at i, with the coordinate of `axis` replaced by `indices[i]`.

    (C1) The dtype is one of `DTYPES`, that of `indices` int64 or int32. (C2) Both have the same rank, at least 1, and
    `axis` is in [-rank, rank). (C3) The indices are in [-size, size) of the axis. (C4) Along the other axes `indices`
    is no longer than the operand.
    """

    name = "sx.gather_elements"
    data = operand_def()
    indices = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("GatherElements", since=11)
    DEFAULTS: ClassVar = {"axis": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        check_dtype(self, self.indices, (int64, int32), "(C1)", "indices")
        if is_unranked(self.indices):
            return [unranked_type(dtype)]
        shape = dims_of(self.indices)
        if is_unranked(self.data):
            return [tensor_type(dtype, shape)]
        dims = dims_of(self.data)
        if not dims or len(dims) != len(shape):
            raise self.fail(f"(C2) shapes {format_dims(dims)} and {format_dims(shape)} need one rank, at least 1")
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        check_known(self, self.indices, dims[axis], axis, "(C3)")
        for at, (extent, size) in enumerate(zip(shape, dims, strict=True)):
            if at != axis and less_equal(extent, size) is Proof.REFUTED:
                raise self.fail(f"(C4) indices has extent {extent} at axis {at}, the operand {size}")
        return [tensor_type(dtype, shape)]

    def infer_values(self) -> Sequence[Contents | None]:
        data, indices = objects(self.data), numbers(self.indices)
        return [None if data is None or indices is None else flat(self._take(data, indices))]

    def _take(self, data: Array, indices: Array) -> Array:
        rank = data.ndim
        axis = run_axis(self, self.attr("axis"), rank)
        longer = [i for i in range(rank) if i != axis and indices.shape[i] > data.shape[i]]
        if indices.ndim != rank or longer:
            raise refuse(self, f"indices of shape {list(indices.shape)} don't fit data of {list(data.shape)}")
        at = positions(self, indices, data.shape[axis], axis)
        window = data[tuple(slice(None) if i == axis else slice(indices.shape[i]) for i in range(rank))]
        return np.take_along_axis(window, at, axis) if at.size else np.zeros(at.shape, data.dtype)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, indices = slots(arrays)
        return [self._take(data, indices)]


@irdl_op_definition
class GatherNDOp(SxOp):
    """The parts of the operand at the index tuples along the last axis of `indices`.

    The first `batch_dims` axes of both go together; a tuple of m indices addresses the next m axes.

    (C1) The dtype is one of `DTYPES`, that of `indices` int64. (C2) Both ranks are at least 1, and 0 <= `batch_dims`
    < either rank. (C3) The tuples' length is static and in [1, rank - batch_dims]. (C4) The batch extents are equal.
    (C5) The indices are in [-size, size) of their axes.
    """

    name = "sx.gather_nd"
    data = operand_def()
    indices = operand_def()
    batch_dims = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("GatherND", since=12)
    DEFAULTS: ClassVar = {"batch_dims": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        check_dtype(self, self.indices, (int64,), "(C1)", "indices")
        if is_unranked(self.data) or is_unranked(self.indices):
            return [unranked_type(dtype)]
        dims, shape, batch = dims_of(self.data), dims_of(self.indices), self.attr("batch_dims")
        if not 0 <= batch < min(len(dims), len(shape)):
            raise self.fail(f"(C2) batch_dims {batch} for shapes {format_dims(dims)} and {format_dims(shape)}")
        length = shape[-1].static_value
        if length is None:
            return [unranked_type(dtype)]
        if not 1 <= length <= len(dims) - batch:
            raise self.fail(f"(C3) tuples of {length} indices for {len(dims) - batch} axes")
        leading = [merge(self, dims[i], shape[i], f"(C4) batch axis {i} differs") for i in range(batch)]
        known = known_ints(self.indices)
        for at, index in enumerate(known or ()):
            axis = batch + at % length
            extent = dims[axis].static_value
            if extent is not None and not -extent <= index < extent:
                raise self.fail(f"(C5) index {index} is out of range for axis {axis} with {extent} elements")
        return [tensor_type(dtype, [*leading, *shape[batch:-1], *dims[batch + length :]])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, indices = slots(arrays)
        return [self._take(data, indices)]

    def infer_values(self) -> Sequence[Contents | None]:
        data, indices = objects(self.data), numbers(self.indices)
        return [None if data is None or indices is None else flat(self._take(data, indices))]

    def _take(self, data: Array, indices: Array) -> Array:
        batch, length = self.attr("batch_dims"), indices.shape[-1] if indices.ndim else 0
        if (
            not 0 <= batch < min(data.ndim, indices.ndim)
            or not 1 <= length <= data.ndim - batch
            or data.shape[:batch] != indices.shape[:batch]
        ):
            raise refuse(self, f"indices of shape {list(indices.shape)} don't fit data of {list(data.shape)}")
        lead = tuple(
            np.arange(data.shape[i]).reshape([-1 if j == i else 1 for j in range(indices.ndim - 1)])
            for i in range(batch)
        )
        tuples = tuple(positions(self, indices[..., i], data.shape[batch + i], batch + i) for i in range(length))
        if not tuples[0].size:
            return np.zeros(tuples[0].shape + data.shape[batch + length :], data.dtype)
        return data[lead + tuples]
