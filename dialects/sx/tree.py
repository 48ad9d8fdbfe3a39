"""Decision trees of ai.onnx.ml: `sx.tree_ensemble`, `sx.tree_ensemble_regressor`, `sx.tree_ensemble_classifier`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float16, float32, float64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.ml_support import (
    INPUTS,
    TRANSFORMS,
    check_tables,
    features,
    labels_array,
    labels_dtype,
    table,
    transformed,
    two_columns,
)
from sardonyx.dialects.sx.numeric import narrow
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.sx.tree_eval import LEAF, Forest, TreeFault, aggregate

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""How leaves' weights are put together, in the order of TreeEnsemble's numbers."""


class TreeOp(SxOp):
    """What the three have in common: rows of features, and tables of nodes."""

    TABLES: ClassVar[tuple[str, ...]] = ()

    def forest(self) -> Forest:
        """The trees, made once and held against each other.

        Raises:
            TreeFault: The tables do not make trees.
            MissingWeightError: The bytes of a table are not here.
        """
        cached = getattr(self, "_sx_forest", None)
        if cached is not None and cached[0] == tuple(map(id, self.properties.values())):
            return cached[1]
        made = self.make_forest()
        made.check(self.targets)
        self._sx_forest = (tuple(map(id, self.properties.values())), made)
        return made

    def make_forest(self) -> Forest:
        raise NotImplementedError(f"{self.name} does not define make_forest()")

    @property
    def targets(self) -> int:
        """How many scores a row gets."""
        return self.attr("n_targets")

    def rows(self, dtype: DType, width: int) -> Attribute:
        """The type of one row of scores per sample."""
        data = self.operands[0]
        if is_unranked(data):
            return unranked_type(dtype)
        dims = dims_of(data)
        if len(dims) not in (1, 2):
            raise self.fail(f"(C2) the operand has rank {len(dims)}, neither 1 nor 2")
        return tensor_type(dtype, [dims[0] if len(dims) == 2 else Dim.of(1), width])

    def scores(self, x: Array, function: str) -> tuple[Array, Array]:
        """Per row and target the leaves' weights, float64, and whether there is one."""
        try:
            forest = self.forest()
        except TreeFault as error:
            raise refuse(self, f"(C3) {error}") from None
        if forest.needed_features > x.shape[1]:
            raise refuse(
                self, f"(C4) the trees look at {forest.needed_features} features, the samples have {x.shape[1]}"
            )
        return aggregate(forest, x, self.targets, function)


