"""Schemas of the operators of com.microsoft that are ops of ours: what onnxruntime registers, as far as we write it."""

from __future__ import annotations

from functools import cache

from onnx import defs

CONTRIB = "com.microsoft"
_Schema = defs.OpSchema
_Option = defs.OpSchema.FormalParameterOption
_Type = defs.OpSchema.AttrType


@cache
def contrib_schema(name: str) -> defs.OpSchema | None:
    """The schema of an operator, None for one that is no op of ours."""
    return {"DynamicQuantizeLSTM": _dynamic_quantize_lstm}.get(name, lambda: None)()


def _parameter(text: str) -> defs.OpSchema.FormalParameter:
    """`name type`, with a question mark behind the name of one that may be left out."""
    name, kind = text.split()
    option = _Option.Optional if name.endswith("?") else _Option.Single
    return _Schema.FormalParameter(name.rstrip("?"), kind, "", param_option=option)


def _dynamic_quantize_lstm() -> defs.OpSchema:
    inputs = ["X T", "W T2", "R T2", "B? T", "sequence_lens? T1", "initial_h? T", "initial_c? T", "P? T", "W_scale T",
              "W_zero_point T2", "R_scale T", "R_zero_point T2"]  # fmt: skip
    attributes = {"hidden_size": _Type.INT, "direction": _Type.STRING, "clip": _Type.FLOAT, "input_forget": _Type.INT}
    return _Schema(
        "DynamicQuantizeLSTM",
        CONTRIB,
        1,
        "",
        inputs=[_parameter(i) for i in inputs],
        outputs=[_parameter(o) for o in ("Y? T", "Y_h? T", "Y_c? T")],
        type_constraints=[
            ("T", ["tensor(float)"], ""),
            ("T1", ["tensor(int32)"], ""),
            ("T2", ["tensor(uint8)", "tensor(int8)"], ""),
        ],
        attributes=[_Schema.Attribute(name, kind, "", required=False) for name, kind in attributes.items()],
    )
