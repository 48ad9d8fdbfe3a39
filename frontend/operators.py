"""Python's operators on tensors, by the functions in `functions/`.

Whatever is no tensor, number or array gets `NotImplemented`, so that its own operator has its turn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.frontend.tensor import Tensor


def functions(family: str) -> Any:
    """A module of `functions/`, which stand on `Tensor`."""
    return importlib.import_module(f"sardonyx.frontend.functions.{family}")


class Operators:
    """What `Tensor` has of operators that make a new tensor; `InPlace` has those that write."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _binary("divide", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _binary("floor_divide", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _binary("remainder", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _binary("remainder", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _binary("pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _binary("matmul", self, other, "linalg")

    def __rmatmul__(self, other: Any) -> Tensor:
        return _binary("matmul", other, self, "linalg")

    def __and__(self, other: Any) -> Tensor:
        return _binary("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _binary("bitwise_and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _binary("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _binary("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _binary("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> Tensor:
        return _binary("bitwise_left_shift", self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return _binary("bitwise_left_shift", other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return _binary("bitwise_right_shift", self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return _binary("bitwise_right_shift", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _binary("greater_equal", self, other)

    def __eq__(self, other: Any) -> Tensor:
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Tensor:
        return _binary("not_equal", self, other)

    __hash__ = object.__hash__  # by identity, as `==` compares elements

    def __neg__(self) -> Tensor:
        return functions("elementwise").negative(self)

    def __abs__(self) -> Tensor:
        return functions("elementwise").abs(self)

    def __invert__(self) -> Tensor:
        return functions("elementwise").bitwise_invert(self)


def _binary(name: str, left: Any, right: Any, family: str = "elementwise") -> Any:
    from sardonyx.frontend.operands import is_tensor_like

    if not (is_tensor_like(left) and is_tensor_like(right)):
        return NotImplemented
    return getattr(functions(family), name)(left, right)
