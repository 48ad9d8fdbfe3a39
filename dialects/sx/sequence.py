"""Sequences of tensors: construct, empty, insert, erase, at, length, concat and split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)

from sardonyx.dialects.attributes import (
    dims_of,
    dtype_of,
    rank_of,
    static_shape,
    tensor_type,
    type_dims,
    unranked_type,
)
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType, float32, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext, Value
from sardonyx.dialects.sx.support import is_unranked, normalize_axis
from sardonyx.dialects.types import SequenceType, is_tensor, join, stored, taken
from sardonyx.dialects.values import known_ints
from sardonyx.errors import ExecutionError, InferenceError


def element_type(op: SxOp, value: SSAValue, constraint: str) -> Attribute:
    """The type of a sequence's elements; a value that is no sequence of tensors breaks the constraint."""
    if not isinstance(value.type, SequenceType) or not is_tensor(value.type.element):
        raise op.fail(f"{constraint} expected a sequence of tensors, found {value.type}")
    return value.type.element


def check_position(op: SxOp, value: SSAValue | None, constraint: str) -> None:
    if value is None:
        return
    fits = is_tensor(value.type) and dtype_of(value) in (int32, int64)
    if not fits or static_shape(value) not in ((), (1,), None):
        raise op.fail(f"{constraint} the position is one int32 or int64, not {value.type}")


def position(op: SxOp, array: Array, length: int, constraint: str) -> int:
    """A position in a sequence of `length` elements, from the end where it is negative.

    Raises:
        ExecutionError: It is out of range.
    """
    if array.size != 1:
        raise ExecutionError(f"{constraint} the position has {array.size} elements, not 1", op=op.name)
    at = int(array.reshape(-1)[0])
    if not -length <= at < length:
        raise ExecutionError(f"{constraint} position {at} is out of range for {length} elements", op=op.name)
    return at % length


@irdl_op_definition
class SequenceConstructOp(SxOp):
    """The sequence of the operands.

    (C1) There is at least one operand; all have the same dtype.
    """

    name = "sx.sequence_construct"
    inputs = var_operand_def()
    output_sequence = result_def()
    ONNX: ClassVar = OnnxForm("SequenceConstruct", since=11)

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            raise self.fail("(C1) there is no operand")
        element: Attribute = self.inputs[0].type
        try:
            dtype_of(element)
            for value in self.inputs[1:]:
                element = join(element, value.type, nested=True)
        except InferenceError as error:
            raise self.fail(f"(C1) {error.message}") from None
        return [SequenceType(element)]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [list(arrays)]


@irdl_op_definition
class SequenceEmptyOp(SxOp):
    """A sequence without elements, of tensors of `dtype` (float32 where it is not stated) and any shape."""

    name = "sx.sequence_empty"
    dtype = opt_prop_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("SequenceEmpty", since=11)

    def infer(self) -> Sequence[Attribute]:
        dtype = self.attr("dtype")
        if dtype is not None and not isinstance(dtype, DType):
            raise self.fail(f"{dtype} is no dtype")
        return [SequenceType(unranked_type(dtype or float32))]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [[]]


def is_empty(value: SSAValue) -> bool:
    """Whether a sequence certainly has no elements, so that its type says nothing of their shapes."""
    while isinstance(value, OpResult) and value.op.name == "sx.identity":
        value = value.op.operands[0]
    return isinstance(value, OpResult) and isinstance(value.op, SequenceEmptyOp)


@irdl_op_definition
class SequenceInsertOp(SxOp):
    """The sequence with `tensor` in front of the element at `position` (from the end where it is negative).

    (C1) `input_sequence` is a sequence of tensors with the dtype of `tensor`. (C2) `position` is one integer in
    [-n, n], n where it is absent.
    """

    name = "sx.sequence_insert"
    input_sequence = operand_def()
    tensor = operand_def()
    position = opt_operand_def()
    output_sequence = result_def()
    ONNX: ClassVar = OnnxForm("SequenceInsert", since=11)

    def infer(self) -> Sequence[Attribute]:
        element = element_type(self, self.input_sequence, "(C1)")
        check_position(self, self.position, "(C2)")
        if is_empty(self.input_sequence) and dtype_of(element) == dtype_of(self.tensor):
            return [SequenceType(self.tensor.type)]
        try:
            return [SequenceType(join(element, self.tensor.type, nested=True))]
        except InferenceError as error:
            raise self.fail(f"(C1) {error.message}") from None

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        elements = list(arrays[0])
        count = len(elements)
        if arrays[2] is None:
            at = count
        else:
            if arrays[2].size != 1:
                raise ExecutionError(f"(C2) the position has {arrays[2].size} elements, not 1", op=self.name)
            at = int(arrays[2].reshape(-1)[0])
            if not -count <= at <= count:
                raise ExecutionError(f"(C2) position {at} is out of range for {count} elements", op=self.name)
            at = at + count if at < 0 else at
        return [[*elements[:at], arrays[1], *elements[at:]]]


