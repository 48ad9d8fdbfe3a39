"""A dynamic dim of a traced tensor as Python sees it: `x.shape[0]`.

Arithmetic gives further extents and keeps the expression, so that `reshape(x, (x.shape[0] * 2, -1))` keeps its
symbols. A comparison is answered where it can be proved; where it can't, and where Python wants a number, an error says
so: a dim is never frozen silently.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sardonyx.dialects.attributes import is_anonymous
from sardonyx.dialects.dims import Dim, Proof, equal, less_equal
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.rewrites import rewrite_of_line
from sardonyx.frontend.source import user_line

if TYPE_CHECKING:
    from sardonyx.frontend.tensor import Tensor


class Extent:
    """An extent that is known only when the graph runs; `dim` is its expression.

    Args:
        dim: The expression.
        compute: Makes the int64 vector of one element that holds it.
    """

    __slots__ = ("_compute", "_vector", "dim")

    # NumPy's scalars leave arithmetic with extents to Extent.
    __array_ufunc__ = None

    def __init__(self, dim: Dim, compute: Callable[[], Tensor]) -> None:
        self.dim = dim
        self._compute = compute
        self._vector: Tensor | None = None

    def vector(self) -> Tensor:
        """The extent as an int64 tensor [1]."""
        if self._vector is None:
            self._vector = self._compute()
        return self._vector

    def scalar(self) -> Tensor:
        """The extent as an int64 tensor []."""
        from sardonyx.frontend.functions.shape import squeeze

        return squeeze(self.vector(), 0)

    # ---- arithmetic
    def _binary(self, other: object, name: str, swapped: bool = False) -> Extent | Tensor:
        if not is_extent(other):
            if not isinstance(other, float) or isinstance(other, bool):
                return NotImplemented
            # A fraction of an extent is a tensor.
            import sardonyx.frontend.functions.elementwise as functions

            left, right = (other, self.scalar()) if swapped else (self.scalar(), other)
            return getattr(functions, _FUNCTIONS[name])(left, right)
        left, right = (other, self) if swapped else (self, other)
        dim = _DIMS[name](_dim(left), _dim(right))

        def compute() -> Tensor:
            import sardonyx.frontend.functions.elementwise as functions

            return getattr(functions, _FUNCTIONS[name])(_vector(left), _vector(right))

        return Extent(dim, compute)

    def __add__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "add")

    def __radd__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "add", True)

    def __sub__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "sub")

    def __rsub__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "sub", True)

    def __mul__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "mul")

    def __rmul__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "mul", True)

    def __floordiv__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "floordiv")

    def __rfloordiv__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "floordiv", True)

    def __mod__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "mod")

    def __rmod__(self, other: object) -> Extent | Tensor:
        return self._binary(other, "mod", True)

    def __neg__(self) -> Extent | Tensor:
        return self._binary(0, "sub", True)

    def __pos__(self) -> Extent:
        return self

    def __truediv__(self, other: Any) -> Tensor:
        from sardonyx.frontend.functions.elementwise import divide

        return divide(self.scalar(), other)

    def __rtruediv__(self, other: Any) -> Tensor:
        from sardonyx.frontend.functions.elementwise import divide

        return divide(other, self.scalar())

    # ---- comparison
    def _compare(self, proof: Proof, text: str) -> bool:
        if proof is Proof.UNKNOWN:
            raise self._unknown(
                f"whether {text} is known only when the graph runs",
                "give the dim a fixed size in the signature, or compute with sardonyx.where",
            )
        return proof is Proof.PROVED

    def __eq__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._compare(equal(self.dim, _dim(other)), f"{self} == {other}")

    def __ne__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return not self._compare(equal(self.dim, _dim(other)), f"{self} == {other}")

    def __hash__(self) -> int:
        return hash(self.dim)

    def __le__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._compare(less_equal(self.dim, _dim(other)), f"{self} <= {other}")

    def __lt__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._compare(less_equal(self.dim + 1, _dim(other)), f"{self} < {other}")

    def __ge__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._compare(less_equal(_dim(other), self.dim), f"{self} >= {other}")

    def __gt__(self, other: object) -> bool:
        if not is_extent(other):
            return NotImplemented
        return self._compare(less_equal(_dim(other) + 1, self.dim), f"{self} > {other}")

    def __bool__(self) -> bool:
        return not self._compare(equal(self.dim, 0), f"{self} == 0")

    # ---- numbers that Python wants
    def __index__(self) -> int:
        raise self._unknown(
            f"the dynamic dim '{self}' is no number while tracing",
            "give the dim a fixed size in the signature, loop by sardonyx.fori_loop or scan, or compute with "
            "sardonyx's functions (arange, full, …)",
        )

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        return float(self.__index__())

    def _unknown(self, message: str, remedy: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{message}; {remedy}", location=user_line(), hint=rewrite_of_line())

    def __str__(self) -> str:
        return "?" if is_anonymous(self.dim) else str(self.dim)

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


DimLike = int | Extent

_DIMS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": Dim.floordiv,
    "mod": Dim.mod,
}
_FUNCTIONS = {"add": "add", "sub": "subtract", "mul": "multiply", "floordiv": "floor_divide", "mod": "remainder"}


def is_extent(value: object) -> bool:
    """Whether the value can be an extent: an Extent or an integer, no bool."""
    return isinstance(value, Extent) or (hasattr(value, "__index__") and isinstance(value, int | _numpy_integer()))


def _numpy_integer() -> type:
    import numpy as np

    return np.integer


def _dim(value: object) -> Dim:
    return value.dim if isinstance(value, Extent) else Dim.of(operator.index(value))  # pyright: ignore[reportArgumentType]


def _vector(value: object) -> Tensor:
    from sardonyx.frontend.tensor import Tensor

    if isinstance(value, Extent):
        return value.vector()
    import numpy as np

    return Tensor(np.array([value], np.int64))
