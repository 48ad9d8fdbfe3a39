"""Edits of a model in memory: names, nodes, initializers, outputs, and cutting out a part.

Each is whole or not at all: what it would break is found before anything is changed. Weights are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from sardonyx.backends.onnx.skeleton import Content, Skeleton
from sardonyx.backends.onnx.tensors import empty_tensor, tensor_from_array
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.validate import (
    captures,
    check_node,
    describe,
    normal_domain,
    opsets_of,
    schema_of,
    subgraphs,
)
from sardonyx.passes.extract import backward_slice

Types = Callable[[], dict[str, onnx.ValueInfoProto]]
"""The types of all values that are known, by name: what a model declares, else what inference finds."""


# ---- names


def values_of(graph: onnx.GraphProto) -> set[str]:
    """The names of all values of a graph, without those of the graphs in it."""
    return {
        *(v.name for v in graph.input),
        *(t.name for t in graph.initializer),
        *(t.values.name for t in graph.sparse_initializer),
        *(name for node in graph.node for name in node.output if name),
    }


def all_values(graph: onnx.GraphProto) -> set[str]:
    """The names of all values, those of the graphs in it included."""
    found: set[str] = set()
    stack = [graph]
    while stack:
        at = stack.pop()
        found |= values_of(at)
        for node in at.node:
            stack.extend(subgraphs(node))
    return found


def rename(skeleton: Skeleton, old: str, new: str) -> None:
    """Give a value another name, wherever it is read.

    Raises:
        InvalidArgumentError: There is no such value, or the name is taken or empty.
    """
    graph = skeleton.proto.graph
    _require_value(graph, old)
    if old == new:
        return
    _require_free(graph, new)
    for entry in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        if entry.name == old:
            entry.name = new
    for sparse in graph.sparse_initializer:
        if sparse.values.name == old:
            sparse.values.name = new
    _rename_in(graph, old, new)
    if old in skeleton.contents:
        ordered = {new if name == old else name: content for name, content in skeleton.contents.items()}
        skeleton.contents.clear()
        skeleton.contents.update(ordered)


def _rename_in(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name == old:
                    names[index] = new
        for inner in subgraphs(node):
            if old not in values_of(inner):  # else it has a value of its own of that name
                for output in inner.output:
                    output.name = new if output.name == old else output.name
                _rename_in(inner, old, new)


def rename_node(skeleton: Skeleton, old: str, new: str) -> None:
    """Give a node another name."""
    graph = skeleton.proto.graph
    node = find_node(graph, old)
    if not new or any(n.name == new for n in graph.node if n is not node):
        raise InvalidArgumentError(f"a node cannot be called '{new}': the name is empty or taken")
    node.name = new


def find_node(graph: onnx.GraphProto, name: str) -> onnx.NodeProto:
    """The node of that name, else the one that makes the value of that name.

    Raises:
        InvalidArgumentError: There is none, or there are several.
    """
    found = [n for n in graph.node if n.name == name] if name else []
    found = found or [n for n in graph.node if name and name in n.output]
    if len(found) != 1:
        raise InvalidArgumentError(f"the model has {'several nodes' if found else 'no node'} '{name}'")
    return found[0]


def _require_value(graph: onnx.GraphProto, name: str) -> None:
    if name not in values_of(graph):
        raise InvalidArgumentError(f"the model has no value '{name}'")


def _require_free(graph: onnx.GraphProto, name: str) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError("a value's name is a text, and not empty")
    if name in all_values(graph):
        raise InvalidArgumentError(f"the model already has a value '{name}'")


# ---- nodes


def readers(graph: onnx.GraphProto, value: str) -> list[str]:
    """Who reads a value: nodes (their bodies included), and the graph as its output."""
    found = [describe(n) for n in graph.node if value in _reads(n)]
    return found + [f"output '{value}'" for v in graph.output if v.name == value]


def _reads(node: onnx.NodeProto) -> list[str]:
    return [*node.input, *(name for inner in subgraphs(node) for name in captures(inner))]


def add_node(
    skeleton: Skeleton,
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    domain: str,
    attributes: dict[str, Any],
) -> str:
    """Append a node; returns its name.

    Raises:
        InvalidArgumentError: An input is not defined, an output is, the domain is not imported, or the node breaks the
            operator's schema.
    """
    graph = skeleton.proto.graph
    known = values_of(graph)
    for value in inputs:
        if value and value not in known:
            raise InvalidArgumentError(f"{op_type}: its input '{value}' is not defined")
    for index, value in enumerate(outputs):
        if value:
            _require_free(graph, value)
        if value in outputs[:index] and value:
            raise InvalidArgumentError(f"{op_type}: its output '{value}' is defined twice")
    name = name or next((o for o in outputs if o), op_type)
    taken = {n.name for n in graph.node}
    if name in taken:
        name = next(f"{name}_{i}" for i in range(1, len(taken) + 2) if f"{name}_{i}" not in taken)
    node = onnx.NodeProto(op_type=op_type, name=name, domain=domain)
    node.input.extend(inputs)
    node.output.extend(outputs)
    node.attribute.extend(_attribute(key, value) for key, value in sorted(attributes.items()))
    opsets = opsets_of(skeleton.proto.opset_import, skeleton.proto.ir_version)
    functions = {(normal_domain(f.domain), f.name) for f in skeleton.proto.functions}
    if (normal_domain(domain), op_type) not in functions:
        check_node(node, schema_of(node, opsets))
    graph.node.append(node)
    return name


def _attribute(name: str, value: Any) -> onnx.AttributeProto:
    try:
        if isinstance(value, np.ndarray):
            value = tensor_from_array(name, value)
        elif isinstance(value, DType):
            value = value.onnx
        return helper.make_attribute(name, value)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"'{value!r}' cannot be the attribute '{name}': {error}") from error


def remove_node(skeleton: Skeleton, name: str, bypass: bool) -> None:
    """Take a node out; with `bypass` what reads its first output reads its first input instead.

    Raises:
        InvalidArgumentError: There is no such node, or what it makes is read.
    """
    graph = skeleton.proto.graph
    node = find_node(graph, name)
    given = next((i for i in node.input if i), "")
    if bypass and not given:
        raise InvalidArgumentError("it has no input that could take its place", location=describe(node))
    for index, output in enumerate(node.output):
        users = readers(graph, output) if output else []
        if users and not (bypass and index == 0):
            raise InvalidArgumentError(f"its output '{output}' is read by {users[0]}", location=describe(node))
    first = node.output[0] if node.output else ""
    if bypass and first:
        if any(v.name == first for v in graph.output):  # an output keeps its name
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
            node.input[:], node.output[:] = [given], [first]
            return
        graph.node.remove(node)
        for other in graph.node:
            _replace_reads(other, first, given)
    else:
        graph.node.remove(node)
    _drop_infos(graph, [o for o in node.output if o])


def _drop_infos(graph: onnx.GraphProto, names: Iterable[str]) -> None:
    gone = set(names)
    for info in [v for v in graph.value_info if v.name in gone]:
        graph.value_info.remove(info)


def _replace_reads(node: onnx.NodeProto, old: str, new: str) -> None:
    for index, name in enumerate(node.input):
        if name == old:
            node.input[index] = new
    for inner in subgraphs(node):
        if old in captures(inner):
            for output in inner.output:
                output.name = new if output.name == old else output.name
            for at in inner.node:
                _replace_reads(at, old, new)


def reconnect(skeleton: Skeleton, old: str, new: str) -> None:
    """Let all nodes that read one value read another one; the graph's outputs stay.

    Raises:
        InvalidArgumentError: There is no such value, or a node would read what depends on it.
    """
    graph = skeleton.proto.graph
    _require_value(graph, old)
    _require_value(graph, new)
    upstream = _upstream(graph, [new])
    users = [n for n in graph.node if old in _reads(n)]
    makers = [n for n in users if any(o in upstream for o in n.output if o)]
    if makers:
        # The node that makes the new value from the old one goes on reading it.
        if any(new not in n.output for n in makers):
            raise InvalidArgumentError(f"'{new}' depends on it: it would read itself", location=describe(makers[0]))
        users = [n for n in users if n not in makers]
    for node in users:
        _replace_reads(node, old, new)
    _sort(graph)


def _upstream(graph: onnx.GraphProto, names: Iterable[str]) -> set[str]:
    """The values that these depend on, and themselves."""
    maker = {o: n for n in graph.node for o in n.output if o}
    found: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        if name in maker:
            stack.extend(n for n in _reads(maker[name]) if n)
    return found


def _sort(graph: onnx.GraphProto) -> None:
    """Nodes after those that they read from."""
    maker = {o: i for i, n in enumerate(graph.node) for o in n.output if o}
    order: list[int] = []
    done: set[int] = set()
    for start in range(len(graph.node)):
        stack = [start]
        while stack:
            at = stack[-1]
            if at in done:
                stack.pop()
                continue
            open_ = [maker[n] for n in _reads(graph.node[at]) if n in maker and maker[n] not in done]
            if open_:
                stack.extend(open_)
            else:
                done.add(at)
                order.append(at)
                stack.pop()
    if order != list(range(len(graph.node))):
        nodes = [onnx.NodeProto.FromString(graph.node[i].SerializeToString()) for i in order]
        del graph.node[:]
        graph.node.extend(nodes)


# ---- initializers and outputs


def set_initializer(skeleton: Skeleton, name: str, array: Any) -> None:
    """Give an initializer these contents, or make a new one.

    Raises:
        InvalidArgumentError: A node makes that value, or an input of that name has another dtype or shape.
    """
    graph = skeleton.proto.graph
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError("an initializer's name is a text, and not empty")
    given = np.asarray(array)
    dtype = DType.of(given.dtype)
    if any(name in n.output for n in graph.node) or name in {t.values.name for t in graph.sparse_initializer}:
        raise InvalidArgumentError(f"'{name}' is no initializer: a node makes it, or it is sparse")
    known = {t.name: t for t in graph.initializer}
    declared = next((v for v in graph.input if v.name == name), None)
    if declared is not None and not _fits(declared.type.tensor_type, dtype, given.shape):
        raise InvalidArgumentError(f"the input '{name}' is declared otherwise than {dtype}{list(given.shape)}")
    if name not in known and declared is None:
        _require_free(graph, name)
    content = np.array(given, dtype.numpy, order="C")
    content.flags.writeable = False
    tensor = known.get(name)
    if tensor is None:
        tensor = graph.initializer.add()
    tensor.CopyFrom(empty_tensor(name, dtype, content.shape))
    skeleton.contents[name] = content


def _fits(stated: onnx.TypeProto.Tensor, dtype: DType, shape: tuple[int, ...]) -> bool:
    if stated.elem_type != dtype.onnx:
        return False
    if not stated.HasField("shape"):
        return True
    dims = stated.shape.dim
    return len(dims) == len(shape) and all(
        not d.HasField("dim_value") or d.dim_value == n for d, n in zip(dims, shape, strict=True)
    )


def add_output(skeleton: Skeleton, name: str, types: Types) -> None:
    """Make a value an output, behind the others."""
    graph = skeleton.proto.graph
    _require_value(graph, name)
    if any(v.name == name for v in graph.output):
        raise InvalidArgumentError(f"'{name}' is an output already")
    graph.output.append(_typed(name, types()))


def remove_output(skeleton: Skeleton, name: str) -> None:
    """Let a value be no output any more; at least one stays."""
    graph = skeleton.proto.graph
    found = [v for v in graph.output if v.name == name]
    if not found:
        raise InvalidArgumentError(f"the model has no output '{name}'")
    if len(graph.output) == 1:
        raise InvalidArgumentError(f"'{name}' is the only output")
    graph.output.remove(found[0])


def _typed(name: str, types: dict[str, onnx.ValueInfoProto]) -> onnx.ValueInfoProto:
    found = types.get(name)
    if found is None:
        raise InvalidArgumentError(f"the type of '{name}' is not known")
    return found


# ---- cutting out a part


def extract(skeleton: Skeleton, inputs: Sequence[str], outputs: Sequence[str], types: Types) -> Skeleton:
    """The part of a model that computes some of its values from others; it shares the weights' contents.

    Raises:
        InvalidArgumentError: There is no such value, or the outputs need an input of the model that is not among the
            inputs; it is named.
    """
    proto = skeleton.proto
    graph = proto.graph
    for names, what in ((inputs, "inputs"), (outputs, "outputs")):
        if len(set(names)) != len(names) or (what == "outputs" and not names):
            raise InvalidArgumentError(f"extract(): the {what} are distinct names, and there is an output")
        for name in names:
            _require_value(graph, name)
    initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    maker = {o: index for index, n in enumerate(graph.node) for o in n.output if o}
    needed, used = backward_slice(
        outputs,
        lambda name: name in inputs or name in initializers,
        maker.get,
        lambda index: [name for name in _reads(graph.node[index]) if name],
    )
    open_ = next((n for n in used if n not in maker and n not in inputs and n not in initializers), None)
    if open_ is not None:
        raise InvalidArgumentError(
            f"extract(): the outputs need the input '{open_}'", hint=f"give '{open_}' among the inputs"
        )
    known = types()
    part = onnx.ModelProto()
    for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        setattr(part, field, getattr(proto, field))
    for field in ("opset_import", "metadata_props", "functions"):
        getattr(part, field).extend(getattr(proto, field))
    part.graph.name = graph.name
    part.graph.input.extend(_typed(name, known) for name in inputs)
    part.graph.output.extend(_typed(name, known) for name in outputs)
    part.graph.node.extend(graph.node[index] for index in sorted(needed))
    kept = used.keys() - set(inputs)
    part.graph.initializer.extend(t for t in graph.initializer if t.name in kept)
    part.graph.sparse_initializer.extend(t for t in graph.sparse_initializer if t.values.name in kept)
    inner = {o for index in needed for o in graph.node[index].output} - set(inputs) - set(outputs)
    part.graph.value_info.extend(v for v in graph.value_info if v.name in inner)
    contents: dict[str, Content] = {name: c for name, c in skeleton.contents.items() if name in kept}
    return Skeleton(part, contents)
