"""Translations of the user's: functions over Sardonyx's functions, onnxscript functions, symbolic functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.errors import SardonyxError
from sardonyx.frontend.torch.errors import invalid
from sardonyx.frontend.torch.registry import Translation


def translations_of(table: Mapping[Any, Callable[..., Any] | Sequence[Callable[..., Any]]]) -> dict[Any, Translation]:
    """A custom translation table as ours.

    Raises:
        InvalidArgumentError: A key is no operator, or a value no function.
    """
    import torch

    found: dict[Any, Translation] = {}
    for target, given in table.items():
        if isinstance(target, torch._ops.OpOverloadPacket):
            names = ", ".join(
                f"torch.ops.{target._qualified_op_name.replace('::', '.')}.{o}" for o in target.overloads()
            )
            raise invalid(
                f"custom_translation_table has the operator {target} without an overload", hint=f"name {names}"
            )
        if not callable(target):
            raise invalid(
                f"a key of custom_translation_table is an operator such as torch.ops.aten.stft.default, not {target!r}"
            )
        functions = [given] if callable(given) else list(given)
        if not functions or not all(callable(f) for f in functions):
            raise invalid(f"custom_translation_table[{target}] is a function or a list of functions")
        found[target] = _chosen([_translation(f, str(target)) for f in functions])
    for name, function in symbolic_functions().items():
        target = _operator(name)
        if target is not None:
            found.setdefault(target, function)
    return found


def _chosen(functions: Sequence[Translation]) -> Translation:
    """The first function that takes the arguments."""
    if len(functions) == 1:
        return functions[0]

    def translate(*args: Any, **kwargs: Any) -> Any:
        import inspect

        for function in functions[:-1]:
            try:
                inspect.signature(function).bind(*args, **kwargs)
            except TypeError:
                continue
            return function(*args, **kwargs)
        return functions[-1](*args, **kwargs)

    return translate


def _translation(function: Callable[..., Any], target: str) -> Translation:
    from sardonyx.frontend.torch.scripts import of_onnxscript, onnxscript_adds_nodes

    if hasattr(function, "to_function_proto"):
        return of_onnxscript(function)

    @functools.wraps(function)
    def translate(*args: Any, **kwargs: Any) -> Any:
        try:
            with onnxscript_adds_nodes():
                return function(*args, **kwargs)
        except SardonyxError:
            raise
        except Exception as error:
            name = getattr(function, "__name__", type(function).__name__)
            raise invalid(
                f"the custom translation '{name}' of {target} fails: {type(error).__name__}: {error}",
                hint="it gets Sardonyx's tensors and returns such",
            ) from error

    return translate


# ---- symbolic functions (deprecated)

_SYMBOLIC: dict[str, dict[int, Callable[..., Any]]] = {}


def symbolic_functions() -> dict[str, Translation]:
    """The registered symbolic functions as translations, by the operator's name."""
    from sardonyx.frontend.torch.scripts import of_symbolic

    return {name: of_symbolic(versions[max(versions)]) for name, versions in _SYMBOLIC.items() if versions}


def _operator(name: str) -> Any:
    """The operator `<domain>::<op>`."""
    import torch

    domain, _, op = name.partition("::")
    packet = getattr(getattr(torch.ops, domain, None), op, None)
    return getattr(packet, "default", None)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Register a symbolic function for a custom operator; deprecated: use `custom_translation_table`.

    Args:
        symbolic_name: The operator, as `<domain>::<op>`.
        symbolic_fn: Takes the graph, whose `op("Domain::Op", *values, name_i=…)` adds a node, and the operator's
            arguments; returns values.
        opset_version: The opset that it is for.
    """
    _deprecated("register_custom_op_symbolic", "custom_translation_table of export()")
    _check_symbolic(symbolic_name)
    if not callable(symbolic_fn):
        raise invalid(f"symbolic_fn is a function, not {type(symbolic_fn).__name__}")
    _SYMBOLIC.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget a symbolic function; deprecated."""
    _deprecated("unregister_custom_op_symbolic", "custom_translation_table of export()")
    _check_symbolic(symbolic_name)
    if _SYMBOLIC.get(symbolic_name, {}).pop(opset_version, None) is None:
        raise invalid(f"no symbolic function is registered for '{symbolic_name}' in opset {opset_version}")


def _check_symbolic(name: str) -> None:
    domain, _, op = name.partition("::")
    if not domain or not op:
        raise invalid(f"the name of a symbolic function is '<domain>::<op>', not '{name}'")


def _deprecated(name: str, instead: str) -> None:
    import warnings

    warnings.warn(f"sardonyx.{name} is deprecated: use {instead}", DeprecationWarning, stacklevel=3)
