"""The `sx` dialect: ops on tensors, one family a file.

`BY_NAME` has the op classes by name, and imports a family when one of its ops is asked for: a graph of ten kinds of ops
costs the import of ten, not of two hundred. So does `BY_ONNX`, by ONNX's domain and name. `OPS` and `SX` (the xDSL
dialect) are all there is, and import all of it; they are made when they are first read (PEP 562).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Dialect
from xdsl.irdl import IRDLOperation

from sardonyx.dialects.attributes import DimsAttr, StringsAttr, WeightAttr
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.string_type import StringType
from sardonyx.dialects.types import TYPES

FAMILIES: dict[str, str] = {
    "constant": "constant",
    "unary": "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor identity is_inf is_nan "
        "log neg not reciprocal round sign sin sinh sqrt tan",
    "activation": "celu elu gelu hard_sigmoid hard_swish leaky_relu mish prelu relu selu shrink sigmoid softplus "
        "softsign swish tanh thresholded_relu",
    "binary": "add bit_shift bitwise_and bitwise_or bitwise_xor div mod mul pow sub",
    "variadic": "max mean min sum",
    "compare": "equal greater greater_equal less less_equal",
    "logical": "and or xor",
    "select": "clip where",
    "cast": "cast cast_like",
    "reduce": "reduce_l1 reduce_l2 reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod "
        "reduce_sum reduce_sum_square",
    "argreduce": "arg_max arg_min",
    "softmax": "hardmax log_softmax softmax",
    "cumsum": "cumsum",
    "matmul": "gemm matmul",
    "conv": "conv conv_transpose",
    "pool": "average_pool global_average_pool global_max_pool max_pool",
    "norm": "batch_norm group_norm instance_norm lrn",
    "layer_norm": "layer_norm lp_normalization rms_norm",
    "reshape": "expand flatten reshape squeeze unsqueeze",
    "transpose": "transpose",
    "concat": "concat split",
    "slice": "slice",
    "pad": "pad",
    "tile": "tile",
    "shape": "shape size",
    "scatter": "scatter_elements scatter_nd tensor_scatter",
    "topk": "top_k",
    "one_hot": "eye_like one_hot",
    "nonzero": "compress non_zero",
    "unique": "unique",
    "nms": "non_max_suppression",
    "reverse_sequence": "reverse_sequence",
    "cumprod": "cumprod",
    "bit_cast": "bit_cast",
    "det": "det",
    "einsum": "einsum",
    "resize": "resize",
    "grid_sample": "affine_grid grid_sample",
    "roi": "max_roi_pool roi_align",
    "lp_pool": "global_lp_pool lp_pool max_unpool",
    "col2im": "col2im",
    "deform_conv": "deform_conv",
    "dft": "dft mel_weight_matrix stft",
    "linear_attention": "linear_attention",
    "attention": "attention",
    "rotary": "rotary_embedding",
    "random": "bernoulli dropout multinomial random_normal random_normal_like random_uniform random_uniform_like",
    "tfidf": "tfidf_vectorizer",
    "control": "if loop scan",
    "sequence": "concat_from_sequence sequence_at sequence_construct sequence_empty sequence_erase sequence_insert "
        "sequence_length split_to_sequence",
    "optional": "optional optional_get_element optional_has_element",
    "text": "regex_full_match string_concat string_normalizer string_split",
    "space": "depth_to_space space_to_depth",
    "trilu": "trilu",
    "gather": "gather gather_elements gather_nd",
    "fill": "constant_of_shape range",
    "opaque": "opaque",
    "tree": "tree_ensemble tree_ensemble_classifier tree_ensemble_regressor",
    "linear_ml": "svm_classifier svm_regressor",
    "ml_encode": "category_mapper label_encoder one_hot_encoder",
    "ml_maps": "cast_map dict_vectorizer zip_map",
    "contrib_lstm": "dynamic_quantize_lstm",
    "quantize_integer": "conv_integer matmul_integer",
    "quantize_linear": "dequantize_linear dynamic_quantize_linear quantize_linear",
    "quantize_product": "qlinear_conv qlinear_matmul",
    "recurrent_layers": "gru lstm rnn",
    "state": "cache_append cache_read state_read state_write",
    "custom": "custom",
}  # fmt: skip
"""The modules of this package that define ops, each with its ops; a new op is one word here."""

ATTRIBUTES: tuple[type[Attribute], ...] = (DimsAttr, WeightAttr, StringsAttr, StringType, *TYPES)
"""The attributes and types of the dialect."""

YIELD = "sx.yield"
"""What ends a region: of the dialect, but no op on tensors."""


class _Classes(Mapping[str, "type[SxOp]"]):
    """The op classes by name (`sx.add`), imported by family."""

    def __init__(self) -> None:
        self._families = {f"sx.{op}": family for family, ops in FAMILIES.items() for op in ops.split()}
        self._found: dict[str, type[SxOp]] = {}

    def __getitem__(self, name: str) -> type[SxOp]:
        if name not in self._found:
            for cls in family_ops(self._families[name]):
                self._found[cls.name] = cls
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._families

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


def family_ops(family: str) -> list[type[SxOp]]:
    """The op classes that a module of this package defines."""
    module = importlib.import_module(f"sardonyx.dialects.sx.{family}")
    return [
        cls
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, SxOp) and cls.__module__ == module.__name__ and "name" in cls.__dict__
    ]


def find_op(name: str) -> type[IRDLOperation] | None:
    """The op class of that name, `sx.yield` among them; None where it is none of the dialect."""
    if name == YIELD:
        from sardonyx.dialects.sx.control import YieldOp

        return YieldOp
    return BY_NAME.get(name)


BY_NAME: Mapping[str, type[SxOp]] = _Classes()

SHORTENED = {
    "GreaterOrEqual": "greater_equal", "LessOrEqual": "less_equal", "BatchNormalization": "batch_norm",
    "GroupNormalization": "group_norm", "InstanceNormalization": "instance_norm", "LayerNormalization": "layer_norm",
    "RMSNormalization": "rms_norm",
}  # fmt: skip
"""ONNX's operators whose op does not have the same letters."""


class _ByOnnx(Mapping[tuple[str, str], "type[SxOp]"]):
    """The op classes by the domain and the name of their ONNX form; an operator has the letters of its op."""

    def __init__(self) -> None:
        self._ops = {op.removeprefix("sx.").replace("_", ""): op for op in BY_NAME}

    def __getitem__(self, key: tuple[str, str]) -> type[SxOp]:
        domain, name = key
        cls = BY_NAME[self._ops[SHORTENED.get(name, name).replace("_", "").lower()]]
        if not isinstance(cls.ONNX, OnnxForm) or (cls.ONNX.domain, cls.ONNX.name) != (domain, name):
            raise KeyError(key)
        return cls

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((cls.ONNX.domain, cls.ONNX.name) for cls in BY_NAME.values() if isinstance(cls.ONNX, OnnxForm))

    def __len__(self) -> int:
        return sum(1 for _ in self)


BY_ONNX: Mapping[tuple[str, str], type[SxOp]] = _ByOnnx()

if TYPE_CHECKING:
    OPS: tuple[type[SxOp], ...]
    SX: Dialect
else:

    def __getattr__(name: str) -> object:
        if name == "OPS":
            value = tuple(cls for family in FAMILIES for cls in family_ops(family))
        elif name == "SX":
            value = Dialect("sx", [*importlib.import_module(__name__).OPS, find_op(YIELD)], list(ATTRIBUTES))
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value
