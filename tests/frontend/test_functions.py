"""The functions against NumPy: eagerly, traced with static dims, with every dim dynamic, and natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from eager_and_traced import check, run_all

import sardonyx as sx

RNG = np.random.default_rng(7)
A = RNG.standard_normal((3, 4)).astype(np.float32)
B = RNG.standard_normal((3, 4)).astype(np.float32)
ROW = RNG.standard_normal(4).astype(np.float32)
CUBE = RNG.standard_normal((2, 3, 4)).astype(np.float32)
I = RNG.integers(-5, 6, (3, 4))  # noqa: E741
J = RNG.integers(1, 6, (3, 4))
M = A > 0
N = B > 0

UNARY = {
    "abs": np.abs, "acos": lambda x: np.arccos(np.tanh(x)), "acosh": lambda x: np.arccosh(np.exp(np.abs(x))),
    "asinh": np.arcsinh, "atan": np.arctan, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "negative": np.negative, "neg": np.negative,
    "round": np.round, "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "square": np.square, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc, "reciprocal": np.reciprocal, "positive": np.positive, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite, "identity": np.positive,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str):
    argument = {"acos": np.tanh, "acosh": lambda x: np.exp(np.abs(x))}.get(name, lambda x: x)
    x = argument(A).astype(np.float32)
    reference = {"acos": np.arccos, "acosh": np.arccosh}.get(name, UNARY[name])
    check(getattr(sx, name), x, want=reference(x), rtol=2e-6)


@pytest.mark.parametrize("name", ["sqrt", "log", "log1p", "log2", "log10", "rsqrt", "asin", "atanh", "erf"])
def test_unary_on_a_part_of_the_numbers(name: str):
    import math

    x = (np.abs(np.tanh(A)) * 0.9 + 0.01).astype(np.float32)
    references: dict[str, Any] = {
        "rsqrt": lambda v: 1 / np.sqrt(v), "asin": np.arcsin, "atanh": np.arctanh, "erf": np.vectorize(math.erf),
    }  # fmt: skip
    wanted = references[name] if name in references else getattr(np, name)
    check(getattr(sx, name), x, want=wanted(x.astype(np.float64)).astype(np.float32), rtol=2e-6)


BINARY = {
    "add": np.add, "sub": np.subtract, "subtract": np.subtract, "mul": np.multiply, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "remainder": np.remainder, "fmod": np.fmod, "floor_divide": np.floor_divide,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("kind", ["float", "int"])
def test_binary(name: str, kind: str):
    x, y = (A, B) if kind == "float" else (I, J * np.where(N, 1, -1))
    check(getattr(sx, name), x, y, want=BINARY[name](x, y), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["div", "divide", "true_divide"])
def test_division_is_in_floats(name: str):
    check(getattr(sx, name), A, B, want=A / B)
    check(getattr(sx, name), I, J, want=(I / J).astype(np.float32))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_arithmetic_of_every_integer(dtype: str):
    x, y = np.array([1, 100, 7], dtype), np.array([3, 100, 2], dtype)
    with np.errstate(all="ignore"):
        for name in ("add", "subtract", "multiply", "remainder", "floor_divide", "maximum", "pow"):
            check(getattr(sx, name), x, y, want=getattr(np, {"pow": "power"}.get(name, name))(x, y))


def test_floor_division_at_the_edges():
    low = np.iinfo(np.int32).min
    x, y = np.array([low, low, 7, -7, 7, -7], np.int32), np.array([3, -1, 0, 0, -2, 2], np.int32)
    check(sx.floor_divide, x, y, want=np.array([low // 3, low, 0, 0, -4, -4], np.int32))


def test_broadcasting_and_scalars():
    check(lambda x, r: x * r + 1, A, ROW, want=A * ROW + 1)
    check(lambda x: 2 - x, A, want=2 - A)
    check(lambda x: 2.0**x, A, want=(2.0 ** A.astype(np.float64)).astype(np.float32))
    check(lambda x: x**2, A, want=A**2)
    check(lambda x: x / 2, I, want=(I / 2).astype(np.float32))
    check(lambda x: x * 0.5, I, want=(I * 0.5).astype(np.float32))
    check(lambda x: x + 1, M, want=M + 1)
    check(lambda x: x * np.sqrt(2.0), A, want=A * np.float32(np.sqrt(2.0)))  # np.float64 is a Python float
    check(lambda x: x * np.array(2.0), A, want=A * 2.0 * np.ones((), np.float64))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(name: str):
    check(getattr(sx, name), M, N, want=getattr(np, name)(M, N))
    check(getattr(sx, name), A, I, want=getattr(np, name)(A, I))


def test_bits():
    check(lambda x, y: (x & y, x | y, x ^ y, ~x), I, J, want=[I & J, I | J, I ^ J, ~I])
    check(lambda x, y: (x & y, x | y, x ^ y, ~x), M, N, want=[M & N, M | N, M ^ N, ~M])
    check(lambda x, y: (x << y, x >> y), I, J, want=[I << J, I >> J])
    check(sx.logical_not, A, want=np.logical_not(A))


def test_where_and_clip():
    check(sx.where, M, A, B, want=np.where(M, A, B))
    check(lambda m, x: sx.where(m, x, 0), M, A, want=np.where(M, A, np.float32(0)))
    check(lambda x: sx.clip(x, -0.5, 0.5), A, want=np.clip(A, -0.5, 0.5))
    check(lambda x: sx.clip(x, max=0.5), A, want=np.minimum(A, np.float32(0.5)))
    check(lambda x: sx.clip(x), A, want=A)
    check(lambda x, r: sx.clip(x, r), A, ROW, want=np.maximum(A, ROW))
    check(lambda x: sx.clip(x, -2, 3), I, want=np.clip(I, -2, 3))
    with pytest.raises(sx.InvalidArgumentError, match="needs a bool condition, not float32"):
        sx.where(sx.asarray(A), 1, 0)


def test_casts():
    check(lambda x: x.astype(sx.int32), A * 10, want=(A * 10).astype(np.int32))
    check(lambda x: sx.cast(x, "bool"), I, want=I.astype(bool))
    check(lambda x: sx.astype(x, np.float16), A, want=A.astype(np.float16))
    check(lambda x, y: sx.cast_like(x, y), A, I, want=A.astype(np.int64))
    assert sx.asarray(A).astype(sx.bfloat16).dtype == sx.bfloat16


def test_expm1_and_log1p_are_exact_near_zero():
    x = np.array([1e-7, -1e-6, 1e-3, 0.7, -0.6, 3.0, 80.0], np.float32)
    check(sx.expm1, x, want=np.expm1(x.astype(np.float64)).astype(np.float32), rtol=1e-6)
    y = np.array([1e-7, -1e-6, 1e-3, 0.7, -0.6, 3.0, 1e30], np.float32)
    check(sx.log1p, y, want=np.log1p(y.astype(np.float64)).astype(np.float32), rtol=1e-6)


def test_hypot_and_logaddexp():
    big = np.array([3e30, 0, np.inf, 1e-30], np.float32)
    other = np.array([4e30, 0, 1, 1e-30], np.float32)
    check(sx.hypot, big, other, want=np.hypot(big, other))
    check(sx.logaddexp, A * 50, B * 50, want=np.logaddexp(A * 50, B * 50), rtol=1e-5)
    inf = np.array([np.inf, -np.inf], np.float32)
    check(sx.logaddexp, inf, inf, want=inf)


# ---- reductions


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name: str, axis: object, keepdims: bool):
    where = tuple(axis) if isinstance(axis, list) else axis
    want = getattr(np, name)(CUBE.astype(np.float64), axis=where, keepdims=keepdims).astype(np.float32)
    check(lambda x: getattr(sx, name)(x, axis, keepdims=keepdims), CUBE, want=want, rtol=1e-5, atol=1e-6)
    check(lambda x: getattr(x, name)(axis, keepdims=keepdims), CUBE, want=want, rtol=1e-5, atol=1e-6)


def test_reductions_over_no_axes_keep_the_tensor():
    check(lambda x: sx.sum(x, ()), A, want=A)
    check(lambda x: sx.max(x, []), A, want=A)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "uint64", "int64"])
def test_sums_of_integers_are_wide(dtype: str):
    x = np.array([[1, 0, 1], [1, 1, 100]], dtype)
    check(sx.sum, x, want=x.sum(dtype=np.uint64 if dtype.startswith("u") else np.int64))
    check(lambda v: sx.prod(v, 1), x, want=x.prod(1, dtype=np.uint64 if dtype.startswith("u") else np.int64))
    check(lambda v: sx.sum(v, dtype=sx.float32), x, want=x.sum(dtype=np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "int8", "float16"])
def test_extremes_of_every_dtype(dtype: str):
    x = np.array([[1, 0, 1], [1, 1, 3]], dtype)
    check(lambda v: (sx.max(v, 0), sx.min(v, 1)), x, want=[x.max(0), x.min(1)])


def test_all_any_count():
    check(lambda m: (sx.all(m, 0), sx.any(m, 1), sx.count_nonzero(m)), M,
          want=[M.all(0), M.any(1), np.int64(M.sum())])  # fmt: skip
    check(lambda x: sx.any(x), I, want=I.any())


def test_variance_with_a_correction():
    check(lambda x: sx.var(x, 0, correction=1), A, want=A.var(0, ddof=1), rtol=1e-5)
    check(lambda x: sx.std(x, correction=1.0), A, want=np.float32(A.std(ddof=1)), rtol=1e-5)


def test_where_the_extremes_are():
    check(lambda x: sx.argmax(x, 1), A, want=A.argmax(1))
    check(lambda x: sx.argmin(x, 0, keepdims=True), A, want=A.argmin(0, keepdims=True))
    check(sx.argmax, A, want=np.int64(A.argmax()))
    check(lambda x: sx.argmax(x, keepdims=True), A, want=A.argmax().reshape(1, 1))
    check(lambda m: sx.argmax(m, 1), M, want=M.argmax(1))


def test_running_sums():
    check(lambda x: sx.cumsum(x, 0), A, want=A.cumsum(0), rtol=1e-5)
    check(lambda x: sx.cumsum(x, -1, exclusive=True), I, want=I.cumsum(1) - I)
    check(lambda x: sx.cumsum(x, 1, reverse=True), I, want=I[:, ::-1].cumsum(1)[:, ::-1])
    check(sx.cumsum, ROW, want=ROW.cumsum(), rtol=1e-5)
    check(lambda x: sx.cumulative_sum(x, axis=1, include_initial=True), I,
          want=np.concatenate([np.zeros((3, 1), np.int64), I.cumsum(1)], 1))  # fmt: skip
    with pytest.raises(sx.InvalidArgumentError, match="rank 2 needs an axis"):
        sx.cumsum(sx.asarray(A))


def test_other_reductions():
    check(lambda x: sx.logsumexp(x, 1), A, want=np.log(np.exp(A).sum(1)), rtol=1e-5)
    check(lambda x: sx.reduce_l1(x, 0), A, want=np.abs(A).sum(0), rtol=1e-5)
    check(lambda x: sx.reduce_l2(x, 0), A, want=np.sqrt((A * A).sum(0)), rtol=1e-5)
    check(lambda x: sx.reduce_sum_square(x), A, want=(A * A).sum(), rtol=1e-5)


def test_axes_are_checked():
    x = sx.asarray(A)
    with pytest.raises(sx.InvalidArgumentError, match="axis 2 is out of range for a tensor of rank 2"):
        sx.sum(x, 2)
    with pytest.raises(sx.InvalidArgumentError, match="name one twice"):
        sx.sum(x, [0, -2])


# ---- shapes


def test_reshape():
    check(lambda x: sx.reshape(x, (6, 2)), A, want=A.reshape(6, 2))
    check(lambda x: x.reshape(-1), A, want=A.reshape(-1))
    check(lambda x: x.reshape(2, -1), A, want=A.reshape(2, -1))
    check(lambda x: sx.reshape(x, (x.shape[1], x.shape[0])), A, want=A.reshape(4, 3))
    check(lambda x: sx.reshape(x, (x.shape[0], x.shape[1] * x.shape[2])), CUBE, want=CUBE.reshape(2, 12))
    check(lambda x: sx.reshape(x, (x.shape[0] * x.shape[1], -1)), CUBE, want=CUBE.reshape(6, 4))
    check(lambda x: sx.reshape(x, sx.shape(x)), A, want=A)
    check(lambda x: sx.reshape(x, (0, -1), allowzero=False), A, want=A)
    empty = np.zeros((0, 3), np.float32)
    check(lambda x: sx.reshape(x, (3, 0)), empty, want=empty.reshape(3, 0))
    with pytest.raises(sx.InferenceError, match="cannot be reshaped"):
        sx.reshape(sx.asarray(A), (5, 2))


def test_a_reshape_that_keeps_its_dims_has_a_constant_shape():
    def split_heads(x: sx.Tensor) -> sx.Tensor:
        batch, length, width = x.shape
        return sx.reshape(x, (batch, length, 4, width // 4))

    graph = sx.trace(split_heads, "x: f32[batch,seq,64]").graph
    assert graph.outputs() == [("output_0", sx.float32, (-1, -1, 4, 16))]
    assert graph.output_specs()[0].dim_names == ["batch", "seq", "", ""]
    assert [n.operator for n in graph.nodes()] == ["Input", "Constant", "Reshape"]
    merged = sx.trace(lambda x: sx.reshape(x, (x.shape[0] * x.shape[1], 64)), "x: f32[batch,seq,64]").graph
    assert merged.output_specs()[0].dim_names == ["batch*seq", ""]
    assert [n.operator for n in merged.nodes()] == ["Input", "Constant", "Reshape"]


def test_order_of_axes():
    check(sx.transpose, CUBE, want=CUBE.transpose())
    check(lambda x: sx.permute_dims(x, (2, 0, 1)), CUBE, want=CUBE.transpose(2, 0, 1))
    check(lambda x: x.transpose(1, 0, -1), CUBE, want=CUBE.transpose(1, 0, 2))
    check(lambda x: x.T, A, want=A.T)
    check(lambda x: x.mT, CUBE, want=CUBE.mT)
    check(lambda x: sx.swapaxes(x, 0, -1), CUBE, want=CUBE.swapaxes(0, -1))
    check(lambda x: sx.moveaxis(x, 0, -1), CUBE, want=np.moveaxis(CUBE, 0, -1))
    check(lambda x: sx.moveaxis(x, (0, 1), (2, 0)), CUBE, want=np.moveaxis(CUBE, (0, 1), (2, 0)))


def test_squeeze_and_unsqueeze():
    one = A.reshape(1, 3, 1, 4)
    check(lambda x: sx.squeeze(x, (0, 2)), one, want=A)
    check(lambda x: sx.squeeze(x, -2), one, want=one.squeeze(-2))
    check(lambda x: sx.unsqueeze(x, 0), A, want=A[None])
    check(lambda x: sx.unsqueeze(x, [0, -1]), A, want=A[None, :, :, None])
    check(lambda x: sx.expand_dims(x, axis=1), A, want=A[:, None])
    check(lambda x: sx.flatten(x, axis=2), CUBE, want=CUBE.reshape(6, 4))
    assert sx.squeeze(sx.asarray(one)).shape == (3, 4)


def test_broadcasting_to_a_shape():
    check(lambda x: sx.broadcast_to(x, (2, 3, 4)), A, want=np.broadcast_to(A, (2, 3, 4)))
    check(lambda x, y: sx.broadcast_to(x, y.shape), ROW, A, want=np.broadcast_to(ROW, A.shape))
    check(lambda x: sx.expand(x, (2, 1, 1)), A, want=np.broadcast_to(A, (2, 3, 4)))
    check(lambda x, y: sx.broadcast_arrays(x, y), A, ROW, want=list(np.broadcast_arrays(A, ROW)))
    with pytest.raises(sx.InvalidArgumentError, match=r"\[3, 4\] does not broadcast to \[3, 5\]"):
        sx.broadcast_to(sx.asarray(A), (3, 5))


def test_joining_and_parting():
    check(lambda x, y: sx.concat([x, y]), A, B, want=np.concatenate([A, B]))
    check(lambda x, y: sx.concat([x, y], 1), A, I, want=np.concatenate([A, I.astype(np.float32)], 1))
    check(lambda x, y: sx.concat([x, y], axis=None), A, B, want=np.concatenate([A, B], None))
    check(lambda x, y: sx.stack([x, y], -1), A, B, want=np.stack([A, B], -1))
    check(lambda x: sx.split(x, 2, 1), A, want=np.split(A, 2, 1))
    check(lambda x: sx.split(x, [1, 2]), A, want=np.split(A, [1]))
    check(lambda x: sx.tile(x, (2, 1, 3)), A, want=np.tile(A, (2, 1, 3)))
    check(lambda x: sx.tile(x, (2,)), A, want=np.tile(A, (2,)))
    check(lambda x: sx.repeat(x, 2, axis=1), A, want=np.repeat(A, 2, 1))
    check(lambda x: sx.repeat(x, 3), A, want=np.repeat(A, 3))
    check(lambda x: sx.flip(x), A, want=np.flip(A))
    check(lambda x: sx.flip(x, axis=1), A, want=np.flip(A, 1))
    check(lambda x: sx.roll(x, 1, axis=0), A, want=np.roll(A, 1, 0))
    check(lambda x: sx.roll(x, (-1, 2), axis=(0, 1)), A, want=np.roll(A, (-1, 2), (0, 1)))
    check(lambda x: sx.roll(x, 5), A, want=np.roll(A, 5))
    parts = sx.unstack(sx.asarray(A), axis=1)
    assert len(parts) == 4
    np.testing.assert_array_equal(parts[2], A[:, 2])
    with pytest.raises(sx.InvalidArgumentError, match="takes a list of tensors"):
        sx.concat(sx.asarray(A))  # pyright: ignore[reportArgumentType]


def test_padding():
    check(lambda x: sx.pad(x, 1), A, want=np.pad(A, 1))
    check(lambda x: sx.pad(x, [(1, 0), (0, 2)], constant_value=9), A,
          want=np.pad(A, [(1, 0), (0, 2)], constant_values=9))  # fmt: skip
    check(lambda x: sx.pad(x, (0, 1, 0, 1), "reflect"), A, want=np.pad(A, [(0, 0), (1, 1)], mode="reflect"))
    check(lambda x: sx.pad(x, (1, 2), axes=[1], mode="edge"), A, want=np.pad(A, [(0, 0), (1, 2)], mode="edge"))


def test_gathering():
    index = np.array([[2, 0], [1, -1]])
    check(lambda x, i: sx.gather(x, i, 1), A, index, want=A[:, index])
    check(lambda x, i: sx.take(x, i, axis=0), A, index, want=A[index])
    along = np.array([[0, 1], [3, 2], [1, 1]])
    check(lambda x, i: sx.take_along_axis(x, i, axis=1), A, along, want=np.take_along_axis(A, along, 1))
    check(lambda x, i: sx.gather_elements(x, i, 1), A, along, want=np.take_along_axis(A, along, 1))
    check(lambda x: sx.gather_nd(x, np.array([[0, 1], [2, 3]])), A, want=A[[0, 2], [1, 3]])
    check(lambda x: sx.slice(x, [1], [-1], [1]), A, want=A[:, 1:-1])
    check(lambda x: sx.slice(x, [0, 3], [2, 0], None, [1, -2]), A, want=A[0:2, 3:0:-2])
    with pytest.raises(sx.ExecutionError, match="out of range"):
        sx.gather(sx.asarray(RNG.standard_normal(200)), sx.asarray(np.full(100, 200)))


def test_creation():
    assert sx.ones(2, 37).shape == sx.ones((2, 37)).shape == sx.ones([2, 37]).shape == (2, 37)
    assert sx.ones(3).dtype == sx.float32 and sx.zeros((), dtype=sx.int8).shape == ()
    assert sx.full((2,), 7).dtype == sx.int64 and sx.full((2,), 0.5).dtype == sx.float32
    assert sx.full((2,), True).dtype == sx.bool_
    np.testing.assert_array_equal(sx.arange(3), np.arange(3))
    np.testing.assert_array_equal(sx.arange(0, 1, 0.25), np.arange(0, 1, 0.25, dtype="float32"))
    assert sx.arange(0, 37, dtype=sx.float32).dtype == sx.float32
    np.testing.assert_array_equal(sx.eye(3, k=1), np.eye(3, k=1))
    np.testing.assert_array_equal(sx.linspace(0, 1, 5), np.linspace(0, 1, 5))
    check(lambda x: (sx.zeros_like(x), sx.ones_like(x), sx.full_like(x, 3)), A,
          want=[np.zeros_like(A), np.ones_like(A), np.full_like(A, 3)])  # fmt: skip
    check(lambda x: sx.arange(x.shape[0]) + x[:, 0].astype(sx.int64) * 0, A, want=np.arange(3))
    check(lambda x: sx.ones((x.shape[0], 2)) + x[:, :2] * 0, A, want=np.ones((3, 2), np.float32))
    check(lambda x: (sx.tril(x), sx.triu(x, k=1)), A, want=[np.tril(A), np.triu(A, 1)])
    grids = sx.meshgrid(sx.arange(2), sx.arange(3))
    for got, want in zip(grids, np.meshgrid(np.arange(2), np.arange(3)), strict=True):
        np.testing.assert_array_equal(got, want)
    for wrong in ((2.5,), ("a",), -1):
        with pytest.raises(sx.InvalidArgumentError):
            sx.zeros(wrong)


# ---- linear algebra and networks


def test_matrix_products():
    check(sx.matmul, A, B.T.copy(), want=A @ B.T, rtol=1e-5, atol=1e-6)
    check(lambda x, y: x @ y, CUBE, B.T.copy(), want=CUBE @ B.T, rtol=1e-5, atol=1e-6)
    check(lambda x, y: x @ y, I, J.T.copy(), want=I @ J.T)
    small = I.astype(np.int8)
    check(lambda x, y: x @ y, small, small.T.copy(), want=small @ small.T)
    check(lambda a, b, c: sx.gemm(a, b, c, trans_b=True, alpha=2.0, beta=0.5), A, B, A[:, :3].copy(),
          want=2 * A @ B.T + 0.5 * A[:, :3], rtol=1e-5, atol=1e-6)  # fmt: skip
    check(lambda x, w: sx.linear(x, w), A, B, want=A @ B.T, rtol=1e-5, atol=1e-6)
    check(sx.outer, ROW, ROW, want=np.outer(ROW, ROW))
    check(sx.vecdot, A, B, want=(A * B).sum(-1), rtol=1e-5, atol=1e-6)
    check(lambda x, y: sx.tensordot(x, y, axes=1), CUBE, B.T.copy(), want=np.tensordot(CUBE, B.T, 1), rtol=1e-5,
          atol=1e-6)  # fmt: skip
    check(lambda x, y: sx.tensordot(x, y, axes=([1, 2], [0, 1])), CUBE, B, want=np.tensordot(CUBE, B, ([1, 2], [0, 1])),
          rtol=1e-5, atol=1e-6)  # fmt: skip


def conv_by_loops(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    n, _, height, width = x.shape
    k = w.shape[2]
    rows, columns = (height - k) // stride + 1, (width - k) // stride + 1
    out = np.zeros((n, w.shape[0], rows, columns))
    for i in range(rows):
        for j in range(columns):
            window = x[:, :, i * stride : i * stride + k, j * stride : j * stride + k]
            out[:, :, i, j] = np.einsum("nckl,mckl->nm", window.astype(np.float64), w.astype(np.float64))
    return out.astype(np.float32)


def test_convolution_and_pooling():
    x = RNG.standard_normal((2, 3, 6, 6)).astype(np.float32)
    w = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
    b = RNG.standard_normal(4).astype(np.float32)

    def check_static(fn, *arrays, want):
        got = run_all_static(fn, *arrays)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

    check_static(lambda x: sx.conv(x, w, b, strides=2, pads=1), x, want=conv_by_loops(x, w, 2, 1) + b[:, None, None])
    check_static(lambda x: sx.conv(x, w), x, want=conv_by_loops(x, w, 1, 0))
    windows = x.reshape(2, 3, 3, 2, 3, 2)
    check_static(lambda x: sx.max_pool(x, 2, strides=2), x, want=windows.max((3, 5)))
    check_static(lambda x: sx.average_pool(x, (2, 2), strides=(2, 2)), x, want=windows.mean((3, 5)))
    check_static(sx.global_average_pool, x, want=x.mean((2, 3), keepdims=True))
    check_static(sx.global_max_pool, x, want=x.max((2, 3), keepdims=True))
    values, indices = sx.max_pool_with_indices(sx.asarray(x), 2, 2)
    np.testing.assert_array_equal(x.reshape(-1)[np.asarray(indices)], values)
    with pytest.raises(sx.InvalidArgumentError, match="strides has 3 entries for 2 spatial axes"):
        sx.conv(x, w, strides=(1, 1, 1))


def run_all_static(fn, x):
    eager = np.asarray(fn(sx.asarray(x)))
    graph = sx.trace(lambda v: fn(v), (sx.TensorSpec("x", x.dtype, ["n", *x.shape[1:]]),)).graph
    (traced,) = graph.evaluate([x])
    np.testing.assert_array_equal(eager, traced)
    return eager


def test_normalisations():
    x = RNG.standard_normal((2, 4, 3, 3)).astype(np.float32)
    c = RNG.standard_normal((4, 4)).astype(np.float32) ** 2 + 0.5
    s, b, m, v = c

    def column(a):
        return a[:, None, None]

    np.testing.assert_allclose(
        run_all_static(lambda t: sx.batch_norm(t, s, b, m, v, epsilon=1e-3), x),
        (x - column(m)) / np.sqrt(column(v) + 1e-3) * column(s) + column(b), rtol=1e-5, atol=1e-5,
    )  # fmt: skip
    mean, var = A.mean(-1, keepdims=True), A.var(-1, keepdims=True)
    check(lambda t, w: sx.layer_norm(t, w, w), A, ROW, want=(A - mean) / np.sqrt(var + 1e-5) * ROW + ROW, rtol=1e-4,
          atol=1e-5)  # fmt: skip
    check(lambda t, w: sx.rms_norm(t, w), A, ROW, want=A / np.sqrt((A * A).mean(-1, keepdims=True) + 1e-5) * ROW,
          rtol=1e-5, atol=1e-5)  # fmt: skip
    exps = np.exp(A - A.max(1, keepdims=True))
    check(lambda t: sx.softmax(t, axis=1), A, want=exps / exps.sum(1, keepdims=True), rtol=1e-5)
    check(lambda t: sx.log_softmax(t), A, want=np.log(exps / exps.sum(1, keepdims=True)), rtol=1e-5)


def test_activations():
    check(sx.relu, A, want=np.maximum(A, 0))
    check(sx.relu, I, want=np.maximum(I, 0))
    check(sx.relu6, A * 8, want=np.clip(A * 8, 0, 6))
    check(lambda x: sx.leaky_relu(x, 0.25), A, want=np.where(A < 0, A * 0.25, A).astype(np.float32))
    check(sx.sigmoid, A, want=1 / (1 + np.exp(-A)), rtol=1e-5)
    check(sx.silu, A, want=A / (1 + np.exp(-A)), rtol=1e-5)
    check(sx.softplus, A, want=np.log1p(np.exp(A)), rtol=1e-5)
    check(lambda x, s: sx.prelu(x, s), A, ROW, want=np.where(A < 0, A * ROW, A))
    for name in ("elu", "selu", "celu", "gelu", "hard_sigmoid", "hard_swish", "softsign", "mish", "thresholded_relu",
                 "shrink", "hardmax"):  # fmt: skip
        results = run_all(getattr(sx, name), A)
        for got in results.values():
            np.testing.assert_allclose(got[0], results["eager"][0], rtol=1e-6, atol=1e-7)
