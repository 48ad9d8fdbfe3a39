"""Functions that choose, place, sort and sample: eagerly, traced with static dims, and with every dim dynamic."""

from __future__ import annotations

import numpy as np
import pytest
from eager_and_traced import check, run_all

import sardonyx as sx

RNG = np.random.default_rng(81)
A = RNG.integers(0, 5, (3, 4)).astype(np.float32)
CUBE = RNG.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((1, 2, 4, 5)).astype(np.float32)


def reference(fn, *arrays, want, **limits):
    """Without native code, which these ops have not."""
    check(fn, *arrays, want=want, native=False, **limits)


# ---- order


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_sort_and_argsort(dtype):
    x = A.astype(dtype)
    reference(sx.sort, x, want=np.sort(x))
    reference(lambda v: sx.sort(v, axis=0, descending=True), x, want=np.sort(x, 0)[::-1])
    reference(sx.argsort, x, want=np.argsort(x, kind="stable"))
    reference(lambda v: sx.argsort(v, descending=True), x, want=np.argsort(-x.astype("f8"), kind="stable"))


def test_topk():
    at = np.argsort(-A, 1, kind="stable")[:, :2]
    reference(lambda v: sx.topk(v, 2), A, want=[np.take_along_axis(A, at, 1), at])
    low = np.argsort(A, 0, kind="stable")[:1]
    reference(lambda v: sx.topk(v, 1, axis=0, largest=False), A, want=[np.take_along_axis(A, low, 0), low])
    reference(lambda v: sx.topk(v, v.shape[1] - 1)[1], A, want=np.argsort(-A, 1, kind="stable")[:, :3])
    with pytest.raises(sx.InferenceError, match=r"\(C3\) k is 5"):
        sx.topk(sx.asarray(A), 5)


# ---- scatter


def test_scatter():
    at, updates = np.array([[0, -1, 2, 1]]), np.array([[9, 8, 7, 6]], np.float32)
    want = A.copy()
    np.put_along_axis(want, at, updates, 0)
    reference(lambda x: sx.scatter_elements(x, at, updates), A, want=want)
    assert sx.scatter is sx.scatter_elements
    added = A.copy()
    np.add.at(added, [0, 0], np.ones(4, np.float32))
    reference(lambda x: sx.scatter_nd(x, np.array([[0], [0]]), np.ones((2, 4)), "add"), A, want=added)
    cache = CUBE.copy()
    cache[0, 1:2], cache[1, 2:3] = 1, 1
    reference(lambda x: sx.tensor_scatter(x, np.ones((2, 1, 4)), np.array([1, 2])), CUBE, want=cache)


# ---- positions and distinct elements


def test_nonzero_and_its_kin():
    reference(lambda x: sx.nonzero(x > 2), A, want=list(np.nonzero(A > 2)))
    reference(sx.argwhere, A, want=np.argwhere(A))
    keep = A[:, 0] > 1
    reference(lambda x, c: sx.compress(c, x, 0), A, keep, want=A[keep])
    reference(lambda x: sx.compress(sx.reshape(x > 2, (-1,)), x), A, want=A[A > 2])
    with pytest.raises(sx.InvalidArgumentError, match="rank 0"):
        sx.nonzero(1.0)


def test_unique():
    values, first, inverse, counts = np.unique(A, return_index=True, return_inverse=True, return_counts=True)
    reference(sx.unique_all, A, want=[values, first, inverse, counts])
    reference(sx.unique_counts, A, want=[values, counts])
    reference(sx.unique_inverse, A, want=[values, inverse])
    reference(sx.unique_values, A, want=values)
    doubled = np.concatenate([A, A])
    reference(lambda x: sx.unique(x, axis=0).values, doubled, want=np.unique(doubled, axis=0))
    assert np.asarray(sx.unique(sx.asarray([3, 1, 3]), sorted=False).values).tolist() == [3, 1]


def test_one_hot():
    at = np.array([1, -1, 7])
    want = np.eye(3, dtype=np.float32)[[1, 2, 0]]
    want[2] = 0
    reference(lambda i: sx.one_hot(i, 3), at, want=want)
    reference(lambda i: sx.one_hot(i, 3, axis=0, dtype="int64"), at, want=want.T.astype(np.int64))
    half = np.float16(0.5)
    reference(lambda i: sx.one_hot(i, 3, on_value=sx.asarray(half)), at, want=(want / 2).astype(np.float16))


def test_sequences_and_boxes():
    turned = CUBE.copy()
    turned[:, 0] = turned[::-1, 0]
    reference(lambda x: sx.reverse_sequence(x, np.array([2, 1, 0])), CUBE, want=turned)
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.5, 0.9, 0.7]]], np.float32)
    reference(
        lambda b, s: sx.non_max_suppression(b, s, 9, 0.5, 0.1), boxes, scores, want=np.array([[0, 0, 1], [0, 0, 2]])
    )


