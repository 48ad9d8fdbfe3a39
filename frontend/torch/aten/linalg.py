"""Matrix products and what belongs to them."""

from __future__ import annotations

from typing import Any

from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import elementwise as e, linalg, reductions as r, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten


@aten("mm.default", "bmm.default", "matmul.default", "mv.default", "dot.default", "vdot.default")
def matmul(n: Call, a: Tensor, b: Tensor) -> Tensor:
    return linalg.matmul(*n.both(a, b))


@aten("linear.default")
def linear(n: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.ndim == 1:
        found = linalg.matmul(x, weight)
        return found if bias is None else e.add(found, bias)
    if x.ndim == 2 and x.dtype.is_float:
        return op("sx.gemm", x, weight, bias, transB=True)
    return linalg.linear(x, weight, bias)


@aten("addmm.default")
def addmm(n: Call, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    if n.dtype.is_float and c.ndim <= 2:
        if beta == 0:
            return op("sx.gemm", a, b, None, alpha=float(alpha))
        return op("sx.gemm", a, b, c, alpha=float(alpha), beta=float(beta))
    return _plus(n, c, linalg.matmul(a, b), beta, alpha)


def _plus(n: Call, c: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = product if alpha == 1 else e.multiply(product, n.to(alpha))
    if beta == 0:
        return product if product.ndim >= c.ndim else s.broadcast_to(product, c.shape)
    return e.add(n.to(c) if beta == 1 else e.multiply(n.to(c), n.to(beta)), product)


@aten("addmv.default", "baddbmm.default", "addbmm.default", "addr.default")
def addmv(n: Call, c: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    a, b = n.both(a, b)
    if "addr" in n.name:
        product = linalg.outer(a, b)
    else:
        product = linalg.matmul(a, b)
        if "addbmm" in n.name:
            product = r.sum(product, 0, dtype=product.dtype)
    return _plus(n, c, product, beta, alpha)


@aten("outer.default", "ger.default")
def outer(n: Call, a: Tensor, b: Tensor) -> Tensor:
    a, b = n.both(a, b)
    return e.multiply(s.unsqueeze(a, 1), s.unsqueeze(b, 0))


@aten("einsum.default")
def einsum(n: Call, equation: str, tensors: Any, *, path: Any = None) -> Tensor:
    return linalg.einsum(equation.replace(" ", ""), *(n.to(t) for t in tensors))


@aten("kron.default")
def kron(n: Call, a: Tensor, b: Tensor) -> Tensor:
    a, b = n.both(a, b)
    rank = max(a.ndim, b.ndim)
    a = s.reshape(a, [1] * (rank - a.ndim) + list(a.shape))
    b = s.reshape(b, [1] * (rank - b.ndim) + list(b.shape))
    wide = e.multiply(
        s.reshape(a, [v for extent in a.shape for v in (extent, 1)]),
        s.reshape(b, [v for extent in b.shape for v in (1, extent)]),
    )
    return s.reshape(wide, [x * y for x, y in zip(a.shape, b.shape)])


@aten("linalg_det.default", "_linalg_det.default", "det.default")
def det(n: Call, x: Tensor) -> tuple[Tensor | None, ...]:
    return (linalg.det(x), None, None)


@aten("linalg_cross.default", "cross.default")
def cross(n: Call, a: Tensor, b: Tensor, dim: int | None = -1) -> Tensor:
    from sardonyx.frontend.functions.joining import roll

    at = -1 if dim is None else dim
    a, b = n.both(a, b)
    a, b = s.broadcast_arrays(a, b)
    at %= a.ndim
    near = e.multiply(roll(a, -1, axis=at), roll(b, -2, axis=at))
    far = e.multiply(roll(a, -2, axis=at), roll(b, -1, axis=at))
    return e.subtract(near, far)
