"""What a contraction is to the code that emits it: operands, forms of rows and of k, its epilogue, register tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Block

from sardonyx.backends.llvm.codegen.contract_dot import dot_lanes
from sardonyx.backends.llvm.codegen.emit import KernelEmitter
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType, Target
from sardonyx.backends.llvm.codegen.widen import Value, fold, to_memory, to_vector


@dataclass(frozen=True)
class Operand:
    """A matrix in memory: element (i, j) lies at `offset + i * row + j * column`; or packed panels, so many `vectors`
    wide, that are read abreast and begin `apart` elements from each other."""

    pointer: str
    element: LType
    row: str
    column: str
    vectors: int = 0
    apart: str = "0"


@dataclass(frozen=True)
class RowPairs:
    """Row m stands for the pair divmod(first + m, inner); the strides of A and C along the outer number."""

    first: str
    inner: str
    a_outer: str
    c_outer: str | None
    """None where the rows of C are numbered through."""


@dataclass(frozen=True)
class Ahead:
    """What the tiles of a panel of B fetch into the second-level cache meanwhile: from `pointer` on, `step` bytes for
    each of a tile's steps of k; or the lines of a panel's rows, which lie `apart` bytes apart, one in each turn of the
    k loop."""

    pointer: str
    step: int = 0
    apart: str | None = None


@dataclass(frozen=True)
class Clip:
    """Where segments are zeros in A: those of a level that, for rows whose outer number is o, lie at
    `o * stride - before + segment * step`, and that below 0 or from `size` on."""

    level: int
    stride: str
    before: str
    step: str
    size: str

    def bounds(self, b: FunctionBuilder, outer: tuple[str, str], count: str) -> tuple[str, str]:
        """The segments to add, for a tile with rows from one outer number to another."""

        def place(distance: str) -> str:
            """The first segment that is so far from the start or further."""
            distance = b.intrinsic("llvm.smax", I64, [(I64, distance), (I64, "0")])
            if self.step == "1":
                return distance
            return b.binary("udiv", I64, fold(b, "add", distance, fold(b, "sub", self.step, "1")), self.step)

        first, last = (fold(b, "sub", self.before, fold(b, "mul", o, self.stride)) for o in outer)
        upper = place(fold(b, "add", first, self.size))
        return place(last), b.intrinsic("llvm.smin", I64, [(I64, upper), (I64, count)])


@dataclass(frozen=True)
class Turned:
    """C's rows lie side by side, and its columns apart: a panel of at most so many rows is held in memory of its own
    (at `held`, rows `width` apart) first."""

    rows: int
    held: str = ""
    width: int = 0


@dataclass(frozen=True)
class Epilogue:
    """The scalar body that every sum goes through before it is stored; it gives the type that `held` names."""

    emitter: KernelEmitter
    block: Block
    held: LType
    is_light: bool

    def apply(self, total: Value, row: str, column: str, mask: str | None) -> str:
        """The value to store, as it lies in memory, for a vector of sums (or a scalar one) that starts at `column`."""
        e = self.emitter
        lanes = total.type.lanes
        before, e.lanes, e.mask = (e.lanes, e.mask), lanes, mask
        indices = (Value(row, I64), Value(column, I64, "1" if lanes else None))
        for argument, value in zip(self.block.args, (total, *indices), strict=True):
            e.values[argument] = value
        result = e.emit_block(self.block)[0]
        text = to_memory(e.builder, self.held.with_lanes(lanes), e.text(result))
        e.lanes, e.mask = before
        return text


@dataclass(frozen=True)
class Problem:
    """One contraction: operands, extents, and the type that sums are kept in.

    Where k is cut into blocks, `first` and `last` are the conditions that this one is: only the first starts from zeros
    (or what `accumulate` says), only the last ends in the epilogue.
    """

    a: Operand
    b: Operand
    c: Operand
    m: str
    n: str
    k: str
    sum: LType
    accumulate: bool
    packed: int | None = None
    rows: RowPairs | None = None
    clip: Clip | None = None
    segments: tuple[tuple[str, str], ...] = ()
    epilogue: Epilogue | None = None
    first: str | None = None
    last: str | None = None
    together: int = 1
    """The products that a step adds to each sum: 2 of int16, 4 of bytes."""
    bounded: bool = False
    """Whether the products of two bytes add up to an int16."""
    ahead: Ahead | None = None
    few: bool = False
    """Whether there are few rows, though only the run knows how many: they are computed one by one."""
    gathered: int = 0
    """The rows at most of A, which are copied, a block of k at a time, to lie close together; 0: A is read as it is."""
    turned: Turned | None = None
    """If given, `c.row` is the distance of C's columns."""

    def is_fused(self, target: Target) -> bool:
        """Whether one instruction multiplies and adds."""
        if self.together > 1:
            return dot_lanes(target) > 0
        return self.sum.is_float and target.has_fma

    def spare(self, target: Target) -> int:
        """The registers of a tile beside its sums and the vectors of B: one of A, and products that wait."""
        return 1 if self.is_fused(target) else 2 if self.together == 2 else 3


@dataclass(frozen=True)
class Tile:
    """`rows` by `vectors` vectors of `lanes` columns; one scalar column where lanes is 0.

    `masks` say per vector which lanes are columns. `in_panel`: B is a packed panel, padded, that needs no mask; then
    `left` may say how many columns there are, and masks are made of it when the k loop is over and registers are free.
    """

    rows: int
    vectors: int
    lanes: int
    masks: tuple[str, ...] | None
    in_panel: bool = False
    left: str | None = None

    def masked(self, b: FunctionBuilder) -> Tile:
        """The same tile with its masks."""
        if self.left is None:
            return self
        starts = [fold(b, "sub", self.left, str(v * self.lanes)) for v in range(self.vectors)]
        return replace(self, masks=tuple(lane_mask(b, start, self.lanes) for start in starts), left=None)

    def mask(self, vector: int) -> str | None:
        """The mask of a vector of C."""
        return None if self.masks is None else self.masks[vector]

    def b_mask(self, vector: int) -> str | None:
        """The mask of a vector of B."""
        return None if self.in_panel else self.mask(vector)

    @property
    def step(self) -> int:
        """The columns of a vector."""
        return self.lanes or 1


def lane_mask(b: FunctionBuilder, left: str, lanes: int) -> str:
    """Which lanes of a vector are among the `left` columns from its start on."""
    wide = I64.with_lanes(lanes)
    steps = f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"
    return b.icmp("slt", wide, steps, to_vector(b, Value(left, I64), lanes))
