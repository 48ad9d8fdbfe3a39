"""Custom operators in ONNX: in the form that their definition states, or refused."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.onnx.metadata import domain_version, set_domain_versions
from sardonyx.backends.onnx.names import node_name
from sardonyx.dialects import locations
from sardonyx.dialects.sx.custom import CustomOp
from sardonyx.errors import UnsupportedError


def state_custom(module: ModuleOp) -> None:
    """Put what ONNX has in the place of all custom operators.

    Raises:
        UnsupportedError: One has no ONNX form; the error names the node.
    """
    counts: dict[str, int] = {}
    for op in [op for op in module.walk() if isinstance(op, CustomOp)]:
        definition = op.definition
        number = counts.get(op.operator, 0)
        counts[op.operator] = number + 1
        if definition is None or definition.expand is None:
            name = node_name(op.location) or f"{op.operator}_{number}"
            raise UnsupportedError(
                f"export_onnx: node '{name}' ({op.operator}) has no ONNX form: it is a user-defined operator",
                location=locations.describe(op.location),
                op=op.name,
                hint="state one by onnx=(domain, name), or by a function of Sardonyx's functions",
            )
        if definition.domain is not None:
            domain, version = definition.domain
            stated = domain_version(module, domain, version)
            set_domain_versions(module, {domain: max(stated, version)})
        definition.expand(module, op)
