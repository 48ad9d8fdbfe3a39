"""Inverses, solutions and factorisations of matrices, by the functions of `sardonyx.linalg`.

Data cannot raise in a graph: where torch would refuse a singular matrix, results hold infinities or NaN, and `info` is
0.
"""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import int32
from sardonyx.frontend import linalg
from sardonyx.frontend.functions import elementwise as e, linalg as products, shape as s
from sardonyx.frontend.functions.creation import tril, triu, zeros
from sardonyx.frontend.linalg.support import positions
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten

Results = tuple[Tensor | None, ...]


def _info(x: Tensor) -> Tensor:
    """One number for each matrix: nothing went wrong."""
    return zeros(x.shape[:-2], dtype=int32)


@aten("_linalg_check_errors.default")
def check_errors(n: Call, info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    return None


@aten("linalg_inv_ex.default", "inverse.default", "linalg_inv.default")
def inv(n: Call, x: Tensor, *, check_errors: bool = False) -> Results:
    return linalg.inv(x), _info(x)


@aten("linalg_cholesky_ex.default", "linalg_cholesky.default", "cholesky.default")
def cholesky(n: Call, x: Tensor, upper: bool = False, *, check_errors: bool = False) -> Results:
    lower = linalg.cholesky(tril(x) if not upper else products.matrix_transpose(triu(x)))
    return products.matrix_transpose(lower) if upper else lower, _info(x)


@aten("cholesky_solve.default")
def cholesky_solve(n: Call, b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    lower = products.matrix_transpose(triu(factor)) if upper else tril(factor)
    return linalg.solve(products.matmul(lower, products.matrix_transpose(lower)), b)


@aten("_linalg_solve_ex.default", "linalg_solve_ex.default")
def solve(n: Call, a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Results:
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))
    b = s.unsqueeze(b, -1) if vector else b
    found = linalg.solve(a, b) if left or vector else _from_the_right(a, b)
    found = s.squeeze(found, -1) if vector else found
    return (found, None, None, _info(a)) if "_linalg_solve" in n.name else (found, _info(a))


def _from_the_right(a: Tensor, b: Tensor) -> Tensor:
    """The x with `x a = b`."""
    transposed = products.matrix_transpose
    return transposed(linalg.solve(transposed(a), transposed(b)))


@aten("linalg_solve_triangular.default")
def solve_triangular(
    n: Call, a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    rest = triu(a, k=1) if upper else tril(a, k=-1)
    if unitriangular:
        places = positions(a.shape[-1])
        unit = e.equal(s.unsqueeze(places, -1), places)
        a = e.where(unit, e.cast_like(1.0, a), rest)
    else:
        a = triu(a) if upper else tril(a)
    return linalg.solve(a, b) if left else _from_the_right(a, b)


@aten("_linalg_det.default", "linalg_det.default", "det.default")
def det(n: Call, x: Tensor) -> Results:
    return linalg.det(x), None, None


@aten("_linalg_slogdet.default", "linalg_slogdet.default", "slogdet.default")
def slogdet(n: Call, x: Tensor) -> Results:
    found = linalg.slogdet(x)
    return found.sign, found.logabsdet, None, None


@aten("linalg_qr.default")
def qr(n: Call, x: Tensor, mode: str = "reduced") -> Results:
    found = linalg.qr(x, mode="complete" if mode == "complete" else "reduced")
    return (None if mode == "r" else found.Q), found.R


@aten("_linalg_eigh.default", "linalg_eigh.default")
def eigh(n: Call, x: Tensor, uplo: str = "L", compute_v: bool = True) -> Results:
    lower = tril(x) if uplo.upper() == "L" else products.matrix_transpose(triu(x))
    whole = e.add(lower, products.matrix_transpose(tril(lower, k=-1)))
    if not compute_v:
        return linalg.eigvalsh(whole), None
    found = linalg.eigh(whole)
    return found.eigenvalues, found.eigenvectors


@aten("linalg_pinv.atol_rtol_tensor")
def pinv(
    n: Call, x: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    if atol is not None:
        raise n.refuse("a pseudoinverse by an absolute tolerance")
    return linalg.pinv(x, rtol=rtol)


@aten("_linalg_svd.default", "linalg_svd.default")
def svd(n: Call, x: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Results:
    if not compute_uv:
        return None, linalg.svdvals(x), None
    found = linalg.svd(x, full_matrices=full_matrices)
    return found.U, found.S, found.Vh
