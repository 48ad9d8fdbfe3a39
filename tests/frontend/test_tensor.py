"""Eager tensors: contents, NumPy's protocols, DLPack, operators, indexing."""

from __future__ import annotations

import copy
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest
from eager_and_traced import check

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError, UnsupportedError

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
V = np.array([3, -1, 2])


# ---- in


def test_arrays_are_shared():
    x = np.ones(3, np.float32)
    tensor = sx.asarray(x)
    assert tensor.numpy() is x or np.shares_memory(tensor.numpy(), x)
    assert not np.shares_memory(sx.array(x).numpy(), x)
    assert not np.shares_memory(sx.asarray(x, copy=True).numpy(), x)
    assert np.shares_memory(sx.asarray(x, copy=False).numpy(), x)
    assert sx.asarray(tensor) is tensor and sx.Tensor(x).shape == (3,)
    for data, options in [([1.0], {}), (x, {"dtype": "float64"})]:
        with pytest.raises(InvalidArgumentError, match="cannot be shared"):
            sx.asarray(data, copy=False, **options)


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), ([1, 2], "int64", (2,)),
        ([1, 2.5], "float32", (2,)),
        ([[True], [False]], "bool", (2, 1)), ([True, 2], "int64", (2,)), ([], "float32", (0,)),
        ([np.float64(1)], "float32", (1,)), ([np.int8(1), np.int8(2)], "int8", (2,)), (np.float16(2), "float16", ()),
        ((np.ones(2), np.zeros(2)), "float64", (2, 2)), ([sx.ones(2), sx.zeros(2)], "float32", (2, 2)),
        (range(3), "int64", (3,)), (np.array([1.5], ">f4"), "float32", (1,)), (memoryview(b"ab"), "uint8", (2,)),
    ],
)  # fmt: skip
def test_what_becomes_a_tensor(data: object, dtype: str, shape: tuple[int, ...]):
    tensor = sx.asarray(data)
    assert (tensor.dtype, tensor.shape) == (dtype, shape)
    assert tensor.numpy().dtype.isnative


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (1j, "not complex"), ("text", "not str"), (None, "not NoneType"), ([1, "a"], "is not a dtype"),
        ([[1], [1, 2]], "the lists make no tensor"), (np.array([1j]), "is not a dtype that Sardonyx knows"),
        (np.array([object()]), "is not a dtype"), (object(), "is not a dtype"),
    ],
)  # fmt: skip
def test_what_does_not(data: object, message: str):
    with pytest.raises(InvalidArgumentError, match=message):
        sx.asarray(data)


def test_dtypes_and_devices():
    assert sx.asarray([1, 2], dtype=sx.int8).dtype == sx.int8
    assert sx.asarray([1.5], dtype="bfloat16").numpy().dtype == ml_dtypes.bfloat16
    assert sx.asarray([300], dtype=sx.float16).tolist() == [300.0]
    with pytest.raises(InvalidArgumentError):
        sx.asarray([300], dtype=sx.int8)
    assert sx.ones(2, device="cpu").device == "cpu" and sx.ones(2).to_device("cpu").shape == (2,)
    with pytest.raises(InvalidArgumentError, match="no device 'cuda'"):
        sx.ones(2, device="cuda")


# ---- out


