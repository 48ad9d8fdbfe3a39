"""Constants: `sx.constant` holds small contents in the IR and names large ones by key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, LocationAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure

from sardonyx.dialects.attributes import StringsAttr, WeightAttr, WeightRef, dtype_of, static_shape, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, string
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.strings import string_array
from sardonyx.dialects.weights import Weight, WeightStore
from sardonyx.errors import MissingWeightError

MAX_DENSE_BYTES = 1024
"""Contents up to this size stay dense in the IR, so that CHECK lines and folding see them."""


def dense_attribute(array: Array) -> DenseIntOrFPElementsAttr[Any]:
    """The dense attribute that holds the array's bytes."""
    dtype = DType.of(array.dtype)
    ty = tensor_type(dtype, array.shape)
    if dtype.kind == "i" and dtype.bits < 8:
        array = array.astype(np.int8)  # MLIR's bytes bear the sign in all their bits
    return DenseIntOrFPElementsAttr(ty, BytesAttr(np.ascontiguousarray(array).tobytes()))


def dense_array(attr: DenseIntOrFPElementsAttr[Any]) -> Array:
    """The read-only array of a dense attribute (a splat is expanded)."""
    ty = attr.type
    dtype = DType.of(ty.element_type)
    shape = tuple(ty.get_shape())
    count = int(np.prod(shape, dtype=np.int64))
    raw = attr.data.data
    if dtype.name == "bool":
        flat = np.frombuffer(raw, np.uint8) != 0
    elif dtype.kind == "i" and dtype.bits < 8:
        flat = np.frombuffer(raw, np.int8).astype(dtype.numpy)
        flat.flags.writeable = False
    else:
        flat = np.frombuffer(raw, dtype.numpy)
    if flat.size == 1 and count != 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)


@irdl_op_definition
class ConstantOp(SxOp):
    """A constant tensor.

    (C1) `value` is dense (static shape), a `#sx.weight`, or `#sx.strings`; the result type states its dtype and shape.
    """

    name = "sx.constant"
    value = prop_def(DenseIntOrFPElementsAttr | WeightAttr | StringsAttr)
    output = result_def()
    traits = traits_def(Pure(), ConstantLike())
    ONNX: ClassVar = OnnxForm("Constant", since=1)

    @classmethod
    def of(cls, array: Array, store: WeightStore, name: str = "w", location: LocationAttr | None = None) -> Self:
        """A constant of the array's contents: dense up to `MAX_DENSE_BYTES`, else a weight of the store."""
        if array.nbytes <= MAX_DENSE_BYTES or array.dtype.kind == "O":
            return cls.dense(array, location)
        return cls.of_weight(store.add(array, name), location)

    @classmethod
    def dense(cls, array: Array, location: LocationAttr | None = None) -> Self:
        if array.dtype.kind == "O":
            ty = tensor_type(string, array.shape)
            return cls.make(value=StringsAttr(tuple(array.reshape(-1))), location=location, result_types=[ty])
        return cls.make(value=dense_attribute(array), location=location)

    @classmethod
    def of_weight(cls, weight: Weight, location: LocationAttr | None = None) -> Self:
        ty = tensor_type(weight.dtype, weight.shape)
        return cls.make(value=WeightAttr(WeightRef(weight.key, weight)), location=location, result_types=[ty])

    def infer(self) -> Sequence[Attribute]:
        if isinstance(self.value, DenseIntOrFPElementsAttr):
            ty = self.value.type
            return [tensor_type(DType.of(ty.element_type), ty.get_shape())]
        ty = self.output.type
        if not isinstance(ty, TensorType) or static_shape(self.output) is None:
            raise self.fail(f"(C1) a weight's type is a tensor of static shape, not {ty}")
        if isinstance(self.value, StringsAttr) != (dtype_of(ty) == string):
            raise self.fail(f"(C1) the contents are of another kind than {ty}")
        if isinstance(self.value, StringsAttr) and len(self.value.data) != math.prod(ty.get_shape()):
            raise self.fail(f"(C1) {len(self.value.data)} strings do not fill {ty}")
        return [ty]

    def print(self, printer: Printer) -> None:
        """As every op, but contents that are not finite are printed as bytes: xDSL prints NaN and infinities as hex
        numbers and reads those back as integers."""
        value = self.value
        if isinstance(value, DenseIntOrFPElementsAttr) and dtype_of(self.output).is_float:
            array = dense_array(value)
            if array.size and not np.isfinite(array.astype(np.float64)).all():
                raw = np.ascontiguousarray(array).tobytes().hex().upper()
                printer.print_string(f' {{value = dense<"0x{raw}"> : ')
                printer.print_attribute(value.type)
                for name, attribute in self.attributes.items():
                    printer.print_string(f", {name} = ")
                    printer.print_attribute(attribute)
                printer.print_string("} : () -> ")
                printer.print_attribute(self.output.type)
                return
        super().print(printer)

    def array(self) -> Array:
        """The contents, read-only.

        Raises:
            MissingWeightError: The bytes of the weight are not here.
        """
        if isinstance(self.value, WeightAttr):
            source = self.value.data.source
            if source is None:
                raise MissingWeightError(
                    f"the bytes of weight '{self.value.data.key}' are not here",
                    hint="give the weights' file (--weights) or bind a WeightStore",
                    op=self.name,
                )
            return source.array()
        if isinstance(self.value, StringsAttr):
            return string_array(self.value.data, static_shape(self.output) or ())
        return dense_array(self.value)

    def infer_values(self) -> Sequence[tuple[Dim | None, ...] | None]:
        if not isinstance(self.value, DenseIntOrFPElementsAttr) or dtype_of(self.output).kind not in "ib":
            return [None]
        return [tuple(Dim.of(int(v)) for v in self.array().reshape(-1))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [self.array()]
