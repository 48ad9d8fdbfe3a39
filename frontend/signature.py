"""Signatures: what a function is traced with, in Python, as a text, or stored on the function by a decorator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sardonyx.dialects.dim_text import TextTokens, parse_dim, syntax_error
from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import flatten
from sardonyx.frontend.spec import DimSpec, TensorSpec

if TYPE_CHECKING:
    from sardonyx.frontend.tensor import Tensor

Signature = Sequence[Any] | Mapping[str, Any] | str
"""A list (`fn(list_of_tensors)`), a tuple (`fn(*tensors)`), a dict (`fn(**tensors)`) or a text (as a tuple). An entry
is a `TensorSpec`, or nested lists, tuples and dicts of such: the function then gets tensors in the same containers."""

_STORED = "__sardonyx_signature__"

F = TypeVar("F", bound=Callable[..., Any])


def signature(*specs: object, **by_name: Any) -> Callable[[F], F]:
    """A decorator that stores what a function is traced with.

    `@signature("x: f32[batch,37], y: i64[]")` and `@signature(TensorSpec(…), …)` call the function with tensors as
    positional arguments, `@signature([TensorSpec(…), …])` with one list, `@signature(x=TensorSpec(…))` by keyword.

    Raises:
        InvalidArgumentError: The specs are none, or are malformed.
    """
    stored: Signature
    if by_name:
        if specs:
            raise InvalidArgumentError("a signature has either positional specs or specs by keyword")
        stored = by_name
    elif len(specs) == 1 and isinstance(specs[0], str | list | tuple | Mapping):
        stored = specs[0]
    else:
        stored = specs
    _checked(stored)

    def decorate(fn: F) -> F:
        setattr(fn, _STORED, stored)
        return fn

    return decorate


def stored_signature(fn: object) -> Signature:
    """The signature that the decorator stored.

    Raises:
        InvalidArgumentError: There is none.
    """
    found = getattr(fn, _STORED, None)
    if found is None:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise InvalidArgumentError(
            f"the signature of '{name}' is not known",
            hint="give one to trace(), or put @sardonyx.signature('x: f32[batch,37]') on the function",
        )
    return found


def input_specs(given: Signature, fn: Callable[..., Any]) -> tuple[list[TensorSpec], Callable[[Sequence[Tensor]], Any]]:
    """The graph's inputs, and how the function is called with the tensors that stand for them.

    Raises:
        InvalidArgumentError: The signature is malformed, or an input's name is missing or occurs twice.
    """
    leaves, structure = flatten(_checked(given))
    named = structure.kind is not None and issubclass(structure.kind, Mapping)
    # A path is a name where it begins with one, or leads into a container.
    specs = [leaf if leaf.name or not (named or _is_nested(path)) else leaf.renamed(path) for path, leaf in leaves]
    _check_names(specs)
    if named:
        return specs, lambda tensors: fn(**structure.build(tensors))
    if structure.kind is not None and issubclass(structure.kind, tuple):
        return specs, lambda tensors: fn(*structure.build(tensors))
    return specs, lambda tensors: fn(list(structure.build(tensors)))


def _is_nested(path: str) -> bool:
    """Whether a path leads into a container inside of the signature."""
    return "[" in path[1:] or "." in path


def _checked(given: object) -> Sequence[Any] | Mapping[str, Any]:
    if isinstance(given, str):
        return parse_signature(given)
    if isinstance(given, TensorSpec):
        raise InvalidArgumentError("a signature is a list, tuple or dict of TensorSpec, not one TensorSpec")
    if not isinstance(given, list | tuple | Mapping):
        raise InvalidArgumentError(f"a signature is a list, tuple or dict of TensorSpec, not {type(given).__name__}")
    for path, spec in flatten(given)[0]:
        if not isinstance(spec, TensorSpec):
            where = f" (at {path})" if _is_nested(path) else ""
            raise InvalidArgumentError(f"a signature consists of TensorSpec, not {type(spec).__name__}{where}")
    return given


def _check_names(specs: Sequence[TensorSpec]) -> None:
    seen: set[str] = set()
    for number, spec in enumerate(specs):
        if not spec.name:
            raise InvalidArgumentError(f"input {number} of the signature has no name")
        if spec.name in seen:
            raise InvalidArgumentError(f"two inputs of the signature are called '{spec.name}'")
        seen.add(spec.name)


def parameter_names(fn: Callable[..., Any]) -> list[str]:
    """The names of a function's positional parameters; none where Python doesn't know them."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


# ---- text
#   signature := [input (',' input)*]
#   input     := name ':' dtype '[' [dim (',' dim)*] ']'
#   dim       := '?' | integer | expression over names


def parse_signature(text: str) -> tuple[TensorSpec, ...]:
    """The specs of a text such as `x: f32[batch,37], y: i64[], z: f16[2*seq,?]`.

    A dim is an integer, a name, an expression or `?` (dynamic, and nobody's). Dtypes have their long (`float32`) or
    short names (`f32`, `i64`, `u8`, `bf16`, `bool`).

    Raises:
        InvalidArgumentError: The text is malformed; the message says the column.
    """
    stream = TextTokens(text)
    specs: list[TensorSpec] = []
    while stream.peek()[0] != "end":
        specs.append(_parse_input(stream))
        if stream.peek()[0] == "end":
            break
        _expect(stream, ",")
    _check_names(specs)
    return tuple(specs)


def _parse_input(stream: TextTokens) -> TensorSpec:
    name = _name(stream)
    _expect(stream, ":")
    dtype = _dtype(stream)
    _expect(stream, "[")
    dims: list[DimSpec] = []
    while stream.peek() != ("punct", "]"):
        if stream.peek() == ("punct", "?"):
            stream.next()
            dims.append(None)
        else:
            dims.append(parse_dim(stream))
        if stream.peek() != ("punct", "]"):
            _expect(stream, ",")
    stream.next()
    return TensorSpec(name, dtype, dims)


def _name(stream: TextTokens) -> str:
    """A name: an identifier, several with dots or slashes between them, or a string."""
    kind, text = stream.peek()
    if kind not in ("id", "string"):
        raise _error(stream, "expected the name of an input")
    stream.next()
    while kind == "id" and stream.peek() in (("punct", "."), ("punct", "/")):
        text += stream.next()[1]
        part, more = stream.peek()
        if part not in ("id", "int"):
            raise _error(stream, f"the name '{text}' is not complete")
        stream.next()
        text += more
    return text


def _dtype(stream: TextTokens) -> DType:
    kind, text = stream.peek()
    try:
        if kind != "id":
            raise InvalidArgumentError("")
        found = DType.of(text)
    except InvalidArgumentError:
        raise _error(stream, f"expected a dtype, found {text!r} (known: {', '.join(DTYPES)}, f32, i64, …)") from None
    stream.next()
    return found


def _expect(stream: TextTokens, punctuation: str) -> None:
    kind, text = stream.peek()
    if (kind, text) != ("punct", punctuation):
        raise _error(stream, f"expected {punctuation!r}, found {repr(text) if kind != 'end' else 'the end'}")
    stream.next()


def _error(stream: TextTokens, message: str) -> InvalidArgumentError:
    error = syntax_error(stream, message)
    return InvalidArgumentError(error.message.replace("dim expression", "signature", 1))
