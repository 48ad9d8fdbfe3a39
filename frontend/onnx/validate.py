"""The structure of a model, held against ONNX's rules before anything is built from it.

Versions, names, definitions before uses (unsorted graphs are put in order, cycles are refused), operators, attributes
and arity by ONNX's schemas, and functions that call each other in a circle. Everything is refused by an
`InvalidArgumentError` that names the node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import onnx
from onnx import defs

from sardonyx.backends.onnx.options import MAX_OPSET
from sardonyx.errors import InvalidArgumentError, SardonyxError

Opsets = Mapping[str, int]
FunctionKey = tuple[str, str, str]

# Old versions of operators that live on, which ONNX marks although models of their opsets have them.
_READ_THOUGH_DEPRECATED = frozenset({"GroupNormalization"})

FOREIGN = frozenset({"LayerNormalization", "SimplifiedLayerNormalization"})
"""Operators that onnxruntime's optimised models have in ai.onnx, before (or without) ONNX's definition of them."""

_KINDS: dict[int, str] = {
    onnx.AttributeProto.FLOAT: "a float", onnx.AttributeProto.INT: "an int", onnx.AttributeProto.STRING: "a string",
    onnx.AttributeProto.TENSOR: "a tensor", onnx.AttributeProto.GRAPH: "a graph", onnx.AttributeProto.FLOATS: "floats",
    onnx.AttributeProto.INTS: "ints", onnx.AttributeProto.STRINGS: "strings",
    onnx.AttributeProto.TENSORS: "tensors", onnx.AttributeProto.GRAPHS: "graphs",
    onnx.AttributeProto.SPARSE_TENSOR: "a sparse tensor", onnx.AttributeProto.TYPE_PROTO: "a type",
}  # fmt: skip


def normal_domain(domain: str) -> str:
    """ai.onnx has two names."""
    return "" if domain == "ai.onnx" else domain


def describe(node: onnx.NodeProto) -> str:
    """The node for a person: by name, else by its first output."""
    name = node.name or next((o for o in node.output if o), "")
    return f"node '{name}' ({node.op_type})"


def function_key(function: onnx.FunctionProto) -> FunctionKey:
    return normal_domain(function.domain), function.name, function.overload


def called_function(node: onnx.NodeProto) -> FunctionKey:
    return normal_domain(node.domain), node.op_type, node.overload


@cache
def known_domains() -> frozenset[str]:
    """The domains whose operators ONNX itself defines."""
    return frozenset(s.domain for s in defs.get_all_schemas())


def schema_of(node: onnx.NodeProto, opsets: Opsets) -> defs.OpSchema | None:
    """The schema of a node's operator at the model's opset; None for one of a domain that ONNX does not define.

    Raises:
        InvalidArgumentError: The domain is not imported, or has no such operator at that opset.
    """
    domain = normal_domain(node.domain)
    version = opsets.get(domain)
    if version is None:
        raise InvalidArgumentError(f"the model does not import the domain '{domain}'", location=describe(node))
    if domain not in known_domains():
        return None
    try:
        return defs.get_schema(node.op_type, version, domain)
    except defs.SchemaError:
        if not domain and node.op_type in FOREIGN:
            return None
        name = domain or "ai.onnx"
        raise InvalidArgumentError(
            f"{name} {version} has no operator '{node.op_type}'", location=describe(node)
        ) from None


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto], ir_version: int = 99) -> dict[str, int]:
    """The imported version by domain."""
    out: dict[str, int] = {}
    for entry in imports:
        domain = normal_domain(entry.domain)
        if out.setdefault(domain, entry.version) != entry.version:
            raise InvalidArgumentError(f"the model imports '{domain or 'ai.onnx'}' in two versions")
    if not out and ir_version < 3:
        out[""] = 1  # opset imports came with IR version 3
    if not out:
        raise InvalidArgumentError("the model imports no opset")
    for domain, version in out.items():
        if not 0 <= version < 2**31:
            raise InvalidArgumentError(f"version {version} of '{domain or 'ai.onnx'}' is unknown")
    version = out.get("")
    if version is not None and not 1 <= version <= MAX_OPSET:
        raise InvalidArgumentError(f"opset {version} of ai.onnx is unknown; Sardonyx reads 1 to {MAX_OPSET}")
    return out


def validate(proto: onnx.ModelProto) -> None:
    """Refuse a malformed model; nodes that are out of order are put in order (in place).

    Raises:
        InvalidArgumentError: What is wrong, and where.
    """
    if not 1 <= proto.ir_version <= onnx.IR_VERSION:
        raise InvalidArgumentError(f"IR version {proto.ir_version} is unknown; Sardonyx reads 1 to {onnx.IR_VERSION}")
    opsets = opsets_of(proto.opset_import, proto.ir_version)
    functions: dict[FunctionKey, onnx.FunctionProto] = {}
    for function in proto.functions:
        if functions.setdefault(function_key(function), function) is not function:
            raise InvalidArgumentError(f"function '{function.name}' is defined twice")
    _refuse_recursion(functions)
    for function in proto.functions:
        where = f"function '{function.name}'"
        try:
            inner = dict(opsets_of(function.opset_import)) if function.opset_import else dict(opsets)
            _validate_nodes(function.node, set(function.input), inner, functions)
            _require(function.output, _defined(function.node) | set(function.input))
        except SardonyxError as error:
            error.at(where)
            raise
    _validate_graph(proto.graph, frozenset(), opsets, functions)


def _validate_graph(
    graph: onnx.GraphProto, outer: frozenset[str], opsets: Opsets, functions: Mapping[FunctionKey, onnx.FunctionProto]
) -> None:
    inputs = _unique((v.name for v in graph.input), "input")
    initializers = _unique(
        [*(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)], "initializer"
    )
    own = inputs | initializers
    _validate_nodes(graph.node, own, opsets, functions, outer)
    _require((v.name for v in graph.output), _defined(graph.node) | own | outer)


def _unique(names: Iterable[str], what: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        if not name:
            raise InvalidArgumentError(f"an {what} has no name")
        if name in found:
            raise InvalidArgumentError(f"two {what}s are called '{name}'")
        found.add(name)
    return found


def _require(outputs: Iterable[str], defined: set[str] | frozenset[str]) -> None:
    for name in outputs:
        if name not in defined:
            raise InvalidArgumentError(f"nothing computes the output '{name}'")


def _defined(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output if name}


def _validate_nodes(
    nodes: Sequence[onnx.NodeProto],
    given: set[str],
    opsets: Opsets,
    functions: Mapping[FunctionKey, onnx.FunctionProto],
    outer: frozenset[str] = frozenset(),
) -> None:
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and name in given:
                raise InvalidArgumentError(f"its output '{name}' is already defined", location=describe(node))
            if name and producer.setdefault(name, index) != index or list(node.output).count(name) > 1 and name:
                raise InvalidArgumentError(f"its output '{name}' is defined twice", location=describe(node))
    reads = [_reads(node) for node in nodes]
    for node, names in zip(nodes, reads, strict=True):
        for name in names:
            if name not in producer and name not in given and name not in outer:
                raise InvalidArgumentError(f"its input '{name}' is not defined", location=describe(node))
    _sort(nodes, producer, reads)
    inner = outer | given | producer.keys()
    for node in nodes:
        if called_function(node) not in functions:
            check_node(node, schema_of(node, opsets))
        for graph in subgraphs(node):
            _validate_graph(graph, frozenset(inner), opsets, functions)


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs in a node's attributes."""
    out: list[onnx.GraphProto] = []
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            out.append(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            out.extend(attribute.graphs)
    return out


def _reads(node: onnx.NodeProto) -> list[str]:
    """The names that a node reads: its inputs, and what its bodies read from outside."""
    names = [name for name in node.input if name]
    for graph in subgraphs(node):
        names.extend(captures(graph))
    return names


def captures(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph reads and does not define."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer} | _defined(graph.node)
    own |= {t.values.name for t in graph.sparse_initializer}
    read = [name for node in graph.node for name in _reads(node)] + [v.name for v in graph.output]
    return [name for name in dict.fromkeys(read) if name not in own]


def _sort(nodes: Sequence[onnx.NodeProto], producer: Mapping[str, int], reads: Sequence[Sequence[str]]) -> None:
    """Put nodes after those that they read from; those that are in order stay.

    Raises:
        InvalidArgumentError: They read from each other in a circle.
    """
    needs = [{producer[name] for name in names if name in producer} for names in reads]
    if all(all(n < index for n in needed) for index, needed in enumerate(needs)):
        return
    users: list[list[int]] = [[] for _ in nodes]
    missing = [len(needed) for needed in needs]
    for index, needed in enumerate(needs):
        for n in needed:
            users[n].append(index)
    ready = [index for index, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) != len(nodes):
        stuck = next(index for index, count in enumerate(missing) if count)
        raise InvalidArgumentError("it is part of a cycle", location=describe(nodes[stuck]))
    copies: list[onnx.NodeProto] = []
    for index in order:
        copy = onnx.NodeProto()
        copy.CopyFrom(nodes[index])
        copies.append(copy)
    for target, copy in zip(nodes, copies, strict=True):
        target.CopyFrom(copy)


def check_node(node: onnx.NodeProto, schema: defs.OpSchema | None) -> None:
    """Hold a node's attributes and its numbers of inputs and outputs against its schema.

    Raises:
        InvalidArgumentError: An attribute is unknown, of another type, given twice or missing; or the arity is wrong.
    """
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        if name in seen:
            raise InvalidArgumentError(f"its attribute '{name}' is given twice", location=describe(node))
        seen.add(name)
        if schema is None:
            continue
        what = schema.attributes.get(name)
        if what is None:
            raise InvalidArgumentError(f"{node.op_type} has no attribute '{name}'", location=describe(node))
        kind = int(cast(Any, what.type))  # the stubs know no conversion
        if not attribute.ref_attr_name and attribute.type != kind:
            found, wanted = (_KINDS.get(k, "of another type") for k in (attribute.type, kind))
            raise InvalidArgumentError(f"its attribute '{name}' is {found}, not {wanted}", location=describe(node))
    if schema is None:
        return
    if schema.deprecated and node.op_type not in _READ_THOUGH_DEPRECATED:
        raise InvalidArgumentError(f"{node.op_type} is deprecated in this opset", location=describe(node))
    for name, what in schema.attributes.items():
        if what.required and name not in seen:
            raise InvalidArgumentError(f"its attribute '{name}' is missing", location=describe(node))
    for count, low, high, label in (
        (len(node.input), schema.min_input, schema.max_input, "inputs"),
        (len(node.output), schema.min_output, schema.max_output, "outputs"),
    ):
        if not low <= count <= high:
            span = str(low) if low == high else f"{low} to {high}"
            raise InvalidArgumentError(f"it has {count} {label}, but takes {span}", location=describe(node))


def _refuse_recursion(functions: Mapping[FunctionKey, onnx.FunctionProto]) -> None:
    done: set[FunctionKey] = set()
    for start in functions:
        stack = [(start, iter(_calls(functions[start], functions)))]
        on_path = [start]
        while stack:
            key, calls = stack[-1]
            callee = next((c for c in calls if c not in done), None)
            if callee is None:
                done.add(key)
                stack.pop()
                on_path.pop()
            elif callee in on_path:
                raise InvalidArgumentError(f"function '{callee[1]}' calls itself, directly or through others")
            else:
                stack.append((callee, iter(_calls(functions[callee], functions))))
                on_path.append(callee)


def _calls(function: onnx.FunctionProto, functions: Mapping[FunctionKey, onnx.FunctionProto]) -> list[FunctionKey]:
    out: list[FunctionKey] = []
    stack = [list(function.node)]
    while stack:
        for node in stack.pop():
            key = called_function(node)
            if key in functions:
                out.append(key)
            stack.extend(list(graph.node) for graph in subgraphs(node))
    return out
