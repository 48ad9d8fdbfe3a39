"""ONNX's own list of schemas: which form of which operator has an import, and of which kind.

A form that nothing here imports would pass through as an opaque op: exported again unchanged, never computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from onnx import defs

from sardonyx.backends.onnx.options import MAX_OPSET
from sardonyx.dialects.sx import BY_ONNX, OPS
from sardonyx.frontend.onnx.adapters import find
from sardonyx.frontend.onnx.generic import IGNORED

# Operators without an import, and why.
WITHOUT = {
    "strings, which only pass through": {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"},
    "pictures in files": {"ImageDecoder"},
    "training": {"Adagrad", "Adam", "Gradient", "Momentum"},
}

# Forms older than that which the op states, and that mean the same by the op's own names: they lack dtypes,
# attributes whose default is what they did, negative axes, or broadcasting; or have hints (`consumed_inputs`).
SAME = {
    "Abs": [1], "ArgMax": [1, 11], "ArgMin": [1, 11], "AveragePool": [1, 7], "Ceil": [1], "Compress": [9],
    "Concat": [4], "DepthToSpace": [1], "Elu": [1], "Equal": [7], "Exp": [1], "Flatten": [1, 9], "Floor": [1],
    "GRU": [1, 3], "Gather": [1], "GatherND": [11], "Gemm": [1, 6, 7, 9], "Greater": [7], "HardSigmoid": [1],
    "InstanceNormalization": [1], "LSTM": [1], "LeakyRelu": [1], "Less": [7], "Log": [1], "Max": [1, 6],
    "MaxPool": [1, 8], "Mean": [1, 6], "Min": [1, 6], "Neg": [1], "OneHot": [9], "PRelu": [7], "Pow": [7],
    "RNN": [1], "Reciprocal": [1], "Relu": [1], "Selu": [1], "Sigmoid": [1], "Sqrt": [1], "Sum": [1, 6],
    "Tanh": [1], "TopK": [10],
}  # fmt: skip


def forms() -> Iterator[tuple[defs.OpSchema, int]]:
    """Each schema with the last opset of its domain at which it is valid."""
    by_name: dict[tuple[str, str], list[defs.OpSchema]] = defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        by_name[schema.domain, schema.name].append(schema)
    for schemas in by_name.values():
        schemas.sort(key=lambda s: s.since_version)
        for schema, following in zip(schemas, [*schemas[1:], None]):
            if not schema.deprecated:
                yield schema, following.since_version - 1 if following is not None else MAX_OPSET


def kind(schema: Any, last: int) -> str:
    """How a form is imported (`schema` is an `onnx.defs.OpSchema`, whose stubs lack what is asked of it here)."""
    opsets = schema.since_version, last
    adapters = [find(schema.domain, schema.name, opset) for opset in opsets]
    if all(adapters):
        return "adapter"
    cls = BY_ONNX.get((schema.domain, schema.name))
    if cls is not None and cls.ONNX is not None and cls.IS_IMPORTED:
        return "op" if cls.ONNX.since <= schema.since_version else "older"
    if schema.has_function or schema.has_context_dependent_function:
        return "function"
    return "none"


def test_ops_are_found_by_their_forms_without_importing_the_others() -> None:
    forms = {(op.ONNX.domain, op.ONNX.name): op for op in OPS if op.ONNX is not None}
    assert dict(BY_ONNX.items()) == forms and len(BY_ONNX) == len(forms)
    assert not [
        key for key in (("", "GreaterEqual"), ("", "relu"), ("other", "Relu"), ("", "Opaque")) if key in BY_ONNX
    ]


def test_which_forms_have_no_import() -> None:
    known = set[str]().union(*WITHOUT.values())
    missing = {(s.domain, s.name, s.since_version) for s, last in forms() if kind(s, last) == "none"}
    assert not {form for form in missing if form[1] not in known}


def test_an_adapter_covers_the_whole_time_of_a_form() -> None:
    """From the opset that brought it to the last before the next one."""
    for schema, last in forms():
        found = [find(schema.domain, schema.name, opset) for opset in (schema.since_version, last)]
        ours = BY_ONNX.get((schema.domain, schema.name)) is not None
        assert all(found) or not any(found) or ours, f"{schema.name} {schema.since_version} to {last}"


def test_older_forms_without_an_adapter_mean_the_same() -> None:
    """A new op, or a higher `since`, makes somebody look at the older forms and write an adapter, or list them here."""
    found: dict[str, list[int]] = defaultdict(list)
    for schema, last in forms():
        if kind(schema, last) == "older":
            found[schema.name].append(schema.since_version)
    assert {name: versions for name, versions in found.items() if not {*versions} <= {*SAME.get(name, ())}} == {}


def test_what_an_older_form_states_is_an_attribute_of_the_op() -> None:
    """Attributes that the op lacks are hints, or have no effect."""
    for schema, last in forms():
        cls = BY_ONNX.get((schema.domain, schema.name))
        if kind(schema, last) != "older" or cls is None or cls.ONNX is None:
            continue
        stated = {cls.ONNX.attribute(p) for p in cls.get_irdl_definition().properties}
        assert set(schema.attributes) - stated <= IGNORED, f"{schema.name} {schema.since_version}"