@irdl_op_definition
class TreeEnsembleOp(TreeOp):
    """Trees whose leaves have one weight each for one target; see ONNX's TreeEnsemble for the tables.

    (C1) The dtype is float32, float64 or float16. (C2) The operand is [N, F] or [F]. (C3) The tables make trees;
    `n_targets` is at least 1, `aggregate_function` one of 0 to 3 and `post_transform` one of 0 to 4. (C4) The samples
    have all features that the trees look at.
    """

    name = "sx.tree_ensemble"
    data = operand_def()
    nodes_splits = prop_def()
    nodes_featureids = prop_def()
    nodes_modes = prop_def()
    nodes_truenodeids = prop_def()
    nodes_falsenodeids = prop_def()
    nodes_trueleafs = prop_def()
    nodes_falseleafs = prop_def()
    leaf_targetids = prop_def()
    leaf_weights = prop_def()
    tree_roots = prop_def()
    nodes_hitrates = opt_prop_def()
    nodes_missing_value_tracks_true = opt_prop_def()
    membership_values = opt_prop_def()
    n_targets = opt_prop_def(IntegerAttr)
    aggregate_function = opt_prop_def(IntegerAttr)
    post_transform = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("TreeEnsemble", "ai.onnx.ml", since=5)
    DEFAULTS: ClassVar = {"n_targets": 1, "aggregate_function": 1, "post_transform": 0}
    TABLES: ClassVar = (
        "nodes_splits", "nodes_featureids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs",
        "nodes_falseleafs", "leaf_targetids", "leaf_weights", "tree_roots", "nodes_hitrates",
        "nodes_missing_value_tracks_true", "membership_values",
    )  # fmt: skip

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, (float32, float64, float16), "(C1)")
        check_tables(self, self.TABLES, "(C3)")
        if self.attr("n_targets") < 1:
            raise self.fail(f"(C3) n_targets is {self.attr('n_targets')}")
        if not 0 <= self.attr("aggregate_function") < len(AGGREGATES):
            raise self.fail(f"(C3) aggregate_function is {self.attr('aggregate_function')}")
        if not 0 <= self.attr("post_transform") < len(TRANSFORMS):
            raise self.fail(f"(C3) post_transform is {self.attr('post_transform')}")
        return [self.rows(dtype, self.attr("n_targets"))]

    def make_forest(self) -> Forest:
        """Inner nodes first, then the leaves, which have tables of their own."""
        modes = table(self, "nodes_modes").astype(np.int64)
        n, leaf_weights = len(modes), table(self, "leaf_weights")
        leaves = len(leaf_weights)
        per_node = {
            name: table(self, name).astype(np.int64)
            for name in ("nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs",
                         "nodes_falseleafs")
        }  # fmt: skip
        splits, targets = table(self, "nodes_splits"), table(self, "leaf_targetids").astype(np.int64)
        missing = table(self, "nodes_missing_value_tracks_true", np.zeros(n, np.int64)).astype(bool)
        if any(len(t) != n for t in (*per_node.values(), splits, missing)) or len(targets) != leaves:
            raise TreeFault(f"the tables of nodes do not all have {n} entries, or those of leaves {leaves}")
        if len(modes) and not (0 <= modes.min() and modes.max() < LEAF):
            raise TreeFault("a mode is none of 0 to 6")
        following: list[Array] = []
        for way in ("true", "false"):
            ids, at_leaf = per_node[f"nodes_{way}nodeids"], per_node[f"nodes_{way}leafs"] != 0
            bad = (ids < 0) | (ids >= np.where(at_leaf, leaves, n))
            if bad.any():
                raise TreeFault(f"nodes_{way}nodeids has {int(ids[bad][0])}, which is out of range")
            following.append(ids + np.where(at_leaf, n, 0))
        roots = table(self, "tree_roots").astype(np.int64)
        if len(roots) and not (0 <= roots.min() and roots.max() < n):
            raise TreeFault("a root is out of range")
        # A tree of a single leaf is written as a node both of whose ways lead to that leaf.
        single = following[0] == following[1]
        roots = np.where(single[roots], following[0][roots], roots)
        members, starts = self._members(modes)
        own = np.arange(n, n + leaves)

        def longer(a: Array, b: Array) -> Array:
            return np.concatenate([a, b])

        return Forest(
            roots=roots,
            modes=longer(modes, np.full(leaves, LEAF)),
            features=longer(per_node["nodes_featureids"], np.zeros(leaves, np.int64)),
            values=longer(splits, np.zeros(leaves, splits.dtype)),
            true=longer(following[0], own),
            false=longer(following[1], own),
            missing=longer(missing, np.zeros(leaves, bool)),
            first=longer(np.zeros(n, np.int64), np.arange(leaves)),
            count=longer(np.zeros(n, np.int64), np.ones(leaves, np.int64)),
            targets=targets,
            weights=leaf_weights,
            members=members,
            starts=starts,
        )

    def _members(self, modes: Array) -> tuple[Array | None, Array | None]:
        """The values of BRANCH_MEMBER nodes: in the table they end with a NaN each, in the order of the nodes."""
        inner = np.flatnonzero(modes == 6)
        if not len(inner):
            return None, None
        values = table(self, "membership_values", np.zeros(0, np.float32))
        ends = np.flatnonzero(np.isnan(values))
        if len(ends) != len(inner):
            raise TreeFault(f"membership_values has {len(ends)} sets, but {len(inner)} nodes ask for one")
        starts = np.zeros(len(modes) + 1, np.int64)
        lengths = np.diff(np.concatenate([[-1], ends])) - 1
        starts[inner + 1] = lengths
        return values[~np.isnan(values)], np.cumsum(starts)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        scores, _ = self.scores(features(x), AGGREGATES[self.attr("aggregate_function")])
        return [narrow(_transformed(scores, TRANSFORMS[self.attr("post_transform")]), x.dtype)]


