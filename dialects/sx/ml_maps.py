"""Maps of ai.onnx.ml, in the reference only: `sx.zip_map`, `sx.cast_map`, `sx.dict_vectorizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.extents import refuse
from sardonyx.dialects.sx.ml_support import labels_dtype, string_dtype
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.types import MapType, SequenceType, describe_type


@irdl_op_definition
class ZipMapOp(SxOp):
    """Each row of [N, C] (or the one row [C]) as a map from the labels to its elements: a sequence of maps.

    (C1) The operand is float32. (C2) One of `classlabels_int64s` and `classlabels_strings` has labels. (C3) There are
    as many columns as labels.
    """

    name = "sx.zip_map"
    data = operand_def()
    classlabels_int64s = opt_prop_def()
    classlabels_strings = opt_prop_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("ZipMap", "ai.onnx.ml")

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(self.attr("classlabels_int64s") or self.attr("classlabels_strings"))

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, (float32,), "(C1)")
        key = labels_dtype(self, "classlabels_int64s", "classlabels_strings", "(C2)")
        if not is_unranked(self.data):
            dims = dims_of(self.data)
            if len(dims) not in (1, 2) or dims[-1].static_value not in (None, len(self.labels)):
                shown = ", ".join(map(str, dims))
                raise self.fail(f"(C3) shape [{shown}] has no column for each of {len(self.labels)} labels")
        return [SequenceType(MapType(key.ir, tensor_type(float32, [])))]

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Any]:
        (x,) = arrays
        rows = x.reshape(1, -1) if x.ndim == 1 else x
        if rows.ndim != 2 or rows.shape[1] != len(self.labels):
            raise refuse(self, f"(C3) shape {list(x.shape)} has no column for each of {len(self.labels)} labels")
        return [[dict(zip(self.labels, row.tolist())) for row in rows]]


class MapInputOp(SxOp):
    """An op on one map."""

    def map_type(self, constraint: str) -> MapType:
        ty = self.operands[0].type
        if not isinstance(ty, MapType):
            raise self.fail(f"{constraint} expected a map, found {describe_type(ty)}")
        return ty


@irdl_op_definition
class CastMapOp(MapInputOp):
    """The values of a map by ascending key as a row, [1, N]; SPARSE: at the position that their key is, [1, max_map].

    (C1) The operand is a map from int64. (C2) `cast_to` and `map_form` are ONNX's names. (C3) Without `max_map` a
    sparse row has no length; a key is in [0, max_map).
    """

    name = "sx.cast_map"
    data = operand_def()
    cast_to = opt_prop_def(StringAttr)
    map_form = opt_prop_def(StringAttr)
    max_map = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("CastMap", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"cast_to": "TO_FLOAT", "map_form": "DENSE", "max_map": 1}

    def target(self) -> DType:
        found = {"TO_FLOAT": float32, "TO_INT64": int64, "TO_STRING": string_dtype()}.get(self.attr("cast_to"))
        if found is None:
            raise self.fail(f"(C2) cast_to '{self.attr('cast_to')}' is not supported")
        return found

    def infer(self) -> Sequence[Attribute]:
        if DType.of(self.map_type("(C1)").key) != int64:
            raise self.fail("(C1) the keys are no int64")
        form, count = self.attr("map_form"), self.attr("max_map")
        if form not in ("DENSE", "SPARSE"):
            raise self.fail(f"(C2) map_form '{form}' is neither DENSE nor SPARSE")
        if form == "SPARSE" and count < 1:
            raise self.fail(f"(C3) max_map is {count}")
        return [tensor_type(self.target(), [1, count if form == "SPARSE" else fresh_dim()])]

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Any]:
        (given,) = arrays
        target = self.target()
        if self.attr("map_form") == "DENSE":
            values = [given[key] for key in sorted(given)]
        else:
            count = self.attr("max_map")
            bad = next((key for key in given if not 0 <= key < count), None)
            if bad is not None:
                raise refuse(self, f"(C3) the key {bad} is outside of [0, {count})")
            values = [given.get(key, "" if target.kind == "s" else 0) for key in range(count)]
        return [_row(self, values, target)]


@irdl_op_definition
class DictVectorizerOp(MapInputOp):
    """The values of a map in the order of a vocabulary of keys, 0 (or '') for those that it lacks: [1, C].

    (C1) The operand is a map. (C2) One of `int64_vocabulary` and `string_vocabulary`, of the keys' dtype, has entries.
    """

    name = "sx.dict_vectorizer"
    data = operand_def()
    int64_vocabulary = opt_prop_def()
    string_vocabulary = opt_prop_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("DictVectorizer", "ai.onnx.ml")

    @property
    def vocabulary(self) -> tuple[Any, ...]:
        return tuple(self.attr("int64_vocabulary") or self.attr("string_vocabulary"))

    def infer(self) -> Sequence[Attribute]:
        ty = self.map_type("(C1)")
        if labels_dtype(self, "int64_vocabulary", "string_vocabulary", "(C2)") != DType.of(ty.key):
            raise self.fail(f"(C2) the vocabulary is not of the keys' dtype, {DType.of(ty.key)}")
        return [tensor_type(self._target(ty), [1, len(self.vocabulary)])]

    def _target(self, ty: MapType) -> DType:
        element: Any = ty.element
        return DType.of(element.element_type)

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Any]:
        (given,) = arrays
        target = self._target(self.map_type("(C1)"))
        missing = "" if target.kind == "s" else 0
        return [_row(self, [given.get(key, missing) for key in self.vocabulary], target)]


def _row(op: SxOp, values: Sequence[Any], target: DType) -> Any:
    """The values as [1, N]; texts that are numbers become such."""
    try:
        if target.kind == "s":
            out = np.empty((1, len(values)), object)
            out[0, :] = [str(v) for v in values]
            return out
        return np.array([[float(v) if target.is_float else int(float(v)) for v in values]], target.numpy).reshape(1, -1)
    except (TypeError, ValueError, OverflowError) as error:
        raise refuse(op, f"a value of the map cannot be cast: {error}") from None
