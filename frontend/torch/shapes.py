"""Dynamic shapes: what the user says of them, what torch.export takes, and what torch's symbols are called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.frontend.torch.dims import lone_symbol
from sardonyx.frontend.torch.errors import invalid
from sardonyx.frontend.torch.options import Options, axis_names


def leaves_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The leaves of the example inputs, in the order in which torch has them."""
    import torch

    return torch.utils._pytree.tree_leaves((args, dict(kwargs)))


def input_leaves(program: Any) -> list[str]:
    """The placeholders of the user's inputs, one for each leaf."""
    signature = program.graph_signature
    return [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]


def combined(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs by the names of forward()'s parameters.

    Raises:
        InvalidArgumentError: They don't fit its signature.
    """
    import torch

    function = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise invalid(
            f"the example inputs do not fit the model: {error}", hint="args are forward()'s arguments, as a tuple"
        ) from None


def shapes_for_torch(model: Any, args: tuple[Any, ...], options: Options) -> tuple[Any, list[dict[int, str]]]:
    """What torch.export takes as `dynamic_shapes`, and per leaf of the inputs the names of its axes."""
    leaves = leaves_of(args, options.kwargs)
    names: list[dict[int, str]] = [{} for _ in leaves]
    if options.dynamic_shapes is None:
        if options.dynamic_axes is None:
            return None, names
        return _of_axes(model, args, options, leaves, names), names
    inputs = combined(model, args, options.kwargs)
    places: dict[int, list[int]] = {}
    for index, leaf in enumerate(leaves):
        places.setdefault(id(leaf), []).append(index)
    given = options.dynamic_shapes
    if isinstance(given, Mapping):
        pairs = [(inputs[k], v) for k, v in given.items() if k in inputs]
    else:
        pairs = list(zip(inputs.values(), given))
    for value, shape in pairs:
        _note(value, shape, places, names)
    return _without_names(given), names


def _note(value: Any, shape: Any, places: Mapping[int, list[int]], names: list[dict[int, str]]) -> None:
    """Note the names in the dynamic shape of a value."""
    import torch

    if shape is None:
        return
    if isinstance(value, torch.Tensor):
        entries = shape.items() if isinstance(shape, Mapping) else enumerate(shape)
        for axis, entry in entries:
            name = _name_of(entry)
            if name and isinstance(axis, int):
                for place in places.get(id(value), []):
                    names[place][axis % max(1, value.ndim)] = name
        return
    if isinstance(value, int | float | bool):
        return
    if isinstance(value, Mapping) and isinstance(shape, Mapping):
        for key, part in shape.items():
            if key in value:
                _note(value[key], part, places, names)
        return
    if isinstance(value, list | tuple) and isinstance(shape, list | tuple):
        for part, entry in zip(value, shape):
            _note(part, entry, places, names)
        return
    inner = torch.utils._pytree.tree_leaves(value)
    flat = torch.utils._pytree.tree_leaves(shape, is_leaf=_is_shape)
    if len(inner) == len(flat) and not any(v is value for v in inner):
        for part, entry in zip(inner, flat):
            _note(part, entry, places, names)


def _is_shape(entry: Any) -> bool:
    if entry is None:
        return True
    if isinstance(entry, Mapping):
        return all(isinstance(k, int) for k in entry)
    return isinstance(entry, list | tuple) and not any(isinstance(v, Mapping | list | tuple) for v in entry)


def _name_of(entry: Any) -> str | None:
    if isinstance(entry, str):
        return entry
    name = getattr(entry, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else None


def _without_names(shape: Any) -> Any:
    """Names replaced by what torch.export takes: a dim of any size."""
    import torch

    if isinstance(shape, str):
        return torch.export.Dim.DYNAMIC
    if isinstance(shape, Mapping):
        return {k: _without_names(v) for k, v in shape.items()}
    if isinstance(shape, list | tuple):
        return type(shape)(_without_names(v) for v in shape)
    return shape


def _of_axes(
    model: Any, args: tuple[Any, ...], options: Options, leaves: Sequence[Any], names: list[dict[int, str]]
) -> Any:
    """`dynamic_axes` of inputs as torch.export's dynamic shapes."""
    import torch

    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    by_name = dict(zip(options.input_names or [], tensors))
    for name, entry in (options.dynamic_axes or {}).items():
        if name not in by_name:
            if name in (options.input_names or []):
                raise invalid(f"dynamic_axes names '{name}', but the model takes only {len(tensors)} tensors")
            continue
        place = by_name[name]
        rank = leaves[place].ndim
        for axis, label in axis_names(name, entry).items():
            if not -rank <= axis < rank:
                raise invalid(f"dynamic_axes['{name}'] has axis {axis}, but the input has rank {rank}")
            names[place][axis % rank] = label
    inputs = combined(model, args, options.kwargs)
    dynamic = torch.export.Dim.DYNAMIC
    marked: dict[int, Any] = {}
    for place, axes in enumerate(names):
        if axes:
            marked[id(leaves[place])] = dict.fromkeys(axes, dynamic)

    def mark(value: Any) -> Any:
        return marked.get(id(value)) if isinstance(value, torch.Tensor) else None

    return {name: torch.utils._pytree.tree_map(mark, value) for name, value in inputs.items()}


def symbol_names(program: Any, names: Sequence[Mapping[int, str]]) -> dict[str, str]:
    """What torch's symbols are called, from the names of the axes that they stand for."""
    found: dict[str, str] = {}
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for target, axes in zip(input_leaves(program), names):
        node = placeholders.get(target)
        meta = None if node is None else node.meta.get("val")
        shape = getattr(meta, "shape", None)
        if shape is None:
            continue
        for axis, name in axes.items():
            symbol = lone_symbol(shape[axis]) if axis < len(shape) else None
            if symbol is not None:  # two that bear one name are one size: a run checks that
                found.setdefault(symbol, name)
    return found


def check_still_dynamic(program: Any, names: Sequence[Mapping[int, str]]) -> None:
    """Refuse a program whose dim the user called dynamic, but which torch made a number.

    Raises:
        InvalidArgumentError: There is one.
    """
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for target, axes in zip(input_leaves(program), names):
        node = placeholders.get(target)
        shape = getattr(node.meta.get("val"), "shape", None) if node is not None else None
        for axis, name in axes.items():
            if shape is not None and axis < len(shape) and isinstance(shape[axis], int):
                raise invalid(
                    f"the dim '{name}' (axis {axis} of '{target}') is dynamic, but the model fixes it at {shape[axis]}",
                    hint="leave it static, or remove the code that compares it with a number",
                )
