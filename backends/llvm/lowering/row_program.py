"""Row programs: what one kernel does with each row of a tensor, as a graph of values.

A value is *full* (one per element of the row) or one per row. Full values are computed in loops over the row, values of
a row between them. A *fold* makes a row's value of a full one (a sum, a maximum), so whatever depends on it needs a
further loop over the row: its level. Folds of one level share a loop. Cheap full values are computed again in each loop
that needs them, out of what lies in the first-level cache; one that costs more waits in the result's own memory where
its dtype is that of the result.

Softmax, the normalisations and the reductions are such programs, and elementwise ops that stand before, between or
behind them join the program: see `row_fusion.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import known_number, same_extents
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.rows import Accumulator, rows_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType

Make = Callable[..., SSAValue]
"""`make(body, *input scalars) -> scalar`: one element of a value."""


@dataclass(eq=False)
class Node:
    """A value of the program, in `dtype`. `level` is the number of folds that come one after another before it."""

    dtype: DType
    full: bool
    level: int
    inputs: tuple[Node, ...] = ()
    make: Make | None = None
    is_costly: bool = False
    is_long: bool = False
    """Whether it is so many instructions that those of one row keep the registers busy."""
    start: Callable[[Body], Accumulator] | None = None
    """What a fold starts from."""
    leaf: SSAValue | None = None
    """The tensor that is read."""
    within: Within | None = None
    """Of a fold to which only the part of the row with the extreme contributes."""


@dataclass(frozen=True, eq=False)
class Within:
    """Where in a row an extreme stands: `better(b, extreme of a part, that of all parts before it)` says whether in the
    later part."""

    extreme: Node
    better: Callable[[Body, SSAValue, SSAValue], SSAValue]


Values = dict[Node, SSAValue]


@dataclass
class Program:
    """The values of a program over the rows that `reduced` axes of a tensor of `dims` span."""

    plan: Plan
    dims: Sequence[Dim]
    reduced: Sequence[int]
    nodes: dict[SSAValue, Node] = field(default_factory=dict)
    _index: Node | None = None
    _count: dict[DType, Node] = field(default_factory=dict)
    _length: list[SSAValue] = field(default_factory=list)

    # ---- building
    def value(self, tensor: SSAValue) -> Node:
        """A tensor: what the program computed for it, else what it reads. It broadcasts to the dims."""
        if tensor not in self.nodes:
            shape = dims_of(tensor)
            padded = [Dim.of(1)] * (len(self.dims) - len(shape)) + list(shape)
            full = any(padded[axis].static_value != 1 for axis in self.reduced)
            dtype, number = compute_dtype(dtype_of(tensor)), known_number(tensor)
            if number is not None:
                self.nodes[tensor] = Node(dtype, False, 0, make=lambda b: b.const(dtype, number))
            else:
                self.nodes[tensor] = Node(dtype, full, 0, leaf=tensor)
        return self.nodes[tensor]

    def map(self, dtype: DType, make: Make, *inputs: Node, is_costly: bool = False, is_long: bool = False) -> Node:
        """`make(body, *inputs)` for each element, or once a row where no input is full."""
        full, level = any(n.full for n in inputs), max((n.level for n in inputs), default=0)
        return Node(dtype, full, level, inputs, make, is_costly, is_long)

    def fold(self, dtype: DType, start: Callable[[Body, DType], Accumulator], term: Node) -> Node:
        """The accumulation of a value over the row; of one that is the same for all elements, over as many."""
        return Node(dtype, False, term.level + 1, (term,), start=lambda b: start(b, dtype))

    def convert(self, node: Node, dtype: DType) -> Node:
        if node.dtype == dtype:
            return node
        return self.map(dtype, lambda b, x: b.convert(x, node.dtype, dtype), node)

    def rounded(self, node: Node, dtype: DType) -> Node:
        """The value as a tensor of the dtype holds it, in the dtype in which such tensors are computed."""
        wide = compute_dtype(dtype)
        if node.dtype == dtype == wide:
            return node
        return self.map(wide, lambda b, x: b.convert(b.convert(x, node.dtype, dtype), dtype, wide), node)

    def index(self, dtype: DType) -> Node:
        """The place of an element along the only reduced axis."""
        if self._index is None:
            self._index = Node(dtype, True, 0)
        return self._index

    def count(self, dtype: DType) -> Node:
        """The length of a row as a number."""
        if dtype not in self._count:
            self._count[dtype] = Node(dtype, False, 0, make=lambda b: b.from_index(self._length[0], dtype))
        return self._count[dtype]

    # ---- emission
    def emit(self, name: str, outputs: Iterable[SSAValue], over: Any = None) -> None:
        """Launch the kernel that computes these tensors: of the dims, or one element a row.

        `over(kernel)` gives rows and length where they are not those of known axes.
        """
        kernel = self.plan.kernel(name)
        leaves = [n for n in self._reached(self.nodes[o] for o in outputs) if n.leaf is not None]
        spread = [n for n in leaves if n.leaf is not None and not same_extents(dims_of(n.leaf), self.dims)]
        if over is None:
            shapes = [dims_of(n.leaf) for n in spread if n.leaf is not None]
            rows, places = rows_of(self.plan, kernel, self.dims, self.reduced, shapes)
            length = kernel.outer(self.plan.count([self.dims[a] for a in self.reduced]))
        else:
            (rows, count), places = over(kernel), []
            length = kernel.outer(count)
        self._length[:] = [length]
        buffers = {n: kernel.read(n.leaf) for n in leaves if n.leaf is not None}
        targets = [Target(self.nodes[o], kernel.write(o), dtype_of(o), o) for o in outputs]
        from sardonyx.backends.llvm.lowering.row_emission import Emission

        kind = Emission
        if rows.across and len(rows.reduced) == 1:
            from sardonyx.backends.llvm.lowering.row_across import AcrossEmission

            kind = AcrossEmission
        made = kind(kernel, rows, buffers, dict(zip(spread, places, strict=True)), targets, self._index)
        made.row_count = self._row_count()
        made.emit()
        kernel.launch()

    def _row_count(self) -> SSAValue:
        return self.plan.count([d for axis, d in enumerate(self.dims) if axis not in self.reduced])

    def _reached(self, nodes: Iterable[Node]) -> list[Node]:
        found: dict[Node, None] = {}
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in found:
                found[node] = None
                stack.extend(node.inputs)
        return list(found)


@dataclass(eq=False)
class Target:
    """A result: the value that is stored, rounded to the dtype of the buffer."""

    node: Node
    buffer: SSAValue
    dtype: DType
    result: SSAValue
    """The tensor."""