@irdl_op_definition
class SequenceEraseOp(SxOp):
    """The sequence without the element at `position`, the last one where it is absent.

    (C1) `input_sequence` is a sequence of tensors. (C2) `position` is one integer in [-n, n).
    """

    name = "sx.sequence_erase"
    input_sequence = operand_def()
    position = opt_operand_def()
    output_sequence = result_def()
    ONNX: ClassVar = OnnxForm("SequenceErase", since=11)

    def infer(self) -> Sequence[Attribute]:
        element_type(self, self.input_sequence, "(C1)")
        check_position(self, self.position, "(C2)")
        return [self.input_sequence.type]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        elements = list(arrays[0])
        given = np.asarray(-1) if arrays[1] is None else arrays[1]
        del elements[position(self, given, len(elements), "(C2)")]
        return [elements]


@irdl_op_definition
class SequenceAtOp(SxOp):
    """The element at `position`, from the end where it is negative.

    (C1) `input_sequence` is a sequence of tensors. (C2) `position` is one integer in [-n, n).
    """

    name = "sx.sequence_at"
    input_sequence = operand_def()
    position = operand_def()
    tensor = result_def()
    ONNX: ClassVar = OnnxForm("SequenceAt", since=11)

    def infer(self) -> Sequence[Attribute]:
        element = element_type(self, self.input_sequence, "(C1)")
        check_position(self, self.position, "(C2)")
        return [taken(element)]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [arrays[0][position(self, arrays[1], len(arrays[0]), "(C2)")]]


@irdl_op_definition
class SequenceLengthOp(SxOp):
    """The number of elements, an int64 scalar.

    (C1) `input_sequence` is a sequence of tensors.
    """

    name = "sx.sequence_length"
    input_sequence = operand_def()
    length = result_def()
    ONNX: ClassVar = OnnxForm("SequenceLength", since=11)

    def infer(self) -> Sequence[Attribute]:
        element_type(self, self.input_sequence, "(C1)")
        return [tensor_type(int64, [])]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [np.asarray(len(arrays[0]), np.int64)]


@irdl_op_definition
class ConcatFromSequenceOp(SxOp):
    """All elements one after the other along `axis`, or, with `new_axis`, stacked along a new one.

    (C1) `input_sequence` is a sequence of tensors; it has elements. (C2) `axis` is in [-r, r), r the rank of the
    elements, or of the result with `new_axis`. (C3) The elements have the same shape, but for `axis` where it is not
    new.
    """

    name = "sx.concat_from_sequence"
    input_sequence = operand_def()
    axis = prop_def(IntegerAttr)
    new_axis = opt_prop_def(IntegerAttr)
    concat_result = result_def()
    DEFAULTS: ClassVar = {"new_axis": False}
    ONNX: ClassVar = OnnxForm("ConcatFromSequence", since=11)

    def infer(self) -> Sequence[Attribute]:
        element = taken(element_type(self, self.input_sequence, "(C1)"))
        dtype = dtype_of(element)
        if element == unranked_type(dtype):
            return [unranked_type(dtype)]
        dims: list[Dim | None] = [*type_dims(element)]
        rank = len(dims) + bool(self.attr("new_axis"))
        if not rank:
            raise self.fail("(C2) scalars have no axis to be joined along; new_axis makes one")
        axis = normalize_axis(self, self.attr("axis"), rank, "(C2)")
        if self.attr("new_axis"):
            dims.insert(axis, None)
        else:
            dims[axis] = None  # the number of elements is not known
        return [taken(stored(element, dims))]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        elements: list[Array] = arrays[0]
        if not elements:
            raise ExecutionError("(C1) the sequence has no elements", op=self.name)
        rank = elements[0].ndim + bool(self.attr("new_axis"))
        axis = normalize_axis(self, self.attr("axis"), rank, "(C2)")
        try:
            if self.attr("new_axis"):
                return [np.stack(elements, axis)]
            return [np.concatenate(elements, axis)]
        except ValueError:
            shown = " and ".join(str(list(e.shape)) for e in elements[:3])
            raise ExecutionError(f"(C3) elements of shapes {shown} cannot be joined", op=self.name) from None


