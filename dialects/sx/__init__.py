"""The `sx` dialect: ops on tensors, one family a file. `OPS` lists all op classes; `SX` is the xDSL dialect."""

from __future__ import annotations

import importlib
import inspect

from xdsl.ir import Dialect

from sardonyx.dialects.attributes import DimsAttr, StringsAttr, WeightAttr
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.string_type import StringType
from sardonyx.dialects.sx.control import YieldOp
from sardonyx.dialects.types import TYPES

FAMILIES = (
    "constant", "unary", "activation", "binary", "variadic", "compare", "logical", "select", "cast", "reduce",
    "argreduce", "softmax", "cumsum", "matmul", "conv", "pool", "norm", "layer_norm", "reshape", "transpose",
    "concat", "slice", "pad", "tile", "shape", "scatter", "topk", "one_hot", "nonzero", "unique", "nms",
    "reverse_sequence", "cumprod", "bit_cast", "det", "einsum", "resize", "grid_sample", "roi", "lp_pool", "col2im",
    "deform_conv", "dft", "linear_attention", "random", "tfidf", "control", "sequence", "optional", "text", "space",
    "trilu", "gather", "fill", "opaque", "tree", "linear_ml", "ml_encode", "ml_maps", "contrib_lstm",
    "quantize_integer", "quantize_linear", "quantize_product", "recurrent_layers", "state",
    "custom",
)  # fmt: skip
"""The modules of this package that define ops; a new family is one word here."""


def _collect() -> tuple[type[SxOp], ...]:
    found: dict[str, type[SxOp]] = {}
    for family in FAMILIES:
        module = importlib.import_module(f"sardonyx.dialects.sx.{family}")
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, SxOp) and cls.__module__ == module.__name__ and "name" in cls.__dict__:
                found[cls.name] = cls
    return tuple(found.values())


OPS: tuple[type[SxOp], ...] = _collect()
BY_NAME: dict[str, type[SxOp]] = {cls.name: cls for cls in OPS}
BY_ONNX: dict[tuple[str, str], type[SxOp]] = {
    (form.domain, form.name): cls for cls in OPS if isinstance(form := cls.ONNX, OnnxForm)
}
SX = Dialect("sx", [*OPS, YieldOp], [DimsAttr, WeightAttr, StringsAttr, StringType, *TYPES])
