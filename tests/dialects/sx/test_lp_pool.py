"""Pools by p-norms, unpooling, columns and deformed convolutions."""

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, round_trip, run, run_all, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

POOL, GLOBAL, UNPOOL, COL2IM, DEFORM = (
    op(n) for n in ("lp_pool", "global_lp_pool", "max_unpool", "col2im", "deform_conv")
)
RNG = np.random.default_rng(41)


def floats(*dims, dtype="float32"):
    return (RNG.random(dims) * 4 - 2).astype(dtypes.DTYPES[dtype].numpy)


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


# ---- lp_pool


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 3]},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [2, 2], "dilations": [2, 3]},
        {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [2, 3], "auto_pad": "VALID"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ],
)
def test_pool_against_onnxruntime(attributes, p):
    agree(POOL, floats(2, 2, 6, 7), p=p, **attributes)


def test_pool_of_other_ranks():
    agree(POOL, floats(1, 2, 9), kernel_shape=[4], strides=[3])
    agree(POOL, floats(1, 2, 4, 5, 3), kernel_shape=[2, 3, 2], p=1)
    assert run(POOL, np.zeros((0, 1, 3), "f4"), kernel_shape=(2,)).shape == (0, 1, 2)


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
def test_norms_of_all_dtypes(dtype):
    x = np.array([[[3, -4, 0, 12]]]).astype(dtypes.DTYPES[dtype].numpy)
    assert run(POOL, x, kernel_shape=(2,), strides=(2,)).tolist() == [[[5, 12]]]
    assert run(GLOBAL, x).tolist() == [[[13]]] and run(GLOBAL, x, p=1).tolist() == [[[19]]]


def test_global_pool():
    for p in (1, 2, 4):
        agree(GLOBAL, floats(2, 3, 4, 5), p=p)
    assert run(GLOBAL, np.zeros((2, 3, 0), "f4")).tolist() == [[[0]] * 3] * 2
    assert run(GLOBAL, np.array([[3, -4]], "f4")).tolist() == [[3, 4]]


def test_pool_symbols_and_constraints():
    x = value("float32", ["b", "c", "n"])
    assert shape(POOL.make(x, kernel_shape=(3,), strides=(2,))) == ["b", "c", "(n + 1) floordiv 2 - 1"]
    assert shape(GLOBAL.make(x)) == ["b", "c", "1"]
    assert "p = 1" in round_trip(POOL.make(x, kernel_shape=(3,), p=1)) and "p = 3" in round_trip(GLOBAL.make(x, p=3))
    refuses(POOL, "C1", value("int32", [1, 1, 3]), kernel_shape=(2,))
    refuses(POOL, "C2", value("float32", [1, 3]), kernel_shape=())
    refuses(POOL, "C3", x, kernel_shape=(0,))
    refuses(POOL, "C3", x, kernel_shape=(2,), auto_pad="SAME")
    refuses(POOL, "C4", value("float32", [1, 1, 2]), kernel_shape=(4,))
    refuses(POOL, "C5", x, kernel_shape=(2,), p=0)
    refuses(GLOBAL, "C1", value("int32", [1, 1, 3]))
    refuses(GLOBAL, "C2", value("float32", [1]))
    refuses(GLOBAL, "C3", x, p=0)
    with pytest.raises(ExecutionError, match="don't fit"):
        POOL.make(x, kernel_shape=(4,)).evaluate(EvalContext(), np.zeros((1, 1, 2), "f4"))


# ---- max_unpool


@pytest.mark.parametrize("output_shape", [None, [1, 2, 4, 6]])
def test_unpool_against_onnxruntime(output_shape):
    pooled, at = run_all(op("max_pool"), floats(1, 2, 4, 6), kernel_shape=(2, 2), strides=(2, 2))
    given = None if output_shape is None else np.array(output_shape)
    agree(UNPOOL, pooled, at, given, kernel_shape=[2, 2], strides=[2, 2])


def test_unpool_into_a_larger_result():
    x, at = np.array([[[[1, 2], [3, 4]]]], "f4"), np.array([[[[5, 7], [13, 15]]]])
    out = run(UNPOOL, x, at, np.array([1, 1, 5, 5]), kernel_shape=(2, 2), strides=(2, 2))
    want = np.zeros((5, 5))
    want[[1, 1, 3, 3], [1, 3, 1, 3]] = [1, 2, 3, 4]
    assert out[0, 0].tolist() == want.tolist()
    assert run(UNPOOL, np.zeros((0, 1, 2), "f4"), np.zeros((0, 1, 2), np.int64), kernel_shape=(2,)).shape == (0, 1, 3)


