"""The functions of the array API standard against array-api-strict: eagerly, traced and native, and in ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import array_api_strict as xp
import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError

RANDOM = np.random.default_rng(0)
OUT_OF_SCOPE = {
    "complex64", "complex128", "conj", "imag", "real", "fft",  # complex dtypes
    "Device", "ArrayAPIStrictFlags", "set_array_api_strict_flags", "get_array_api_strict_flags",
    "reset_array_api_strict_flags",  # array-api-strict's own
}  # fmt: skip
X = RANDOM.standard_normal((3, 4))
Y = RANDOM.standard_normal((3, 4))
POSITIVE = np.abs(X) + 0.5
WHOLE = RANDOM.integers(1, 20, (3, 4))
SQUARE = RANDOM.standard_normal((2, 5, 5))
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
DEFINITE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(5)
TALL = RANDOM.standard_normal((2, 6, 4))
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -3.0, 1e-300])


def test_all_names_of_the_standard_are_there() -> None:
    names = [n for n in xp.__all__ if not n.startswith("_") and n not in OUT_OF_SCOPE]
    assert [n for n in names if not hasattr(sx, n)] == []
    assert [n for n in xp.linalg.__all__ if not hasattr(sx.linalg, n)] == []
    ours = set(dir(sx.asarray(1.0)))
    methods = [n for n in dir(xp.asarray(1.0)) if n not in ("__buffer__",) and (n.startswith("__") or n[0] != "_")]
    assert [n for n in methods if n not in ours] == []


def test_the_namespace_answers_eagerly_and_while_tracing() -> None:
    assert sx.asarray(1.0).__array_namespace__() is sx
    assert sx.__array_api_version__ == "2024.12"
    with pytest.raises(InvalidArgumentError, match="is not offered"):
        sx.asarray(1.0).__array_namespace__(api_version="1999.01")

    def standardise(x: Any) -> Any:
        namespace = x.__array_namespace__()
        return (x - namespace.mean(x, axis=-1, keepdims=True)) / namespace.std(x, axis=-1, keepdims=True)

    graph = sx.trace(standardise, "x: f64[n,4]").graph
    (found,) = graph.evaluate([X])
    np.testing.assert_allclose(np.asarray(found), np.asarray(standardise(xp.asarray(X))), rtol=1e-12)


def test_the_inspection_api() -> None:
    info, strict = sx.__array_namespace_info__(), xp.__array_namespace_info__()
    assert info.devices() == ["cpu"] and info.default_device() == "cpu"
    assert set(info.capabilities()) == set(strict.capabilities())
    for kind in (None, "bool", "integral", "signed integer", "unsigned integer", "real floating", ("bool", "integral")):
        wanted = {n for n in strict.dtypes(kind=kind) if not n.startswith("complex")}
        assert set(info.dtypes(kind=kind)) == wanted
    assert info.default_dtypes()["integral"] == sx.int64
    with pytest.raises(InvalidArgumentError, match="no kind of dtypes"):
        info.dtypes(kind="quaternion")
    with pytest.raises(InvalidArgumentError, match="no device"):
        info.dtypes(device="gpu")


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "atan2": (lambda n, x, y: n.atan2(x, y), (X, Y)),
    "copysign": (lambda n, x, y: n.copysign(x, y), (X, Y)),
    "signbit": (lambda n, x: n.signbit(x), (X,)),
    "diff": (lambda n, x: n.diff(x, axis=0), (X,)),
    "diff twice": (lambda n, x, y: n.diff(x, n=2, prepend=y, append=y), (X, Y)),
    "searchsorted": (lambda n, x, y: n.searchsorted(n.sort(x), y), (X.reshape(-1), Y)),
    "searchsorted right": (lambda n, x: n.searchsorted(x, x, side="right"), (np.sort(WHOLE.reshape(-1)),)),
    "searchsorted sorter": (lambda n, x, y: n.searchsorted(x, y, sorter=n.argsort(x)), (X.reshape(-1), Y)),
    "isin": (lambda n, x, y: n.isin(x, y), (WHOLE, WHOLE[0, :2])),
    "cholesky": (lambda n, x: n.linalg.cholesky(x), (DEFINITE,)),
    "cholesky upper": (lambda n, x: n.linalg.cholesky(x, upper=True), (DEFINITE,)),
    "solve": (lambda n, x, y: n.linalg.solve(x, y), (SQUARE, RANDOM.standard_normal((2, 5, 3)))),
    "solve a vector": (lambda n, x, y: n.linalg.solve(x, y), (SQUARE[0], SQUARE[0, 0])),
    "inv": (lambda n, x: n.linalg.inv(x), (SQUARE,)),
    "det": (lambda n, x: n.linalg.det(x), (SQUARE,)),
    "slogdet": (lambda n, x: tuple(n.linalg.slogdet(x)), (SQUARE,)),
    "eigvalsh": (lambda n, x: n.linalg.eigvalsh(x), (SYMMETRIC,)),
    "svdvals": (lambda n, x: n.linalg.svdvals(x), (TALL,)),
    "pinv": (lambda n, x: n.linalg.pinv(x), (TALL,)),
    "matrix_rank": (lambda n, x: n.linalg.matrix_rank(x), (np.outer(np.arange(4.0), np.arange(3.0)),)),
    "matrix_power": (lambda n, x: n.linalg.matrix_power(x, -3), (DEFINITE,)),
    "matrix_norm": (lambda n, x: n.linalg.matrix_norm(x, ord="nuc", keepdims=True), (TALL,)),
    "vector_norm": (lambda n, x: n.linalg.vector_norm(x, axis=1, ord=3), (TALL,)),
    "cross": (lambda n, x, y: n.linalg.cross(x, y, axis=-2), (X, Y)),
    "diagonal": (lambda n, x: n.linalg.diagonal(x, offset=-1), (TALL,)),
    "trace": (lambda n, x: n.linalg.trace(x, offset=1), (TALL,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_function_agrees_with_array_api_strict(name: str) -> None:
    function, arrays = CASES[name]
    wanted = function(xp, *map(xp.asarray, arrays))
    expected = [np.asarray(w) for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
    found = function(sx, *map(sx.asarray, arrays))
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected):
        assert got.shape == want.shape and np.asarray(got).dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["diff twice", "searchsorted", "solve", "cholesky", "slogdet", "svdvals"])
def test_traced_functions_agree_natively_and_in_onnxruntime(name: str, tmp_path: Any) -> None:
    import onnxruntime

    function, arrays = CASES[name]
    names = ["a", "b"][: len(arrays)]
    signature = ", ".join(f"{n}: f64[{','.join(map(str, x.shape))}]" for n, x in zip(names, arrays))
    graph = sx.trace(lambda *tensors: function(sx, *tensors), signature).graph
    expected = [np.asarray(t) for t in graph.evaluate(list(arrays))]
    graph.finalize()
    for got, want in zip(graph.run(list(arrays)), expected):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)
    graph.export_onnx(tmp_path / "x.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "x.onnx", providers=["CPUExecutionProvider"])
    for got, want in zip(session.run(None, dict(zip(names, arrays))), expected):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


def test_signs_of_zeros_infinities_and_nan() -> None:
    y, x = np.meshgrid(SPECIAL, SPECIAL)
    np.testing.assert_allclose(np.asarray(sx.atan2(y, x)), np.arctan2(y, x), rtol=1e-14)
    for dtype in (np.float32, np.float64):
        a, b = y.astype(dtype), x.astype(dtype)
        np.testing.assert_array_equal(np.asarray(sx.nextafter(a, b)), np.nextafter(a, b))
    known = ~np.isnan(x)
    signs = np.signbit(np.asarray(sx.copysign(y, x)))
    np.testing.assert_array_equal(signs[known & ~np.isnan(y)], np.signbit(x)[known & ~np.isnan(y)])


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (5, 3), (3, 1), (0, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factorisations_give_back_the_matrix(shape: tuple[int, ...], dtype: type) -> None:
    x = RANDOM.standard_normal(shape).astype(dtype)
    close = {"rtol": 0, "atol": 200 * float(np.finfo(dtype).eps)}
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, sx.linalg.qr(x, mode=mode))
        np.testing.assert_allclose(q @ r, x, **close)
        np.testing.assert_allclose(
            np.swapaxes(q, -1, -2) @ q, np.eye(q.shape[-1]) + np.zeros((*shape[:-2], 1, 1)), **close
        )
    for full in (True, False):
        if 0 in shape:
            continue
        u, s, vh = map(np.asarray, sx.linalg.svd(x, full_matrices=full))
        k = s.shape[-1]
        assert (np.diff(s) <= 0).all()
        np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, **close)
        np.testing.assert_allclose(
            np.swapaxes(u, -1, -2) @ u, np.eye(u.shape[-1]) + np.zeros((*shape[:-2], 1, 1)), **close
        )
    if shape[-1] == shape[-2] and 0 not in shape:
        symmetric = x + np.swapaxes(x, -1, -2)
        values, vectors = map(np.asarray, sx.linalg.eigh(symmetric))
        np.testing.assert_allclose(symmetric @ vectors, vectors * values[..., None, :], **close)


def test_what_linalg_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="is not square"):
        sx.linalg.inv(np.ones((2, 3)))
    with pytest.raises(InvalidArgumentError, match="is no matrix"):
        sx.linalg.qr(np.ones(3))
    with pytest.raises(InvalidArgumentError, match="there is no norm"):
        sx.linalg.matrix_norm(np.ones((2, 2)), ord="max")
    with pytest.raises(InvalidArgumentError, match="expected 3"):
        sx.linalg.cross(np.ones(4), np.ones(4))
    with pytest.raises(InvalidArgumentError, match="must be numbers, not 'n'"):
        sx.trace(sx.linalg.svdvals, "x: f32[n,n]")
    with pytest.raises(InvalidArgumentError, match="side is 'left' or 'right'"):
        sx.searchsorted([1.0], [1.0], side="middle")  # pyright: ignore[reportArgumentType]
    singular = sx.linalg.slogdet(np.ones((2, 2)))
    assert float(singular.sign) == 0 and float(singular.logabsdet) == -math.inf


def test_a_dynamic_system_is_solved_at_every_size() -> None:
    graph = sx.trace(sx.linalg.solve, "a: f64[n,n], b: f64[n]").graph
    graph.finalize()
    for n in (1, 2, 7):
        a, b = RANDOM.standard_normal((n, n)), RANDOM.standard_normal(n)
        (found,) = graph.run([a, b])
        np.testing.assert_allclose(np.asarray(found), np.linalg.solve(a, b), rtol=1e-9)


def test_a_traced_vector_says_how_often_each_row_is_repeated() -> None:
    graph = sx.trace(lambda x, r: sx.repeat(x, r, axis=0), "x: f32[n,2], r: i32[n]").graph
    graph.finalize()
    for r in ([2, 0, 1], [0, 0, 0], []):
        x, counts = np.arange(2 * len(r), dtype=np.float32).reshape(-1, 2), np.array(r, np.int32)
        for run in (graph.run, graph.evaluate):
            np.testing.assert_array_equal(np.asarray(run([x, counts])[0]), np.repeat(x, counts, axis=0))
    for match, wrong in (("is negative", [-1, 1]), ("a vector of integers", [0.5, 1.0]), ("broadcast", [1, 2, 3])):
        with pytest.raises(InvalidArgumentError, match=match):
            sx.repeat(sx.ones(2), sx.asarray(wrong))


def test_factorisations_of_eager_matrices_are_compiled_and_kept() -> None:
    from sardonyx.frontend.linalg.compiled import _graphs

    x = RANDOM.standard_normal((3, 24, 24))
    before = len(_graphs)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(sx.linalg.inv(x)) @ x, np.broadcast_to(np.eye(24), x.shape), atol=1e-9)
    assert len(_graphs) == before + 1
    u, s, vh = map(np.asarray, sx.linalg.svd(x[0, :, :9], full_matrices=False))
    np.testing.assert_allclose((u * s) @ vh, x[0, :, :9], atol=1e-9)
    assert type(sx.linalg.eigh(x[0] + x[0].T)).__name__ == "EighResult" and len(_graphs) == before + 3
    with pytest.raises(InvalidArgumentError, match=r"test_array_api.py:\d+: .* is not square"):
        sx.linalg.inv(np.ones((24, 23)))
