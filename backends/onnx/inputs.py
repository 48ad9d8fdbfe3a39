"""Weights among the inputs of an exported model: beside their contents, or instead of them."""

from __future__ import annotations

import onnx
from onnx import helper

from sardonyx.backends.onnx.skeleton import Content, Skeleton

SMALL = 1024
"""Integers up to this size (shapes, axes, indices) are no weights: shape inference reads them."""


def is_weight(content: Content) -> bool:
    """Whether a tensor counts as a weight: all but what shape computations and scalars need."""
    kind = content.dtype.kind
    if kind in "sO":
        return False  # strings have no bytes of their own
    return bool(content.shape) and content.nbytes > 0 and (kind not in "biu" or content.nbytes > SMALL)


def weights_as_inputs(skeleton: Skeleton, with_contents: bool) -> None:
    """List the weights behind the inputs; without contents they are no initializers any more."""
    graph = skeleton.proto.graph
    known = {v.name for v in graph.input}
    kept: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        content = skeleton.contents.get(tensor.name)
        if content is None or not (is_weight(content) or tensor.name in known):
            kept.append(tensor)
            continue
        if tensor.name not in known:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        if with_contents:
            kept.append(tensor)
        else:
            del skeleton.contents[tensor.name]
    if not with_contents:
        stated = [onnx.TensorProto.FromString(t.SerializeToString()) for t in kept]
        del graph.initializer[:]
        graph.initializer.extend(stated)
