"""Other shapes and orders of the same elements; joining and splitting."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.frontend.apply import apply, ints, op
from sardonyx.frontend.functions import elementwise as e, gathering as g, joining as j, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, axis_of, is_static

Size = Any


@aten("view.default", "reshape.default", "_unsafe_view.default", "view_copy.default", "_reshape_alias.default")
def view(n: Call, x: Tensor, size: Size, stride: Any = None) -> Tensor:
    return reshaped(n, x, list(size))


def reshaped(n: Call, x: Tensor, size: list[Any]) -> Tensor:
    """A reshape; a -1 beside a 0 is what torch has found out that it is."""
    if -1 in [v for v in size if isinstance(v, int)] and 0 in [v for v in size if isinstance(v, int)]:
        meta = n.meta[0] if isinstance(n.meta, tuple | list) else n.meta
        size = [
            int(m) if isinstance(v, int) and v == -1 and isinstance(m, int) else v for v, m in zip(size, meta.shape)
        ]
    return s.reshape(x, size) if size else s.reshape(x, ())


@aten("flatten.using_ints")
def flatten(n: Call, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if x.ndim == 0:
        return s.reshape(x, (1,))
    first, last = axis_of(start_dim, x.ndim), axis_of(end_dim, x.ndim)
    return s.reshape(x, [*x.shape[:first], _product(x.shape[first : last + 1]), *x.shape[last + 1 :]])


def _product(extents: Any) -> Any:
    found: Any = 1
    for extent in extents:
        found = found * extent
    return found


@aten("unflatten.int")
def unflatten(n: Call, x: Tensor, dim: int, sizes: Size) -> Tensor:
    at = axis_of(dim, x.ndim)
    return reshaped(n, x, [*x.shape[:at], *sizes, *x.shape[at + 1 :]])


@aten("permute.default", "permute_copy.default")
def permute(n: Call, x: Tensor, dims: Any) -> Tensor:
    return s.transpose(x, dims) if x.ndim else x


@aten("transpose.int", "swapaxes.default", "swapdims.default", "transpose_copy.int")
def transpose(n: Call, x: Tensor, dim0: int, dim1: int) -> Tensor:
    return s.swapaxes(x, dim0, dim1) if x.ndim else x


@aten("t.default", "numpy_T.default", "mT.default", "matrix_H.default", "adjoint.default")
def t(n: Call, x: Tensor) -> Tensor:
    return s.swapaxes(x, -2, -1) if x.ndim >= 2 else x


@aten("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def movedim(n: Call, x: Tensor, source: Any, destination: Any) -> Tensor:
    return s.moveaxis(x, source, destination)


@aten("unsqueeze.default", "unsqueeze_copy.default")
def unsqueeze(n: Call, x: Tensor, dim: int) -> Tensor:
    return s.unsqueeze(x, dim)


@aten("squeeze.dim", "squeeze.dims")
def squeeze(n: Call, x: Tensor, dim: Any) -> Tensor:
    axes = [axis_of(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)] if x.ndim else []
    ones = [a for a in axes if isinstance(x.shape[a], int) and x.shape[a] == 1]
    return s.squeeze(x, ones) if ones else x


@aten("squeeze.default")
def squeeze_all(n: Call, x: Tensor) -> Tensor:
    ones = [a for a, extent in enumerate(x.shape) if isinstance(extent, int) and extent == 1]
    return s.squeeze(x, ones) if ones else x


@aten("expand.default", "broadcast_to.default", "expand_copy.default")
def expand(n: Call, x: Tensor, size: Size, implicit: bool = False) -> Tensor:
    missing = len(size) - x.ndim
    wanted = []
    for i, extent in enumerate(size):
        keeps = isinstance(extent, int) and extent == -1
        wanted.append(x.shape[i - missing] if keeps else extent)
    if is_static(wanted) and list(x.shape) == wanted:
        return x
    return s.broadcast_to(x, wanted)


@aten("expand_as.default")
def expand_as(n: Call, x: Tensor, other: Tensor) -> Tensor:
    return s.broadcast_to(x, other.shape)


@aten("view_as.default", "reshape_as.default")
def view_as(n: Call, x: Tensor, other: Tensor) -> Tensor:
    return s.reshape(x, other.shape)


@aten("repeat.default", "tile.default")
def repeat(n: Call, x: Tensor, repeats: Size) -> Tensor:
    counts = [1] * (x.ndim - len(repeats)) + list(repeats)
    return j.tile(x, counts) if counts else x


@aten("repeat_interleave.self_int")
def repeat_interleave(n: Call, x: Tensor, repeats: Any, dim: int | None = None, output_size: Any = None) -> Tensor:
    if dim is None:
        x, dim = s.ravel(x), 0
    at = axis_of(dim, x.ndim)
    wide = s.unsqueeze(x, at + 1)
    spread = s.broadcast_to(wide, [*x.shape[: at + 1], repeats, *x.shape[at + 1 :]])
    return s.reshape(spread, [*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]])


@aten(
    "clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default",
    "lift_fresh.default", "dropout.default", "feature_dropout.default",
    "alpha_dropout.default", "resolve_conj.default",
    "resolve_neg.default", "detach_.default",
)  # fmt: skip
def same(n: Call, x: Tensor, *rest: Any, **options: Any) -> Tensor:
    if n.name.endswith("dropout.default") and len(rest) > 1 and rest[1]:
        from sardonyx.frontend.torch.aten.random import dropout

        return dropout(n, x, rest[0])
    return x


# ---- joining and splitting


@aten("cat.default", "concat.default", "concatenate.default")
def cat(n: Call, tensors: Any, dim: int = 0) -> Tensor:
    found = [n.to(t) for t in tensors if not (t.ndim == 1 and _is_empty(t))]
    if not found:
        return n.to(tensors[0])
    return j.concat(found, axis_of(dim, found[0].ndim)) if len(found) > 1 else found[0]


def _is_empty(x: Tensor) -> bool:
    """Whether it is an empty vector, which torch lets stand for an empty tensor of any rank."""
    extent = x.shape[0]
    return isinstance(extent, int) and extent == 0


@aten("stack.default")
def stack(n: Call, tensors: Any, dim: int = 0) -> Tensor:
    return j.stack([n.to(t) for t in tensors], dim % (tensors[0].ndim + 1))


def parts_of(x: Tensor, sizes: list[Any], at: int) -> tuple[Tensor, ...]:
    """The tensor cut into parts of these sizes along an axis."""
    if len(sizes) == 1:
        return (x,)
    if is_static(sizes):
        return apply("sx.split", x, ints(sizes), axis=at, results=len(sizes))
    out, start = [], 0
    for size in sizes:
        end = start + size
        out.append(g.sliced(x, {at: (start, end)}))
        start = end
    return tuple(out)


@aten("split_with_sizes.default", "split.sizes", "split_with_sizes_copy.default")
def split_with_sizes(n: Call, x: Tensor, sizes: Size, dim: int = 0) -> tuple[Tensor, ...]:
    return parts_of(x, list(sizes), axis_of(dim, x.ndim))


@aten("split.Tensor", "chunk.default", "tensor_split.sections", "unsafe_split.Tensor", "unsafe_chunk.default")
def split(n: Call, x: Tensor, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    at = axis_of(dim, x.ndim)
    sizes = [m.shape[at] for m in n.meta]
    if is_static(sizes):
        return parts_of(x, [int(v) for v in sizes], at)
    if "split.Tensor" not in n.name:
        raise n.refuse("splitting a dynamic dim into a number of parts", "split into parts of a fixed size")
    sizes = [size] * (len(sizes) - 1)
    last = x.shape[at]
    for known in sizes:
        last = last - known
    return parts_of(x, [*sizes, last], at)


@aten("unbind.int", "unbind_copy.int")
def unbind(n: Call, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(g.gather(x, i, axis_of(dim, x.ndim)) for i in range(len(n.meta)))


# ---- flips, diagonals, strides


@aten("flip.default")
def flip(n: Call, x: Tensor, dims: Any) -> Tensor:
    axes = [axis_of(d, x.ndim) for d in dims] if x.ndim else []
    return j.flip(x, axis=axes) if axes else x


@aten("roll.default")
def roll(n: Call, x: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    amounts = [shifts] if isinstance(shifts, int) else list(shifts)
    if not x.ndim:
        return x
    axes = [axis_of(d, x.ndim) for d in ([dims] if isinstance(dims, int) else dims)]
    found = s.ravel(x) if not axes else x
    for amount, axis in zip(n.ints(amounts, "the shifts"), axes or [0]):
        extent = found.shape[axis]
        if isinstance(extent, int):
            cut = -amount % extent if extent else 0
        elif amount <= 0:
            cut = -amount
        else:
            cut = extent - amount
        if isinstance(cut, int) and cut == 0:
            continue
        found = j.concat([g.sliced(found, {axis: (cut, None)}), g.sliced(found, {axis: (0, cut)})], axis)
    return found if axes else s.reshape(found, x.shape)


@aten("diagonal.default", "diagonal_copy.default", "linalg_diagonal.default")
def diagonal(n: Call, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    first, second = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    last = s.moveaxis(x, (first, second), (-2, -1))
    rows, columns = n.ints(last.shape[-2:], "the extents of the diagonal's axes")
    start, shift = max(0, -offset), max(0, offset)
    count = max(0, min(rows - start, columns - shift))
    flat = s.reshape(last, [*last.shape[:-2], rows * columns])
    where = np.arange(count) * (columns + 1) + start * columns + shift
    return g.gather(flat, where.astype(np.int64), -1)


@aten("diag_embed.default")
def diag_embed(n: Call, x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    size = n.ints(x.shape[-1:], "the diagonal's extent")[0]
    full = size + abs(offset)
    mask = np.eye(full, k=offset, dtype=bool)
    wide = s.unsqueeze(x, -1)
    if offset > 0:
        wide = j.pad(wide, [(0, 0)] * (wide.ndim - 2) + [(0, offset), (0, 0)])
    elif offset < 0:
        wide = j.pad(wide, [(0, 0)] * (wide.ndim - 2) + [(-offset, 0), (0, 0)])
    from sardonyx.frontend.torch.registry import constant

    found = e.where(Tensor.of_array(mask), wide, constant(0, x.dtype))
    rank = x.ndim + 1
    return s.moveaxis(found, (-2, -1), (dim1 % rank, dim2 % rank))


@aten("as_strided.default", "as_strided_copy.default")
def as_strided(n: Call, x: Tensor, size: Size, stride: Size, storage_offset: Any = None) -> Tensor:
    """By gathering from the elements in the order of memory, which has to be dense."""
    meta = n.arg_meta(0)
    shape, strides = n.ints(size, "the size"), n.ints(stride, "the strides")
    own = n.ints(list(meta.stride()), "the tensor's strides")
    extents = n.static_shape(x, "the tensor")
    offset = 0 if storage_offset is None else n.ints(storage_offset, "the offset")[0]
    offset -= int(meta.storage_offset())
    order = sorted(range(x.ndim), key=lambda a: (-own[a], a))
    dense, run = True, 1
    for axis in reversed(order):
        dense &= extents[axis] == 1 or own[axis] == run
        run *= extents[axis]
    if not dense:
        raise n.refuse("a strided view of memory that is not dense", "index or reshape the tensor instead")
    flat = s.ravel(s.transpose(x, order) if x.ndim else x)
    where = np.full(shape, offset, np.int64)
    for axis, (extent, step) in enumerate(zip(shape, strides)):
        where += (np.arange(extent, dtype=np.int64) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    if where.size and (where.min() < 0 or where.max() >= run):
        raise n.refuse("a strided view that reaches outside of the tensor's own elements")
    return g.gather(flat, where, 0)


@aten("unfold.default")
def unfold(n: Call, x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if not x.ndim:
        return s.reshape(x, (1,)) if size else s.reshape(g.sliced(s.reshape(x, (1,)), {0: (0, 0)}), (0,))
    at = axis_of(dimension, x.ndim)
    extent = n.ints([x.shape[at]], "the unfolded extent")[0]
    count = (extent - size) // step + 1
    where = np.arange(count)[:, None] * step + np.arange(size)
    found = g.gather(x, where.astype(np.int64), at)
    return s.moveaxis(found, at + 1, -1)


# ---- padding


@aten("constant_pad_nd.default")
def constant_pad(n: Call, x: Tensor, pad: Size, value: Any = 0) -> Tensor:
    return padded(n, x, list(pad), "constant", value)


@aten("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(n: Call, x: Tensor, padding: Size) -> Tensor:
    return padded(n, x, list(padding), "reflect")


@aten("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(n: Call, x: Tensor, padding: Size) -> Tensor:
    return padded(n, x, list(padding), "edge")


@aten("_pad_circular.default")
def circular_pad(n: Call, x: Tensor, padding: Size) -> Tensor:
    """By joining slices: not all runtimes know ONNX's `wrap`."""
    pads = n.ints(padding, "the padding")
    for i in range(len(pads) // 2):
        axis, (before, after) = x.ndim - 1 - i, pads[2 * i : 2 * i + 2]
        if min(before, after) < 0:
            x = g.sliced(x, {axis: (max(0, -before), x.shape[axis] - max(0, -after))})
            before, after = max(0, before), max(0, after)
        parts = [g.sliced(x, {axis: (x.shape[axis] - before, None)})] if before else []
        parts += [x, *([g.sliced(x, {axis: (0, after)})] if after else [])]
        x = j.concat(parts, axis) if len(parts) > 1 else x
    return x


def padded(n: Call, x: Tensor, pad: list[Any], mode: str, value: Any = None) -> Tensor:
    """Padding as torch states it: from the last axis on, (before, after) each."""
    count = len(pad) // 2
    axes = list(range(x.ndim - count, x.ndim))
    before = [pad[2 * i] for i in reversed(range(count))]
    after = [pad[2 * i + 1] for i in reversed(range(count))]
    if not axes or (is_static(before + after) and not any(before + after)):
        return x
    if mode != "constant" and is_static(before + after) and min(before + after) < 0:
        # Cropped first: what is left is what is reflected or repeated.
        cuts = {a: (max(0, -b), x.shape[a] - max(0, -c)) for a, b, c in zip(axes, before, after) if min(b, c) < 0}
        x = g.sliced(x, cuts)
        before, after = [max(0, b) for b in before], [max(0, c) for c in after]
        if not any(before + after):
            return x
    # Axes that nothing is added to are left out: a reflection of an empty one would be refused.
    kept = [i for i in range(count) if not is_static([before[i], after[i]]) or before[i] or after[i]]
    sides = [before[i] for i in kept] + [after[i] for i in kept]
    amounts = s.shape_tensor(sides)
    fill = None if value is None else n.to(value, x.dtype)
    return op("sx.pad", x, amounts, fill, ints([axes[i] for i in kept]), mode=mode)


@aten("tril.default")
def tril(n: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    return op("sx.trilu", x, n.to(diagonal, int64), upper=False)


@aten("triu.default")
def triu(n: Call, x: Tensor, diagonal: int = 0) -> Tensor:
    return op("sx.trilu", x, n.to(diagonal, int64), upper=True)


@aten("pixel_shuffle.default")
def pixel_shuffle(n: Call, x: Tensor, upscale_factor: int) -> Tensor:
    return _images(x, lambda y: s.depth_to_space(y, upscale_factor, "CRD"))


@aten("pixel_unshuffle.default")
def pixel_unshuffle(n: Call, x: Tensor, downscale_factor: int) -> Tensor:
    factor = downscale_factor
    *lead, channels, high, wide = x.shape
    split = s.reshape(x, [-1, channels, high // factor, factor, wide // factor, factor])
    moved = s.transpose(split, (0, 1, 3, 5, 2, 4))
    return s.reshape(moved, [*lead, channels * factor * factor, high // factor, wide // factor])


def _images(x: Tensor, function: Any) -> Tensor:
    """A function of [N, C, H, W] applied to images with any number of leading axes."""
    if x.ndim == 4:
        return function(x)
    found = function(s.reshape(x, [-1, *x.shape[-3:]]))
    return s.reshape(found, [*x.shape[:-3], *found.shape[-3:]])


@aten("channel_shuffle.default", "native_channel_shuffle.default")
def channel_shuffle(n: Call, x: Tensor, groups: int) -> Tensor:
    batch, channels, *rest = x.shape
    split = s.reshape(x, [batch, groups, channels // groups, *rest])
    return s.reshape(s.swapaxes(split, 1, 2), [batch, channels, *rest])
