"""Sequences turned around: `sx.reverse_sequence`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import ANY, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.values import known_ints


@irdl_op_definition
class ReverseSequenceOp(SxOp):
    """The first `sequence_lens[b]` elements along the time axis reversed, for each b of the batch axis; the rest stays.

    (C1) The dtype is one of `DTYPES`; `sequence_lens` is a vector of int64. (C2) `batch_axis` and `time_axis` are 0 and
    1, or 1 and 0, and the rank is at least 2. (C3) There is a length per batch, and each is in [0, time].
    """

    name = "sx.reverse_sequence"
    input = operand_def()
    sequence_lens = operand_def()
    batch_axis = opt_prop_def(IntegerAttr)
    time_axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("ReverseSequence", since=10)
    DEFAULTS: ClassVar = {"batch_axis": 1, "time_axis": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.input, self.DTYPES, "(C1)")
        lengths = self.sequence_lens
        if dtype_of(lengths) != int64 or (not is_unranked(lengths) and rank_of(lengths) != 1):
            raise self.fail(f"(C1) sequence_lens is {lengths.type}, not a vector of int64")
        batch, time = self.attr("batch_axis"), self.attr("time_axis")
        if sorted((batch, time)) != [0, 1]:
            raise self.fail(f"(C2) batch_axis is {batch} and time_axis {time}; one is 0 and the other 1")
        if is_unranked(self.input):
            return [self.input.type]
        dims = dims_of(self.input)
        if len(dims) < 2:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 2")
        if not is_unranked(lengths):
            merge(self, dims[batch], dims_of(lengths)[0], "(C3) batch and sequence_lens differ")
        size = dims[time].static_value
        for length in known_ints(lengths) or ():
            if length < 0 or (size is not None and length > size):
                raise self.fail(f"(C3) a sequence has length {length}, the time axis {dims[time]}")
        return [self.input.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, lengths = slots(arrays)
        batch, time = self.attr("batch_axis"), self.attr("time_axis")
        if x.ndim < 2 or lengths.shape != (x.shape[batch],):
            raise refuse(self, f"sequence_lens of shape {list(lengths.shape)} doesn't fit data of {list(x.shape)}")
        bad = (lengths < 0) | (lengths > x.shape[time])
        if bad.any():
            raise refuse(self, f"a sequence has length {int(lengths[bad][0])}, the time axis {x.shape[time]}")
        steps = np.arange(x.shape[time])[:, None]
        at = np.where(steps < lengths, lengths - 1 - steps, steps)  # [time, batch]
        if batch == 0:
            at = at.T
        return [np.take_along_axis(x, at.reshape(at.shape + (1,) * (x.ndim - 2)), time)]
