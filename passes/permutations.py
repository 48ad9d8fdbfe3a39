"""Permutations of axes as transposes use them: axis i of `transpose(x, p)` is axis `p[i]` of x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sardonyx.dialects.attributes import Shape
from sardonyx.dialects.dims import Dim

Perm: TypeAlias = tuple[int, ...]

ONE = Dim.of(1)


def identity(rank: int) -> Perm:
    return tuple(range(rank))


def is_identity(perm: Perm) -> bool:
    return all(axis == i for i, axis in enumerate(perm))


def compose(first: Perm, second: Perm) -> Perm:
    """The permutation of `transpose(transpose(x, first), second)`."""
    return tuple(first[axis] for axis in second)


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes it."""
    out = [0] * len(perm)
    for i, axis in enumerate(perm):
        out[axis] = i
    return tuple(out)


def padded(perm: Perm, rank: int) -> Perm:
    """The permutation of a tensor that got leading axes up to that rank, which stay in front."""
    added = rank - len(perm)
    return (*range(added), *(added + axis for axis in perm))


def padded_dims(dims: Shape, rank: int) -> Shape:
    """The dims with leading ones up to that rank."""
    return (*(ONE for _ in range(rank - len(dims))), *dims)


def moves_only_ones(dims: Shape, perm: Perm) -> bool:
    """Whether a transpose leaves all axes but those of extent 1 in their order, so that no element moves."""
    kept = [axis for axis in perm if dims[axis].static_value != 1]
    return kept == sorted(kept)


def moves_nothing(dims: Shape, perm: Perm) -> bool:
    """Whether a transpose gives the same shape with each element where it was: axes of extent 1 change places."""
    return all(axis == i for i, axis in enumerate(perm) if dims[axis].static_value != 1)


def matching(old: Sequence[object], new: Sequence[object]) -> Perm:
    """The permutation with `old[i] == new[perm[i]]`, for two orders of the same distinct tokens."""
    place = {token: i for i, token in enumerate(new)}
    return tuple(place[token] for token in old)
