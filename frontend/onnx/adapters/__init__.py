"""Adapters from the forms that operators had in older opsets to today's; one family a file, each found by its name."""

from __future__ import annotations

import importlib
import pkgutil

from sardonyx.frontend.onnx.adapters.registry import find

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["find"]
