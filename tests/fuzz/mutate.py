"""Mutations of ONNX files: of their bytes, and of what they say.

A mutation is a function of the model and a `random.Random`, so that a seed names a file. The corpus is ONNX's own
operator tests (small models of every operator), which the onnx package makes.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx

ODD_INTS = (0, 1, -1, 2, -2, 3, 5, 7, 127, 128, -128, 255, 1 << 15, (1 << 31) - 1, -(1 << 31), 1 << 31, 1 << 40,
            (1 << 63) - 1, -(1 << 63))  # fmt: skip
ODD_NAMES = ("", "x", "y", "output", "a/b", "ü", "a\nb", "%s", "0", "x" * 300)
MAX_BYTES = 20_000


@cache
def corpus() -> list[tuple[str, bytes]]:
    """Names and bytes of models; the large ones are left out."""
    from onnx.backend.test.case.node import collect_testcases

    out: dict[str, bytes] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the expected values of some tests overflow
        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None:
            content = case.model.SerializeToString()
            if len(content) <= MAX_BYTES:
                out[case.name] = content
    return sorted(out.items())


# ---- bytes


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.randint(1, 8)] = bytes(
        rng.choice((0, 255, rng.randrange(256))) for _ in range(rng.randint(1, 8))
    )


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def cut(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 40)]


def repeat(data: bytearray, rng: random.Random) -> None:
    at, length, to = rng.randrange(len(data)), rng.randint(1, 60), rng.randrange(len(data))
    data[to:to] = data[at : at + length]


def swap(data: bytearray, rng: random.Random) -> None:
    size = rng.randint(1, 20)
    a, b = rng.randrange(len(data)), rng.randrange(len(data))
    first, second = data[a : a + size], data[b : b + size]
    if abs(a - b) >= size:
        data[a : a + len(second)], data[b : b + len(first)] = second, first


BYTES: tuple[Callable[[bytearray, random.Random], None], ...] = (flip, flip, overwrite, truncate, cut, repeat, swap)


# ---- what the model says


def _nodes(model: onnx.ModelProto) -> list[Any]:
    return list(model.graph.node)


def _values(model: onnx.ModelProto) -> list[Any]:
    return [*model.graph.input, *model.graph.output, *model.graph.value_info]


def attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another value for an attribute, another type, or none."""
    attributes = [a for node in _nodes(model) for a in node.attribute]
    if not attributes:
        return
    chosen = rng.choice(attributes)
    kind = rng.randrange(6)
    if kind == 0:
        chosen.i = rng.choice(ODD_INTS)
    elif kind == 1 and chosen.ints:
        chosen.ints[rng.randrange(len(chosen.ints))] = rng.choice(ODD_INTS)
    elif kind == 2:
        chosen.ints.extend(rng.choice(ODD_INTS) for _ in range(rng.randint(1, 3)))
    elif kind == 3:
        chosen.f = rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))
    elif kind == 4:
        chosen.type = rng.randrange(0, 16)
    else:
        chosen.s = rng.choice((b"", b"\xff\xfe", b"SAME_UPPER", b"linear"))


def dims(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another extent, symbol or rank for a value or a weight."""
    if model.graph.initializer and rng.random() < 0.3:
        tensor = rng.choice(list(model.graph.initializer))
        if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(ODD_INTS)
        return
    shape = rng.choice(_values(model)).type.tensor_type.shape
    kind = rng.randrange(4)
    if kind == 0:
        shape.dim.add().dim_value = rng.choice(ODD_INTS)
    elif shape.dim and kind == 1:
        shape.dim[rng.randrange(len(shape.dim))].dim_value = rng.choice(ODD_INTS)
    elif shape.dim and kind == 2:
        shape.dim[rng.randrange(len(shape.dim))].dim_param = rng.choice(("n", "m", *ODD_NAMES))
    elif shape.dim:
        del shape.dim[-1]


def dtype(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(_values(model)).type.tensor_type.elem_type = rng.randrange(0, 30)


def rename(model: onnx.ModelProto, rng: random.Random) -> None:
    """Let a node read or write another name."""
    node = rng.choice(_nodes(model))
    names = rng.choice((node.input, node.output))
    if names:
        others = [n for node in _nodes(model) for n in (*node.input, *node.output)]
        names[rng.randrange(len(names))] = rng.choice((*others, *ODD_NAMES))


def operands(model: onnx.ModelProto, rng: random.Random) -> None:
    """More or fewer operands or results."""
    node = rng.choice(_nodes(model))
    names = rng.choice((node.input, node.output))
    if names and rng.random() < 0.5:
        del names[rng.randrange(len(names))]
    else:
        names.append(rng.choice((*(v.name for v in _values(model)), *ODD_NAMES)))


def nodes(model: onnx.ModelProto, rng: random.Random) -> None:
    """Drop a node, double it, or make it another operator."""
    kind, at = rng.randrange(3), rng.randrange(len(model.graph.node))
    if kind == 0:
        del model.graph.node[at]
    elif kind == 1:
        model.graph.node.add().CopyFrom(model.graph.node[at])
    else:
        other = onnx.ModelProto.FromString(rng.choice(corpus())[1]).graph.node
        if other:
            model.graph.node[at].op_type = other[0].op_type


def weights(model: onnx.ModelProto, rng: random.Random) -> None:
    """Turn an input into an initializer that may not fit it, or damage one."""
    if not model.graph.input:
        return
    value = rng.choice(list(model.graph.input))
    tensor = model.graph.initializer.add()
    tensor.name = value.name
    tensor.data_type = rng.choice((value.type.tensor_type.elem_type, rng.randrange(0, 30)))
    tensor.dims.extend(rng.choice((0, 1, 2, 3, 1 << 40, -1)) for _ in range(rng.randint(0, 3)))
    tensor.raw_data = bytes(rng.randrange(256) for _ in range(rng.choice((0, 4, 8, 24, 25))))


def versions(model: onnx.ModelProto, rng: random.Random) -> None:
    if rng.random() < 0.5 and model.opset_import:
        model.opset_import[0].version = rng.choice((*range(1, 29), *ODD_INTS))
    elif rng.random() < 0.5:
        model.ir_version = rng.choice((*range(1, 14), *ODD_INTS))
    else:
        model.opset_import.add(domain=rng.choice(("", "ai.onnx.ml", "com.microsoft", "x.y")), version=1)


MEANING: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    attribute, attribute, dims, dims, dtype, rename, operands, nodes, weights, versions,
)  # fmt: skip


def mutant(seed: int) -> tuple[str, bytes]:
    """The name and the bytes of the mutated file of a seed."""
    rng = random.Random(seed)
    name, content = rng.choice(corpus())
    if rng.random() < 0.5:
        data = bytearray(content)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            if data:
                rng.choice(BYTES)(data, rng)
        return name, bytes(data)
    model = onnx.ModelProto.FromString(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not model.graph.node or not _values(model):
            break
        try:
            rng.choice(MEANING)(model, rng)
        except (ValueError, TypeError):  # protobuf refuses the value: no such file can be
            continue
    return name, model.SerializeToString()