def _transformed(scores: Array, transform: str) -> Array:
    """Of a single score only PROBIT makes another one (as onnxruntime has it)."""
    return scores if scores.shape[1] == 1 and transform != "PROBIT" else transformed(scores, transform)


class NodeTablesOp(TreeOp):
    """The older two: nodes have ids within their tree, leaves are nodes too, and a leaf may have several weights."""

    PREFIX: ClassVar[str] = ""

    def make_forest(self) -> Forest:
        tables = {
            name: table(self, f"nodes_{name}", np.zeros(0, np.int64)).astype(np.int64)
            for name in ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids")
        }
        n = len(tables["nodeids"])
        values = table(self, "nodes_values", np.zeros(n, np.float32))
        missing = table(self, "nodes_missing_value_tracks_true", np.zeros(n, np.int64)).astype(bool)
        if any(len(t) != n for t in (*tables.values(), values, missing)):
            raise TreeFault(f"the tables of nodes do not all have {n} entries")
        leaf = tables["modes"] == LEAF
        find = _NodeIndex(tables["treeids"], tables["nodeids"])
        own = np.arange(n)
        ways = [
            np.where(leaf, own, find(tables["treeids"], np.where(leaf, tables["nodeids"], tables[f"{way}nodeids"])))
            for way in ("true", "false")
        ]
        inner = own[~leaf]
        reached = np.concatenate([ways[0][inner], ways[1][inner]])
        is_root = np.ones(n, bool)
        is_root[reached] = False
        roots = np.flatnonzero(is_root)
        if len(roots) != len(np.unique(tables["treeids"])):
            raise TreeFault("a tree has no root, or several")
        first, count, targets, weights = self._weights(find, n)
        return Forest(
            roots=roots,
            modes=tables["modes"],
            features=tables["featureids"],
            values=values,
            true=ways[0],
            false=ways[1],
            missing=missing,
            first=first,
            count=count,
            targets=targets,
            weights=weights,
        )

    def _weights(self, find: _NodeIndex, n: int) -> tuple[Array, Array, Array, Array]:
        names = ("treeids", "nodeids", "ids")
        none = np.zeros(0, np.int64)
        trees, nodes, targets = (table(self, f"{self.PREFIX}_{m}", none).astype(np.int64) for m in names)
        weights = table(self, f"{self.PREFIX}_weights", np.zeros(0, np.float32))
        if not len(trees) == len(nodes) == len(targets) == len(weights):
            raise TreeFault("the tables of weights differ in length")
        at = find(trees, nodes)
        order = np.argsort(at, kind="stable")
        count = np.bincount(at, minlength=n)
        return np.cumsum(count) - count, count, targets[order], weights[order]


