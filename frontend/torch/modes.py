"""The deprecated switch of a model's mode."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _switched(model: Any, mode: Any) -> Iterator[Any]:
    number = int(getattr(mode, "value", mode))
    before = {module: module.training for module in model.modules()}
    if number != 1:
        model.train(number == 2)
    try:
        yield model
    finally:
        for module, training in before.items():
            module.training = training


def select_model_mode_for_export(model: Any, mode: Any) -> Any:
    """A context in which the model has a training mode (0 eval, 1 as it is, 2 training); deprecated: call eval()."""
    warnings.warn(
        "sardonyx.select_model_mode_for_export is deprecated: set the mode of the model before exporting",
        DeprecationWarning,
        stacklevel=2,
    )
    return _switched(model, mode)
