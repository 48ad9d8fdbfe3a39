"""Which register tiles a contraction uses on a target: rows by vectors of columns."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import Target


def tile_shapes(target: Target, lanes: int, m: int | None) -> list[tuple[int, int]]:
    """(rows, vectors) of the tiles to use in turn: MR * NV accumulators, NV vectors of B and one of A fit in
    registers."""
    wide = 3 if target.registers >= 32 else 2
    tall = 8 if target.registers >= 32 else 6
    if m is not None and m <= 4:
        vectors = {1: 4, 2: 4, 3: 3, 4: 3}.get(m, wide) * (2 if target.registers >= 32 else 1)
        return [(m, vectors)] if m else []
    if m is not None:
        rest = m % tall
        return [(tall, wide)] + ([(rest, wide)] if rest else [])
    return [(tall, wide), (3, wide), (1, wide)]


def panel_width(target: Target, bits: int, m: int | None = None) -> int:
    """The columns of a packed panel: what a tile for that many rows takes at a time. `bits` is the width of a sum."""
    lanes = target.lanes(max(bits, 32))
    return lanes * max(v for _, v in tile_shapes(target, lanes, m) or [(1, 2)])
