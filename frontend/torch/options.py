"""What a user may say about an export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx.backends.onnx.options import check_opset
from sardonyx.frontend.torch.errors import invalid


@dataclass
class Options:
    """The arguments of `sardonyx.export` beside the model and its example inputs."""

    f: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    verbose: bool = False
    input_names: list[str] | None = None
    output_names: list[str] | None = None
    opset_version: int | None = None
    external_data: bool = True
    dynamic_shapes: Any = None
    dynamic_axes: Mapping[str, Any] | None = None
    custom_translation_table: dict[Any, Callable[..., Any] | Sequence[Callable[..., Any]]] = field(default_factory=dict)
    report: bool = False
    optimize: bool = True
    verify: bool = False
    profile: bool = False
    dump_exported_program: bool = False
    artifacts_dir: str = "."
    export_params: bool = True
    keep_initializers_as_inputs: bool = False
    custom_opsets: Mapping[str, int] | None = None

    def onnx_options(self) -> dict[str, Any]:
        """Those of `OnnxModel.from_graph`."""
        return {
            "opset_version": self.opset_version or 0,
            "contrib_ops": False,
            "optimize": False,
            "keep_initializers_as_inputs": self.keep_initializers_as_inputs,
            "export_params": self.export_params,
            "custom_opsets": self.custom_opsets,
        }


_FLAGS = (
    "external_data", "report", "optimize", "verify", "profile", "dump_exported_program", "export_params",
    "keep_initializers_as_inputs",
)  # fmt: skip


def check_options(options: Options) -> None:
    """Refuse what is wrong whatever the model.

    Raises:
        InvalidArgumentError: An option has a wrong type or value.
    """
    for name in _FLAGS:
        if not isinstance(getattr(options, name), bool):
            raise invalid(f"{name} is a bool, not {type(getattr(options, name)).__name__}")
    version = options.opset_version
    if version is not None:
        if isinstance(version, bool) or not isinstance(version, int):
            raise invalid(f"opset_version is an int, not {type(version).__name__}")
        check_opset(version)
    if options.dynamic_axes is not None:
        _check_axes(options)


def _check_axes(options: Options) -> None:
    axes = options.dynamic_axes
    if not isinstance(axes, Mapping):
        raise invalid(f"dynamic_axes is a dict, not {type(axes).__name__}")
    known = [*(options.input_names or []), *(options.output_names or [])]
    for name, entry in axes.items():
        if name not in known:
            raise invalid(
                f"dynamic_axes names '{name}', which is neither in input_names nor in output_names",
                hint=f"known: {', '.join(known)}" if known else "give input_names and output_names",
            )
        numbers = list(entry) if isinstance(entry, Mapping | list | tuple) else None
        if numbers is None or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
            raise invalid(f"dynamic_axes['{name}'] is a dict {{axis: name}} or a list of axes, not {entry!r}")
        if isinstance(entry, Mapping) and not all(isinstance(v, str) and v for v in entry.values()):
            raise invalid(f"dynamic_axes['{name}'] has an axis without a name: {dict(entry)!r}")


def axis_names(name: str, entry: Any) -> dict[int, str]:
    """The axes of one value with their names; a list names them `<value>_dynamic_axes_<number>`, as documented."""
    if isinstance(entry, Mapping):
        return dict(entry)
    return {axis: f"{name}_dynamic_axes_{number}" for number, axis in enumerate(entry, start=1)}
