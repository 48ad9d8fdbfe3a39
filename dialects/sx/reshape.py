"""Other shapes for the same elements: `sx.reshape`, `sx.squeeze`, `sx.unsqueeze`, `sx.flatten`; and `sx.expand`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides, equal
from sardonyx.dialects.dtypes import ANY, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    flat,
    objects,
    refuse,
    run_axes,
    run_axis,
    slots,
)
from sardonyx.dialects.sx.support import broadcast_dims, check_dtype, format_dims, is_unranked, normalize_axes
from sardonyx.dialects.values import Contents, contents, known_ints

MAX_RANK = 1024
"""What a vector of axes whose length alone is known may lead to: nobody has tensors of so many dims."""


@irdl_op_definition
class ReshapeOp(SxOp):
    """The elements in row-major order in another shape.

    An entry -1 of `shape` takes what is left, once; an entry 0 copies the operand's extent at its position, unless
    `allowzero`. An entry that is computed from extents (a symbol in value inference) stands for itself where it is 0,
    so that one graph serves every size; ONNX would copy there.

    (C1) The dtype is one of `DTYPES`; `shape` is a vector of int64. (C2) No entry is below -1, one at most is -1.
    (C3) An entry 0 that copies has a position below the operand's rank. (C4) With `allowzero`, 0 and -1 don't occur
    together. (C5) The numbers of elements are equal; what -1 takes is a whole number.
    """

    name = "sx.reshape"
    data = operand_def()
    shape = operand_def()
    allowzero = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Reshape", since=5)
    DEFAULTS: ClassVar = {"allowzero": False}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        length = check_vector(self, self.shape, "(C1)", "shape")
        if length is None:
            return [unranked_type(dtype)]
        target = elements(self.shape, length)
        self._check_entries([d.static_value for d in target if d is not None])
        source = None if is_unranked(self.data) else dims_of(self.data)
        return [tensor_type(dtype, self._dims(source, target))]

    def _check_entries(self, entries: Sequence[int | None]) -> None:
        if any(e is not None and e < -1 for e in entries) or entries.count(-1) > 1:
            raise self.fail(f"(C2) shape has an entry below -1, or two that are -1: {list(entries)}")
        if self.attr("allowzero") and 0 in entries and -1 in entries:
            raise self.fail("(C4) shape has both 0 and -1, and allowzero is set")

    def _dims(self, source: Shape | None, target: Contents) -> list[Dim]:
        out: list[Dim | None] = []
        copied: set[int] = set()
        for position, entry in enumerate(target):
            value = None if entry is None else entry.static_value
            if value == 0 and not self.attr("allowzero"):
                if source is not None and position >= len(source):
                    raise self.fail(f"(C3) shape copies extent {position} of an operand of rank {len(source)}")
                copied.add(position)
                out.append(None if source is None else source[position])
            else:
                out.append(None if value == -1 else entry)
        if source is None:
            return [fresh_dim() if d is None else d for d in out]
        unknown = [i for i, d in enumerate(out) if d is None]
        if not unknown:
            known = [d for d in out if d is not None]
            if equal(Dim.product(source), Dim.product(known)) is Proof.REFUTED:
                raise self.fail(f"(C5) {format_dims(source)} cannot be reshaped to {format_dims(known)}")
        if len(unknown) == 1:
            # Copied extents cancel as such, also where they are 0.
            have = Dim.product(d for i, d in enumerate(source) if i not in copied)
            want = Dim.product(d for i, d in enumerate(out) if i not in copied and d is not None)
            out[unknown[0]] = self._quotient(have, want, source, target)
        return [fresh_dim() if d is None else d for d in out]

    def _quotient(self, have: Dim, want: Dim, source: Shape, target: Contents) -> Dim | None:
        """The one open extent: the quotient where it is proved to be whole."""
        stated = -1 in [None if d is None else d.static_value for d in target]
        if want.static_value == 0:
            if stated:
                raise self.fail("(C5) what -1 takes is not defined beside extents of 0")
            return None
        quotient = have.exact_quotient(want)
        if quotient is not None:
            return quotient
        proof = divides(want, have)
        if proof is Proof.REFUTED or (have.is_static and want.is_static):
            shown = format_dims(Dim.symbol("?") if d is None else d for d in target)
            raise self.fail(f"(C5) {format_dims(source)} cannot be reshaped to {shown}")
        return have // want if proof is Proof.PROVED else None

    def infer_values(self) -> Sequence[Contents | None]:
        return [contents(self.data)]

    def run_shape(self, source: Sequence[int], entries: Sequence[int]) -> tuple[int, ...]:
        """The result's shape in a run.

        Raises:
            ExecutionError: The entries break a constraint.
        """
        error = refuse(self, f"{list(source)} cannot be reshaped to {list(entries)}")
        if any(e < -1 for e in entries) or list(entries).count(-1) > 1:
            raise error
        known = contents(self.shape) or (None,) * len(entries)
        computed = [d is not None and not d.is_static for d in known]
        zeros = [i for i, e in enumerate(entries) if e == 0]
        if self.attr("allowzero"):
            copies: list[set[int]] = [set()]
        else:
            # Some of these readings are no shape; the first that is one counts.
            copies = [{i for i in zeros if not computed[i]}, set(zeros), set()]
        for copied in copies:
            shape = _resolve(source, entries, copied)
            if shape is not None:
                return shape
        raise error

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, shape = slots(arrays)
        return [data.reshape(self.run_shape(data.shape, shape.tolist()))]


def _resolve(source: Sequence[int], entries: Sequence[int], copied: set[int]) -> tuple[int, ...] | None:
    if any(i >= len(source) for i in copied):
        return None
    out = [source[i] if i in copied else e for i, e in enumerate(entries)]
    if -1 in entries:
        have = math.prod(d for i, d in enumerate(source) if i not in copied)
        want = math.prod(e for i, e in enumerate(entries) if i not in copied and e != -1)
        if want == 0 or have % want:
            return None
        out[list(entries).index(-1)] = have // want
    return tuple(out) if math.prod(out) == math.prod(source) else None


@irdl_op_definition
class SqueezeOp(SxOp):
    """The operand without the axes in `axes`, whose extents are 1; without `axes`, without all axes of extent 1.

    Where `axes` is absent and an extent may or may not be 1, not even the result's rank is known.

    (C1) The dtype is one of `DTYPES`; `axes` is a vector of int64. (C2) `axes` are in [-rank, rank) and don't repeat.
    (C3) The extents there are 1.
    """

    name = "sx.squeeze"
    data = operand_def()
    axes = opt_operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Squeeze", since=13)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        count = None if self.axes is None else check_vector(self, self.axes, "(C1)", "axes")
        if is_unranked(self.data):
            return [unranked_type(dtype)]
        dims = dims_of(self.data)
        if self.axes is None:
            if any(d != Dim.of(1) and equal(d, 1) is Proof.UNKNOWN for d in dims):
                return [unranked_type(dtype)]
            return [tensor_type(dtype, [d for d in dims if d != Dim.of(1)])]
        if count is None:
            return [unranked_type(dtype)]
        if count > len(dims):
            raise self.fail(f"(C2) {count} axes for rank {len(dims)}")
        known = known_ints(self.axes)
        if known is None:
            return [tensor_type(dtype, [fresh_dim() for _ in range(len(dims) - count)])]
        removed = normalize_axes(self, known, len(dims), "(C2)")
        for axis in removed:
            if equal(dims[axis], 1) is Proof.REFUTED:
                raise self.fail(f"(C3) axis {axis} has extent {dims[axis]}, not 1")
        return [tensor_type(dtype, [d for i, d in enumerate(dims) if i not in removed])]

    def infer_values(self) -> Sequence[Contents | None]:
        return [contents(self.data)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, axes = slots(arrays)
        shape = data.shape
        if axes is None:
            removed = tuple(i for i, extent in enumerate(shape) if extent == 1)
        else:
            removed = run_axes(self, axes.tolist(), len(shape))
            for axis in removed:
                if shape[axis] != 1:
                    raise refuse(self, f"axis {axis} has extent {shape[axis]}, not 1")
        return [data.reshape([d for i, d in enumerate(shape) if i not in removed])]


@irdl_op_definition
class UnsqueezeOp(SxOp):
    """The operand with axes of extent 1 put in where the result has the axes in `axes`.

    (C1) The dtype is one of `DTYPES`; `axes` is a vector of int64. (C2) `axes` are in [-r, r), where r is the result's
    rank, and don't repeat.
    """

    name = "sx.unsqueeze"
    data = operand_def()
    axes = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Unsqueeze", since=13)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        count = check_vector(self, self.axes, "(C1)", "axes")
        if is_unranked(self.data) or count is None:
            return [unranked_type(dtype)]
        dims = dims_of(self.data)
        rank = len(dims) + count
        if rank > MAX_RANK:
            raise self.fail(f"(C1) axes has {count} elements: the result would have the rank {rank}")
        known = known_ints(self.axes)
        if known is None:
            return [tensor_type(dtype, [fresh_dim() for _ in range(rank)] if count else dims)]
        added = normalize_axes(self, known, rank, "(C2)")
        rest = iter(dims)
        return [tensor_type(dtype, [1 if i in added else next(rest) for i in range(rank)])]

    def infer_values(self) -> Sequence[Contents | None]:
        return [contents(self.data)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, axes = slots(arrays)
        rank = data.ndim + axes.size
        added = run_axes(self, axes.tolist(), rank)
        rest = iter(data.shape)
        return [data.reshape([1 if i in added else next(rest) for i in range(rank)])]


@irdl_op_definition
class FlattenOp(SxOp):
    """The operand as a matrix: the axes before `axis` make the rows, the others the columns.

    (C1) The dtype is one of `DTYPES`. (C2) `axis` is in [-rank, rank].
    """

    name = "sx.flatten"
    data = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Flatten", since=11)
    DEFAULTS: ClassVar = {"axis": 1}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        if is_unranked(self.data):
            return [tensor_type(dtype, [fresh_dim(), fresh_dim()])]
        dims = dims_of(self.data)
        axis = self.attr("axis")
        if not -len(dims) <= axis <= len(dims):
            raise self.fail(f"(C2) axis {axis} is out of range for rank {len(dims)}")
        axis += len(dims) if axis < 0 else 0
        return [tensor_type(dtype, [Dim.product(dims[:axis]), Dim.product(dims[axis:])])]

    def infer_values(self) -> Sequence[Contents | None]:
        return [contents(self.data)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = slots(arrays)
        shape = data.shape
        axis = self.attr("axis")
        axis = len(shape) if axis == len(shape) else run_axis(self, axis, len(shape))
        return [data.reshape(math.prod(shape[:axis]), math.prod(shape[axis:]))]


@irdl_op_definition
class ExpandOp(SxOp):
    """The operand broadcast with `shape`, in both directions: an extent 1 on either side takes the other's.

    (C1) The dtype is one of `DTYPES`; `shape` is a vector of int64. (C2) The shapes broadcast; no entry is negative.
    (C3) The result is no larger than a tensor can be.
    """

    name = "sx.expand"
    data = operand_def()
    shape = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Expand", since=8)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        length = check_vector(self, self.shape, "(C1)", "shape")
        if length is None or is_unranked(self.data):
            return [unranked_type(dtype)]
        dims = dims_of(self.data)
        target = elements(self.shape, length)
        for entry in target:
            if entry is not None and (entry.static_value or 0) < 0:
                raise self.fail(f"(C2) shape has the entry {entry}")
        rank = max(len(dims), length)
        padded: Contents = (Dim.of(1),) * (rank - length) + target
        out = list(broadcast_dims(self, [dims, tuple(Dim.of(1) if e is None else e for e in padded)], "(C2)"))
        for at, entry in enumerate(padded):
            # An unknown entry leaves an extent that certainly isn't 1 as it is.
            if entry is None and equal(out[at], 1) is not Proof.REFUTED:
                out[at] = fresh_dim()
        check_allocation(self, dtype, out, "(C3)")
        return [tensor_type(dtype, out)]

    def infer_values(self) -> Sequence[Contents | None]:
        data, shape = objects(self.data), known_ints(self.shape)
        if data is None or shape is None:
            return [None]
        return [flat(np.broadcast_to(data, np.broadcast_shapes(data.shape, shape)))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, entries = slots(arrays)
        target = entries.tolist()
        shape = self.run_shape(data.shape, target)
        check_run_allocation(self, data, shape)
        return [np.broadcast_to(data, shape).copy()]

    def run_shape(self, source: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
        """The result's shape in a run; raises ExecutionError where the shapes don't broadcast."""
        rank = max(len(source), len(target))
        a = [1] * (rank - len(source)) + list(source)
        b = [1] * (rank - len(target)) + list(target)
        if any(e < 0 for e in b) or any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
            raise refuse(self, f"shapes {list(source)} and {list(target)} do not broadcast")
        return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
