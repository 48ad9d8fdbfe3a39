"""Elements put in by index: `sx.scatter_elements`, `sx.scatter_nd`, `sx.tensor_scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, less_equal
from sardonyx.dialects.dtypes import ALL, ANY, DType, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import flat, merge, numbers, objects, refuse, run_axis, slots
from sardonyx.dialects.sx.gather import check_known, positions
from sardonyx.dialects.sx.numeric import double, is_float, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, normalize_axis
from sardonyx.dialects.values import Contents, known_ints

REDUCTIONS = ("none", "add", "mul", "max", "min")
_UFUNCS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def put(data: Array, at: Any, updates: Array, reduction: str) -> Array:
    """A copy of `data` with `updates` put in (or combined) at the places `at`, one after the other.

    Of several updates of one place the last one stays where nothing is combined. Sums and products of floats are taken
    in float64 and rounded once, those of integers wrap around, of bools they are `or` and `and`.
    """
    if reduction == "none":
        out = data.copy()
        out[at] = updates
        return out
    floats = is_float(data)
    out = double(data) if floats else data.copy()
    _UFUNCS[reduction].at(out, at, double(updates) if floats else updates)
    return narrow(out, data.dtype) if floats else out


class ScatterOp(SxOp):
    """What `sx.scatter_elements` and `sx.scatter_nd` share."""

    data = operand_def()
    indices = operand_def()
    updates = operand_def()
    reduction = opt_prop_def(StringAttr)
    output = result_def()
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def _check(self, index_dtypes: Sequence[DType]) -> DType:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        check_dtype(self, self.updates, (dtype,), "(C1)", "updates")
        check_dtype(self, self.indices, index_dtypes, "(C1)", "indices")
        if self.attr("reduction") not in REDUCTIONS:
            raise self.fail(f"(C2) reduction '{self.attr('reduction')}' is none of {', '.join(REDUCTIONS)}")
        if self.attr("reduction") != "none":
            check_dtype(self, self.data, ALL, "(C2)", "what is reduced")
        return dtype

    def _place(self, data: Array, indices: Array, updates: Array) -> Array:
        raise NotImplementedError

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [self._place(*slots(arrays))]

    def infer_values(self) -> Sequence[Contents | None]:
        if self.attr("reduction") != "none":
            return [None]
        data, indices, updates = objects(self.data), numbers(self.indices), objects(self.updates)
        if data is None or indices is None or updates is None:
            return [None]
        return [flat(self._place(data, indices, updates))]


@irdl_op_definition
class ScatterElementsOp(ScatterOp):
    """The data with each element of `updates` put at its own position, but along `axis` where `indices` says.

    `reduction` combines it with what stands there: `add`, `mul`, `max`, `min`; with `none` the last of several
    updates of one element stays. See `put` for sums.

    (C1) The dtype is one of `DTYPES`, that of `updates` the same, of `indices` int64 or int32. (C2) `reduction` is one
    of `REDUCTIONS`, all but `none` for numbers of 8 bits or more. (C3) All ranks are equal and at least 1, and
    `axis` is in [-rank, rank). (C4) `indices` and `updates` have one shape, no longer than the data along the other
    axes. (C5) The indices are in [-size, size).
    """

    name = "sx.scatter_elements"
    axis = opt_prop_def(IntegerAttr)
    ONNX: ClassVar = OnnxForm("ScatterElements", since=11)
    DEFAULTS: ClassVar = {"axis": 0, "reduction": "none"}

    def infer(self) -> Sequence[Attribute]:
        self._check((int64, int32))
        shapes = [dims_of(v) for v in (self.data, self.indices, self.updates) if not is_unranked(v)]
        ranks = {len(s) for s in shapes}
        if len(ranks) > 1 or 0 in ranks:
            raise self.fail(f"(C3) shapes {', '.join(map(format_dims, shapes))} need one rank, at least 1")
        if not is_unranked(self.indices) and not is_unranked(self.updates):
            for i, (a, b) in enumerate(zip(dims_of(self.indices), dims_of(self.updates), strict=True)):
                merge(self, a, b, f"(C4) indices and updates differ at axis {i}")
        if not is_unranked(self.data):
            dims = dims_of(self.data)
            axis = normalize_axis(self, self.attr("axis"), len(dims), "(C3)")
            check_known(self, self.indices, dims[axis], axis, "(C5)")
            if not is_unranked(self.indices):
                for i, (extent, size) in enumerate(zip(dims_of(self.indices), dims, strict=True)):
                    if i != axis and less_equal(extent, size) is Proof.REFUTED:
                        raise self.fail(f"(C4) indices has extent {extent} at axis {i}, the data {size}")
        return [self.data.type]

    def _place(self, data: Array, indices: Array, updates: Array) -> Array:
        rank = data.ndim
        axis = run_axis(self, self.attr("axis"), rank)
        longer = [i for i in range(min(rank, indices.ndim)) if i != axis and indices.shape[i] > data.shape[i]]
        if indices.ndim != rank or longer or updates.shape != indices.shape:
            raise refuse(
                self,
                f"indices of shape {list(indices.shape)} and updates of {list(updates.shape)} don't fit data of "
                f"{list(data.shape)}",
            )
        at = positions(self, indices, data.shape[axis], axis)
        places = [np.arange(n).reshape([-1 if j == i else 1 for j in range(rank)]) for i, n in enumerate(at.shape)]
        places[axis] = at
        return put(data, tuple(np.broadcast_to(p, at.shape) for p in places), updates, self.attr("reduction"))


@irdl_op_definition
class ScatterNDOp(ScatterOp):
    """The data with parts of `updates` put at the index tuples along the last axis of `indices`.

    A tuple of m indices addresses the first m axes; `reduction` as for `sx.scatter_elements`.

    (C1) The dtype is one of `DTYPES`, that of `updates` the same, of `indices` int64. (C2) `reduction` is one of
    `REDUCTIONS`, as there. (C3) `indices` has rank 1 or more; its tuples have at most as many entries as the data
    has axes. (C4) The shape of `updates` is that of `indices` but for the tuples, followed by the data's further
    axes. (C5) The indices are in [-size, size) of their axes.
    """

    name = "sx.scatter_nd"
    ONNX: ClassVar = OnnxForm("ScatterND", since=11)
    DEFAULTS: ClassVar = {"reduction": "none"}

    def infer(self) -> Sequence[Attribute]:
        self._check((int64,))
        if is_unranked(self.data) or is_unranked(self.indices):
            return [self.data.type]
        dims, shape = dims_of(self.data), dims_of(self.indices)
        if not shape:
            raise self.fail("(C3) indices has rank 0")
        length = shape[-1].static_value
        if length is None:
            return [self.data.type]
        if length > len(dims):
            raise self.fail(f"(C3) tuples of {length} indices for {len(dims)} axes")
        if not is_unranked(self.updates):
            self._check_updates((*shape[:-1], *dims[length:]), dims_of(self.updates))
        for at, index in enumerate(known_ints(self.indices) or ()):
            extent = dims[at % length].static_value
            if extent is not None and not -extent <= index < extent:
                raise self.fail(f"(C5) index {index} is out of range for axis {at % length} with {extent} elements")
        return [self.data.type]

    def _check_updates(self, wanted: Shape, found: Shape) -> None:
        if len(wanted) != len(found):
            raise self.fail(f"(C4) updates is {format_dims(found)}, not {format_dims(wanted)}")
        for i, (a, b) in enumerate(zip(wanted, found, strict=True)):
            merge(self, a, b, f"(C4) updates is {format_dims(found)}, not {format_dims(wanted)}; axis {i}")

    def _place(self, data: Array, indices: Array, updates: Array) -> Array:
        length = indices.shape[-1] if indices.ndim else -1
        if not 0 <= length <= data.ndim or updates.shape != indices.shape[:-1] + data.shape[length:]:
            raise refuse(
                self,
                f"indices of shape {list(indices.shape)} and updates of {list(updates.shape)} don't fit data of "
                f"{list(data.shape)}",
            )
        if not updates.size:
            for i in range(length):
                positions(self, indices[..., i], data.shape[i], i)
            return data.copy()
        if length == 0:  # every tuple is empty and means the whole
            flat_updates = updates.reshape(-1, *data.shape)
            whole = np.zeros(len(flat_updates), np.int64)
            return put(data[None], (whole,), flat_updates, self.attr("reduction"))[0]
        at = tuple(positions(self, indices[..., i], data.shape[i], i) for i in range(length))
        return put(data, at, updates, self.attr("reduction"))


@irdl_op_definition
class TensorScatterOp(SxOp):
    """A cache [batch, …] with `update` written along `axis` from `write_indices[batch]` on (0 without it).

    `mode` `linear` needs room for the whole update; `circular` goes on at the front.

    (C1) The dtype is one of `DTYPES`, that of `update` the same; `write_indices` is a vector of int64. (C2) The rank
    is at least 2, `axis` in [-rank, rank) and not the batch. (C3) `update` has the cache's shape, but along `axis`,
    where it is no longer. (C4) `write_indices` has one entry per batch. (C5) `mode` is one of `MODES`. (C6) Indices are
    not negative, and what is written in `linear` mode lies inside.
    """

    name = "sx.tensor_scatter"
    past_cache = operand_def()
    update = operand_def()
    write_indices = opt_operand_def()
    axis = opt_prop_def(IntegerAttr)
    mode = opt_prop_def(StringAttr)
    present_cache = result_def()
    ONNX: ClassVar = OnnxForm("TensorScatter", since=24)
    DEFAULTS: ClassVar = {"axis": -2, "mode": "linear"}
    DTYPES: ClassVar[Sequence[DType]] = ANY
    MODES: ClassVar = ("linear", "circular")

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.past_cache, self.DTYPES, "(C1)")
        check_dtype(self, self.update, (dtype,), "(C1)", "update")
        if self.attr("mode") not in self.MODES:
            raise self.fail(f"(C5) mode '{self.attr('mode')}' is none of {', '.join(self.MODES)}")
        at: SSAValue | None = self.write_indices
        if at is not None and (dtype_of(at) != int64 or (not is_unranked(at) and len(dims_of(at)) != 1)):
            raise self.fail(f"(C1) write_indices is {at.type}, not a vector of int64")
        if is_unranked(self.past_cache) or is_unranked(self.update):
            return [unranked_type(dtype) if is_unranked(self.past_cache) else self.past_cache.type]
        dims, shape = list(dims_of(self.past_cache)), dims_of(self.update)
        if len(dims) < 2 or len(shape) != len(dims):
            raise self.fail(f"(C2) shapes {format_dims(dims)} and {format_dims(shape)} need one rank, at least 2")
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        if axis == 0:
            raise self.fail("(C2) axis 0 is the batch")
        for i, (size, extent) in enumerate(zip(dims, shape, strict=True)):
            if i != axis:
                dims[i] = merge(self, size, extent, f"(C3) cache and update differ at axis {i}")
            elif less_equal(extent, size) is Proof.REFUTED:
                raise self.fail(f"(C3) the update has {extent} elements along axis {i}, the cache {size}")
        if at is not None and not is_unranked(at):
            merge(self, dims[0], dims_of(at)[0], "(C4) write_indices and batch differ")
        return [tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        cache, update, write = slots(arrays)
        axis = run_axis(self, self.attr("axis"), cache.ndim)
        same = [i for i in range(min(cache.ndim, update.ndim)) if i != axis and cache.shape[i] != update.shape[i]]
        if axis == 0 or cache.ndim != update.ndim or same or update.shape[axis] > cache.shape[axis]:
            raise refuse(self, f"an update of shape {list(update.shape)} doesn't fit a cache of {list(cache.shape)}")
        batch, room, count = cache.shape[0], cache.shape[axis], update.shape[axis]
        start = np.zeros(batch, np.int64) if write is None else write
        if start.shape != (batch,):
            raise refuse(self, f"write_indices has shape {list(start.shape)}, not [{batch}]")
        last = room - count if self.attr("mode") == "linear" else np.iinfo(np.int64).max
        bad = (start < 0) | (start > last)
        if bad.any() and count:
            index = int(start[bad][0])
            raise refuse(self, f"{count} elements from index {index} on don't fit the {room} of axis {axis}")
        out = cache.copy()
        steps = np.arange(count)
        for b in range(batch if count else 0):
            # The index is brought into the cache first, so that the sum below cannot overflow.
            at = (int(start[b]) % room + steps) % room
            out[b][(slice(None),) * (axis - 1) + (at,)] = update[b]
        return [out]
