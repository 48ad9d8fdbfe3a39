"""Matrix products and what belongs to them."""

from __future__ import annotations

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import op
from sardonyx.frontend.operands import TensorLike, carrier_dtype, cast, floating, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The matrix product; leading axes broadcast, a vector is a row on the left and a column on the right.

    Raises:
        InferenceError: The inner extents differ.
    """
    a, b = promoted(x1, x2)
    carrier = carrier_dtype("sx.matmul", a.dtype)
    return cast(op("sx.matmul", cast(a, carrier), cast(b, carrier)), a.dtype)


def gemm(
    a: TensorLike,
    b: TensorLike,
    c: TensorLike | None = None,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Tensor:
    """`alpha * A @ B + beta * c` of matrices, either of which may be transposed first; `c` broadcasts."""
    given = [v for v in (a, b, c) if v is not None]
    tensors = promoted(*given)
    return op("sx.gemm", *tensors, alpha=float(alpha), beta=float(beta), transA=bool(trans_a), transB=bool(trans_b))


def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`x @ weight.T + bias` for a weight [out, in], over the last axis of `x`."""
    weight = to_tensor(weight)
    out = matmul(x, matrix_transpose(weight))
    return out if bias is None else out + to_tensor(bias)


def einsum(equation: str, /, *operands: TensorLike) -> Tensor:
    """The sum of products that an equation states, as in `einsum("bij,bjk->bik", x, y)`.

    Letters that the output lacks are summed over; a repeated letter takes a diagonal, `...` stands for further axes.

    Raises:
        InferenceError: The equation is malformed, or does not fit the operands.
    """
    if not operands:
        raise InvalidArgumentError("einsum() takes at least one operand", location=user_line())
    tensors = promoted(*operands)
    dtype = tensors[0].dtype
    carrier = carrier_dtype("sx.einsum", dtype)
    return cast(op("sx.einsum", [cast(t, carrier) for t in tensors], equation=equation), dtype)


def det(x: TensorLike, /) -> Tensor:
    """The determinant of each matrix of the last two axes."""
    return op("sx.det", floating(x))


def matrix_transpose(x: TensorLike, /) -> Tensor:
    """The last two axes exchanged."""
    from sardonyx.frontend.functions.shape import swapaxes

    x = to_tensor(x)
    if x.ndim < 2:
        raise InvalidArgumentError(f"a tensor of rank {x.ndim} is no matrix", location=user_line())
    return swapaxes(x, -2, -1)


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis."""
    from sardonyx.frontend.functions.reductions import sum

    a, b = promoted(x1, x2)
    return sum(a * b, axis, dtype=a.dtype)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """All products of the elements of two vectors."""
    from sardonyx.frontend.functions.shape import reshape

    a, b = promoted(x1, x2)
    return reshape(a, (-1, 1)) * reshape(b, (1, -1))


def dot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """NumPy's `dot`: the matrix product, or the product where one is a scalar.

    Raises:
        InvalidArgumentError: The ranks are such that NumPy's `dot` and `matmul` differ.
    """
    a, b = promoted(x1, x2)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim > 2:
        raise InvalidArgumentError(f"dot() with a right operand of rank {b.ndim}; use matmul", location=user_line())
    return matmul(a, b)


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: int | tuple[list[int], list[int]] = 2) -> Tensor:
    """The sum of products over pairs of axes: the last `axes` of `x1` with the first of `x2`, or those named."""
    from sardonyx.frontend.functions.reductions import normalized_axes
    from sardonyx.frontend.functions.shape import reshape, transpose

    a, b = promoted(x1, x2)
    if isinstance(axes, int):
        left, right = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        left, right = normalized_axes(list(axes[0]), a.ndim) or (), normalized_axes(list(axes[1]), b.ndim) or ()
    if len(left) != len(right):
        raise InvalidArgumentError("tensordot(): the axes don't pair up", location=user_line())
    kept_a = [i for i in range(a.ndim) if i not in left]
    kept_b = [i for i in range(b.ndim) if i not in right]
    shape_a, shape_b = a.shape, b.shape

    def count(shape: tuple[object, ...], which: object) -> object:
        total: object = 1
        for i in which:  # pyright: ignore[reportGeneralTypeIssues]
            total = total * shape[i]  # pyright: ignore[reportOperatorIssue]
        return total

    rows = reshape(transpose(a, [*kept_a, *left]), (count(shape_a, kept_a), count(shape_a, left)))
    columns = reshape(transpose(b, [*right, *kept_b]), (count(shape_b, right), count(shape_b, kept_b)))
    return reshape(matmul(rows, columns), [*(shape_a[i] for i in kept_a), *(shape_b[i] for i in kept_b)])