def test_numbers_out():
    x = sx.asarray(A)
    assert x.tolist() == A.tolist() and x[0, 0, 1].item() == 1.0 and type(x[0, 0, 1].item()) is float
    assert type(sx.asarray(3).item()) is int and type(sx.asarray(True).item()) is bool
    assert int(sx.asarray(3.7)) == 3 and float(sx.asarray(3)) == 3.0 and complex(sx.asarray(2)) == 2
    assert operator.index(sx.asarray(2)) == 2 and bool(sx.asarray(0.0)) is False
    with pytest.raises(TypeError):
        operator.index(sx.asarray(2.0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    half = sx.asarray([1.5, 2], dtype=sx.bfloat16)
    assert half.tolist() == [1.5, 2.0] and float(half[0]) == 1.5 and type(half[1].item()) is float
    assert len(x) == 2 and [row.shape for row in x] == [(3, 4), (3, 4)] and 5.0 in x and 99 not in x
    assert (x.ndim, x.size, x.itemsize, x.shape) == (3, 24, 4, (2, 3, 4))
    for scalar in (len, iter):
        with pytest.raises(TypeError):
            scalar(sx.asarray(1))


def test_to_numpy():
    x = sx.asarray(A)
    assert np.shares_memory(np.asarray(x), A) and np.asarray(x, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(x), A)
    with pytest.raises(ValueError, match="copy"):
        np.array(x, dtype=np.int8, copy=False)


def test_representation():
    assert repr(sx.asarray([1, 2])) == "Tensor([1, 2], shape=(2,), dtype=int64)"


def test_copies_and_pickles():
    x = sx.asarray(A)
    assert copy.copy(x) is not x and not np.shares_memory(copy.deepcopy(x).numpy(), A)
    assert not np.shares_memory(x.copy().numpy(), A)
    for tensor in (x, sx.asarray([1.5], dtype=sx.bfloat16)):
        again = pickle.loads(pickle.dumps(tensor))
        assert again.dtype == tensor.dtype and again.tolist() == tensor.tolist()


def test_tensors_are_keys_by_identity():
    x, y = sx.ones(2), sx.ones(2)
    assert {x: 1, y: 2}[x] == 1
    assert (x == y).tolist() == [True, True]
    assert (x == None) is False and (x != "a") is True  # noqa: E711


# ---- DLPack


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float16", "float32", "float64"])
def test_dlpack_there_and_back(dtype: str):
    x = sx.asarray(A.astype(dtype))
    there = np.from_dlpack(x)
    assert np.shares_memory(there, x.numpy()) and there.dtype == dtype

    class Foreign:  # what has nothing but DLPack
        def __dlpack__(self, **options: object) -> object:
            return A.astype(dtype).__dlpack__(**options)  # pyright: ignore[reportArgumentType]

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    for back in (sx.from_dlpack(Foreign()), sx.asarray(Foreign()), sx.abs(Foreign()) if dtype != "bool" else x):
        assert back.dtype == dtype and back.tolist() == A.astype(dtype).tolist()
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_of_what_may_not_be_written():
    frozen = A.copy()
    frozen.flags.writeable = False
    x = sx.asarray(frozen)
    assert np.shares_memory(np.from_dlpack(x), frozen), "the new protocol can say that it is read-only"
    old = np.from_dlpack(_Old(x))  # pyright: ignore[reportArgumentType]
    assert not np.shares_memory(old, frozen) and old.tolist() == A.tolist()
    with pytest.raises(UnsupportedError, match="bfloat16"):
        np.from_dlpack(sx.asarray([1.0], dtype=sx.bfloat16))
    with pytest.raises(InvalidArgumentError, match="takes an object with __dlpack__, not list"):
        sx.from_dlpack([1])


class _Old:
    """A consumer's view of the protocol before versions."""

    def __init__(self, tensor: sx.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: object) -> object:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


# ---- operators


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"]
)
def test_operators_with_all_kinds_of_operands(name: str):
    fn, x, y = getattr(operator, name), A[0] + 1, A[1]
    check(fn, x, y, want=fn(x, y))
    check(lambda a: fn(a, 3), x, want=fn(x, 3))
    check(lambda a: fn(2.5, a), x, want=fn(2.5, x))
    check(lambda a: fn(a, y), x, want=fn(x, y))
    check(lambda a: fn(y, a), x, want=fn(y, x))
    check(lambda a: fn(np.float32(2), a), x, want=fn(np.float32(2), x))


def test_other_operators():
    a, b = A[0], A[1]
    check(lambda x: (-x, +x, abs(x)), a, want=[-a, a, abs(a)])
    check(lambda x: x**2, a, want=a**2)
    check(lambda x: 2**x, V + 1, want=2 ** (V + 1))
    check(lambda x, y: x @ y.T, a, b, want=a @ b.T)
    check(lambda y: a @ y.T, b, want=a @ b.T)
    check(
        lambda x: (x << 1, x >> 1, 1 << (x & 3), x | 8, 7 ^ x, ~x),
        V,
        want=[V << 1, V >> 1, 1 << (V & 3), V | 8, 7 ^ V, ~V],
    )
    x = same = sx.asarray(a)
    array = x.numpy()
    x += 1
    assert same is x and x.tolist() == (a + 1).tolist(), "the tensor is written to, as in NumPy"
    assert array.tolist() == a.tolist(), "arrays are not"
    for wrong in ("a", None, [1], object()):
        with pytest.raises(TypeError):
            _ = x + wrong


def test_methods():
    check(lambda x: x.clip(1, 5), A, want=A.clip(1, 5))
    check(lambda x: x.flatten(), A, want=A.flatten())
    check(lambda x: x.unsqueeze(0).squeeze(0), A, want=A)
    check(lambda x: x.cumsum(1), A, want=A.cumsum(1))
    check(lambda x: x.argmax(1) + x.argmin(1), A, want=A.argmax(1) + A.argmin(1))
    check(lambda x: (x.all(0), x.any()), A > 3, want=[(A > 3).all(0), (A > 3).any()])


# ---- indexing

INDICES = {
    "int": 1, "negative int": -1, "slice": slice(1, None), "all": slice(None), "ellipsis": ..., "none": None,
    "ints": (0, -1, 2), "mixed": (0, slice(1, 3), -2), "step": (slice(None), slice(None, None, 2)),
    "backwards": (slice(None, None, -1), ..., slice(3, 0, -2)), "none in between": (0, None, slice(None), None, 1),
    "dots and none": (..., None), "empty": (slice(2, 1),), "far": (slice(-100, 100), slice(100, 200)), "nothing": (),
    "numpy int": np.int64(1), "zero-d": (np.array(1), 2), "last": (..., -1),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_basic_indexing(name: str):
    key = INDICES[name]
    check(lambda x: x[key], A, want=A[key])


I1, I2 = np.array([1, 0, 1]), np.array([[2, -1, 0]])
ADVANCED = {
    "one": I1, "list": [1, 0], "second": (slice(None), I2), "two": (I1, I2), "two apart": (I1, slice(None), I2),
    "with int": (I1, 0), "int first": (0, I2), "int apart": (0, slice(None), I2), "last two": (slice(None), I1, I2),
    "with slice": (slice(0, 1), I2, slice(1, 3)), "with none": (None, I1), "none between": (I1, None, I2),
    "dots": (..., I2), "all three": (I1, I2, I1 + 1), "empty": (np.zeros(0, np.int64),), "int8": I1.astype(np.int8),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVANCED)
def test_indexing_by_tensors(name: str):
    key = ADVANCED[name]
    check(lambda x: x[key], A, want=A[key])
    if isinstance(key, tuple):
        check(lambda x: x[tuple(sx.asarray(k) if isinstance(k, np.ndarray) else k for k in key)], A, want=A[key])


def test_indexing_by_traced_tensors():
    check(lambda x, i: x[i], A, I1, want=A[I1])
    check(lambda x, i: x[:, i, 0], A, I1, want=A[:, I1, 0])
    check(lambda x, i: x[i], A, np.array(1), want=A[1])
    check(lambda x, i: x[0, : i[0]], A, np.array([2]), want=A[0, :2])
    check(lambda x: x[: x.shape[0] - 1, x.shape[1] - 1], A, want=A[:1, 2])


def test_masks_work_on_contents_only():
    x = sx.asarray(A)
    assert x[A > 20].tolist() == [21, 22, 23] and x[x > 20].tolist() == [21, 22, 23]
    assert x[[True, False]].shape == (1, 3, 4) and x[True].shape == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (2, "index 2 is out of range for axis 0 with extent 2"), ((0, 0, 0, 0), "4 indices for a tensor of rank 3"),
        ((..., ...), "more than one"), (1.5, "not float"), ("a", "not str"), (slice(0, 1, 0), "a step of 0"),
        (np.array([0.5]), "an index is of integers, not float32|float64"),
    ],
)  # fmt: skip
def test_what_is_no_index(key: object, message: str):
    with pytest.raises(InvalidArgumentError, match=message):
        sx.asarray(A)[key]
    with pytest.raises(InvalidArgumentError, match=message):
        sx.trace(lambda x: x[key], (sx.TensorSpec("x", sx.float32, A.shape),))


