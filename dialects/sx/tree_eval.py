"""Tree ensembles as flat arrays, and all samples' walks through all trees at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sardonyx.dialects.evaluate import Array

LEAF = 7
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
"""The modes of nodes; up to BRANCH_MEMBER in the order of TreeEnsemble's numbers."""
MAX_CELLS = 1 << 22
"""How many walks are kept at once; more samples are taken in parts."""


class TreeFault(Exception):
    """The tables do not make trees."""


@dataclass
class Forest:
    """Nodes as flat tables.

    Attributes:
        roots: The first node of each tree.
        modes, features, values, true, false, missing: Per node: how it compares, which feature with what, where it
            goes on, and whether NaN goes the true way. A leaf goes on to itself.
        members: Per BRANCH_MEMBER node its sorted values, end to end; `starts` has where each begins (by node).
        first, count: Per node, where its weights are in `targets` and `weights`, and how many they are.
    """

    roots: Array
    modes: Array
    features: Array
    values: Array
    true: Array
    false: Array
    missing: Array
    first: Array
    count: Array
    targets: Array
    weights: Array
    members: Array | None = None
    starts: Array | None = None

    def check(self, targets: int) -> None:
        """Refuse tables whose indices lead elsewhere, and walks that never end.

        Raises:
            TreeFault: What is wrong.
        """
        n = len(self.modes)
        for name, found, limit in (
            ("root", self.roots, n),
            ("node", self.true, n),
            ("node", self.false, n),
            ("target", self.targets, targets),
        ):
            if len(found) and not (0 <= found.min() and found.max() < limit):
                raise TreeFault(f"a {name} is out of range: {int(found.min())} to {int(found.max())} of {limit}")
        if len(self.features) and self.features.min() < 0:
            raise TreeFault("a feature is negative")
        # Each node has one way to it, and a root none: then no walk from a root meets itself. Nodes that nothing leads
        # to and that are no roots (those that TreeEnsemble writes for a single leaf) do not count.
        inner = self.modes != LEAF
        ways = np.bincount(np.concatenate([self.true[inner], self.false[inner], self.roots]), minlength=n)
        inner &= ways > 0
        ways = np.bincount(np.concatenate([self.true[inner], self.false[inner], self.roots]), minlength=n)
        if n and ways.max() > 1:
            raise TreeFault("a node is reached in two ways, or from itself")

    @property
    def needed_features(self) -> int:
        inner = self.modes != LEAF
        return int(self.features[inner].max()) + 1 if inner.any() else 0

    def leaves(self, x: Array) -> Array:
        """The node where each row's walk through each tree ends, [rows, trees]."""
        rows = np.arange(len(x))[:, None]
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        while True:
            modes = self.modes[at]
            if (modes == LEAF).all():
                return at
            feature = np.where(modes == LEAF, 0, self.features[at])
            value = x[rows, feature] if x.shape[1] else np.zeros(at.shape, x.dtype)
            split = self.values[at]
            hit = np.select(
                [modes == k for k in range(6)],
                [value <= split, value < split, value >= split, value > split, value == split, value != split],
                False,
            )
            if self.members is not None:
                hit |= (modes == 6) & self._member(at, value)
            hit |= self.missing[at] & np.isnan(value)
            at = np.where(modes == LEAF, at, np.where(hit, self.true[at], self.false[at]))

    def _member(self, at: Array, value: Array) -> Array:
        members, starts = self.members, self.starts
        if members is None or starts is None:
            return np.zeros(at.shape, bool)
        hit = np.zeros(at.shape, bool)
        for node in np.unique(at[self.modes[at] == 6]):
            here = at == node
            hit[here] = np.isin(value[here], members[starts[node] : starts[node + 1]])
        return hit


def aggregate(forest: Forest, x: Array, targets: int, function: str) -> tuple[Array, Array]:
    """The leaves' weights per row and target, float64, and whether any leaf has one for it.

    Sums are those of float64, rounded by the caller; what no leaf speaks of is 0.
    """
    out = np.zeros((len(x), targets), np.float64)
    has = np.zeros((len(x), targets), bool)
    step = max(1, MAX_CELLS // max(1, len(forest.roots)))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        _aggregate(forest, forest.leaves(x[part]), out[part], has[part], function)
    if function == "AVERAGE" and len(forest.roots):
        out /= len(forest.roots)
    return out, has


def _aggregate(forest: Forest, leaves: Array, out: Array, has: Array, function: str) -> None:
    targets = out.shape[1]
    count = forest.count[leaves].reshape(-1)
    owner = np.repeat(np.arange(leaves.size), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    entry = forest.first[leaves].reshape(-1)[owner] + within
    cell = (owner // max(1, leaves.shape[1])) * targets + forest.targets[entry]
    weight = forest.weights[entry].astype(np.float64)
    has.reshape(-1)[cell] = True
    flat = out.reshape(-1)
    if function in ("SUM", "AVERAGE"):
        flat += np.bincount(cell, weight, minlength=flat.size)
        return
    start = np.full(flat.size, np.inf if function == "MIN" else -np.inf)
    (np.minimum if function == "MIN" else np.maximum).at(start, cell, weight)
    flat[:] = np.where(has.reshape(-1), start, 0.0)
