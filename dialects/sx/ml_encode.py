"""Labels and categories of ai.onnx.ml: `sx.label_encoder`, `sx.category_mapper`, `sx.one_hot_encoder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.ml_support import INPUTS, is_table, labels_array, string_dtype, table_of
from sardonyx.dialects.sx.support import check_dtype, is_unranked

_KINDS = ("int64s", "floats", "strings", "tensor")


def lookup(keys: Array, values: Array, default: Any, x: Array) -> Array:
    """For each element of `x` the value of its key, else the default; NaN is a key like others."""
    known: dict[Any, Any] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        known.setdefault(_key(key), value)  # the first of several
    out = np.empty(x.size, values.dtype)
    for index, element in enumerate(x.reshape(-1).tolist()):
        out[index] = known.get(_key(element), default)
    return out.reshape(x.shape)


def _key(element: Any) -> Any:
    return None if isinstance(element, float) and element != element else element


@irdl_op_definition
class LabelEncoderOp(SxOp):
    """Each element's value by its key, else the default.

    (C1) One `keys_…` and one `values_…` have as many entries. (C2) The operand has the keys' dtype. (C3) A default
    tensor has one element of the values' dtype.
    """

    name = "sx.label_encoder"
    data = operand_def()
    keys_int64s = opt_prop_def()
    keys_floats = opt_prop_def()
    keys_strings = opt_prop_def()
    keys_tensor = opt_prop_def()
    values_int64s = opt_prop_def()
    values_floats = opt_prop_def()
    values_strings = opt_prop_def()
    values_tensor = opt_prop_def()
    default_int64 = opt_prop_def(IntegerAttr)
    default_float = opt_prop_def(FloatAttr)
    default_string = opt_prop_def(StringAttr)
    default_tensor = opt_prop_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("LabelEncoder", "ai.onnx.ml", since=2)
    DEFAULTS: ClassVar = {"default_int64": -1, "default_float": -0.0, "default_string": "_Unused"}

    def _entries(self, what: str) -> tuple[str, Array, DType]:
        """The kind, the entries and the dtype of the keys or values."""
        stated = [k for k in _KINDS if self.properties.get(f"{what}_{k}") is not None]
        if len(stated) != 1:
            raise self.fail(f"(C1) one of {what}_int64s, {what}_floats, {what}_strings and {what}_tensor has entries")
        kind = stated[0]
        attr = self.properties[f"{what}_{kind}"]
        if kind == "strings":
            return kind, labels_array(self.attr(f"{what}_{kind}")), _strings(self)
        if not is_table(attr):
            raise self.fail(f"(C1) '{what}_{kind}' is no table")
        array = table_of(attr).reshape(-1)
        return kind, array, _strings(self) if array.dtype == object else DType.of(array.dtype)

    def infer(self) -> Sequence[Attribute]:
        _, keys, key_dtype = self._entries("keys")
        _, values, dtype = self._entries("values")
        if len(keys) != len(values):
            raise self.fail(f"(C1) there are {len(keys)} keys and {len(values)} values")
        check_dtype(self, self.data, (key_dtype,), "(C2)")
        default = self.properties.get("default_tensor")
        if default is not None and (not is_table(default) or table_of(default).size != 1):
            raise self.fail("(C3) default_tensor is no tensor of one element")
        if isinstance(default, DenseIntOrFPElementsAttr) and table_of(default).dtype != values.dtype:
            raise self.fail(f"(C3) default_tensor is {table_of(default).dtype}, the values are {dtype}")
        return [_as(self, dtype)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        keys, values = self._entries("keys")[1], self._entries("values")[1]
        tensor = self.properties.get("default_tensor")
        if tensor is not None:
            default: Any = table_of(tensor).reshape(-1)[0]
        elif values.dtype == object:
            default = self.attr("default_string")
        elif values.dtype.kind == "f":
            default = np.float32(self.attr("default_float"))
        else:
            default = self.attr("default_int64")
        return [lookup(keys, values, default, x)]


@irdl_op_definition
class CategoryMapperOp(SxOp):
    """Strings to numbers or back, by two lists of categories.

    (C1) `cats_int64s` and `cats_strings` have as many entries. (C2) The operand is of strings or int64.
    """

    name = "sx.category_mapper"
    data = operand_def()
    cats_int64s = opt_prop_def()
    cats_strings = opt_prop_def()
    default_int64 = opt_prop_def(IntegerAttr)
    default_string = opt_prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("CategoryMapper", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"default_int64": -1, "default_string": "_Unused", "cats_int64s": (), "cats_strings": ()}

    def infer(self) -> Sequence[Attribute]:
        if len(self.attr("cats_int64s")) != len(self.attr("cats_strings")):
            raise self.fail("(C1) cats_int64s and cats_strings differ in length")
        text = _strings(self)
        dtype = check_dtype(self, self.data, (text, int64), "(C2)")
        return [_as(self, int64 if dtype == text else text)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        numbers, names = np.array(self.attr("cats_int64s"), np.int64), labels_array(self.attr("cats_strings"))
        if dtype_of(self.data) == int64:
            return [lookup(numbers, names.astype(object), self.attr("default_string"), x)]
        return [lookup(names, numbers, self.attr("default_int64"), x)]


@irdl_op_definition
class OneHotEncoderOp(SxOp):
    """For each element a row of float32: 1 at its category, else 0.

    (C1) The dtype is float32, float64, int64 or int32 with `cats_int64s`, string with `cats_strings`; one of them has
    entries. (C2) Without `zeros` each element is of a category.
    """

    name = "sx.one_hot_encoder"
    data = operand_def()
    cats_int64s = opt_prop_def()
    cats_strings = opt_prop_def()
    zeros = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("OneHotEncoder", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"zeros": True}

    def infer(self) -> Sequence[Attribute]:
        names = self.attr("cats_strings")
        if bool(names) == bool(self.attr("cats_int64s")):
            raise self.fail("(C1) one of cats_int64s and cats_strings has entries")
        check_dtype(self, self.data, (_strings(self),) if names else INPUTS, "(C1)")
        if is_unranked(self.data):
            return [unranked_type(float32)]
        return [tensor_type(float32, [*dims_of(self.data), len(names or self.attr("cats_int64s"))])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        cats = labels_array(self.attr("cats_strings") or self.attr("cats_int64s"))
        given = x if cats.dtype == object else x.astype(np.int64)
        found = np.asarray(given[..., None] == cats, bool)
        if not self.attr("zeros") and not found.any(-1).all():
            unknown = given[~found.any(-1)].reshape(-1)[0]
            raise refuse(self, f"(C2) '{unknown}' is of no category")
        return [found.astype(np.float32)]


def _strings(op: SxOp) -> DType:
    found = string_dtype()
    if found is None:
        raise op.fail("(C1) strings are not supported")
    return found


def _as(op: SxOp, dtype: DType) -> Attribute:
    """The operand's shape with another dtype."""
    data = op.operands[0]
    return unranked_type(dtype) if is_unranked(data) else tensor_type(dtype, dims_of(data))