def test_unpool_constraints():
    x, at = value("float32", ["b", "c", "n"]), value("int64", ["b", "c", "n"])
    made = UNPOOL.make(x, at, kernel_shape=(3,), strides=(2,), pads=(1, 0))
    assert shape(made) == ["b", "c", "2*n"] and "sx.max_unpool" in round_trip(made)
    assert shape(UNPOOL.make(x, at, extents(["b", "c", "m"]), kernel_shape=(3,))) == ["b", "c", "m"]
    refuses(UNPOOL, "C1", x, value("int32", ["b", "c", "n"]), kernel_shape=(3,))
    refuses(UNPOOL, "C2", value("float32", [1, 1, 2]), value("int64", [1, 1, 3]), kernel_shape=(3,))
    refuses(UNPOOL, "C2", value("float32", [1, 2]), value("int64", [1, 2]), kernel_shape=())
    refuses(UNPOOL, "C3", x, at, kernel_shape=(3, 3))
    fixed = value("float32", [1, 1, 2]), value("int64", [1, 1, 2])
    refuses(UNPOOL, "C4", *fixed, constant([1, 2]), kernel_shape=(2,))
    refuses(UNPOOL, "C4", *fixed, constant([1, 1, 2]), kernel_shape=(2,))
    refuses(UNPOOL, "C4", *fixed, constant([2, 1, 9]), kernel_shape=(2,))
    for index in (-1, 3):
        with pytest.raises(ExecutionError, match=f"index {index} is out of range for 3 elements"):
            UNPOOL.make(x, at, kernel_shape=(2,)).evaluate(
                EvalContext(), np.zeros((1, 1, 2), "f4"), np.array([[[0, index]]]), None
            )


# ---- col2im


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ([5, 5], [1, 5], {}),
        ([5, 5], [2, 3], {"strides": [2, 1]}),
        ([6, 6], [2, 2], {"dilations": [1, 5]}),
        ([5, 5], [2, 3], {"pads": [0, 1, 2, 1], "strides": [1, 2]}),
        ([4, 5, 3], [1, 2, 3], {}),
        ([7], [3], {"strides": [2]}),
    ],
)
def test_columns_against_onnxruntime(image, block, attributes):
    rank = len(image)
    pads, strides = attributes.get("pads", [0] * (2 * rank)), attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    counts = [
        (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    columns = floats(2, 3 * int(np.prod(block)), int(np.prod(counts)))
    agree(COL2IM, columns, np.array(image), np.array(block), **attributes)


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_columns_of_all_dtypes(dtype):
    x = np.ones((1, 2, 3), dtypes.DTYPES[dtype].numpy)
    want = [1, 1, 1, 1] if dtype == "bool" else [1, 2, 2, 1]
    assert run(COL2IM, x, np.array([4]), np.array([2])).tolist() == [[want]]


def test_columns_constraints():
    x = value("float32", ["b", 12, "n"])
    made = COL2IM.make(x, extents([4, "w"]), constant([2, 3]))
    assert shape(made) == ["b", "2", "4", "w"] and "sx.col2im" in round_trip(made)
    assert shape(COL2IM.make(x, value("int64", [2]), value("int64", [2]))) == ["b", "?", "?", "?"]
    assert shape(COL2IM.make(x, value("int64", ["k"]), value("int64", ["k"]))) is None
    image, block = constant([4]), constant([2])
    refuses(COL2IM, "C1", x, value("int32", [1]), block)
    refuses(COL2IM, "C1", x, constant([4, 4]), block)
    refuses(COL2IM, "C2", value("float32", [2, 2]), image, block)
    refuses(COL2IM, "C3", value("float32", [1, 3, 3]), image, block)
    refuses(COL2IM, "C3", value("float32", [1, 2, 4]), image, block)
    refuses(COL2IM, "C4", x, image, constant([0]))
    refuses(COL2IM, "C4", x, image, block, strides=(0,))
    refuses(COL2IM, "C4", x, constant([-1]), value("int64", [1]))
    refuses(COL2IM, "C5", x, image, constant([6]))
    built = COL2IM.make(value("float32", ["b", "c", "n"]), value("int64", [1]), value("int64", [1]))
    for sizes, blocks in ((4, 6), (4, 0), (-1, 2), (5, 2)):
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), np.zeros((1, 2, 3), "f4"), np.array([sizes]), np.array([blocks]))


# ---- deform_conv


