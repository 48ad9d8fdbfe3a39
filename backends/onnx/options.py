"""The options of an export, as `export_onnx` and `OnnxModel.from_graph` take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sardonyx.errors import InvalidArgumentError

MIN_OPSET = 13
MAX_OPSET = 28
DEFAULT_OPSET = 21

_TYPES: dict[str, tuple[type, ...]] = {
    "opset_version": (int,),
    "contrib_ops": (bool,),
    "optimize": (bool,),
    "producer_name": (str,),
    "save_as_external_data": (bool, type(None)),
    "check": (bool,),
    "keep_initializers_as_inputs": (bool,),
    "export_params": (bool,),
    "custom_opsets": (Mapping, type(None)),
    "explicit_state": (bool,),
}


@dataclass(frozen=True)
class ExportOptions:
    """How a graph is written as ONNX.

    Attributes:
        opset_version: The ai.onnx opset, 13…28; 0 takes the one that the graph was imported with if it is in that
            range, else 21, raised to the lowest that states the graph. One that is named is never raised.
        contrib_ops: Whether operators of com.microsoft may be used.
        optimize: Compose transposes and drop what no output reads, on a copy of the graph.
        producer_name: What the model records; '' for Sardonyx, with its version.
        save_as_external_data: Weights beside the model (True), inside (False), or inside until 2 GiB (None).
        check: Hold the result against ONNX's checker and its strict shape inference.
        keep_initializers_as_inputs: List the weights among the inputs too, so that a run may replace them.
        export_params: Whether the weights' contents are written; without, they are inputs that a run has to give.
        custom_opsets: The versions of domains beside ai.onnx, by domain; those that an operator uses are imported.
        explicit_state: State buffers and caches become inputs and outputs of the model; without, they are refused.
    """

    opset_version: int = 0
    contrib_ops: bool = True
    optimize: bool = True
    producer_name: str = ""
    save_as_external_data: bool | None = None
    check: bool = True
    keep_initializers_as_inputs: bool = False
    export_params: bool = True
    custom_opsets: Mapping[str, int] | None = None
    explicit_state: bool = False

    @staticmethod
    def of(call: str, given: dict[str, Any]) -> ExportOptions:
        """The options of keyword arguments of a call named `call`.

        Raises:
            TypeError: There is no such option, or its value is of another type.
            InvalidArgumentError: The opset is one that Sardonyx does not write.
        """
        known = {f.name for f in fields(ExportOptions)}
        for name, value in given.items():
            if name not in known:
                raise TypeError(f"{call}() got an unexpected keyword argument '{name}'; it takes {', '.join(_TYPES)}")
            allowed = _TYPES[name]
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
                wanted = " or ".join(_type_name(t) for t in allowed)
                raise TypeError(f"{call}(): {name} is {_article(wanted)}{wanted}, not {type(value).__name__}")
        options = ExportOptions(**given)
        if options.opset_version:
            check_opset(options.opset_version)
        for domain, version in (options.custom_opsets or {}).items():
            if not isinstance(domain, str) or not isinstance(version, int) or isinstance(version, bool):
                raise TypeError(f"{call}(): custom_opsets has versions (int) by domain (str)")
            if domain in ("", "ai.onnx"):
                raise InvalidArgumentError(f"{call}(): the version of ai.onnx is opset_version, not custom_opsets")
            if not 1 <= version < 2**31:
                raise InvalidArgumentError(f"{call}(): {version} is no version of the domain '{domain}'")
        return options


def check_opset(opset: int) -> None:
    """Refuse an opset that Sardonyx does not write."""
    if not MIN_OPSET <= opset <= MAX_OPSET:
        raise InvalidArgumentError(
            f"opset {opset} is not one that Sardonyx writes: there is no ONNX IR version for it"
            if opset > MAX_OPSET or opset < 1
            else f"opset {opset} is too old: Sardonyx writes opsets {MIN_OPSET} to {MAX_OPSET}",
            hint=f"choose an opset from {MIN_OPSET} to {MAX_OPSET}, or 0 for the default",
        )


def _type_name(kind: type) -> str:
    return {type(None): "None", Mapping: "mapping"}.get(kind, kind.__name__)


def _article(word: str) -> str:
    return "an " if word[0] in "aeiou" else "a "