# ---- products


def test_einsum():
    b = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    c = RNG.standard_normal((2, 5, 4)).astype(np.float32)
    want = np.einsum("bij,bjk->bik", CUBE[:, :, :], c.swapaxes(1, 2)[:, :4])
    reference(lambda x, y: sx.einsum("bij,bkj->bik", x, y), CUBE, c, want=want, rtol=1e-5, atol=1e-6)
    reference(lambda x, y: sx.einsum("ij,ijk", x, y), A, b, want=np.einsum("ij,ijk", A, b), rtol=1e-5, atol=1e-5)
    assert sx.einsum("ii", np.eye(3, dtype=bool)).dtype == "bool"
    assert sx.einsum("i,i", sx.asarray([1, 2]), sx.asarray([0.5, 2])).item() == 4.5
    with pytest.raises(sx.InferenceError, match=r"\(C3\)"):
        sx.einsum("ijk", A)
    with pytest.raises(sx.InvalidArgumentError, match="at least one"):
        sx.einsum("ij")


def test_running_products_and_determinants():
    x = np.abs(A) + 1
    reference(lambda v: sx.cumprod(v, 1), x, want=np.cumprod(x, 1))
    reference(lambda v: sx.cumulative_prod(v, axis=0, include_initial=True), x,
              want=np.concatenate([np.ones((1, 4), "f4"), np.cumprod(x, 0)]))  # fmt: skip
    assert np.asarray(sx.cumprod(sx.asarray([1, 2, 3]), reverse=True, exclusive=True)).tolist() == [6, 3, 1]
    square = RNG.standard_normal((2, 3, 3)).astype(np.float32)
    reference(sx.det, square, want=np.linalg.det(square.astype("f8")).astype("f4"), rtol=1e-5)


# ---- sampling


def test_resize_and_interpolate():
    reference(lambda x: sx.resize(x, scales=(2, 2), axes=(2, 3)), IMAGE, want=IMAGE.repeat(2, 2).repeat(2, 3))
    reference(lambda x: sx.interpolate(x, scale_factor=2), IMAGE, want=IMAGE.repeat(2, 2).repeat(2, 3))
    reference(lambda x: sx.interpolate(x, (8, 5)), IMAGE, want=IMAGE.repeat(2, 2))
    reference(lambda x: sx.interpolate(x, (2, 5), mode="nearest-exact"), IMAGE, want=IMAGE[:, :, 1::2])
    line = np.array([[[0, 2, 4]]], np.float32)
    corners = [[[0, 1, 2, 3, 4]]]
    reference(
        lambda x: sx.interpolate(x, 5, mode="linear", align_corners=True), line, want=np.array(corners, np.float32)
    )
    halves = np.array([[[0, 0.5, 1.5, 2.5, 3.5, 4]]], np.float32)
    reference(lambda x: sx.interpolate(x, 6, mode="linear"), line, want=halves)
    same = run_all(
        lambda x: sx.interpolate(x, (x.shape[2] * 2, 3), mode="bicubic", antialias=True), IMAGE, native=False
    )
    assert all(out[0].shape == (1, 2, 8, 3) for out in same.values())
    for call, text in (
        (lambda: sx.interpolate(IMAGE, 2, mode="linear"), "no mode 'linear' for a tensor of rank 4"),
        (lambda: sx.interpolate(IMAGE, 2, mode="area"), "no mode 'area'"),
        (lambda: sx.interpolate(IMAGE), "either sizes or scales"),
        (lambda: sx.resize(IMAGE, (1, 1, 1, 1), (1, 1, 1, 1)), "either sizes or scales"),
    ):
        with pytest.raises(sx.InvalidArgumentError, match=text):
            call()


def test_grids_and_regions():
    identity = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)

    def same(x, theta):
        return sx.grid_sample(x, sx.affine_grid(theta, x.shape, align_corners=True), align_corners=True)

    reference(same, IMAGE, identity, want=IMAGE, rtol=1e-5, atol=1e-5)
    rois = np.array([[0, 0, 2, 2]], np.float32)
    want = IMAGE[:, :, :2, :2].mean((2, 3), keepdims=True)
    reference(
        lambda x, r: sx.roi_align(x, r, np.array([0]), sampling_ratio=2), IMAGE, rois, want=want, rtol=1e-5, atol=1e-6
    )


