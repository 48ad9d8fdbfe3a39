"""Lowerings of the tree ensembles.

Samples are lanes: each walks down a tree in as many steps as the tree is deep (a leaf leads to itself), without a
branch. The leaves that they reach are noted, and then each sample's weights are put together in the reference's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.scores import Score, probit, two_columns, write_transformed
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, bool_, float32, float64, int64
from sardonyx.dialects.sx.ml_support import TRANSFORMS, table
from sardonyx.dialects.sx.tree import (
    AGGREGATES,
    TreeEnsembleClassifierOp,
    TreeEnsembleOp,
    TreeEnsembleRegressorOp,
    TreeOp,
)
from sardonyx.dialects.sx.tree_eval import LEAF, Forest, TreeFault

_RELATIONS = ("le", "lt", "ge", "gt", "eq", "ne")
MEMBER = 6


def _forest(op: TreeOp) -> Forest:
    try:
        return op.forest()
    except TreeFault as error:
        raise op.fail(f"(C3) {error}") from None


def _samples(plan: Plan, op: TreeOp) -> tuple[Dim, Dim]:
    """The numbers of samples and of their features."""
    dims = dims_of(op.operands[0])
    return (Dim.of(1), dims[0]) if len(dims) == 1 else (dims[0], dims[1])


def depth_of(forest: Forest) -> np.ndarray:
    """How many steps each tree needs."""
    at, steps = forest.roots.copy(), np.zeros(len(forest.roots), np.int64)
    front = [np.array([root]) for root in at]
    for tree, nodes in enumerate(front):
        while True:
            inner = nodes[forest.modes[nodes] != LEAF]
            if not len(inner):
                break
            steps[tree] += 1
            nodes = np.unique(np.concatenate([forest.true[inner], forest.false[inner]]))
    return steps


def _leaves(plan: Plan, op: TreeOp, forest: Forest) -> SSAValue:
    """The buffer [trees, samples] of the leaves that samples reach."""
    dtype, body = dtype_of(op.operands[0]), plan.body
    samples, width = _samples(plan, op)
    needed = forest.needed_features
    have = plan.dim(width)
    message = f"(C4) the trees look at {needed} features, the samples have {{0}}"
    body.require(body.compare("sge", have, needed), plan.failure(message), have)
    trees = len(forest.roots)
    leaves = plan.workspace(int64, [trees, plan.dim(samples)])
    if not trees:
        return leaves
    wide = float64 if float64.numpy in (forest.values.dtype, dtype.numpy) else float32

    def constant(array: np.ndarray, as_: DType) -> SSAValue:
        return plan.constant_array(np.ascontiguousarray(array.astype(as_.numpy)), as_)

    inner = forest.modes != LEAF
    kernel = plan.kernel("tree_walk")
    data, write = kernel.read(op.operands[0]), kernel.write_buffer(leaves)
    features = kernel.read_buffer(constant(np.where(inner, forest.features, 0), int64))
    values = kernel.read_buffer(constant(forest.values, wide))
    ways = kernel.read_buffer(constant(np.stack([forest.false, forest.true], 1), int64))
    modes = sorted({int(m) for m in forest.modes[inner]})
    mode_table = kernel.read_buffer(constant(forest.modes, int64)) if len(modes) > 1 else None
    missing = kernel.read_buffer(constant(forest.missing & inner, bool_)) if forest.missing[inner].any() else None
    roots, depths = (kernel.read_buffer(constant(a, int64)) for a in (forest.roots, depth_of(forest)))
    sets = _Sets.of(plan, kernel, forest, wide) if MEMBER in modes else None
    count, stride = Number.index(kernel, kernel.extent(samples)), Number.index(kernel, kernel.extent(width))

    def hit(v: Body, node: Number, value: Number, split: Number) -> Number:
        found: Number | None = None
        mode = None if mode_table is None else Number.load(v, mode_table, node, int64)
        for number in modes:
            if sets is not None and number == MEMBER:
                one = sets.has(v, node, value, wide)
            else:
                one = value._compare(_RELATIONS[number], split)
            if mode is None:
                found = one
            else:
                here = one & mode.eq(number)
                found = here if found is None else found | here
        if found is None:
            return Number(v, v.const(bool_, False), bool_)
        if missing is not None:
            found = found | (Number.load(v, missing, node, bool_) & value.ne(value))
        return found

    def tree(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
        t = Number.index(b, index)
        root, depth = Number.load(b, roots, t, int64), Number.load(b, depths, t, int64).to_index()

        def sample(v: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            row = Number.index(v, i) * stride

            def step(at: Body, _: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                node = Number(at, carried[0], int64).to_index()
                feature = Number.load(at, features, node, int64).to_index()
                value = Number.load(at, data, row + feature, dtype, float32 if dtype.is_integer else wide)
                if value.dtype != wide:
                    value = value.to(wide)
                taken = hit(at, node, value, Number.load(at, values, node, wide))
                return [Number.load(at, ways, node * 2 + taken.to(int64).to_index(), int64).value]

            (leaf,) = v.loop(depth.value, step, [("serial", root.value)])
            v.store(leaf, write, (t * count + Number.index(v, i)).value)

        b.loop(count.value, sample, vector=True)

    kernel.loop(trees, tree, parallel=True)
    kernel.launch()
    return leaves


@dataclass
class _Sets:
    """The values of BRANCH_MEMBER nodes: all of them, where each node's begin, and how many the largest set has."""

    values: SSAValue
    starts: SSAValue
    longest: int

    @staticmethod
    def of(plan: Plan, kernel: Kernel, forest: Forest, wide: DType) -> _Sets:
        members, starts = forest.members, forest.starts
        if members is None or starts is None:
            members, starts = np.zeros(0), np.zeros(1, np.int64)
        bounds = np.full(len(forest.modes) + 1, starts[-1], np.int64)
        bounds[: len(starts)] = starts
        held = np.zeros(max(1, len(members)), wide.numpy)
        held[: len(members)] = members.astype(wide.numpy)
        return _Sets(
            kernel.read_buffer(plan.constant_array(held, wide)),
            kernel.read_buffer(plan.constant_array(bounds, int64)),
            int(np.diff(bounds).max(initial=0)),
        )

    def has(self, v: Body, node: Number, value: Number, wide: DType) -> Number:
        first, last = (Number.load(v, self.starts, node + k, int64).to_index() for k in (0, 1))

        def look(at: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            place = first + Number.index(at, k)
            inside = place.lt(last)
            same = Number.load(at, self.values, inside.where(place, 0), wide).eq(value)
            return [(Number(at, carried[0], bool_) | (same & inside)).value]

        return Number(v, v.loop(self.longest, look, [("serial", v.const(bool_, False))])[0], bool_)


@dataclass
class _Sums:
    """Plan-level buffers [samples, targets]: the weights put together, and whether there were any."""

    scores: SSAValue
    has: SSAValue


def _sums(plan: Plan, op: TreeOp, forest: Forest, function: str) -> _Sums:
    leaves = _leaves(plan, op, forest)
    samples, targets, trees = _samples(plan, op)[0], op.targets, len(forest.roots)
    extents = [plan.dim(samples), plan.body.index(targets)]
    made = _Sums(plan.workspace(float64, extents), plan.workspace(bool_, extents))
    kernel = plan.kernel("tree_sums")
    found = kernel.read_buffer(leaves)
    sums, has = kernel.write_buffer(made.scores), kernel.write_buffer(made.has)

    def constant(array: np.ndarray, dtype: DType) -> SSAValue:
        held = np.zeros(max(1, len(array)), dtype.numpy)
        held[: len(array)] = array
        return kernel.read_buffer(plan.constant_array(held, dtype))

    first, number, target = (constant(a, int64) for a in (forest.first, forest.count, forest.targets))
    weights = constant(forest.weights.astype(np.float64), float64)
    count = Number.index(kernel, kernel.extent(samples))
    start = {"MIN": float("inf"), "MAX": float("-inf")}.get(function, 0.0)

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        row = Number.index(b, i) * targets

        def clear(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            c.store(c.const(float64, start), sums, (row + Number.index(c, k)).value)
            c.store(c.const(bool_, False), has, (row + Number.index(c, k)).value)

        def tree(c: Body, t: SSAValue, _: Sequence[SSAValue]) -> None:
            leaf = Number.load(c, found, Number.index(c, t) * count + Number.index(b, i), int64).to_index()
            at = Number.load(c, first, leaf, int64).to_index()

            def entry(e: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                place = at + Number.index(e, k)
                cell = row + Number.load(e, target, place, int64).to_index()
                old, weight = Number.load(e, sums, cell, float64), Number.load(e, weights, place, float64)
                new = {"MIN": old.min(weight), "MAX": old.max(weight)}.get(function) or old + weight
                new.store(sums, cell, float64, e)
                e.store(e.const(bool_, True), has, cell.value)

            c.loop(Number.load(c, number, leaf, int64).to_index().value, entry)

        def finish(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            cell = row + Number.index(c, k)
            value = Number.load(c, sums, cell, float64)
            there = Number.load(c, has, cell, bool_)
            value = value / float(trees) if function == "AVERAGE" else there.where(value, 0.0)
            value.store(sums, cell, float64, c)

        b.loop(targets, clear)
        b.loop(trees, tree)
        if function != "SUM" and (trees or function != "AVERAGE"):
            b.loop(targets, finish)

    kernel.loop(count.value, sample, parallel=True)
    kernel.launch()
    return made


@lowers(TreeEnsembleOp, TreeEnsembleRegressorOp)
def _tree_ensemble(plan: Plan, op: TreeEnsembleOp | TreeEnsembleRegressorOp) -> None:
    base = np.zeros(0)
    if isinstance(op, TreeEnsembleOp):
        function, transform = AGGREGATES[op.attr("aggregate_function")], TRANSFORMS[op.attr("post_transform")]
    else:
        function, transform = op.attr("aggregate_function"), op.attr("post_transform")
        base = table(op, "base_values", np.zeros(0, np.float32)).astype(np.float64)
        if len(base) not in (0, 1, op.targets):
            raise op.fail(f"(C3) base_values has {len(base)} entries for {op.targets} targets")
    if op.targets == 1 and transform != "PROBIT":
        transform = "NONE"
    made = _sums(plan, op, _forest(op), function)
    _write_scores(plan, op, made, transform, base)


def _write_scores(plan: Plan, op: TreeOp, made: _Sums, transform: str, base: np.ndarray) -> None:
    output = op.results[-1]
    kernel = plan.kernel("tree_scores")
    sums, write = kernel.read_buffer(made.scores), kernel.write(output)
    added = None
    if len(base) == op.targets:
        added = kernel.read_buffer(plan.constant_array(base, float64))

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        row = Number.index(b, i) * op.targets

        def score(inner: Body, k: Number) -> Number:
            value = Number.load(inner, sums, row + k, float64)
            return value if added is None else value + Number.load(inner, added, k, float64)

        write_transformed(b, op.targets, transform, score, write, row, dtype_of(output))

    kernel.loop(kernel.extent(_samples(plan, op)[0]), sample, parallel=True)
    kernel.launch()


@lowers(TreeEnsembleClassifierOp)
def _tree_classifier(plan: Plan, op: TreeEnsembleClassifierOp) -> None:
    made = _sums(plan, op, _forest(op), "SUM")
    targets, transform = op.targets, op.attr("post_transform")
    base = table(op, "base_values", np.zeros(0, np.float32)).astype(np.float64)
    if len(base) not in (0, 1, targets):
        raise op.fail(f"(C3) base_values has {len(base)} entries for {targets} classes")
    kernel = plan.kernel("tree_classes")
    sums, has = kernel.read_buffer(made.scores), kernel.read_buffer(made.has)
    write, label = kernel.write(op.output), kernel.write(op.label)
    labels = op.labels if targets > 1 else np.array([0, 1], np.int64)
    names = kernel.read_buffer(plan.constant_array(np.ascontiguousarray(labels, np.int64), int64))
    full = kernel.read_buffer(plan.constant_array(base, float64)) if len(base) == targets else None

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        row, at = Number.index(b, i) * targets, Number.index(b, i)

        def score(inner: Body, k: Number) -> Number:
            value = Number.load(inner, sums, row + k, float64)
            return value if full is None else value + Number.load(inner, full, k, float64)

        def name(which: Number) -> None:
            Number.load(b, names, which, int64).store(label, at, int64, b)

        if targets > 2:

            def better(inner: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                own = Number.index(inner, k)
                best, place = Number(inner, carried[0], float64), Number(inner, carried[1], None)
                value = score(inner, own)
                if full is None:
                    there = Number.load(inner, has, row + own, bool_)
                    value = there.where(value, float("-inf"))
                wins = value.gt(best) | own.eq(0)
                return [wins.where(value, best).value, wins.where(own, place).value]

            low = b.const(float64, float("-inf"))
            name(Number(b, b.loop(targets, better, [("serial", low), ("serial", b.index(0))])[1], None))
            write_transformed(b, targets, transform, score, write, row, float32)
        elif targets == 2:
            _two_classes(b, op, base, score, name, write, row)
        else:
            value = Number.load(b, sums, row, float64) + (float(base[0]) if len(base) else 0.0)
            name(value.gt(0.0).to(int64).to_index())
            (probit(value) if transform == "PROBIT" else value).store(write, at, float32, b)

    kernel.loop(kernel.extent(_samples(plan, op)[0]), sample, parallel=True)
    kernel.launch()


def _two_classes(
    b: Body, op: TreeEnsembleClassifierOp, base: np.ndarray, score: Score, name: Any, write: SSAValue, row: Number
) -> None:
    """`TreeEnsembleClassifierOp._binary`."""
    transform = op.attr("post_transform")
    ids = np.unique(table(op, "class_ids", np.zeros(0, np.int64)))
    positive = bool((table(op, "class_weights", np.zeros(0, np.float32)) >= 0).all())
    zero = Number.index(b, 0)
    if len(ids) != 1:
        extra = float(base[0]) if len(base) == 1 else 0.0

        def with_base(inner: Body, k: Number) -> Number:
            value = score(inner, k)
            return k.eq(0).where(value + extra, value) if extra else value

        name(with_base(b, zero + 1).gt(with_base(b, zero)).to(int64).to_index())
        write_transformed(b, 2, transform, with_base, write, row, float32)
        return
    value = score(b, Number.index(b, int(ids[0])))
    if len(base) == 1 and ids[0] == 0:
        value = value + float(base[0])
    name(value.gt(0.5 if positive else 0.0).to(int64).to_index())
    if len(base) == 2 or ids[0] == 1 or transform == "PROBIT":
        write_transformed(b, 2, transform, score, write, row, float32)
        return
    for k, one in enumerate(two_columns(value, transform, positive)):
        one.store(write, row + k, float32, b)
