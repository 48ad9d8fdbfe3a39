"""Places the nodes of a directed graph in layers, top to bottom (after Sugiyama, Tagawa and Toda 1981).

The steps: a layer for each node by its longest path; points of passage where an edge skips layers; the order in each
layer by the mean place of the neighbours, swept down and up; places as near to the neighbours as the widths allow.
Everything is linear in nodes, edges and points of passage but for the sorting. Cycles are not expected: what would
close one is drawn, and does not count for the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

GAP_X = 28.0
GAP_Y = 46.0
SWEEPS = 6
MAX_PASSAGES = 20_000
"""Beyond as many points of passage, long edges are drawn straight."""


@dataclass
class Node:
    """A box: its size, and after `place` its top left corner."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    layer: int = 0

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass
class Edge:
    """From node to node, by number; `path` has the points that it goes through, ends included."""

    source: int
    target: int
    path: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])


def place(nodes: list[Node], edges: Sequence[Edge]) -> tuple[float, float]:
    """Give nodes their places and edges their paths; returns the width and the height of it all.

    Nodes have to come in an order in which most edges go forward, as ops in a block do.
    """
    if not nodes:
        return 0.0, 0.0
    forward = [e for e in edges if e.source < e.target]
    _set_layers(nodes, forward)
    boxes = list(nodes)
    chains: list[list[int]] = []
    for edge in forward:
        chain = [edge.source]
        first, last = nodes[edge.source].layer + 1, nodes[edge.target].layer
        if len(boxes) - len(nodes) + last - first <= MAX_PASSAGES:
            for layer in range(first, last):
                chain.append(len(boxes))
                boxes.append(Node(2.0, 0.0, layer=layer))
        chain.append(edge.target)
        chains.append(chain)
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for chain in chains:
        for a, b in zip(chain, chain[1:]):
            below[a].append(b)
            above[b].append(a)
    layers: list[list[int]] = [[] for _ in range(1 + max(box.layer for box in boxes))]
    for number, box in enumerate(boxes):
        layers[box.layer].append(number)
    _order(layers, above, below)
    _set_x(layers, boxes, above, below)
    height = _set_y(layers, boxes)
    left = min(box.x for box in boxes)
    for box in boxes:
        box.x -= left
    for edge, chain in zip(forward, chains):
        edge.path = _path(boxes, chain)
    for edge in edges:
        if not edge.path:
            edge.path = _path(boxes, [edge.source, edge.target])
    return max(box.x + box.width for box in boxes), height


def _set_layers(nodes: list[Node], edges: Sequence[Edge]) -> None:
    """The longest path from above; a node that nothing leads to stands right above the first that it leads to."""
    for edge in sorted(edges, key=lambda e: e.target):
        nodes[edge.target].layer = max(nodes[edge.target].layer, nodes[edge.source].layer + 1)
    # In order of targets a source is complete before it is read, since edges go forward.
    entered = {edge.target for edge in edges}
    lowest: dict[int, int] = {}
    for edge in edges:
        if edge.source not in entered:
            lowest[edge.source] = min(lowest.get(edge.source, 1 << 30), nodes[edge.target].layer - 1)
    for number, layer in lowest.items():
        nodes[number].layer = layer


def _order(layers: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    position: dict[int, float] = {}
    for layer in layers:
        position.update((number, float(i)) for i, number in enumerate(layer))

    def key(number: int, neighbours: list[list[int]]) -> float:
        near = neighbours[number]
        return sum(position[n] for n in near) / len(near) if near else position[number]

    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda number: key(number, above if down else below))
            position.update((number, float(i)) for i, number in enumerate(layer))


def _set_x(layers: list[list[int]], boxes: list[Node], above: list[list[int]], below: list[list[int]]) -> None:
    for layer in layers:
        x = 0.0
        for number in layer:
            boxes[number].x = x
            x += boxes[number].width + GAP_X
        for number in layer:
            boxes[number].x -= x / 2
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wanted: list[float] = []
            for number in layer:
                near = above[number] if down else below[number]
                middle = sum(boxes[n].middle for n in near) / len(near) if near else boxes[number].middle
                wanted.append(middle - boxes[number].width / 2)
            _spread(layer, boxes, wanted)


def _spread(layer: list[int], boxes: list[Node], wanted: list[float]) -> None:
    """Places in this order, without overlaps: the mean of pushing right from the left and left from the right."""
    rightwards: list[float] = []
    at = float("-inf")
    for number, x in zip(layer, wanted):
        at = max(at, x)
        rightwards.append(at)
        at += boxes[number].width + GAP_X
    at = float("inf")
    for index in range(len(layer) - 1, -1, -1):
        box = boxes[layer[index]]
        at = min(at - box.width - GAP_X if index < len(layer) - 1 else at, wanted[index])
        box.x = (at + rightwards[index]) / 2


def _set_y(layers: list[list[int]], boxes: list[Node]) -> float:
    y = 0.0
    for layer in layers:
        height = max((boxes[number].height for number in layer), default=0.0)
        for number in layer:
            boxes[number].y = y if boxes[number].height else y + height / 2
        y += height + GAP_Y
    return y - GAP_Y


def _path(boxes: list[Node], chain: list[int]) -> list[tuple[float, float]]:
    first, last = boxes[chain[0]], boxes[chain[-1]]
    inner = [(boxes[number].middle, boxes[number].y) for number in chain[1:-1]]
    return [(first.middle, first.y + first.height), *inner, (last.middle, last.y)]