def test_fourier_transforms():
    x = RNG.standard_normal((2, 8, 1)).astype(np.float32)
    z = np.fft.rfft(x[..., 0])
    want = np.stack([z.real, z.imag], -1).astype(np.float32)
    reference(lambda v: sx.dft(v, onesided=True), x, want=want, rtol=1e-5, atol=1e-5)
    reference(lambda v: sx.stft(v, 1, frame_length=8), x, want=want[:, None], rtol=1e-5, atol=1e-5)
    reference(lambda v: sx.dft(sx.dft(v, onesided=True), inverse=True, onesided=True), x, want=x, rtol=1e-5, atol=1e-6)


def test_pools_and_columns():
    x = np.abs(IMAGE)
    reference(lambda v: sx.lp_pool(v, 2, 2, p=1), x, want=x[..., :4].reshape(1, 2, 2, 2, 2, 2).sum((3, 5)), rtol=1e-5)
    reference(lambda v: sx.global_lp_pool(v, 1), x, want=x.sum((2, 3), keepdims=True), rtol=1e-5)
    line = np.array([[[1, 3, 2, 0]]], np.float32)
    reference(
        lambda v: sx.max_unpool(*sx.max_pool_with_indices(v, 2, 2), 2, 2),
        line,
        want=np.array([[[0, 3, 2, 0]]], np.float32),
    )
    columns = np.ones((1, 2, 3), np.float32)
    reference(lambda v: sx.col2im(v, (4,), (2,)), columns, want=np.array([[[1, 2, 2, 1]]], np.float32))
    w, offset = np.ones((1, 2, 1, 1), np.float32), np.zeros((1, 2, 4, 5), np.float32)
    reference(lambda v: sx.deform_conv(v, w, offset), IMAGE, want=IMAGE.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)


# ---- random numbers


def test_dropout():
    x = np.ones(4000, np.float32)
    assert sx.dropout(sx.asarray(x)) is not None and (np.asarray(sx.dropout(x)) == 1).all()
    out = np.asarray(sx.dropout(x, 0.25, True))
    assert abs((out > 0).mean() - 0.75) < 0.04 and set(out.tolist()) == {0, np.float32(1 / 0.75)}
    graph = sx.trace(
        lambda v, t: sx.dropout(v, 0.5, t), (sx.TensorSpec("v", "float32", ["n"]), sx.TensorSpec("t", "bool", []))
    ).graph
    runs = [np.asarray(graph.evaluate([x, np.array(t)])[0]) for t in (False, True, True)]
    assert (runs[0] == 1).all() and abs((runs[1] > 0).mean() - 0.5) < 0.05 and (runs[1] != runs[2]).any()


def test_draws():
    assert sx.random_normal((2, 3), seed=1).shape == (2, 3)
    assert np.asarray(sx.random_uniform((9,), 2, 3, seed=1)).min() >= 2
    assert sx.random_uniform((2,), dtype="float64").dtype == "float64"
    like = run_all(lambda x: sx.random_normal_like(x, seed=4), CUBE, native=False)
    assert all(out[0].tolist() == like["eager"][0].tolist() for out in like.values())
    assert sx.random_uniform_like(CUBE, dtype="float16").dtype == "float16"
    assert np.asarray(sx.bernoulli(np.array([0, 1], "f4"), dtype="bool")).tolist() == [False, True]
    assert np.asarray(sx.multinomial(np.array([[0, 90]], "f4"), 3)).tolist() == [[1, 1, 1]]


# ---- NumPy's names


def test_numpy_functions_on_traced_tensors():
    reference(lambda x: np.sort(x, 0), A, want=np.sort(A, 0))
    reference(lambda x: np.argsort(x, None), A, want=np.argsort(A, None, kind="stable"))
    reference(lambda x: np.nonzero(x), A, want=list(np.nonzero(A)))
    reference(lambda x: np.argwhere(x), A, want=np.argwhere(A))
    reference(lambda x: np.unique(x), A, want=np.unique(A))
    reference(lambda x: np.einsum("ij->j", x), A, want=A.sum(0))
    reference(lambda x: np.cumprod(x, 1), A, want=np.cumprod(A, 1))
    reference(lambda x: np.compress([True, False, True], x, 0), A, want=A[::2])
    reference(lambda x: np.linalg.det(x[:, :3]), A, want=np.linalg.det(A[:, :3].astype("f8")).astype("f4"), rtol=1e-5,
              atol=1e-5)  # fmt: skip


def test_extents_that_data_decides_are_native():
    graph = sx.trace(lambda x: sx.nonzero(x)[0], (sx.TensorSpec("x", "float32", ["n"]),)).graph
    graph.finalize()
    assert graph.fallbacks == []
    assert np.asarray(graph.run([np.array([0, 1, 2], "f4")])[0]).tolist() == [1, 2]
