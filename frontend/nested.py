"""Values of a run that are no single tensor: lists for sequences, dicts for maps, None for an empty optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.types import MapType, OptionalType, SequenceType, describe_type, with_dtype_of
from sardonyx.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def bind_nested(what: str, ty: Attribute, value: Any, to_array: Callable[[str, DType, Any], Array]) -> Any:
    """What the user gave for a sequence or an optional, in the form in which the reference takes it.

    Args:
        what: What it is, for messages.
        ty: The type that the graph declares.
        value: A list or tuple for a sequence, None for an empty optional.
        to_array: Makes an array of a tensor of that dtype, or refuses it.

    Raises:
        InvalidArgumentError: It is of another kind, or an element does not fit.
    """
    if isinstance(ty, OptionalType):
        return None if value is None else bind_nested(what, ty.element, value, to_array)
    if isinstance(ty, SequenceType):
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(f"{what} is a list of tensors ({describe_type(ty)}), not {type(value).__name__}")
        return [bind_nested(f"{what}, element {i},", ty.element, v, to_array) for i, v in enumerate(value)]
    if isinstance(ty, MapType):
        if not isinstance(value, dict):
            raise InvalidArgumentError(f"{what} is a dict ({describe_type(ty)}), not {type(value).__name__}")
        return value
    if value is None:
        raise InvalidArgumentError(f"{what} is missing")
    array = to_array(what, with_dtype_of(ty), value)
    if isinstance(ty, TensorType):
        stated = ty.get_shape()
        if len(stated) != array.ndim or any(s not in (DYNAMIC_INDEX, got) for s, got in zip(stated, array.shape)):
            shown = ", ".join("?" if s == DYNAMIC_INDEX else str(s) for s in stated)
            raise InvalidArgumentError(f"{what} has shape {list(array.shape)}, expected [{shown}]")
    return array


def map_arrays(value: Any, function: Callable[[Array], Any]) -> Any:
    """The value with the function applied to each array in it."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list):
        return [map_arrays(element, function) for element in value]
    return function(value)


def arrays_in(value: Any) -> list[Array]:
    """The arrays in a value."""
    if value is None or isinstance(value, dict):
        return []
    return [array for element in value for array in arrays_in(element)] if isinstance(value, list) else [value]
