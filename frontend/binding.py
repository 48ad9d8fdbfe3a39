"""Holds the inputs of a run against what the graph declares, and brings them into order.

One place for the checks and their wording, for native runs and for the reference: names, number, dtype, rank, static
extents, and named dims, which must agree between inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import WeightAttr, is_anonymous
from sardonyx.dialects.dims import Dim, solve
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import input_names, main_function
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError, MissingWeightError
from sardonyx.frontend.nested import bind_nested
from sardonyx.frontend.operands import from_foreign, is_tensor_like
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor

Array = np.ndarray[Any, Any]
Inputs = Sequence[Any] | Mapping[str, Any]
"""What a run is given: Tensors, arrays or DLPack objects in the inputs' order or by name."""

DEFAULT = "sx.default"
"""The argument attribute that holds the weight of an input that may be left out."""


@dataclass(frozen=True)
class Binding:
    """The inputs of a graph; `defaults` holds what those that may be left out are then."""

    specs: tuple[TensorSpec, ...]
    defaults: Mapping[int, WeightAttr]
    store: WeightStore

    @staticmethod
    def of(module: ModuleOp, store: WeightStore) -> Binding:
        """The inputs that a module declares."""
        function = main_function(module)
        defaults = _defaults(function.properties.get("arg_attrs"))
        specs = [
            TensorSpec.of_type(name, argument.type, index in defaults)
            for index, (name, argument) in enumerate(zip(input_names(module), function.body.block.args))
        ]
        return Binding(tuple(specs), defaults, store)

    @cached_property
    def required(self) -> tuple[TensorSpec, ...]:
        """The inputs that every run needs."""
        return tuple(spec for spec in self.specs if not spec.optional)

    def bind(self, call: str, given: Inputs) -> list[Array]:
        """The arrays of all inputs in order.

        Args:
            call: The call that is made, for messages.
            given: What the user passed.

        Raises:
            InvalidArgumentError: One does not fit; the message names the input, the axis, what was expected and got.
        """
        values = self._by_name(call, given) if isinstance(given, Mapping) else self._in_order(call, given)
        arrays = [self._array(call, index, value) for index, value in enumerate(values)]
        self._check_dims(call, arrays)
        return arrays

    # ---- which is which
    def _by_name(self, call: str, given: Mapping[str, Any]) -> list[Any]:
        names = [spec.name for spec in self.specs]
        for name in given:
            if name not in names:
                raise InvalidArgumentError(f"{call}(): there is no input '{name}'; the inputs are {_listed(names)}")
        for spec in self.required:
            if spec.name not in given:
                raise InvalidArgumentError(f"{call}(): the input '{spec.name}' is missing")
        return [given.get(name) for name in names]

    def _in_order(self, call: str, given: Sequence[Any]) -> list[Any]:
        if isinstance(given, Tensor | np.ndarray) or not isinstance(given, Sequence) or isinstance(given, str | bytes):
            raise InvalidArgumentError(
                f"{call}(): inputs is a list, or a dict by name, not {type(given).__name__}"
                f"{'; put it into a list' if is_tensor_like(given) else ''}"
            )
        if len(given) == len(self.specs):
            return list(given)
        if len(given) == len(self.required):
            rest = iter(given)
            return [None if spec.optional else next(rest) for spec in self.specs]
        wanted = str(len(self.required))
        if len(self.specs) > len(self.required):
            wanted += f" to {len(self.specs)}"
        names = _listed([spec.name for spec in self.specs])
        raise InvalidArgumentError(f"{call}(): the graph takes {wanted} inputs ({names}), got {len(given)}")

    # ---- each by itself
    def _array(self, call: str, index: int, value: Any) -> Array:
        spec = self.specs[index]
        what = f"{call}(): the input '{spec.name}'"
        if spec.container is not None:
            return bind_nested(what, spec.container, value, _to_array)
        if value is None:
            return self._default(call, index)
        array = _to_array(what, spec.dtype, value)
        self._check_shape(call, spec, array.shape)
        return array

    def _default(self, call: str, index: int) -> Array:
        attr = self.defaults.get(index)
        if attr is None:
            raise InvalidArgumentError(f"{call}(): the input '{self.specs[index].name}' is missing")
        weight = attr.data.source or self.store.get(attr.data.key)
        if weight is None:
            raise MissingWeightError(f"{call}(): the default of input '{self.specs[index].name}' is not here")
        return weight.array()

    def _check_shape(self, call: str, spec: TensorSpec, shape: tuple[int, ...]) -> None:
        if spec.extents is None:
            return
        if len(shape) != len(spec.extents):
            raise InvalidArgumentError(
                f"{call}(): the input '{spec.name}' has rank {len(shape)} (shape {list(shape)}), expected "
                f"{len(spec.extents)} ({_shown(spec.extents)})"
            )
        for axis, (got, dim) in enumerate(zip(shape, spec.extents)):
            if dim.static_value is not None and dim.static_value != got:
                raise InvalidArgumentError(
                    f"{call}(): the input '{spec.name}' has {got} elements along axis {axis}, expected "
                    f"{dim.static_value} ({_shown(spec.extents)})"
                )

    # ---- all together
    def _check_dims(self, call: str, arrays: Sequence[Array]) -> None:
        """Named dims mean one number each; an expression is solved for its symbol."""
        bindings: dict[str, int] = {}
        origins: dict[str, str] = {}
        left: list[tuple[TensorSpec, int, Dim, int]] = []
        for spec, array in zip(self.specs, arrays):
            for axis, (got, dim) in enumerate(zip(array.shape, spec.extents) if spec.extents else ()):
                if dim.is_static:
                    continue
                name = dim.symbol_name
                if name is None:
                    left.append((spec, axis, dim, got))
                elif bindings.setdefault(name, got) != got:
                    raise InvalidArgumentError(
                        f"{call}(): the input '{spec.name}' has {got} elements along axis {axis}, expected "
                        f"{bindings[name]}: that dim is '{name}', which {origins[name]} states as {bindings[name]}"
                    )
                else:
                    origins.setdefault(name, f"axis {axis} of '{spec.name}'")
        self._check_expressions(call, left, bindings)

    def _check_expressions(
        self, call: str, left: list[tuple[TensorSpec, int, Dim, int]], bindings: dict[str, int]
    ) -> None:
        while left:
            waiting: list[tuple[TensorSpec, int, Dim, int]] = []
            for spec, axis, dim, got in left:
                try:
                    found = solve(dim, got, bindings)
                except InvalidArgumentError as error:
                    raise InvalidArgumentError(
                        f"{call}(): the input '{spec.name}' has {got} elements along axis {axis}: {error.message}"
                    ) from None
                if found is None:
                    waiting.append((spec, axis, dim, got))
                else:
                    bindings.update(found)
            if len(waiting) == len(left):
                return  # more unknowns than equations: nothing contradicts
            left = waiting


