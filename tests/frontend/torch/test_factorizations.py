"""Inverses, solutions and factorisations of torch.linalg: what the exported graphs compute is what torch does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import sardonyx as sx  # noqa: E402

torch.manual_seed(0)
A = torch.randn(2, 4, 4, dtype=torch.float64)
B = torch.randn(2, 4, 3, dtype=torch.float64)
DEFINITE = A @ A.mT + torch.eye(4, dtype=torch.float64)
TALL = torch.randn(2, 5, 3, dtype=torch.float64)
linalg = torch.linalg


def solutions(a, b, definite):
    lower = linalg.cholesky(definite)
    return (
        linalg.inv(a), linalg.det(a), *linalg.slogdet(a), lower, linalg.cholesky(definite, upper=True),
        linalg.solve(a, b), linalg.solve(a, b[:, :, 0]), linalg.solve(a, b.mT, left=False),
        torch.cholesky_solve(b, lower), linalg.solve_triangular(a, b, upper=True),
        linalg.solve_triangular(a, b, upper=False, unitriangular=True),
    )  # fmt: skip


def factors(definite, tall):
    """What is the same for every choice of signs."""
    whole, thin = linalg.qr(tall, mode="complete"), linalg.qr(tall)
    values, vectors = linalg.eigh(definite, "U")
    u, s, vh = linalg.svd(tall, full_matrices=False)
    return (
        whole.Q @ whole.R, thin.R.abs(), vectors @ torch.diag_embed(values) @ vectors.mT, values,
        linalg.eigvalsh(definite), linalg.svdvals(tall), (u * s[:, None]) @ vh, linalg.pinv(tall),
    )  # fmt: skip


@pytest.mark.parametrize(("function", "inputs"), [(solutions, (A, B, DEFINITE)), (factors, (DEFINITE, TALL))])
def test_results_are_torchs(function, inputs):
    found = sx.export(function, inputs)(*inputs)
    for got, want in zip(found, function(*inputs), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-10)


def test_a_function_of_torch_without_a_signature():
    program = sx.export(torch.linalg.solve, (A, B))
    torch.testing.assert_close(program.call_reference(A, B)[0], torch.linalg.solve(A, B))
