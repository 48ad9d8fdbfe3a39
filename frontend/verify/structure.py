"""The structural difference of two graphs: names are ignored, nodes are matched by what they compute.

Every value has a hash of the operator, the attributes and the hashes of the operands that it is computed from; inputs
count by position, constants by their contents. Nodes with equal hashes compute the same from the same inputs. Of the
rest, those that differ in themselves (their operands have counterparts) are told from those that only lie behind one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.naming import Names, operator_name
from sardonyx.frontend.verify.identity import attributes_of, constant_digest, node_digest


@dataclass(frozen=True)
class Entry:
    """A node of one of the graphs: its name, operator, attributes, and the type of its first result."""

    node: str
    operator: str
    attributes: str
    type: str

    def __str__(self) -> str:
        text = f"{self.operator} '{self.node}'"
        return f"{text} {self.attributes}" if self.attributes else text


@dataclass(frozen=True)
class Structure:
    """What distinguishes two graphs.

    Attributes:
        interface: Differences of inputs and outputs, in words.
        changed: Pairs of nodes that take the same operands and differ in operator, attributes or constants.
        removed, added: Nodes that only the first, or only the second graph has, and whose operands have counterparts.
        behind: How many nodes of either graph differ only because of what they read.
        same: How many nodes are the same.
        operators: By operator, how many nodes each graph has, where the numbers differ.
    """

    interface: tuple[str, ...]
    changed: tuple[tuple[Entry, Entry], ...]
    removed: tuple[Entry, ...]
    added: tuple[Entry, ...]
    behind: tuple[int, int]
    same: int
    operators: dict[str, tuple[int, int]]

    @property
    def equal(self) -> bool:
        return not (self.interface or self.changed or self.removed or self.added or any(self.behind))

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "interface": list(self.interface),
            "changed": [[vars(a), vars(b)] for a, b in self.changed],
            "removed": [vars(e) for e in self.removed],
            "added": [vars(e) for e in self.added],
            "behind": list(self.behind),
            "same": self.same,
            "operators": {k: list(v) for k, v in self.operators.items()},
        }


def compare_structure(first: ModelGraph, second: ModelGraph) -> Structure:
    """The structural difference of two graphs."""
    one, two = _Hashed(first), _Hashed(second)
    common = one.hashes & two.hashes
    removed = [n for n in one.nodes if one.of_node[n] not in common]
    added = [n for n in two.nodes if two.of_node[n] not in common]
    own_removed = [n for n in removed if one.operands_known(n, two.values)]
    own_added = [n for n in added if two.operands_known(n, one.values)]
    changed: list[tuple[Entry, Entry]] = []
    for op in list(own_removed):
        twin = next((o for o in own_added if _siblings(one, op, two, o)), None)
        if twin is not None:
            changed.append((one.entry(op), two.entry(twin)))
            own_removed.remove(op)
            own_added.remove(twin)
    counts = Counter(operator_name(n) for n in one.nodes), Counter(operator_name(n) for n in two.nodes)
    operators = {
        name: (counts[0][name], counts[1][name])
        for name in sorted(counts[0] | counts[1])
        if counts[0][name] != counts[1][name]
    }
    return Structure(
        tuple(_interface(first, second)),
        tuple(changed),
        tuple(one.entry(n) for n in own_removed),
        tuple(two.entry(n) for n in own_added),
        (len(removed) - len(own_removed) - len(changed), len(added) - len(own_added) - len(changed)),
        len(one.nodes) - len(removed),
        operators,
    )


def _interface(first: ModelGraph, second: ModelGraph) -> Iterator[str]:
    for what, a, b in (
        ("input", first.input_specs(), second.input_specs()),
        ("output", first.output_specs(), second.output_specs()),
    ):
        if len(a) != len(b):
            yield f"{len(a)} {what}s, the other has {len(b)}"
        for one, two in zip(a, b):
            if str(one) != str(two):
                yield f"{what} {one}, the other has {two}"
    if first.opset != second.opset:
        yield f"opset {first.opset}, the other has {second.opset}"


def _siblings(one: _Hashed, a: Operation, two: _Hashed, b: Operation) -> bool:
    """Whether two nodes take the same, constants aside: then one is the other, changed."""
    return one.operands(a) == two.operands(b) and (a.name == b.name or len(one.operands(a)) > 0)


class _Hashed:
    """A graph with a hash for each value."""

    def __init__(self, graph: ModelGraph) -> None:
        self._names = Names.of(graph.module)
        self._graph = graph
        self._of: dict[SSAValue, str] = {}
        self._constants: set[SSAValue] = set()
        self.nodes: list[Operation] = []
        self.of_node: dict[Operation, str] = {}
        block = main_function(graph.module).body.block
        for index, argument in enumerate(block.args):
            self._of[argument] = f"input {index}"
        for op in block.ops:
            if not isinstance(op, func.ReturnOp):
                self._add(op)
        self.hashes = set(self.of_node.values())
        self.values = set(self._of.values())

    def _add(self, op: Operation) -> None:
        if isinstance(op, ConstantOp):
            digest = constant_digest(op)
            self._constants.update(op.results)
        else:
            digest = node_digest(op, self._of.__getitem__)
            self.nodes.append(op)
            self.of_node[op] = digest
        for index, result in enumerate(op.results):
            self._of[result] = f"{digest} {index}"

    def operands(self, op: Operation) -> list[str]:
        """The hashes of what a node reads, without the constants."""
        return [self._of[o] for o in op.operands if o not in self._constants]

    def operands_known(self, op: Operation, values: set[str]) -> bool:
        """Whether what a node reads has counterparts in the other graph."""
        return all(h in values for h in self.operands(op))

    def entry(self, op: Operation) -> Entry:
        shown = ", ".join(attributes_of(op))
        kinds = str(op.results[0].type) if op.results else ""
        return Entry(self._names.nodes.get(op, op.name), operator_name(op), shown, kinds)


def weight_changes(first: ModelGraph, second: ModelGraph, pairs: Sequence[tuple[Entry, Entry]]) -> dict[str, float]:
    """By node of the second graph, the largest difference of the constants that changed nodes read."""
    found: dict[str, float] = {}
    for a, b in pairs:
        one, two = _constants(first, a.node), _constants(second, b.node)
        for left, right in zip(one, two):
            if left.shape == right.shape and left.dtype.kind not in "OSU":
                far = np.abs(left.astype(np.float64) - right.astype(np.float64))
                largest = float(far.max()) if far.size else 0.0
                if largest:
                    found[b.node] = max(found.get(b.node, 0.0), largest)
    return found


def _constants(graph: ModelGraph, node: str) -> list[Any]:
    op = graph.node(node).op
    owners = [o.owner for o in op.operands] if op is not None else []
    return [o.array() for o in owners if isinstance(o, ConstantOp)]
