"""Sardonyx: trace a tensor function, rewrite it, run it natively and export it to ONNX, over one IR.

This module is the public face: it re-exports, and does nothing else. It is lazy (PEP 562), because importing any
submodule executes it, and `import sardonyx` and `sardonyx-opt --help` must not pay for NumPy, ONNX or LLVM.

To add a public name, add it to `_EXPORTS` and to the imports under `TYPE_CHECKING` (as `Name as Name`, which
tells type checkers that it is re-exported); `tests/test_face.py` holds the two and `__all__` together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sardonyx.errors import (
        ExecutionError as ExecutionError,
        FailedPreconditionError as FailedPreconditionError,
        InferenceError as InferenceError,
        InvalidArgumentError as InvalidArgumentError,
        MissingWeightError as MissingWeightError,
        SardonyxError as SardonyxError,
        UnsupportedError as UnsupportedError,
    )

__version__ = "0.1.0"

# Public name -> where it comes from, as in `from sardonyx.errors import SardonyxError`: a module, or a package that has
# the module of that name.
_EXPORTS = {
    "ExecutionError": "sardonyx.errors",
    "FailedPreconditionError": "sardonyx.errors",
    "InferenceError": "sardonyx.errors",
    "InvalidArgumentError": "sardonyx.errors",
    "MissingWeightError": "sardonyx.errors",
    "SardonyxError": "sardonyx.errors",
    "UnsupportedError": "sardonyx.errors",
}

__all__ = ["__version__", *_EXPORTS]  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a checker that sees `__getattr__` takes every misspelt name

    def __getattr__(name: str) -> object:
        module_name = _EXPORTS.get(name)
        if module_name is None:
            raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
        module = importlib.import_module(module_name)
        value = getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{module_name}.{name}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
