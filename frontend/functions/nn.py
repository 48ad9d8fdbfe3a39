"""What networks are made of: convolutions, pooling, normalisations. Layouts are ONNX's: [N, C, D1, …].

Window parameters (`strides`, `pads`, `dilations`, `kernel_shape`) are one number for all spatial axes or one per axis;
`pads` also all befores, then all afters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import apply, ints, op
from sardonyx.frontend.operands import TensorLike, floating, promoted, scalar, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

Window = int | Sequence[int] | None


def _window(value: Window, rank: int, what: str) -> tuple[int, ...] | None:
    """One entry per spatial axis."""
    if value is None:
        return None
    found = (value,) * rank if isinstance(value, int) else tuple(int(v) for v in value)
    if len(found) != rank:
        raise InvalidArgumentError(f"{what} has {len(found)} entries for {rank} spatial axes", location=user_line())
    return found


def _pads(value: Window, rank: int) -> tuple[int, ...] | None:
    """All befores, then all afters."""
    if value is None:
        return None
    found = (value,) * (2 * rank) if isinstance(value, int) else tuple(int(v) for v in value)
    if len(found) == rank:
        found = found * 2
    if len(found) != 2 * rank:
        raise InvalidArgumentError(f"pads has {len(found)} entries for {rank} spatial axes", location=user_line())
    return found


def _windows(rank: int, strides: Window, pads: Window, dilations: Window, auto_pad: str) -> dict[str, Any]:
    return {
        "strides": _window(strides, rank, "strides"),
        "pads": _pads(pads, rank),
        "dilations": _window(dilations, rank, "dilations"),
        "auto_pad": auto_pad,
    }


def _spatial(x: Tensor, call: str) -> int:
    rank = x.ndim - 2
    if rank < 1:
        raise InvalidArgumentError(
            f"{call}() takes a tensor [N, C, spatial axes…], not one of rank {x.ndim}", location=user_line()
        )
    return rank


def conv(
    x: TensorLike,
    w: TensorLike,
    bias: TensorLike | None = None,
    *,
    strides: Window = None,
    pads: Window = None,
    dilations: Window = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Tensor:
    """The convolution (correlation) of x [N, C, D1, …] with w [M, C/group, k1, …], plus bias [M]."""
    tensors = promoted(*(v for v in (x, w, bias) if v is not None), floating=True)
    rank = _spatial(tensors[0], "conv")
    return op("sx.conv", *tensors, group=group, **_windows(rank, strides, pads, dilations, auto_pad))


def conv_transpose(
    x: TensorLike,
    w: TensorLike,
    bias: TensorLike | None = None,
    *,
    strides: Window = None,
    pads: Window = None,
    dilations: Window = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
    output_padding: Window = None,
    output_shape: Window = None,
) -> Tensor:
    """The transposed convolution of x [N, C, D1, …] with w [C, M/group, k1, …], plus bias [M]."""
    tensors = promoted(*(v for v in (x, w, bias) if v is not None), floating=True)
    rank = _spatial(tensors[0], "conv_transpose")
    return op(
        "sx.conv_transpose",
        *tensors,
        group=group,
        output_padding=_window(output_padding, rank, "output_padding"),
        output_shape=_window(output_shape, rank, "output_shape"),
        **_windows(rank, strides, pads, dilations, auto_pad),
    )


def max_pool(
    x: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window = None,
    pads: Window = None,
    *,
    dilations: Window = None,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> Tensor:
    """The greatest element of each window; the strides are 1 by default, as in ONNX."""
    return _max_pool(x, kernel_shape, strides, pads, dilations, ceil_mode, auto_pad, 0)[0]


def max_pool_with_indices(
    x: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window = None,
    pads: Window = None,
    *,
    dilations: Window = None,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
    storage_order: int = 0,
) -> tuple[Tensor, Tensor]:
    """`max_pool`, and where each element stands in `x`, counted over all its elements."""
    found = _max_pool(x, kernel_shape, strides, pads, dilations, ceil_mode, auto_pad, storage_order)
    return found[0], found[1]


def _max_pool(
    x: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window,
    pads: Window,
    dilations: Window,
    ceil_mode: bool,
    auto_pad: str,
    storage_order: int,
) -> tuple[Tensor, ...]:
    x = to_tensor(x)
    rank = _spatial(x, "max_pool")
    return apply(
        "sx.max_pool",
        x,
        kernel_shape=_window(kernel_shape, rank, "kernel_shape"),
        ceil_mode=bool(ceil_mode),
        storage_order=storage_order,
        **_windows(rank, strides, pads, dilations, auto_pad),
    )


def average_pool(
    x: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window = None,
    pads: Window = None,
    *,
    dilations: Window = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    auto_pad: str = "NOTSET",
) -> Tensor:
    """The mean of each window; the strides are 1 by default, as in ONNX."""
    x = floating(x)
    rank = _spatial(x, "average_pool")
    return op(
        "sx.average_pool",
        x,
        kernel_shape=_window(kernel_shape, rank, "kernel_shape"),
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
        **_windows(rank, strides, pads, dilations, auto_pad),
    )


def global_average_pool(x: TensorLike) -> Tensor:
    """The mean over all spatial axes, which stay with an extent of 1."""
    return op("sx.global_average_pool", floating(x))


def global_max_pool(x: TensorLike) -> Tensor:
    """The greatest element over all spatial axes, which stay with an extent of 1."""
    return op("sx.global_max_pool", floating(x))


def lp_pool(
    x: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window = None,
    pads: Window = None,
    *,
    p: int = 2,
    dilations: Window = None,
    ceil_mode: bool = False,
    auto_pad: str = "NOTSET",
) -> Tensor:
    """The p-norm of each window; the strides are 1 by default, as in ONNX."""
    x = floating(x)
    rank = _spatial(x, "lp_pool")
    return op(
        "sx.lp_pool",
        x,
        kernel_shape=_window(kernel_shape, rank, "kernel_shape"),
        p=p,
        ceil_mode=bool(ceil_mode),
        **_windows(rank, strides, pads, dilations, auto_pad),
    )


def global_lp_pool(x: TensorLike, p: int = 2) -> Tensor:
    """The p-norm over all spatial axes, which stay with an extent of 1."""
    return op("sx.global_lp_pool", floating(x), p=p)


def max_unpool(
    x: TensorLike,
    indices: TensorLike,
    kernel_shape: int | Sequence[int],
    strides: Window = None,
    pads: Window = None,
    *,
    output_shape: Sequence[int] | None = None,
) -> Tensor:
    """The elements put where `indices` says, as `max_pool_with_indices` gives them; 0 elsewhere."""
    x = floating(x)
    rank = _spatial(x, "max_unpool")
    return op(
        "sx.max_unpool",
        x,
        to_tensor(indices, int64),
        None if output_shape is None else ints(output_shape),
        kernel_shape=_window(kernel_shape, rank, "kernel_shape"),
        strides=_window(strides, rank, "strides"),
        pads=_pads(pads, rank),
    )


def col2im(
    x: TensorLike,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    *,
    strides: Window = None,
    pads: Window = None,
    dilations: Window = None,
) -> Tensor:
    """Blocks of an image from their columns [N, C * block elements, blocks], what overlaps added (PyTorch's `fold`)."""
    rank = len(image_shape)
    return op(
        "sx.col2im",
        to_tensor(x),
        ints(image_shape),
        ints(block_shape),
        strides=_window(strides, rank, "strides"),
        pads=_pads(pads, rank),
        dilations=_window(dilations, rank, "dilations"),
    )


def deform_conv(
    x: TensorLike,
    w: TensorLike,
    offset: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    *,
    strides: Window = None,
    pads: Window = None,
    dilations: Window = None,
    group: int = 1,
    offset_group: int = 1,
) -> Tensor:
    """The convolution of x [N, C, H, W] at places that `offset` moves; see `sx.deform_conv`."""
    given = [v for v in (x, w, offset, bias, mask) if v is not None]
    tensors = iter(promoted(*given, floating=True))
    operands = [None if v is None else next(tensors) for v in (x, w, offset, bias, mask)]
    return op(
        "sx.deform_conv",
        *operands,
        group=group,
        offset_group=offset_group,
        strides=_window(strides, 2, "strides"),
        pads=_pads(pads, 2),
        dilations=_window(dilations, 2, "dilations"),
    )


# ---- normalisation


def batch_norm(
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    epsilon: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + epsilon) * scale + bias`, one value a channel (axis 1)."""
    tensors = [floating(v) for v in (x, scale, bias, mean, var)]
    return op("sx.batch_norm", *tensors, epsilon=float(epsilon))


def batch_norm_training(
    x: TensorLike,
    scale: TensorLike,
    bias: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` by the statistics of `x`; and the running mean and variance, updated by `momentum`."""
    tensors = [floating(v) for v in (x, scale, bias, mean, var)]
    properties = {"epsilon": float(epsilon), "momentum": float(momentum), "training_mode": True}
    out, running_mean, running_var = apply("sx.batch_norm", *tensors, **properties)
    return out, running_mean, running_var


def layer_norm(
    x: TensorLike, scale: TensorLike, bias: TensorLike | None = None, axis: int = -1, epsilon: float = 1e-5
) -> Tensor:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`, over the axes from `axis` on."""
    tensors = promoted(*(v for v in (x, scale, bias) if v is not None), floating=True)
    return op("sx.layer_norm", *tensors, axis=axis, epsilon=float(epsilon))


def rms_norm(x: TensorLike, scale: TensorLike, axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """`x / sqrt(mean(x * x) + epsilon) * scale`, over the axes from `axis` on."""
    return op("sx.rms_norm", *promoted(x, scale, floating=True), axis=axis, epsilon=float(epsilon))


def instance_norm(x: TensorLike, scale: TensorLike, bias: TensorLike, epsilon: float = 1e-5) -> Tensor:
    """Each channel of each item normalised over its spatial axes."""
    return op("sx.instance_norm", *promoted(x, scale, bias, floating=True), epsilon=float(epsilon))


def group_norm(x: TensorLike, num_groups: int, scale: TensorLike, bias: TensorLike, epsilon: float = 1e-5) -> Tensor:
    """Each group of channels of each item normalised; scale and bias are one value a channel."""
    tensors = promoted(x, scale, bias, floating=True)
    return op("sx.group_norm", *tensors, num_groups=num_groups, epsilon=float(epsilon))


def lp_normalization(x: TensorLike, axis: int = -1, p: int = 2) -> Tensor:
    """`x` over its p-norm along an axis."""
    return op("sx.lp_normalization", floating(x), axis=axis, p=p)


def lrn(x: TensorLike, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Local response normalisation over `size` neighbouring channels."""
    return op("sx.lrn", floating(x), size=size, alpha=float(alpha), beta=float(beta), bias=float(bias))


def dropout(
    x: TensorLike, ratio: float | Tensor = 0.5, training: bool | Tensor = False, *, seed: int | None = None
) -> Tensor:
    """In training each element is dropped (0) with probability `ratio` and the others divided by `1 - ratio`; else the
    tensor itself. `training` may be a tensor of bool, which then decides when the graph runs.

    Without a seed each run drops others.

    Raises:
        ExecutionError: The ratio is not in [0, 1).
    """
    if training is False:
        return to_tensor(x)
    x = floating(x)
    share = ratio if isinstance(ratio, Tensor) else scalar(float(ratio), x.dtype)
    return op("sx.dropout", x, share, to_tensor(training), seed=seed)
