"""Which register tiles a contraction uses on a target: rows by vectors of columns, and how its rows share out."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, Target
from sardonyx.backends.llvm.codegen.widen import fold

TALLEST = 8
"""Rows at most: each has a pointer of its own, and there are 16 general registers."""
FEW_ROWS = 4
"""Up to so many rows a product takes as long as B takes to come from memory: a tile has all rows."""
USUAL_ROWS = 96
"""What a block of rows may have whose number is not known."""
FETCHED_EARLY, LINE_A_TURN = 60, 16
"""Up to so many rows, which wait for memory, a step of k fetches so many bytes at least: a line in a turn of its loop,
and so the next panel early."""
K_BLOCK = 512
"""Steps of k at a time: a panel's block of B (32 KiB for AVX2) passes through the first-level cache, those of A's rows
stay in the second-level one."""


def tile_rows(target: Target, vectors: int, spare: int | None = None) -> int:
    """The rows of a tile: its accumulators and a step's vectors of B are in registers, and `spare` others: one of A,
    and products that are not added in the same instruction (by default what floats need)."""
    if spare is None:
        spare = 1 if target.has_fma else 3
    return max(1, min(TALLEST, (target.registers - vectors - spare) // vectors))


def tile_vectors(target: Target, lanes: int, m: int | None, n: int | None) -> int:
    """The vectors of columns of a tile for that many rows and columns, None where only the run knows."""
    large = target.registers >= 32
    if m is not None and 0 < m <= FEW_ROWS:
        many = 6 if target.vector_bits == 512 else 5
        vectors = ({1: 8, 2: 6} if large else {1: 8, 2: 4}).get(m, many if large else 3)
    elif m is not None and m <= 8 and not large and m not in (5, 6):
        vectors = 3
    else:
        vectors = 3 if large else 2
        if large and n is not None and _padded(n, 3 * lanes) > 1.04 * _padded(n, 2 * lanes):
            vectors = 2
    return vectors if n is None else max(1, min(vectors, -(-n // lanes)))


def _padded(n: int, width: int) -> int:
    return -(-n // width) * width


def panel_width(target: Target, bits: int, m: int | None = None, n: int | None = None) -> int:
    """The columns of a packed panel: what a tile for that many rows and columns takes at a time; a vector where it
    reads several panels abreast. `bits` is the width of a sum."""
    lanes = target.lanes(max(bits, 32))
    return lanes * (1 if m is not None and 0 < m <= FEW_ROWS else tile_vectors(target, lanes, m, n))


def panels_abreast(target: Target, lanes: int, m: int | None, vectors: int) -> int:
    """How many packed panels, so many vectors wide, a tile reads abreast: few rows wait for B, and memory answers
    several runs of reads faster than one."""
    if m is None or not 0 < m <= FEW_ROWS:
        return 1
    return max(1, tile_vectors(target, lanes, m, None) // vectors)


def tile_columns(target: Target, bits: int, m: int | None, width: int) -> int:
    """The columns that tiles take at a time from packed panels of that width; if m is not known, that a row alone
    does."""
    lanes = target.lanes(max(bits, 32))
    return width * panels_abreast(target, lanes, 1 if m is None else m, max(1, width // lanes))


def tallest_rows(target: Target, bits: int, width: int | None) -> int:
    """The rows of a whole tile for sums of that width and panels of that many columns (None: the usual ones)."""
    lanes = target.lanes(max(bits, 32))
    return tile_rows(target, width // lanes if width else tile_vectors(target, lanes, None, None))


def fetch_step(m: int | None, tall: int, line: int) -> int:
    """How many bytes of the next panel a tile of `tall` rows fetches in a step of k, so that those of m rows fetch all
    of its lines (`line` bytes a step): a power of two."""
    wanted = line * tall // max(m or USUAL_ROWS, 1)
    if m is not None and m <= FETCHED_EARLY:
        wanted = max(wanted, LINE_A_TURN)
    return 1 << max(0, wanted - 1).bit_length()


@dataclass(frozen=True)
class RowRun:
    """Tiles of `rows` rows from one row to another."""

    rows: int
    lower: str
    upper: str


def share_rows(b: FunctionBuilder, m: str, tall: int, least: int) -> list[RowRun]:
    """Tiles that cover m rows exactly. Where m is known, or known to be large (`least`), they differ by one row at
    most; else what whole tiles leave over goes in fours, twos and ones."""
    if not m.startswith("%"):
        return _share_known(int(m), tall)
    if tall > 1 and least >= tall * (tall - 1):  # every such number is a sum of these two heights
        rest = b.binary("urem", I64, m, str(tall))
        short = b.binary("urem", I64, fold(b, "sub", str(tall), rest), str(tall))
        at = fold(b, "sub", m, fold(b, "mul", short, str(tall - 1)))
        return [RowRun(tall, "0", at), RowRun(tall - 1, at, m)]
    runs: list[RowRun] = []
    at = "0"
    for rows in dict.fromkeys([tall, *(r for r in (4, 2, 1) if r < tall)]):
        end = m if rows == 1 else whole_groups(b, at, m, rows)
        runs.append(RowRun(rows, at, end))
        at = end
    return runs


def _share_known(m: int, tall: int) -> list[RowRun]:
    if m <= 0:
        return []
    tiles = -(-m // tall)
    rows, longer = divmod(m, tiles)
    at = longer * (rows + 1)
    runs = [RowRun(rows + 1, "0", str(at)), RowRun(rows, str(at), str(m))]
    return [run for run in runs if run.lower != run.upper]


def whole_groups(b: FunctionBuilder, lower: str, upper: str, group: int) -> str:
    """The end of the whole groups that fit between the bounds."""
    if not lower.startswith("%") and not upper.startswith("%"):
        return str(int(lower) + max(0, int(upper) - int(lower)) // group * group)
    extent = fold(b, "sub", upper, lower)
    if group & (group - 1) == 0:
        return fold(b, "add", lower, b.binary("and", I64, extent, str(-group)))
    groups = b.binary("udiv", I64, extent, str(group))
    return fold(b, "add", lower, b.binary("mul", I64, groups, str(group)))
