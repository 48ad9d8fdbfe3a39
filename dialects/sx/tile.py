"""Repetition: `sx.tile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
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
    slots,
)
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.values import Contents, known_ints


@irdl_op_definition
class TileOp(SxOp):
    """The operand repeated `repeats[i]` times along axis i.

    (C1) The dtype is one of `DTYPES`; `repeats` is a vector of int64. (C2) It has one entry per axis, none of them
    negative. (C3) The result is no larger than a tensor can be.
    """

    name = "sx.tile"
    data = operand_def()
    repeats = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Tile", since=6)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        length = check_vector(self, self.repeats, "(C1)", "repeats")
        if is_unranked(self.data):
            if length is None:
                return [unranked_type(dtype)]
            dims = tuple(fresh_dim() for _ in range(length))
        else:
            dims = dims_of(self.data)
        if length is not None and length != len(dims):
            raise self.fail(f"(C2) repeats has {length} entries for rank {len(dims)}")
        repeats = elements(self.repeats, len(dims))
        if any(r is not None and (r.static_value or 0) < 0 for r in repeats):
            raise self.fail("(C2) an entry of repeats is negative")
        out = [
            fresh_dim() if r is None and d != Dim.of(0) else d * (r or 0) for d, r in zip(dims, repeats, strict=True)
        ]
        check_allocation(self, dtype, out, "(C3)")
        return [tensor_type(dtype, out)]

    def infer_values(self) -> Sequence[Contents | None]:
        data, repeats = objects(self.data), known_ints(self.repeats)
        return [None if data is None or repeats is None else flat(np.tile(data, repeats))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, repeats = slots(arrays)
        counts = repeats.tolist()
        shape = data.shape
        if len(counts) != len(shape) or any(c < 0 for c in counts):
            raise refuse(self, f"shape {list(shape)} cannot be repeated {counts} times")
        check_run_allocation(self, data, [d * c for d, c in zip(shape, counts, strict=True)])
        return [np.tile(data, counts)]
