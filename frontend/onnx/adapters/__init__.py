"""Adapters from the forms that operators had in older opsets to today's, and from operators that no op is for; one
family a file. Those of a domain of `PREFIXES` are loaded when a node of that domain is met, all others at once."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from sardonyx.frontend.onnx.adapters import registry
from sardonyx.frontend.onnx.adapters.registry import Adapter

PREFIXES = {"com.microsoft": "contrib_", "ai.onnx.ml": "ml_"}
"""How the names of the files begin whose adapters are for another domain than ONNX's own."""
STRAYS = {"SimplifiedLayerNormalization": "contrib_"}
"""What onnxruntime has in ONNX's domain: where it stands."""


def find(domain: str, name: str, opset: int) -> Adapter | None:
    """The adapter of an operator at an opset."""
    load(PREFIXES.get(domain, "") if domain else STRAYS.get(name, ""))
    return registry.find(domain, name, opset)


@cache
def load(prefix: str) -> None:
    """Import the files whose names begin so; with none, those that begin with no prefix."""
    for module in pkgutil.iter_modules(__path__):
        if next((p for p in PREFIXES.values() if module.name.startswith(p)), "") == prefix:
            importlib.import_module(f"{__name__}.{module.name}")


__all__ = ["PREFIXES", "STRAYS", "find", "load"]