def test_an_index_out_of_range_is_an_index_error():
    with pytest.raises(IndexError):
        sx.asarray(A)[5]
    graph = sx.trace(lambda x: x[2], "x: f32[n]").graph
    with pytest.raises(sx.ExecutionError, match="out of range"):
        graph.evaluate([np.ones(2, np.float32)])


# ---- NumPy's functions

NUMPY = {
    "add": lambda x: np.add(x, 1), "multiply": lambda x: np.multiply(x, x), "exp": lambda x: np.exp(x * 0.1),
    "matmul": lambda x: np.matmul(x, np.swapaxes(x, -1, -2)), "sqrt": lambda x: np.sqrt(x), "abs": np.abs,
    "power": lambda x: np.power(x, 2), "maximum": lambda x: np.maximum(x, 3), "isfinite": np.isfinite,
    "logical_not": lambda x: np.logical_not(x > 3), "dtype": lambda x: np.add(x, 1, dtype=np.float64),
    "sum": np.sum, "sum axis": lambda x: np.sum(x, axis=(0, 2), keepdims=True), "mean": lambda x: np.mean(x, 1),
    "max": lambda x: np.max(x, axis=0), "min": np.min, "prod": lambda x: np.prod(x, axis=0),
    "std": lambda x: np.std(x, 1),
    "var": lambda x: np.var(x, axis=1, ddof=1), "all": lambda x: np.all(x > 3, axis=0), "any": lambda x: np.any(x > 3),
    "argmax": lambda x: np.argmax(x, axis=1), "argmin": np.argmin, "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum flat": np.cumsum, "count": lambda x: np.count_nonzero(x, axis=0),
    "concatenate": lambda x: np.concatenate([x, x], axis=1), "stack": lambda x: np.stack((x, x)),
    "split": lambda x: np.split(x, 2, axis=2), "split at": lambda x: np.split(x, [1, 3], axis=2),
    "vstack": lambda x: np.vstack([x[0], x[0]]), "hstack": lambda x: np.hstack([x[0], x[0]]),
    "transpose": np.transpose, "transpose axes": lambda x: np.transpose(x, (1, 0, 2)), "ravel": np.ravel,
    "reshape": lambda x: np.reshape(x, (6, 4)), "squeeze": lambda x: np.squeeze(x[:, :1], axis=1),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)), "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3, 4)), "where": lambda x: np.where(x > 3, x, 0),
    "clip": lambda x: np.clip(x, 2, 7), "round": lambda x: np.round(x / 3),
    "round digits": lambda x: np.round(x / 3, 1),
    "zeros_like": np.zeros_like, "full_like": lambda x: np.full_like(x, 2), "tril": np.tril,
    "triu": lambda x: np.triu(x, k=1), "dot": lambda x: np.dot(x[0], x[0, 0]),
    "outer": lambda x: np.outer(x[0, 0], x[0, 1]),
    "tensordot": lambda x: np.tensordot(x, x, axes=([0, 1], [0, 1])), "tile": lambda x: np.tile(x, (1, 2)),
    "repeat": lambda x: np.repeat(x, 2, axis=1), "flip": lambda x: np.flip(x, axis=1),
    "roll": lambda x: np.roll(x, 1, axis=2),
    "take": lambda x: np.take(x, [2, 0], axis=1), "pad": lambda x: np.pad(x, ((0, 0), (1, 0), (0, 2))),
    "pad mode": lambda x: np.pad(x, ((0, 0), (1, 1), (0, 0)), mode="edge"),
    "isclose": lambda x: np.isclose(x, x + 1e-9),
    "reduce": lambda x: np.add.reduce(x, axis=1), "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[[0], [1], [2]]] * 2), axis=2),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_numpys_functions(name: str):
    fn = NUMPY[name]
    check(fn, A, want=fn(A), rtol=1e-5)


