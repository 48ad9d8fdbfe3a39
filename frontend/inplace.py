"""Writing in place: `x.add_(y)`, `x += y`, `x[key] = y`.

A write gives the tensor another array; arrays that were handed out before, and other tensors, keep what they had. In a
trace a traced tensor gets another value. A tensor that the traced function captures and writes becomes a *state* of the
graph: the trace reads it from a buffer, and each run leaves there what the function wrote (see `frontend/state.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.source import user_line

if TYPE_CHECKING:
    from sardonyx.frontend.tensor import Tensor

OPERATIONS = {
    "add_": "add", "sub_": "subtract", "subtract_": "subtract", "mul_": "multiply", "multiply_": "multiply",
    "div_": "divide", "divide_": "divide", "floor_divide_": "floor_divide", "remainder_": "remainder", "pow_": "pow",
    "maximum_": "maximum", "minimum_": "minimum", "clip_": "clip", "clamp_": "clip", "neg_": "negative",
    "negative_": "negative", "abs_": "abs", "exp_": "exp", "log_": "log", "sqrt_": "sqrt", "rsqrt_": "rsqrt",
    "reciprocal_": "reciprocal", "square_": "square", "sign_": "sign", "floor_": "floor", "ceil_": "ceil",
    "round_": "round", "trunc_": "trunc", "tanh_": "tanh", "sin_": "sin", "cos_": "cos",
    "bitwise_and_": "bitwise_and", "bitwise_or_": "bitwise_or", "bitwise_xor_": "bitwise_xor",
    "logical_and_": "logical_and", "logical_or_": "logical_or", "logical_not_": "logical_not",
}  # fmt: skip
"""The in-place spellings of elementwise functions: the name → the function."""
ACTIVATIONS = {"relu_": "relu", "sigmoid_": "sigmoid", "silu_": "silu", "gelu_": "gelu", "softplus_": "softplus"}


def assign(target: Tensor, value: Any, what: str) -> None:
    """Let a tensor be another value of its dtype and shape; one that broadcasts to the shape is expanded.

    Raises:
        InvalidArgumentError: The dtype is of another kind, or the shape is another one.
    """
    from sardonyx.frontend.functions.shape import broadcast_to
    from sardonyx.frontend.operands import is_scalar, scalar, to_tensor

    new = scalar(value, target.dtype) if is_scalar(value) else to_tensor(value)
    if new.dtype != target.dtype:
        if new.dtype.kind != target.dtype.kind and not (new.dtype.is_integer and target.dtype.is_integer):
            raise InvalidArgumentError(
                f"{what} would make {new.dtype} of a tensor of {target.dtype}, which a write in place cannot",
                location=user_line(),
                hint=f"write y = x + ..., or convert what is written: .astype(sardonyx.{target.dtype})",
            )
        new = new.astype(target.dtype)
    if compare_shapes(new, target) is not Proof.PROVED:
        if new.ndim > target.ndim:
            raise InvalidArgumentError(
                f"{what}: the shape {_shown(new)} does not fit into {_shown(target)}", location=user_line()
            )
        new = broadcast_to(new, target.shape)
    _replace(target, new)


def compare_shapes(a: Tensor, b: Tensor) -> Proof:
    """Whether two tensors have the same shape, as far as that is known before the run."""
    if a.ndim != b.ndim:
        return Proof.REFUTED
    proofs = {equal(_dim(x), _dim(y)) for x, y in zip(a.shape, b.shape, strict=True)}
    return next((p for p in (Proof.REFUTED, Proof.UNKNOWN) if p in proofs), Proof.PROVED)


def _dim(extent: Any) -> Dim:
    return extent.dim if isinstance(extent, Extent) else Dim.of(extent)


def _shown(tensor: Tensor) -> str:
    return "[" + ", ".join(map(str, tensor.shape)) + "]"


def _replace(target: Tensor, new: Tensor) -> None:
    from sardonyx.frontend.trace import current

    running = current()
    if running is not None and not target.is_traced:
        running.capture_write(target)
        running.hold(target)
    if target.is_traced:
        running = target.trace
        running.check_usable()
        running.rebind(target, running.value_of(new))
    elif new.is_traced:
        new.trace.check_usable()
        target._become(new)
    else:
        target._array = new._array


class InPlace:
    """The operators and methods that write in place."""

    __slots__ = ()

    if TYPE_CHECKING:  # made below, one for each entry of OPERATIONS and ACTIVATIONS

        def abs_(self, *args: Any, **kwargs: Any) -> Self: ...

        def add_(self, *args: Any, **kwargs: Any) -> Self: ...

        def bitwise_and_(self, *args: Any, **kwargs: Any) -> Self: ...

        def bitwise_or_(self, *args: Any, **kwargs: Any) -> Self: ...

        def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Self: ...

        def ceil_(self, *args: Any, **kwargs: Any) -> Self: ...

        def clamp_(self, *args: Any, **kwargs: Any) -> Self: ...

        def clip_(self, *args: Any, **kwargs: Any) -> Self: ...

        def cos_(self, *args: Any, **kwargs: Any) -> Self: ...

        def div_(self, *args: Any, **kwargs: Any) -> Self: ...

        def divide_(self, *args: Any, **kwargs: Any) -> Self: ...

        def exp_(self, *args: Any, **kwargs: Any) -> Self: ...

        def floor_(self, *args: Any, **kwargs: Any) -> Self: ...

        def floor_divide_(self, *args: Any, **kwargs: Any) -> Self: ...

        def gelu_(self, *args: Any, **kwargs: Any) -> Self: ...

        def log_(self, *args: Any, **kwargs: Any) -> Self: ...

        def logical_and_(self, *args: Any, **kwargs: Any) -> Self: ...

        def logical_not_(self, *args: Any, **kwargs: Any) -> Self: ...

        def logical_or_(self, *args: Any, **kwargs: Any) -> Self: ...

        def maximum_(self, *args: Any, **kwargs: Any) -> Self: ...

        def minimum_(self, *args: Any, **kwargs: Any) -> Self: ...

        def mul_(self, *args: Any, **kwargs: Any) -> Self: ...

        def multiply_(self, *args: Any, **kwargs: Any) -> Self: ...

        def neg_(self, *args: Any, **kwargs: Any) -> Self: ...

        def negative_(self, *args: Any, **kwargs: Any) -> Self: ...

        def pow_(self, *args: Any, **kwargs: Any) -> Self: ...

        def reciprocal_(self, *args: Any, **kwargs: Any) -> Self: ...

        def relu_(self, *args: Any, **kwargs: Any) -> Self: ...

        def remainder_(self, *args: Any, **kwargs: Any) -> Self: ...

        def round_(self, *args: Any, **kwargs: Any) -> Self: ...

        def rsqrt_(self, *args: Any, **kwargs: Any) -> Self: ...

        def sigmoid_(self, *args: Any, **kwargs: Any) -> Self: ...

        def sign_(self, *args: Any, **kwargs: Any) -> Self: ...

        def silu_(self, *args: Any, **kwargs: Any) -> Self: ...

        def sin_(self, *args: Any, **kwargs: Any) -> Self: ...

        def softplus_(self, *args: Any, **kwargs: Any) -> Self: ...

        def sqrt_(self, *args: Any, **kwargs: Any) -> Self: ...

        def square_(self, *args: Any, **kwargs: Any) -> Self: ...

        def sub_(self, *args: Any, **kwargs: Any) -> Self: ...

        def subtract_(self, *args: Any, **kwargs: Any) -> Self: ...

        def tanh_(self, *args: Any, **kwargs: Any) -> Self: ...

        def trunc_(self, *args: Any, **kwargs: Any) -> Self: ...

    def _write(self, name: str, *args: Any, what: str | None = None, **kwargs: Any) -> Self:
        import importlib

        family = "activation" if f"{name}_" in ACTIVATIONS else "elementwise"
        functions = importlib.import_module(f"sardonyx.frontend.functions.{family}")
        made = getattr(functions, name)(self, *args, **kwargs)
        assign(self, made, what or f"{name}_()")  # pyright: ignore[reportArgumentType]
        return self

    def _operate(self, name: str, other: Any, sign: str) -> Any:
        from sardonyx.frontend.operands import is_tensor_like

        return self._write(name, other, what=f"{sign}=") if is_tensor_like(other) else NotImplemented

    def __iadd__(self, other: Any) -> Self:
        return self._operate("add", other, "+")

    def __isub__(self, other: Any) -> Self:
        return self._operate("subtract", other, "-")

    def __imul__(self, other: Any) -> Self:
        return self._operate("multiply", other, "*")

    def __itruediv__(self, other: Any) -> Self:
        return self._operate("divide", other, "/")

    def __ifloordiv__(self, other: Any) -> Self:
        return self._operate("floor_divide", other, "//")

    def __imod__(self, other: Any) -> Self:
        return self._operate("remainder", other, "%")

    def __ipow__(self, other: Any) -> Self:
        return self._operate("pow", other, "**")

    def __iand__(self, other: Any) -> Self:
        return self._operate("bitwise_and", other, "&")

    def __ior__(self, other: Any) -> Self:
        return self._operate("bitwise_or", other, "|")

    def __ixor__(self, other: Any) -> Self:
        return self._operate("bitwise_xor", other, "^")

    def __ilshift__(self, other: Any) -> Self:
        return self._operate("bitwise_left_shift", other, "<<")

    def __irshift__(self, other: Any) -> Self:
        return self._operate("bitwise_right_shift", other, ">>")

    def __imatmul__(self, other: Any) -> Self:
        from sardonyx.frontend.functions.linalg import matmul

        assign(self, matmul(self, other), "@=")  # pyright: ignore[reportArgumentType]
        return self

    def copy_(self, value: Any) -> Self:
        """Take over the elements of another tensor, which broadcast."""
        assign(self, value, "copy_()")  # pyright: ignore[reportArgumentType]
        return self

    def fill_(self, value: Any) -> Self:
        """Let all elements be a number."""
        return self.copy_(value)

    def zero_(self) -> Self:
        """Let all elements be 0."""
        return self.copy_(0)

    def __setitem__(self, key: object, value: object) -> None:
        from sardonyx.frontend.assigning import with_part

        made = with_part(self, key, value)  # pyright: ignore[reportArgumentType]
        assign(self, made, "x[...] = ...")  # pyright: ignore[reportArgumentType]


def _method(name: str, function: str) -> Any:
    def method(self: InPlace, *args: Any, **kwargs: Any) -> InPlace:
        return self._write(function, *args, what=f"{name}()", **kwargs)

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"`{function}`, in place."
    return method


for _name, _function in (OPERATIONS | ACTIVATIONS).items():
    setattr(InPlace, _name, _method(_name, _function))