def _to_array(what: str, dtype: DType, value: Any) -> Array:
    """The array of a tensor that the user gave; `what` names it in messages."""
    if dtype.kind == "s":
        return _strings(what, value)
    if isinstance(value, Tensor):
        if value.is_traced:
            raise InvalidArgumentError(f"{what} is a traced tensor: it has no contents")
        array = value.numpy()
    elif is_tensor_like(value):
        array = from_foreign(value)
    elif isinstance(value, list | tuple):
        from sardonyx.frontend.functions.creation import asarray

        array = asarray(value).numpy()
    else:
        raise InvalidArgumentError(f"{what} is no tensor, but {type(value).__name__}")
    if array.dtype != dtype.numpy:
        raise InvalidArgumentError(f"{what} has dtype {array.dtype}, expected {dtype}; convert it first (astype)")
    return array


def _strings(what: str, value: Any) -> Array:
    """The array of str that the user gave as an array or nested lists."""
    array = value.numpy() if isinstance(value, Tensor) and not value.is_traced else np.asarray(value, object)
    flat = array.reshape(-1).tolist()
    if not all(isinstance(text, str) for text in flat):
        wrong = next(type(text).__name__ for text in flat if not isinstance(text, str))
        raise InvalidArgumentError(f"{what} holds strings, but an element is of type {wrong}")
    return array


def _defaults(attr: Attribute | None) -> dict[int, WeightAttr]:
    found: dict[int, WeightAttr] = {}
    for index, entry in enumerate(attr.data if isinstance(attr, ArrayAttr) else ()):
        value = entry.data.get(DEFAULT) if isinstance(entry, DictionaryAttr) else None
        if isinstance(value, WeightAttr):
            found[index] = value
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names) or "none"


def _shown(extents: Sequence[Dim]) -> str:
    return "[" + ", ".join("?" if is_anonymous(d) else str(d) for d in extents) + "]"