def test_deform_conv_without_offsets_is_a_convolution():
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6)
    attributes = {"group": 2, "strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 2)}
    plain = run(op("conv"), x, w, b, **attributes)
    offset = np.zeros((2, 12, *plain.shape[2:]), np.float32)
    np.testing.assert_allclose(run(DEFORM, x, w, offset, b, None, **attributes), plain, rtol=1e-5, atol=1e-5)


def deformed(x, w, offset, b, mask, group, offset_group, pads, strides, dilations):
    """Element by element, as the operator's definition has it."""
    n, c, h, width = x.shape
    m, _, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    offset = offset.reshape(n, offset_group, kh, kw, 2, oh, ow)
    mask = np.ones((n, offset_group, kh, kw, oh, ow)) if mask is None else mask.reshape(n, offset_group, kh, kw, oh, ow)
    padded = np.zeros((n, c, h + 40, width + 40))
    padded[:, :, 20 : 20 + h, 20 : 20 + width] = x
    out = np.zeros((n, m, oh, ow)) if b is None else np.zeros((n, m, oh, ow)) + b.reshape(1, -1, 1, 1)
    for i, o, ci, r, s, y, z in np.ndindex(n, m, w.shape[1], kh, kw, oh, ow):
        channel = o // (m // group) * (c // group) + ci
        g = channel // (c // offset_group)
        py = y * strides[0] - pads[0] + r * dilations[0] + offset[i, g, r, s, 0, y, z]
        px = z * strides[1] - pads[1] + s * dilations[1] + offset[i, g, r, s, 1, y, z]
        fy, fx = int(np.floor(py)), int(np.floor(px))
        part = padded[i, channel, fy + 20 : fy + 22, fx + 20 : fx + 22]
        wy, wx = np.array([1 - (py - fy), py - fy]), np.array([1 - (px - fx), px - fx])
        out[i, o, y, z] += w[o, ci, r, s] * mask[i, g, r, s, y, z] * (wy @ part @ wx)
    return out


@pytest.mark.parametrize("with_mask", [False, True])
def test_deform_conv_by_definition(with_mask):
    x, w, b = floats(2, 4, 4, 5), floats(2, 2, 2, 2), floats(2)
    pads, strides, dilations = (1, 0, 1, 1), (2, 1), (1, 2)
    offset, mask = floats(2, 2 * 4 * 2, 3, 4) * 2, floats(2, 2 * 4, 3, 4) if with_mask else None
    out = run(DEFORM, x, w, offset, b, mask, group=2, offset_group=2, pads=pads, strides=strides, dilations=dilations)
    want = deformed(x, w, offset, b, mask, 2, 2, pads, strides, dilations)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-5)


def test_deform_conv_against_onnxruntime():
    x, w = floats(1, 4, 5, 5), floats(2, 4, 3, 3)
    offset, mask = floats(1, 18, 5, 5), floats(1, 9, 5, 5)
    agree(DEFORM, x, w, offset, floats(2), mask, opset=22, pads=[1, 1, 1, 1], rtol=1e-4, atol=1e-4)


def test_deform_conv_far_outside_is_0():
    offset = np.full((1, 2, 2, 2), 1e30, np.float32)
    offset[0, :, 0] = np.nan
    assert run(DEFORM, np.ones((1, 1, 2, 2), "f4"), np.ones((1, 1, 1, 1), "f4"), offset).tolist() == [[[[0] * 2] * 2]]
    none = run(DEFORM, np.ones((0, 1, 2, 2), "f4"), np.ones((3, 1, 1, 1), "f4"), np.zeros((0, 2, 2, 2), "f4"))
    assert none.shape == (0, 3, 2, 2)


def test_deform_conv_constraints():
    x, w, offset = value("float32", ["b", 4, 5, 6]), value("float32", [6, 4, 3, 3]), value("float32", [2, 18, 3, 4])
    made = DEFORM.make(x, w, offset, None, value("float32", ["b", 9, "h", "w"]))
    assert shape(made) == ["2", "6", "3", "4"] and "_, %x3" in round_trip(made)
    refuses(DEFORM, "C1", x, w, value("float64", [2, 18, 3, 4]))
    refuses(DEFORM, "C2", value("float32", [4, 5, 6]), w, offset)
    refuses(DEFORM, "C3", x, w, offset, group=3)
    refuses(DEFORM, "C3", x, w, offset, group=0)
    refuses(DEFORM, "C3", x, value("float32", [6, 3, 3, 3]), offset)
    refuses(DEFORM, "C4", x, w, offset, kernel_shape=(3, 2))
    refuses(DEFORM, "C4", x, w, offset, strides=(0, 1))
    refuses(DEFORM, "C5", x, w, value("float32", [2, 9, 3, 4]))
    refuses(DEFORM, "C5", x, w, value("float32", [2, 18, 4, 4]))
    refuses(DEFORM, "C5", x, w, offset, value("float32", [5]))
    refuses(DEFORM, "C5", x, w, offset, None, value("float32", [2, 8, 3, 4]))
    built = DEFORM.make(*(value("float32", [f"{n}{i}" for i in range(4)]) for n in "xwo"))
    with pytest.raises(ExecutionError, match="offset or mask don't fit"):
        built.evaluate(EvalContext(), np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), np.ones((1, 8, 3, 3)), None, None)
