"""Casts around an op whose dtypes an opset's schema lacks, where the result stays the same.

A 16-bit float computes in float32 and rounds once, which is what the op's reference does. An integer computes in a
larger one and the cast back wraps around, which is the same for what `WRAPPING` lists. Anything that only moves or
compares elements may take any dtype that holds all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.onnx.forms import domain_opset, form_of
from sardonyx.backends.onnx.nodes import Option, Unstatable, schema_of
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.backends.onnx.tensors import type_string
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DTYPES, SMALL_FLOATS, DType, float8e8m0
from sardonyx.errors import InferenceError

# dtype -> the dtypes that hold all its values, best first.
_WIDER: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "int8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("uint16", "int16", "uint32", "int32", "uint64", "int64"),
    "uint16": ("uint32", "int32", "uint64", "int64"),
    "uint32": ("uint64", "int64"),
    "bool": ("uint8", "int8", "int32", "int64"),
    "int2": ("int4", "int8", "int32", "int64"),
    "int4": ("int8", "int32", "int64"),
    "uint2": ("uint4", "uint8", "int8", "int32", "int64"),
    "uint4": ("uint8", "int8", "int32", "int64"),
    **{t.name: ("float32", "float64") for t in SMALL_FLOATS},
}

# Integers may wrap around in a larger dtype and be cut back; sums, products and what only chooses among operands.
WRAPPING = frozenset(
    "sx." + name
    for name in (
        "add sub mul div mod neg abs sign relu clip max min matmul gemm cumsum where equal less less_equal greater "
        "greater_equal reduce_sum reduce_prod reduce_max reduce_min reduce_l1 reduce_sum_square arg_max arg_min prelu "
        "transpose reshape squeeze unsqueeze flatten expand concat split slice pad tile gather gather_elements "
        "gather_nd depth_to_space space_to_depth trilu identity max_pool bitwise_not"
    ).split()
)


def widened(op: SxOp, opset: int) -> list[SxOp] | None:
    """Replace the op by one of a wider dtype between casts; the new ops, or None where none does."""
    found = _wider(op, opset)
    return None if found is None else _between_casts(op, opset, *found)


def widens(op: SxOp, opset: int) -> bool:
    """Whether there are wider dtypes that the opset has for the op."""
    return _wider(op, opset) is not None


def _wider(op: SxOp, opset: int) -> tuple[list[str | None], list[str | None], dict[str, DType]] | None:
    """The type variables of the operands and of the results, and the dtypes in place of those that the opset lacks."""
    form = op.ONNX
    schema = None if form is None else schema_of(form.domain, form.name, domain_opset(op, form, opset))
    if form is None or schema is None:
        return None
    allowed = {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    operands = _variables(op.slots, schema.inputs)
    present = [v for s, v in zip(op.slots, operands, strict=True) if s is not None]
    results = _variables(op.results, schema.outputs)
    wrong: dict[str, DType] = {}
    typed = [*zip(op.operands, present, strict=True), *((r, v) for r, v in zip(op.results, results) if r.uses)]
    for value, variable in typed:
        if variable is not None and type_string(dtype_of(value)) not in allowed.get(variable, frozenset({variable})):
            wrong[variable] = dtype_of(value)
    if not wrong or any(d.is_integer and op.name not in WRAPPING for d in wrong.values()):
        return None
    cast = schema_of("", "Cast", opset)
    castable = cast.type_constraints[0].allowed_type_strs if cast is not None else ()
    if any(type_string(d) not in castable for d in wrong.values()):
        return None
    target: dict[str, DType] = {}
    for variable, dtype in wrong.items():
        wider = [DTYPES[n] for n in _WIDER.get(dtype.name, ()) if type_string(DTYPES[n]) in allowed.get(variable, ())]
        if not wider:
            return None
        target[variable] = wider[0]
    return present, results, target


def _cast_back(expansion: Expansion, value: SSAValue, dtype: DType) -> SSAValue:
    """The value in the dtype from which its elements come; infinities stay so."""
    if dtype in SMALL_FLOATS:
        # No element is rounded; 'up' is what ONNX's reference gets wrong for the least power of two.
        mode = "down" if dtype == float8e8m0 else "up"
        return expansion("cast", value, to=dtype, saturate=False, round_mode=mode)
    return expansion.cast(value, dtype)


def _variables(values: Sequence[SSAValue | None], formal: Sequence[Any]) -> list[str | None]:
    """The type variable of the formal parameter that each value stands for; None beyond the last."""
    variadic = bool(formal) and formal[-1].option == Option.Variadic
    out: list[str | None] = []
    for index in range(len(values)):
        known = index < len(formal) or variadic
        out.append(formal[min(index, len(formal) - 1)].type_str if known else None)
    return out


def _between_casts(
    op: SxOp, opset: int, operands: list[str | None], results: list[str | None], target: dict[str, DType]
) -> list[SxOp] | None:
    expansion = Expansion(op, "widen")
    wide = op.clone()
    cast: dict[tuple[SSAValue, str], SSAValue] = {}
    for index, (operand, variable) in enumerate(zip(list(op.operands), operands, strict=True)):
        if variable in target:
            key = operand, target[variable].name
            if key not in cast:
                cast[key] = expansion.cast(operand, target[variable])
            wide.operands[index] = cast[key]
    expansion.add(wide)
    try:
        for result, ty in zip(wide.results, wide.infer(), strict=True):
            result._type = ty
        form_of(wide, opset)
    except (Unstatable, InferenceError):
        expansion.undo()
        return None
    values: list[SSAValue | None] = []
    for old, new, variable in zip(op.results, wide.results, results, strict=True):
        values.append(_cast_back(expansion, new, dtype_of(old)) if variable in target else new)
    return expansion.replace(values)