def test_arrays_beside_tensors():
    check(lambda x: A + x, A, want=A + A)
    check(lambda x: A[0] - x, A, want=A[0] - A)
    check(lambda x: np.float32(3) * x, A, want=np.float32(3) * A)
    check(lambda x: A @ x.mT, A, want=A @ A.mT, rtol=1e-5)
    check(lambda x: A > x, A, want=A > A)


def test_questions_on_shapes():
    def fn(x: sx.Tensor) -> sx.Tensor:
        assert np.ndim(x) == 3 and np.shape(x)[1] == x.shape[1] and str(np.size(x)) == str(x.size)
        return x

    check(fn, A, want=A)


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (np.median, "np.median"), (lambda x: np.fft.fft(x), "np.fft.fft"), (np.ptp, "np.ptp"),
        (np.arctan2, "np.arctan2"), (np.add.accumulate, "np.add.accumulate"), (np.linalg.inv, "np.linalg.inv"),
        (lambda x: np.sum(x, where=x > 0), "np.sum"), (lambda x: np.add(x, 1, out=A), "np.add"),
        (lambda x: np.reshape(x, (24,), order="F"), "np.reshape"),
    ],
)  # fmt: skip
def test_unsupported_functions_are_named(fn, name: str):
    arguments = (A, A) if fn is np.arctan2 else (A,)
    specs = tuple(sx.TensorSpec(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arguments))
    with pytest.raises(UnsupportedError, match=f"test_tensor.py:\\d+: {name.replace('.', '[.]')} ") as caught:
        sx.trace(lambda *args: fn(*args), specs)
    assert "traced tensor" in str(caught.value) and caught.value.code_name == "NOT_IMPLEMENTED"


def test_numpy_computes_what_we_have_not_on_contents():
    x = sx.asarray(A)
    assert isinstance(np.arctan2(x, 1), sx.Tensor)
    np.testing.assert_array_equal(np.asarray(np.unique(x)), np.unique(A))


def test_to_takes_dtypes_and_the_device():
    x = sx.asarray([1.5, 2.5])
    assert x.to("cpu") is x and x.to(sx.float32) is x and x.to(x, copy=True) is not x
    for made in (x.to(sx.int64), x.to("int64"), x.to("cpu", sx.int64), x.to(dtype=np.int64), x.to(sx.asarray([1]))):
        assert made.dtype == sx.int64 and made.tolist() == [1, 2]
    graph = sx.trace(lambda a, b: a.to(b), "a: f32[n], b: f64[]").graph
    assert graph.outputs()[0][1] == sx.float64
    for match, wrong in (
        ("there is no device 'cuda:0'", ("cuda:0",)),
        ("takes a dtype, a tensor, the device", ()),
        ("takes a dtype, a tensor, the device", (sx.int64, sx.float32)),
    ):
        with pytest.raises(InvalidArgumentError, match=match):
            x.to(*wrong)
