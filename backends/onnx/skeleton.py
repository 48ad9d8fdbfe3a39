"""A model in memory as the importer and the exporter hold it; whoever only opens one loads no exporter for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from sardonyx.backends.onnx.tensors import stored_size
from sardonyx.dialects.weights import Weight

Content = Weight | np.ndarray[Any, Any]


@dataclass
class Skeleton:
    """A model whose initializers have no contents yet; `contents` holds those, by name, in the model's order."""

    proto: onnx.ModelProto
    contents: dict[str, Content] = field(default_factory=dict)
    opaque: dict[str, int] = field(default_factory=dict)
    """How many nodes went through as operators that Sardonyx does not know, by operator."""

    def nbytes(self) -> int:
        """The bytes that the contents take in a file."""
        return sum(map(stored_size, self.contents.values()))


def ir_version_for(opset: int) -> int:
    """The IR version that goes with an ai.onnx opset, from ONNX's own table."""
    return helper.find_min_ir_version_for([helper.make_opsetid("", opset)])


@contextmanager
def without_collector() -> Iterator[None]:
    """Without the cyclic garbage collector, which takes long to look at many new ops that all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
