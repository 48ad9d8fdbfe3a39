"""Adapters from the forms that operators had in older opsets to today's; one family a file."""

from __future__ import annotations

from sardonyx.frontend.onnx.adapters import (
    constants,
    elementwise,
    normalization,
    reductions,
    sampling,
    selection,
    shapes,
    trees,
)
from sardonyx.frontend.onnx.adapters.registry import find

__all__ = ["constants", "elementwise", "find", "normalization", "reductions", "sampling", "selection", "shapes", "trees"]