class _NodeIndex:
    """The position of a node by its tree's and its own id."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        if len(trees) and (np.diff(trees) < 0).any():
            self.order: Array | None = np.lexsort((nodes, trees))
            trees, nodes = trees[self.order], nodes[self.order]
        else:
            self.order = None
        first = np.flatnonzero(np.diff(trees, prepend=trees[:1] - 1))
        self.trees = trees[first]
        self.bounds = np.concatenate([first, [len(trees)]])
        # Nearly all models number the nodes of a tree from 0 on; else they are found by a key that grows.
        local = np.arange(len(trees)) - np.repeat(first, np.diff(self.bounds))
        self.keys: Array | None = None
        if (nodes != local).any():
            self.low, span = int(nodes.min()), int(nodes.max()) - int(nodes.min()) + 1
            if span * max(1, len(first)) > 2**62:
                raise TreeFault("the ids of nodes are too far apart")
            self.span = span
            keys = np.repeat(np.arange(len(first)), np.diff(self.bounds)) * span + (nodes - self.low)
            within = np.argsort(keys, kind="stable")
            self.keys = keys[within]
            self.order = within if self.order is None else self.order[within]
            if (np.diff(self.keys) == 0).any():
                raise TreeFault("two nodes of a tree have the same id")

    def __call__(self, trees: Array, nodes: Array) -> Array:
        if not len(trees):
            return np.zeros(0, np.int64)
        if not len(self.trees):
            raise TreeFault("there are no nodes")
        group = np.clip(np.searchsorted(self.trees, trees), 0, len(self.trees) - 1)
        wrong = self.trees[group] != trees
        if self.keys is None:
            wrong |= (nodes < 0) | (nodes >= np.diff(self.bounds)[group])
            at = self.bounds[group] + nodes
        else:
            inside = (nodes >= self.low) & (nodes < self.low + self.span)
            key = group * self.span + np.where(inside, nodes - self.low, 0)
            at = np.clip(np.searchsorted(self.keys, key), 0, len(self.keys) - 1)
            wrong |= ~inside | (self.keys[at] != key)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise TreeFault(f"tree {int(trees[index])} has no node {int(nodes[index])}")
        return at if self.order is None else self.order[at]


_NODE_TABLES = (
    "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_hitrates", "nodes_modes",
    "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true", "base_values",
)  # fmt: skip


@irdl_op_definition
class TreeEnsembleRegressorOp(NodeTablesOp):
    """Trees whose leaves have weights for targets, put together, with `base_values` added; float32.

    (C1) The dtype is float32, float64, int64 or int32. (C2) The operand is [N, F] or [F]. (C3) The tables make trees;
    `n_targets` is at least 1, `base_values` has as many entries or one; `aggregate_function` and `post_transform` are
    ONNX's names. (C4) The samples have all features that the trees look at.
    """

    name = "sx.tree_ensemble_regressor"
    data = operand_def()
    nodes_treeids = opt_prop_def()
    nodes_nodeids = opt_prop_def()
    nodes_featureids = opt_prop_def()
    nodes_values = opt_prop_def()
    nodes_hitrates = opt_prop_def()
    nodes_modes = opt_prop_def()
    nodes_truenodeids = opt_prop_def()
    nodes_falsenodeids = opt_prop_def()
    nodes_missing_value_tracks_true = opt_prop_def()
    target_treeids = opt_prop_def()
    target_nodeids = opt_prop_def()
    target_ids = opt_prop_def()
    target_weights = opt_prop_def()
    base_values = opt_prop_def()
    n_targets = opt_prop_def(IntegerAttr)
    aggregate_function = opt_prop_def(StringAttr)
    post_transform = opt_prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("TreeEnsembleRegressor", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE"}
    PREFIX: ClassVar = "target"
    TABLES: ClassVar = (*_NODE_TABLES, "target_treeids", "target_nodeids", "target_ids", "target_weights")

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, INPUTS, "(C1)")
        check_tables(self, self.TABLES, "(C3)")
        if self.attr("n_targets") < 1:
            raise self.fail(f"(C3) n_targets is {self.attr('n_targets')}")
        for name, known in (("aggregate_function", AGGREGATES), ("post_transform", TRANSFORMS)):
            if self.attr(name) not in known:
                raise self.fail(f"(C3) {name} '{self.attr(name)}' is none of {', '.join(known)}")
        return [self.rows(float32, self.attr("n_targets"))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        base = table(self, "base_values", np.zeros(0, np.float32)).astype(np.float64)
        if len(base) not in (0, 1, self.targets):
            raise refuse(self, f"(C3) base_values has {len(base)} entries for {self.targets} targets")
        scores, _ = self.scores(features(x), self.attr("aggregate_function"))
        if len(base) == self.targets:
            scores += base
        return [narrow(_transformed(scores, self.attr("post_transform")), np.dtype(np.float32))]


@irdl_op_definition
class TreeEnsembleClassifierOp(NodeTablesOp):
    """Trees whose leaves have weights for classes: each row's label, and the score of each class, float32.

    The label is the one with the greatest score, the first of several. Of two classes whose leaves speak of one alone
    that score is a probability (no weight is negative: the second label above 0.5) or a decision (above 0), and the
    other's score is made of it, as onnxruntime has it.

    (C1) The dtype is float32, float64, int64 or int32. (C2) The operand is [N, F] or [F]. (C3) The tables make trees,
    and one of `classlabels_int64s` and `classlabels_strings` has labels; `post_transform` is one of ONNX's names.
    (C4) The samples have all features that the trees look at.
    """

    name = "sx.tree_ensemble_classifier"
    data = operand_def()
    nodes_treeids = opt_prop_def()
    nodes_nodeids = opt_prop_def()
    nodes_featureids = opt_prop_def()
    nodes_values = opt_prop_def()
    nodes_hitrates = opt_prop_def()
    nodes_modes = opt_prop_def()
    nodes_truenodeids = opt_prop_def()
    nodes_falsenodeids = opt_prop_def()
    nodes_missing_value_tracks_true = opt_prop_def()
    class_treeids = opt_prop_def()
    class_nodeids = opt_prop_def()
    class_ids = opt_prop_def()
    class_weights = opt_prop_def()
    base_values = opt_prop_def()
    classlabels_int64s = opt_prop_def()
    classlabels_strings = opt_prop_def()
    post_transform = opt_prop_def(StringAttr)
    label = result_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("TreeEnsembleClassifier", "ai.onnx.ml")
    DEFAULTS: ClassVar = {"post_transform": "NONE"}
    PREFIX: ClassVar = "class"
    TABLES: ClassVar = (*_NODE_TABLES, "class_treeids", "class_nodeids", "class_ids", "class_weights")

    @property
    def labels(self) -> Array:
        return labels_array(self.attr("classlabels_int64s") or self.attr("classlabels_strings"))

    @property
    def targets(self) -> int:
        return len(self.labels)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, INPUTS, "(C1)")
        check_tables(self, self.TABLES, "(C3)")
        dtype = labels_dtype(self, "classlabels_int64s", "classlabels_strings", "(C3)")
        if self.attr("post_transform") not in TRANSFORMS:
            raise self.fail(f"(C3) post_transform '{self.attr('post_transform')}' is none of {', '.join(TRANSFORMS)}")
        scores = self.rows(float32, self.targets)
        if is_unranked(self.data):
            return [unranked_type(dtype), scores]
        dims = dims_of(self.data)
        return [tensor_type(dtype, [dims[0] if len(dims) == 2 else Dim.of(1)]), scores]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        raw, has = self.scores(features(x), "SUM")
        base = table(self, "base_values", np.zeros(0, np.float32)).astype(np.float64)
        if len(base) not in (0, 1, self.targets):
            raise refuse(self, f"(C3) base_values has {len(base)} entries for {self.targets} classes")
        transform = self.attr("post_transform")
        if self.targets > 2:
            if len(base) == self.targets:
                raw += base
                has[:] = True
            best = np.where(has, raw, -np.inf).argmax(1)
            scores = transformed(raw, transform)
        elif self.targets == 2:
            best, scores = self._binary(raw, base, transform)
        else:
            score = raw[:, 0] + (base[0] if len(base) else 0.0)
            best = (score > 0).astype(np.int64)
            scores = _transformed(score[:, None], transform)
            labels = labels_array(("0", "1") if self.attr("classlabels_strings") else (0, 1))
            return [labels[best], narrow(scores, np.dtype(np.float32))]
        return [self.labels[best], narrow(scores, np.dtype(np.float32))]

    def _binary(self, raw: Array, base: Array, transform: str) -> tuple[Array, Array]:
        """Label numbers and scores of two classes."""
        ids = np.unique(table(self, "class_ids", np.zeros(0, np.int64)))
        positive = bool((table(self, "class_weights", np.zeros(0, np.float32)) >= 0).all())
        if len(base) == 2:
            raw = raw + base
        if len(ids) != 1:
            if len(base) == 1:
                raw = raw + np.array([base[0], 0.0])
            return raw.argmax(1), transformed(raw, transform)
        score = raw[:, int(ids[0])] + (base[0] if len(base) == 1 and ids[0] == 0 else 0.0)
        best = (score > (0.5 if positive else 0.0)).astype(np.int64)
        if len(base) == 2 or ids[0] == 1 or transform == "PROBIT":
            return best, transformed(raw, transform)
        return best, two_columns(score, transform, positive)
