"""What native code and the runtime agree on: the context, the statuses, the inputs and outputs, the failures.

Whoever runs a program needs this and no more, so nothing here loads what makes programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType

CONTEXT_FIELDS = (
    "inputs",  # ptr to {data, dims} per input
    "outputs",  # ptr to {data, dims} per output; a null data is filled by native code
    "constants",  # ptr to one pointer per constant
    "arena", "arena_bytes",  # the workspace: block and capacity
    "places",  # ptr to the table of `sx.place`, where extents of the workspace are not numbers
    "slots",  # ptr to {block, capacity} per late buffer, whose extents the run computes
    "kept", "kept_bytes",  # the newest chunk of what lives until a run ends, and how large a first chunk is to be
    "dtypes",  # ptr to NumPy's dtype object per input, as this process has it
    "pool",  # ptr to `pool_run`, or null: every kernel runs on the calling thread
    "chunks",  # into how many chunks a kernel worth it is cut
    "workers",  # how many threads may help
    "shown0", "shown1", "shown2",  # the values that a failure's message shows
    "entries",  # how often the entry was called
    "kernels",  # how many kernels it has launched
    "launch",  # the number of the launch that runs, for whoever looks at a crash
    "allocate",  # with `separate`: ptr allocate(i64 number, i64 bytes), called for every buffer
    "times",  # with `timed`: ptr to one i64 per launch, the cycles that it took so far
)  # fmt: skip
NEEDS_CARE = -1
OUT_OF_MEMORY = -2
TOO_LARGE = -3
MAX_BYTES = 1 << 46
SHOWN = 3
"""How many values a failure may show."""
RECORD_HEAD = 3
"""The words of a sequence's record before the extents: address, size in bytes, rank."""
WORTH_A_POOL = 1 << 16
"""Scalar operations from which on a kernel is cut into chunks: some 10 µs on one core, where a fork-join is below 3."""


@dataclass(frozen=True)
class EntryOptions:
    """How the entry is emitted; for tests and profiles.

    With `separate`, every workspace buffer and output is taken by a call of the context's `allocate`, with its number
    (-1 - k for output k) and its exact size. Kernels worth `pool_from` scalar operations are run by the pool. With
    `timed`, the cycles of every launch are counted.
    """

    separate: bool = False
    timed: bool = False
    pool_from: int = WORTH_A_POOL


AS_USUAL = EntryOptions()


@dataclass(frozen=True)
class EntrySizes:
    """How many late slots, words of `places`, and argument words a context needs; each launch's kernel and node.

    `functions` are what the kernels became, equal ones once.
    """

    slots: int
    places: int
    argument_words: int
    uses_pool: bool
    launches: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """What a failed requirement says: `{0}`, `{1}`, `{2}` stand for the values shown."""

    message: str
    location: str | None
    op: str | None


@dataclass(frozen=True)
class Port:
    """An input or output of the compiled graph.

    `kind` is `tensor`, `sequence`, `optional` (of a tensor) or `optional sequence`; `dims` are those of a tensor,
    `record_words` the length of the records of the others.
    """

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    kind: str = "tensor"
    record_words: int = 0
