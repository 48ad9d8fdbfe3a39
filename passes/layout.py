"""Where to put transposes: ops are moved to other orders of axes in groups, wherever that leaves fewer transposes.

Within a block, a transpose is no op but a *view*: its result is its root (the value that is no transpose's result) in
another order. An op that has a rule (`layout_rules`) can be given a *label*: it then works on data in another order of
axes, and its results are views as well. What the ops that are left ask of a root in an order that it doesn't have is a
*request*; each distinct one costs a transpose. So adjacent transposes compose by themselves, and moving transposes
means choosing labels that make requests disappear:

* forwards: an op whose operands are views takes their order, if that asks for fewer transposes at its operands;
* backwards: an op whose results are asked for in another order takes that order;
* then ops at the rim whose label saves nothing give it back, and a group of connected ops keeps its labels only if
  fewer transposes are left (or as many on fewer elements) than without them.

The cost only ever falls, so this ends; each sweep is linear in the number of uses. `Layout` decides; `layout_apply`
rewrites.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from sardonyx.dialects.attributes import Shape, dims_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes.base import PassRun
from sardonyx.passes.constants import constant_of
from sardonyx.passes.layout_parts import Cost, Label, Request, View, compared, is_ranked_op, several, typical
from sardonyx.passes.layout_rule import LayoutRule, Need, Plan
from sardonyx.passes.layout_rules import rule_of
from sardonyx.passes.permutations import (
    Perm,
    compose,
    identity,
    inverse,
    is_identity,
    moves_nothing,
    moves_only_ones,
    padded,
    padded_dims,
)

MAX_SWEEPS = 4
"""Forwards and backwards so often at most; the second sweep rarely finds anything."""


class Layout:
    """The views, requests and labels of one block. With `one_step`, at most one rewrite is allowed (for tracing)."""

    def __init__(self, block: Block, pinned: set[SSAValue], run: PassRun, one_step: bool = False) -> None:
        self.run = run
        self.pinned = pinned
        self.one_step = one_step
        self.claimed = False
        self.views: dict[SSAValue, View] = {}
        self.labels: dict[Operation, Label] = {}
        self.result_perms: dict[SSAValue, Perm] = {}
        self.users: dict[SSAValue, list[Operation]] = {}
        self.ops: list[Operation] = []
        self.absorbing: dict[Operation, Plan] = {}
        self.requests: Counter[Request] = Counter()
        self.count = self.elements = self.visits = 0
        self.asked: Counter[SSAValue] = Counter()
        """How many requests there are of each root."""
        self._sizes: dict[SSAValue, int] = {}
        self._ones: dict[SSAValue, bool] = {}
        for op in block.ops:
            if not self._add_view(op):
                self._add_op(op)
        for op in self.ops:
            self._count(op, 1)

    # ---- what is there
    def _add_view(self, op: Operation) -> bool:
        if not isinstance(op, TransposeOp) or not is_ranked_op(op) or op.output in self.pinned:
            return False
        root, before = op.data, self.views.get(op.data)
        perm = op.permutation(rank_of(op.data))
        if (before is not None or is_identity(perm)) and not self.claim("compose", op):
            return False
        if before is None:
            self.views[op.output] = View(root, perm, (op.location,))
        else:
            self.views[op.output] = View(
                before.root, compose(before.perm, perm), several(before.locations, (op.location,))
            )
        return True

    def _add_op(self, op: Operation) -> None:
        self.ops.append(op)
        for root in {self.root(operand) for operand in op.operands}:
            self.users.setdefault(root, []).append(op)
        rule = rule_of(op) if isinstance(op, SxOp) and is_ranked_op(op) else None
        plan = rule.absorb(op) if rule is not None and isinstance(op, SxOp) else None
        if plan is not None and not any(result in self.pinned for result in op.results):
            self.absorbing[op] = plan

    def claim(self, pattern: str, op: Operation) -> bool:
        """Whether a rewrite may be done; asks whoever watches."""
        if self.one_step and self.claimed:
            return False
        allowed = self.run.allows(pattern, op)
        self.claimed |= allowed
        return allowed

    def rule(self, op: Operation) -> LayoutRule | None:
        """The op's rule, where it can be given a label."""
        if not isinstance(op, SxOp) or not is_ranked_op(op) or any(r in self.pinned for r in op.results):
            return None
        return rule_of(op)

    def root(self, value: SSAValue) -> SSAValue:
        view = self.views.get(value)
        return value if view is None else view.root

    def seen(self, value: SSAValue) -> tuple[SSAValue, Perm | None]:
        """The root of a value, and the permutation from the root as it is with all labels; None for none."""
        view = self.views.get(value)
        if view is None:
            return value, self.result_perms.get(value)
        own = self.result_perms.get(view.root)
        perm = view.perm if own is None else compose(own, view.perm)
        return view.root, None if is_identity(perm) else perm

    def dims(self, root: SSAValue) -> Shape:
        """The root's dims in the order that it has with its label."""
        dims, perm = dims_of(root), self.result_perms.get(root)
        return dims if perm is None else tuple(dims[axis] for axis in inverse(perm))

    def residual(self, value: SSAValue, need: Need) -> tuple[SSAValue, Perm]:
        """The root of an operand, and what is to be done on it (with leading axes) to give what is needed."""
        root, perm = self.seen(value)
        assert need.perm is not None
        rank = len(need.perm)
        have = identity(rank) if perm is None else padded(perm, rank)
        return root, compose(have, inverse(need.perm))

    # ---- costs
    def plan(self, op: Operation) -> Plan | None:
        label = self.labels.get(op)
        return label.plan if label is not None else self.absorbing.get(op)

    def asks(self, op: Operation, plan: Plan | None) -> list[Request]:
        """The requests of an op with that plan (None: as it stands); those of constants are left out."""
        out: list[Request] = []
        for i, value in enumerate(op.operands):
            need = None if plan is None else plan.needs[i]
            if need is None:
                root, perm = self.seen(value)
            elif need.perm is not None:
                root, perm = self.residual(value, need)
            else:
                continue
            if perm is None or is_identity(perm) or constant_of(root) is not None:
                continue
            if not self.has_ones(root, perm) or not moves_nothing(padded_dims(self.dims(root), len(perm)), perm):
                out.append((root, perm))
        return out

    def has_ones(self, root: SSAValue, perm: Perm) -> bool:
        """Whether the root has axes of extent 1, or gets some in front up to the permutation's rank."""
        found = self._ones.get(root)
        if found is None:
            found = any(d.static_value == 1 for d in dims_of(root))
            self._ones[root] = found
        return found or len(perm) != rank_of(root)

    def weight(self, request: Request) -> Cost:
        """What a request costs; one that moves no element but an axis of extent 1 nearly nothing."""
        root, perm = request
        if self.has_ones(root, perm) and moves_only_ones(padded_dims(self.dims(root), len(perm)), perm):
            return 0, 1
        return 1, self.size(root)

    def _count(self, op: Operation, sign: int) -> None:
        self.visits += 1
        for request in self.asks(op, self.plan(op)):
            before = self.requests[request]
            self.requests[request] = before + sign
            self.asked[request[0]] += sign
            if before == 0 or before + sign == 0:
                count, elements = self.weight(request)
                self.count += sign * count
                self.elements += sign * elements

    def total(self, requests: Iterable[Request]) -> Cost:
        """The cost of distinct requests."""
        weights = [self.weight(request) for request in set(requests)]
        return sum(count for count, _ in weights), sum(elements for _, elements in weights)

    def size(self, root: SSAValue) -> int:
        found = self._sizes.get(root)
        if found is None:
            found = 1
            for dim in dims_of(root):
                found *= typical(dim)
            self._sizes[root] = found
        return found

    @property
    def cost(self) -> Cost:
        return self.count, self.elements

    def set_label(self, op: Operation, label: Label | None) -> None:
        """Give an op a label or take it away; the requests follow."""
        concerned = dict.fromkeys([op, *(user for result in op.results for user in self.users.get(result, ()))])
        for each in concerned:
            self._count(each, -1)
        if label is None:
            self.labels.pop(op, None)
            for result in op.results:
                self.result_perms.pop(result, None)
        else:
            self.labels[op] = label
            for result, perm in zip(op.results, label.plan.results, strict=True):
                self.result_perms.pop(result, None)
                if not is_identity(perm):
                    self.result_perms[result] = perm
        for each in concerned:
            self._count(each, 1)

    # ---- proposals
    def forwards(self) -> list[Operation]:
        """Label ops whose operands are views; returns the ops labelled, in order."""
        done: list[Operation] = []
        for op in self.ops:
            if op in self.labels:
                continue
            moved = [(i, p) for i, o in enumerate(op.operands) if (p := self._perm_of_data(o)) is not None]
            if not moved:
                continue
            rule = self.rule(op)
            if rule is None or not isinstance(op, SxOp):
                if not op.regions and op.results and op not in self.absorbing:
                    self.run.decline("forwards", op, f"transposes do not move through {op.name}")
                continue
            candidates = {label for i, perm in moved if (label := rule.from_operand(op, i, perm)) is not None}
            best = self._best(op, rule, candidates, "forwards", self.total(self.asks(op, self.plan(op))))
            if best is not None:
                perm, plan = best
                self.set_label(op, Label(perm, plan, rule, self._sources(op, plan)))
                done.append(op)
        return done

    def _perm_of_data(self, value: SSAValue) -> Perm | None:
        root, perm = self.seen(value)
        return perm if perm is not None and constant_of(root) is None else None

    def _best(
        self, op: SxOp, rule: LayoutRule, candidates: Iterable[Perm], way: str, before: Cost
    ) -> tuple[Perm, Plan] | None:
        found: list[tuple[Cost, Perm, Plan]] = []
        for perm in sorted(candidates)[:4]:
            plan = rule.plan(op, perm)
            if isinstance(plan, str):
                self.run.decline(way, op, plan)
            else:
                found.append((self.total(self.asks(op, plan)), perm, plan))
        if not found:
            return None
        cost, perm, plan = min(found, key=lambda item: item[:2])
        if cost >= before:
            self.run.decline(way, op, "not enough of its operands are transposed alike")
            return None
        return perm, plan

    def _sources(self, op: SxOp, plan: Plan) -> tuple[LocationAttr, ...]:
        parts: list[tuple[LocationAttr, ...]] = []
        for value, need in zip(op.operands, plan.needs, strict=True):
            if need is not None:
                parts.append(self.why(value))
        return several(*parts)

    def why(self, value: SSAValue) -> tuple[LocationAttr, ...]:
        """The locations of the transposes that a value's order comes from."""
        view = self.views.get(value)
        owner = self.root(value).owner
        label = self.labels.get(owner) if isinstance(owner, Operation) else None
        return several(view.locations if view else (), label.locations if label else ())

    def backwards(self) -> list[Operation]:
        """Label ops whose results are wanted in another order; returns the ops labelled, last first."""
        done: list[Operation] = []
        for op in reversed(self.ops):
            if op in self.labels or not isinstance(op, SxOp):
                continue
            if not any(self._wanted(result) for result in op.results):
                continue
            rule = self.rule(op)
            if rule is None:
                continue
            label = self._backward_label(op, rule)
            if label is not None:
                self.set_label(op, label)
                done.append(op)
        return done

    def _wanted(self, root: SSAValue) -> list[tuple[Perm, tuple[LocationAttr, ...]]]:
        """The orders in which users want a root, other than as it is, and why."""
        out: list[tuple[Perm, tuple[LocationAttr, ...]]] = []
        if not isinstance(root.type, TensorType):
            return out  # it has no order
        for user in self.users.get(root, ()):
            plan = self.plan(user)
            for i, value in enumerate(user.operands):
                if self.root(value) is not root:
                    continue
                need = None if plan is None else plan.needs[i]
                view = self.views.get(value)
                have = identity(rank_of(root)) if view is None else view.perm
                if need is None:
                    perm = inverse(have)
                elif need.perm is not None and len(need.perm) == len(have):
                    perm = compose(need.perm, inverse(have))
                else:
                    continue
                if not is_identity(perm):
                    label = self.labels.get(user)
                    out.append((perm, several(view.locations if view else (), label.locations if label else ())))
        return out

    def _backward_label(self, op: SxOp, rule: LayoutRule) -> Label | None:
        before = self._result_cost(op)
        best: tuple[Cost, Perm, Label] | None = None
        tried: set[Perm] = set()
        for index, result in enumerate(op.results):
            for wanted, why in self._wanted(result):
                perm = rule.from_result(op, index, wanted)
                if perm is None or perm in tried or len(tried) >= 4:
                    continue
                tried.add(perm)
                plan = rule.plan(op, perm)
                if isinstance(plan, str):
                    self.run.decline("backwards", op, plan)
                    continue
                label = Label(perm, plan, rule, why)
                cost = self._result_cost(op, label)
                if cost < before and (best is None or (cost, perm) < best[:2]):
                    best = cost, perm, label
        return None if best is None else best[2]

    def _result_cost(self, op: SxOp, label: Label | None = None) -> Cost:
        """The cost of the orders in which the op's results are requested, with that label."""
        perms = label.plan.results if label is not None else tuple(identity(rank_of(r)) for r in op.results)
        kept = [self.result_perms.get(r) for r in op.results]
        found: set[Request] = set()
        for result, perm in zip(op.results, perms, strict=True):
            self.result_perms[result] = perm
        for result in op.results:
            for user in self.users.get(result, ()):
                found.update(request for request in self.asks(user, self.plan(user)) if request[0] is result)
        cost = self.total(found)
        for result, perm in zip(op.results, kept, strict=True):
            if perm is None:
                del self.result_perms[result]
            else:
                self.result_perms[result] = perm
        return cost

    # ---- decisions
    def settle(self, proposed: Sequence[Operation], before: Cost) -> list[Operation]:
        """Take back labels that save nothing; returns the ops that keep theirs.

        Args:
            proposed: Labelled ops, in the order in which they were.
            before: The cost without these labels.
        """
        for op in reversed(proposed):
            if self._is_amid(op):
                continue
            label, cost = self.labels[op], self.cost
            self.set_label(op, None)
            if self.cost > cost:
                self.set_label(op, label)
        accepted: list[Operation] = []
        groups = self._groups([op for op in proposed if op in self.labels])
        if len(groups) == 1 and self.cost < before and self.claim("move", groups[0][0]):
            return groups[0]
        for group in groups:
            labels = [(op, self.labels[op]) for op in group]
            cost = self.cost
            for op, _ in labels:
                self.set_label(op, None)
            if self.cost <= cost:
                self.run.decline("group", group[0], f"moved, {compared(cost, self.cost)} than where they are")
            elif self.claim("move", group[0]):
                for op, label in labels:
                    self.set_label(op, label)
                accepted.extend(group)
        return accepted

    def _is_amid(self, op: Operation) -> bool:
        """Whether an op neither asks for anything nor is asked: then taking its label back costs more."""
        if any(self.asked[result] for result in op.results) or not any(self.users.get(r) for r in op.results):
            return False
        return not self.asks(op, self.plan(op))

    def _groups(self, ops: Sequence[Operation]) -> list[list[Operation]]:
        """Ops connected by values of which an order is in question."""
        parent: dict[object, object] = {}

        def find(item: object) -> object:
            parent.setdefault(item, item)
            while parent[item] is not item:
                parent[item] = parent[parent[item]]
                item = parent[item]
            return item

        for op in ops:
            asked = {root for root, _ in self.asks(op, self.plan(op))}
            moved = {self.root(value) for value in op.operands if self._perm_of_data(value) is not None}
            for value in (*op.results, *asked, *moved):
                parent[find(op)] = find(value)
        groups: dict[object, list[Operation]] = {}
        for op in ops:
            groups.setdefault(find(op), []).append(op)
        return list(groups.values())

    def polish(self, ops: Sequence[Operation]) -> None:
        """Try what the readers of a labelled op's results want instead (an unsqueezed axis may stand anywhere)."""
        for op in ops:
            label = self.labels[op]
            assert isinstance(op, SxOp)
            for index, result in enumerate(op.results):
                for wanted, why in self._wanted(result)[:4]:
                    perm = label.rule.from_result(op, index, wanted)
                    plan = None if perm is None or perm == label.perm else label.rule.plan(op, perm)
                    if perm is None or plan is None or isinstance(plan, str):
                        continue
                    cost, other = self.cost, Label(perm, plan, label.rule, several(label.locations, why))
                    self.set_label(op, other)
                    if self.cost < cost:
                        label = other
                    else:
                        self.set_label(op, label)

    def decide(self) -> bool:
        """Choose labels until no sweep finds more; returns whether there is any."""
        for _ in range(MAX_SWEEPS):
            cost = self.cost
            found = self.settle(self.forwards(), cost)
            self.polish(found)
            if not (self.one_step and self.claimed):
                cost = self.cost
                found += self.settle(self.backwards(), cost)
            if not found or self.one_step:
                break
        return bool(self.labels)