@irdl_op_definition
class SplitToSequenceOp(SxOp):
    """Parts of a tensor along `axis`, as a sequence.

    `split` is the size of each part (the last one may be smaller), or a vector of all sizes; where it is absent the
    parts have size 1, and the axis is dropped unless `keepdims`.

    (C1) `axis` is in [-rank, rank), and rank is not 0. (C2) `split` is int32 or int64 of rank 0 or 1; a size is
    positive; sizes are not negative, and add up to the extent.
    """

    name = "sx.split_to_sequence"
    input = operand_def()
    split = opt_operand_def()
    axis = opt_prop_def(IntegerAttr)
    keepdims = opt_prop_def(IntegerAttr)
    output_sequence = result_def()
    DEFAULTS: ClassVar = {"axis": 0, "keepdims": True}
    ONNX: ClassVar = OnnxForm("SplitToSequence", since=11)

    def infer(self) -> Sequence[Attribute]:
        dtype = dtype_of(self.input)
        split = self.split
        if split is not None and (
            dtype_of(split) not in (int32, int64) or not is_unranked(split) and rank_of(split) > 1
        ):
            raise self.fail(f"(C2) split is int32 or int64 of rank 0 or 1, not {split.type}")
        if is_unranked(self.input):
            return [SequenceType(unranked_type(dtype))]
        dims: list[Dim | None] = [*dims_of(self.input)]
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C1)") if dims else -1
        if axis < 0:
            raise self.fail("(C1) a scalar has no axis")
        if split is None and not self.attr("keepdims"):
            del dims[axis]
        else:
            dims[axis] = self._part(dims_of(self.input)[axis])
        return [SequenceType(stored(self.input.type, dims))]

    def _part(self, extent: Dim) -> Dim | None:
        """The extent that all parts have for certain; None where they may differ."""
        if self.split is None:
            return Dim.of(1)
        sizes = known_ints(self.split)
        if sizes is None or is_unranked(self.split):
            return None
        if rank_of(self.split) == 1:
            if any(s < 0 for s in sizes) or equal(Dim.of(sum(sizes)), extent) is Proof.REFUTED:
                raise self.fail(f"(C2) parts of {list(sizes)} do not make up {extent}")
            return Dim.of(sizes[0]) if len(set(sizes)) == 1 else None
        if sizes[0] <= 0:
            raise self.fail(f"(C2) a part has {sizes[0]} elements")
        return Dim.of(sizes[0]) if equal(extent % sizes[0], 0) is Proof.PROVED else None

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        data, split = arrays[0], arrays[1]
        axis = normalize_axis(self, self.attr("axis"), data.ndim, "(C1)") if data.ndim else -1
        if axis < 0:
            raise ExecutionError("(C1) a scalar has no axis", op=self.name)
        extent = data.shape[axis]
        if split is None and not self.attr("keepdims"):
            return [[np.take(data, i, axis) for i in range(extent)]]
        ends = np.cumsum(self._sizes(split, extent)).tolist()
        parts: list[Any] = []
        for start, end in zip([0, *ends][:-1], ends, strict=True):
            parts.append(data[(slice(None),) * axis + (slice(start, end),)])
        return [parts]

    def _sizes(self, split: Array | None, extent: int) -> list[int]:
        if split is None:
            return [1] * extent
        if split.ndim == 0:
            size = int(split)
            if size <= 0:
                raise ExecutionError(f"(C2) a part has {size} elements", op=self.name)
            return [min(size, extent - start) for start in range(0, extent, size)]
        sizes = [int(s) for s in split]
        if any(s < 0 for s in sizes) or sum(sizes) != extent:
            raise ExecutionError(f"(C2) parts of {sizes} do not make up {extent}", op=self.name)
        return sizes
