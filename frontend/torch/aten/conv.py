"""Convolutions, their transposes, and patches of images."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import float64
from sardonyx.frontend.apply import ints, op
from sardonyx.frontend.functions import elementwise as e, gathering as g, nn, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, listed


@aten("convolution.default", "_convolution.default")
def convolution(
    n: Call,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *rest: Any,
) -> Tensor:
    rank = weight.ndim - 2
    batched = x.ndim == rank + 2
    x = x if batched else s.unsqueeze(x, 0)
    dtype = x.dtype
    if not dtype.is_float:  # exact below 2^53
        x, weight = e.cast(x, float64), e.cast(weight, float64)
        bias = None if bias is None else e.cast(bias, float64)
    windows: dict[str, Any] = {
        "strides": n.ints(listed(stride, rank), "the stride"),
        "pads": n.ints(listed(padding, rank), "the padding") * 2,
        "dilations": n.ints(listed(dilation, rank), "the dilation"),
        "group": groups,
    }
    if transposed:
        extra = n.ints(listed(output_padding, rank), "the output padding")
        found = nn.conv_transpose(x, weight, bias, output_padding=extra, **windows)
    else:
        found = nn.conv(x, weight, bias, **windows)
    found = found if batched else s.squeeze(found, 0)
    return e.cast(e.round(found), dtype) if not dtype.is_float else found


@aten("col2im.default")
def col2im(n: Call, x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    batched = x.ndim == 3
    found = op(
        "sx.col2im",
        x if batched else s.unsqueeze(x, 0),
        s.shape_tensor(list(output_size)),
        ints(listed(kernel_size, 2)),
        dilations=tuple(listed(dilation, 2)),
        pads=tuple(listed(padding, 2)) * 2,
        strides=tuple(listed(stride, 2)),
    )
    return found if batched else s.squeeze(found, 0)


@aten("im2col.default")
def im2col(n: Call, x: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    import numpy as np

    from sardonyx.frontend.torch.aten.views import padded

    batched = x.ndim == 4
    x = x if batched else s.unsqueeze(x, 0)
    kernel, spread, step = listed(kernel_size, 2), listed(dilation, 2), listed(stride, 2)
    sides = listed(padding, 2)
    x = padded(n, x, [sides[1], sides[1], sides[0], sides[0]], "constant", 0)
    high, wide = n.ints(x.shape[2:], "the extents of the image")
    places = []
    for extent, k, d, st in zip((high, wide), kernel, spread, step):
        count = (extent - d * (k - 1) - 1) // st + 1
        places.append(np.arange(k)[:, None] * d + np.arange(count) * st)
    rows = g.gather(x, places[0].astype(np.int64), 2)
    both = g.gather(rows, places[1].astype(np.int64), 4)
    moved = s.transpose(both, (0, 1, 2, 4, 3, 5))
    batch, channels = x.shape[:2]
    count = places[0].shape[1] * places[1].shape[1]
    found = s.reshape(moved, [batch, channels * kernel[0] * kernel[1], count])
    return found if batched else s.squeeze(found, 0)
