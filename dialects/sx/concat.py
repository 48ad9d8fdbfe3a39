"""Joining and parting along an axis: `sx.concat`, `sx.split`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from sardonyx.dialects.attributes import dims_of, fresh_dim, static_shape, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import ANY, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_vector, elements, flat, merge, objects, refuse, run_axis, slots
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, normalize_axis, same_dtype
from sardonyx.dialects.values import Contents, known_ints


@irdl_op_definition
class ConcatOp(SxOp):
    """The operands side by side along `axis`.

    (C1) One or more operands of the same dtype, one of `DTYPES`. (C2) They have the same rank, at least 1.
    (C3) `axis` is in [-rank, rank). (C4) Their extents are equal except along `axis`.
    """

    name = "sx.concat"
    inputs = var_operand_def()
    axis = prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Concat", since=11)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            raise self.fail("(C1) concat needs an operand")
        dtype = same_dtype(self, self.inputs, "(C1)")
        check_dtype(self, self.inputs[0], self.DTYPES, "(C1)")
        shapes = [dims_of(o) for o in self.inputs if not is_unranked(o)]
        if not shapes:
            return [unranked_type(dtype)]
        rank = len(shapes[0])
        if rank == 0 or any(len(s) != rank for s in shapes):
            shown = " and ".join(format_dims(s) for s in shapes)
            raise self.fail(f"(C2) the operands need one rank, at least 1; their shapes are {shown}")
        axis = normalize_axis(self, self.attr("axis"), rank, "(C3)")
        out = list(shapes[0])
        for shape in shapes[1:]:
            for at in range(rank):
                if at != axis:
                    out[at] = merge(self, out[at], shape[at], f"(C4) the operands differ at axis {at}")
        known = len(shapes) == len(self.inputs)
        out[axis] = Dim.sum(shape[axis] for shape in shapes) if known else fresh_dim()
        return [tensor_type(dtype, out)]

    def infer_values(self) -> Sequence[Contents | None]:
        parts: list[Array] = []
        for operand in self.inputs:
            part = objects(operand)
            if part is None:
                shape = static_shape(operand)
                if shape is None:
                    return [None]
                part = np.full(shape, None, object)
            parts.append(part)
        return [flat(np.concatenate(parts, self.attr("axis")))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        parts = [a for a in arrays if a is not None]
        rank = parts[0].ndim
        axis = run_axis(self, self.attr("axis"), rank)
        shapes = [p.shape for p in parts]
        rest = {s[:axis] + s[axis + 1 :] for s in shapes}
        if len(rest) != 1 or any(len(s) != rank for s in shapes):
            shown = " and ".join(str(list(s)) for s in shapes)
            raise refuse(self, f"shapes {shown} cannot be concatenated along axis {axis}")
        return [np.concatenate(parts, axis)]


@irdl_op_definition
class SplitOp(SxOp):
    """The operand cut along `axis` into parts of the sizes in `split`, or into `num_outputs` of them.

    By `num_outputs` each part is `ceildiv(size, num_outputs)` long, the last one takes what is left.

    (C1) The dtype is one of `DTYPES`; `split` is a vector of int64. (C2) `axis` is in [-rank, rank).
    (C3) Either `split` or `num_outputs` is given, not both; it states as many parts as there are results, at least 1.
    (C4) The sizes are not negative and add up to the extent of the axis. (C5) By `num_outputs` the last part's size is
    not negative.
    """

    name = "sx.split"
    data = operand_def()
    split = opt_operand_def()
    axis = opt_prop_def(IntegerAttr)
    num_outputs = opt_prop_def(IntegerAttr)
    outputs = var_result_def()
    ONNX: ClassVar = OnnxForm("Split", since=13)
    DEFAULTS: ClassVar = {"axis": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        parts = len(self.outputs)
        stated = self.attr("num_outputs")
        if (self.split is None) == (stated is None):
            raise self.fail("(C3) give either the operand 'split' or num_outputs")
        if self.split is not None:
            stated = check_vector(self, self.split, "(C1)", "split")
        if stated is not None and stated != parts or not parts:
            raise self.fail(f"(C3) {stated} parts are stated, the op has {parts} results")
        if is_unranked(self.data):
            return [unranked_type(dtype)] * parts
        dims = dims_of(self.data)
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        sizes = self._equal_sizes(dims[axis]) if self.split is None else self._given_sizes(dims[axis], self.split)
        return [tensor_type(dtype, [*dims[:axis], size, *dims[axis + 1 :]]) for size in sizes]

    def _equal_sizes(self, extent: Dim) -> list[Dim]:
        parts = len(self.outputs)
        size = extent.ceildiv(parts)
        last = extent - size * (parts - 1)
        if last.static_value is not None and last.static_value < 0:
            raise self.fail(f"(C5) an extent of {extent} cannot be split into {parts} parts of {size}")
        return [size] * (parts - 1) + [last]

    def _given_sizes(self, extent: Dim, split: SSAValue) -> list[Dim]:
        given = elements(split, len(self.outputs))
        known = [d for d in given if d is not None]
        for size in known:
            if size.static_value is not None and size.static_value < 0:
                raise self.fail(f"(C4) the size {size} is negative")
        total = Dim.sum(known)
        if len(known) == len(given):
            if equal(total, extent) is Proof.REFUTED:
                raise self.fail(f"(C4) the sizes {format_dims(known)} add up to {total}, not {extent}")
            return known
        if len(known) == len(given) - 1:
            return [extent - total if d is None else d for d in given]
        return [fresh_dim() if d is None else d for d in given]

    def run_sizes(self, extent: int, split: Sequence[int] | None) -> list[int]:
        """The parts' sizes of a run; raises ExecutionError where they break (C4) or (C5)."""
        parts = len(self.outputs)
        if split is None:
            size = -(-extent // parts)
            sizes = [size] * (parts - 1) + [extent - size * (parts - 1)]
        else:
            sizes = [int(s) for s in split]
        if len(sizes) != parts or sum(sizes) != extent or min(sizes) < 0:
            raise refuse(self, f"an extent of {extent} cannot be split into {parts} parts of sizes {sizes}")
        return sizes

    def infer_values(self) -> Sequence[Contents | None]:
        data = objects(self.data)
        sizes = known_ints(self.split)
        if data is None or (self.split is not None and sizes is None):
            return [None] * len(self.outputs)
        return [flat(part) for part in self._cut(data, sizes)]

    def _cut(self, data: Array, split: Sequence[int] | None) -> list[Array]:
        axis = run_axis(self, self.attr("axis"), data.ndim)
        sizes = self.run_sizes(data.shape[axis], split)
        return np.split(data, np.cumsum(sizes)[:-1], axis)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, split = slots(arrays)
        return self._cut(data, None if split is None else split.tolist())
