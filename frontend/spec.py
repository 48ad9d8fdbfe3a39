"""What a graph's input or output is: `TensorSpec`, a name, a dtype and dims."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import (
    ANONYMOUS,
    fresh_dim,
    is_anonymous,
    tensor_type,
    type_dims,
    unranked_type,
)
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.types import describe_type, is_container, with_dtype_of
from sardonyx.errors import InvalidArgumentError

DYNAMIC = -1
"""How a dynamic dim reads in `dims`."""

DimSpec = int | str | Dim | None


class TensorSpec:
    """A tensor's name, dtype and dims.

    Args:
        name: The name of the input or output.
        dtype: A dtype, or what `DType.of` takes.
        dims: One entry an axis: an extent, -1 or None (dynamic), a name (`"batch"`) or an expression (`"2*seq"`).
            None: not even the rank is known.
        optional: Whether a run may leave it out.
        dim_names: The names or expressions of the dynamic dims, '' for none; those in `dims` are put in.

    A sequence or an optional (of an imported model) has the dtype of its tensors and no dims; `container` is its type.

    Raises:
        InvalidArgumentError: An extent is negative, or the names don't match the dims.
    """

    __slots__ = ("container", "dim_names", "dims", "dtype", "extents", "name", "optional")

    name: str
    dtype: DType
    dims: tuple[int, ...] | None
    """The extents, -1 for a dynamic one; None where the rank isn't known."""
    dim_names: list[str]
    """The names of the dynamic dims, '' where one has none."""
    extents: tuple[Dim, ...] | None
    """The dims as expressions."""
    container: Attribute | None
    """The IR type of a sequence or an optional; None for a tensor."""

    def __init__(
        self,
        name: str,
        dtype: object,
        dims: Sequence[DimSpec] | None = (),
        optional: bool = False,
        dim_names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"the name of a TensorSpec is a str, not {type(name).__name__}")
        self.name = name
        self.dtype = DType.of(dtype)
        self.optional = optional
        self.container = None
        if dims is None:
            self.extents, self.dims, self.dim_names = None, None, []
            return
        if isinstance(dims, str) or not isinstance(dims, Iterable):
            raise InvalidArgumentError(f"the dims of '{name}' are a list, not {type(dims).__name__}")
        given = list(dims)
        names = [""] * len(given) if dim_names is None else list(dim_names)
        if len(names) != len(given):
            raise InvalidArgumentError(f"'{name}' has {len(given)} dims, but dim_names has {len(names)} entries")
        self.extents = tuple(_extent(self.name, d, n or "") for d, n in zip(given, names))
        self.dims, self.dim_names = listed(self.extents), named(self.extents)

    @staticmethod
    def of_type(name: str, ty: Attribute, optional: bool = False) -> TensorSpec:
        """The spec of an IR type."""
        spec = TensorSpec(name, with_dtype_of(ty), None, optional)
        if is_container(ty):
            spec.container = ty
        if isinstance(ty, TensorType):
            spec.extents = type_dims(ty)
            spec.dims, spec.dim_names = listed(spec.extents), named(spec.extents)
        return spec

    @property
    def ir(self) -> Attribute:
        """The IR type."""
        if self.container is not None:
            return self.container
        return unranked_type(self.dtype) if self.extents is None else tensor_type(self.dtype, self.extents)

    @property
    def rank(self) -> int | None:
        return None if self.extents is None else len(self.extents)

    def renamed(self, name: str) -> TensorSpec:
        """The same under another name."""
        spec = TensorSpec(name, self.dtype, None, self.optional)
        spec.extents, spec.dims, spec.dim_names = self.extents, self.dims, list(self.dim_names)
        spec.container = self.container
        return spec

    def _key(self) -> tuple[object, ...]:
        return self.name, self.dtype, self.dims, tuple(self.dim_names), self.optional, self.container

    def __eq__(self, other: object) -> bool:
        """Equal by name, dtype and dims; dynamic dims that nobody named are all alike."""
        return self._key() == other._key() if isinstance(other, TensorSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        if self.container is not None:
            return f"{self.name}: {describe_type(self.container)}"
        if self.extents is None:
            return f"{self.name}: {self.dtype}[...]"
        shown = ("?" if is_anonymous(d) else str(d) for d in self.extents)
        return f"{self.name}: {self.dtype}[{', '.join(shown)}]"

    def __repr__(self) -> str:
        return f"TensorSpec({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.container is not None:
            return TensorSpec.of_type, (self.name, self.container, self.optional)
        # Unnamed symbols are numbered by process: in another one they are new.
        extents = self.extents and [None if d.is_symbol and is_anonymous(d) else d for d in self.extents]
        return TensorSpec, (self.name, self.dtype, extents, self.optional)


def listed(extents: Iterable[Dim]) -> tuple[int, ...]:
    """Dims as users see them: -1 for a dynamic one."""
    return tuple(DYNAMIC if d.static_value is None else d.static_value for d in extents)


def named(extents: Iterable[Dim]) -> list[str]:
    """The names of dims: a symbol's name or an expression's text; '' for a static dim or one that nobody named."""
    return ["" if d.is_static or is_anonymous(d) else d.symbol_name or str(d) for d in extents]


def _extent(owner: str, given: DimSpec, name: str) -> Dim:
    if isinstance(given, Dim):
        dim = given
    elif isinstance(given, str):
        dim = dim_of_text(given) if given else fresh_dim()
    elif given is None or _is_dynamic(owner, given):
        dim = dim_of_text(name) if name else fresh_dim()
    else:
        dim = Dim.of(operator.index(given))
    static = dim.static_value
    if static is not None and static < 0:
        raise InvalidArgumentError(f"'{owner}' has a dim of {static}: an extent is not negative, -1 means dynamic")
    return dim


def _is_dynamic(owner: str, given: object) -> bool:
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise InvalidArgumentError(f"a dim of '{owner}' is an int, a str or None, not {type(given).__name__}")
    return operator.index(given) == DYNAMIC  # pyright: ignore[reportArgumentType]


def dim_of_text(text: str) -> Dim:
    """The dim that a text states: an expression, or a symbol of that name where it is none; `?…` is nobody's name."""
    if text.startswith(ANONYMOUS):
        return fresh_dim()
    try:
        return Dim.parse(text)
    except InvalidArgumentError:
        return Dim.symbol(text)
