"""Rewrites a block as a `Layout` decided: labelled ops are made anew, and transposes put where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, rank_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.reshape import SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes import provenance
from sardonyx.passes.base import PassError, PassRun
from sardonyx.passes.constants import constant_of, make_constant, small_array
from sardonyx.passes.layout import Layout
from sardonyx.passes.layout_rule import Emit, Operand, Plan, vector
from sardonyx.passes.permutations import (
    Perm,
    inverse,
    is_identity,
    moves_nothing,
    moves_only_ones,
    padded_dims,
)
from sardonyx.passes.propagate import agree, propagate


class LayoutRewriter:
    """One pass over the block, in order. What is made for one op serves all that follow."""

    def __init__(self, block: Block, layout: Layout, run: PassRun) -> None:
        self.block = block
        self.layout = layout
        self.run = run
        self.made: dict[SSAValue, SSAValue] = {}
        """The result of an old labelled op → that of the new one."""
        self.available: dict[tuple[SSAValue, Perm], SSAValue] = {}
        """What there is of a root; the permutation may have leading axes."""
        self.kept: set[SSAValue] = set()
        """Transposes that their readers go on reading."""
        self.dead: list[Operation] = []
        self.retyped: list[Operation] = []
        self.before: Operation | None = None
        self.inserted: list[Operation] = []

    def apply(self) -> None:
        for op in list(self.block.ops):
            if op.results and op.results[0] in self.layout.views:
                self._pass_transpose(op)
            elif op in self.layout.labels:
                self._move(op)
            else:
                self._update(op)
        for op in reversed(self.dead):
            if all(result.first_use is None for result in op.results):
                name, location, is_view = op.name, op.location, op.results[0] in self.layout.views
                constants = [constant for operand in op.operands if (constant := constant_of(operand)) is not None]
                op.detach()
                op.erase()
                for constant in dict.fromkeys(constants):
                    if constant.output.first_use is None:
                        constant.detach()
                        constant.erase()
                if is_view:
                    self.run.rewritten("remove", name, location)
                    self.run.statistics.count("transposes-removed")
        propagate(self.retyped)

    # ---- the three kinds of op
    def _pass_transpose(self, op: Operation) -> None:
        """A transpose of a value that stays is kept for its readers, and found here by others who ask for its like.

        Not if there is one already, or if it moves axes of extent 1 only: its readers get something else then.
        """
        view, result = self.layout.views[op.results[0]], op.results[0]
        self.dead.append(op)
        if op.operands[0] is not view.root or view.root in self.made or is_identity(view.perm):
            return
        key = (view.root, view.perm)
        only_ones = constant_of(view.root) is None and moves_only_ones(self.layout.dims(view.root), view.perm)
        if (only_ones or key in self.available) and self.layout.claim("compose", op):
            return
        self.kept.add(result)
        self.available.setdefault(key, result)

    def _move(self, op: Operation) -> None:
        label = self.layout.labels[op]
        assert isinstance(op, SxOp)
        pattern = f"through-{label.rule.kind}"
        new = self._build(op, label.plan, pattern)
        self._take_over(op, new, label.plan)
        self.dead.append(op)
        self.run.statistics.count(f"moved:{label.rule.kind}")
        self.run.rewritten(pattern, op.name, op.location, self.inserted)

    def _take_over(self, op: SxOp, new: SxOp, plan: Plan) -> None:
        """Let the new op's results stand for the old one's, with what was known of their types."""
        for old, made, perm in zip(op.results, new.results, plan.results, strict=True):
            dims, new_dims = dims_of(old), dims_of(made)
            if any(dims[i] != new_dims[axis] for i, axis in enumerate(perm)):
                stated = tensor_type(dtype_of(old), [dims[axis] for axis in inverse(perm)])
                made._type = agree(stated, made.type, new)
            made.name_hint = old.name_hint
            self.made[old] = made

    def _build(self, op: SxOp, plan: Plan, pattern: str) -> SxOp:
        """The op on the orders that its plan needs."""
        self.before, self.inserted = op, []
        operands: list[Operand] = []
        for value, need in zip(op.operands, plan.needs, strict=True):
            if need is None:
                operands.append(Operand(self._as_it_is(value, op)))
            elif need.perm is None:
                root, perm = self.layout.seen(value)
                operands.append(Operand(self.made.get(root, root), perm))
            else:
                root, perm = self.layout.residual(value, need)
                operands.append(Operand(self._ordered(root, perm, self._why(value, op))))
        new = plan.build(operands, self._emitter(op.location, pattern))
        self._insert(new, op.location, pattern)
        return new

    def _update(self, op: Operation) -> None:
        """An op that stays reads what it read, made anew where it has to be."""
        plan = self.layout.absorbing.get(op)
        if plan is not None and isinstance(op, SxOp) and self._absorbs(op, plan) and self.layout.claim("absorb", op):
            new = self._build(op, plan, "absorb")
            self._take_over(op, new, plan)
            self.dead.append(op)
            self.run.statistics.count("absorbed")
            self.run.rewritten("absorb", op.name, op.location, self.inserted)
            return
        for i, value in enumerate(op.operands):
            self.before, self.inserted = op, []
            new_value = self._as_it_is(value, op)
            if new_value is not value:
                if new_value.type != value.type:
                    agree(value.type, new_value.type, op)  # a wrong shape must not go unnoticed
                    self.retyped.append(op)
                op.operands[i] = new_value
                self.run.rewritten("compose", op.name, op.location, self.inserted)

    def _absorbs(self, op: SxOp, plan: Plan) -> bool:
        return any(
            need is not None and need.perm is None and self.layout.seen(value)[1] is not None
            for value, need in zip(op.operands, plan.needs, strict=True)
        )

    # ---- values in some order
    def _why(self, value: SSAValue, op: Operation) -> tuple[LocationAttr, ...]:
        label = self.layout.labels.get(op)
        return self.layout.why(value) or (label.locations if label is not None else ())

    def _as_it_is(self, value: SSAValue, op: Operation) -> SSAValue:
        """A value in its own order."""
        if value in self.kept:
            return value
        root, perm = self.layout.seen(value)
        if perm is None:
            return self.made.get(root, root)
        return self._ordered(root, perm, self._why(value, op), value)

    def _ordered(
        self, root: SSAValue, perm: Perm, why: Sequence[LocationAttr], like: SSAValue | None = None
    ) -> SSAValue:
        """The root, with leading axes up to the permutation's rank, in that order; `like` is an old value of that kind.

        Leading axes of extent 1 may be left out again.
        """
        base = self.made.get(root, root)
        rank = len(perm)
        dims = padded_dims(self.layout.dims(root), rank)
        if moves_nothing(dims, perm):
            return base
        found = self.available.get((root, perm))
        if found is not None:
            return found
        emit = self._emitter(provenance.merge(*why) if why else _location_of(base), "transpose")
        array = small_array(base) if like is None else None
        if array is not None:
            padded_shape = (1,) * (rank - array.ndim) + array.shape
            value = emit(make_constant(array.reshape(padded_shape).transpose(perm)))
        elif moves_only_ones(dims, perm):
            value = _with_ones_at(base, dims, perm, emit)
        else:
            if rank_of(base) < rank:
                base = emit(UnsqueezeOp.make(base, vector(emit, range(rank - rank_of(base)))))
            value = emit(TransposeOp.make(base, perm=perm))
            if constant_of(root) is None:
                self.run.statistics.count("transposes-made")
        if like is not None:
            value._type = agree(like.type, value.type)
            value.name_hint = value.name_hint or like.name_hint
        self.available[root, perm] = value
        return value

    def _emitter(self, location: LocationAttr, pattern: str) -> Emit:
        def emit(op: SxOp) -> SSAValue:
            self._insert(op, location, pattern)
            return op.results[0]

        return emit

    def _insert(self, op: Operation, location: LocationAttr, pattern: str) -> None:
        known = location if locations.is_unknown(op.location) else op.location
        op.location = provenance.stamp(known, f"{self.run.pass_name}:{pattern}")
        assert self.before is not None
        self.block.insert_ops_before([op], self.before)
        self.inserted.append(op)
        if self.run.verify:
            try:
                op.verify()
            except Exception as error:
                raise PassError(f"pass '{self.run.pass_name}', {pattern}: invalid {op.name}: {error}") from error


def _location_of(value: SSAValue) -> LocationAttr:
    owner = value.owner
    return owner.location if isinstance(owner, Operation) else value.location  # pyright: ignore[reportAttributeAccessIssue]


def _with_ones_at(base: SSAValue, dims: Shape, perm: Perm, emit: Emit) -> SSAValue:
    """What a transpose would give that moves axes of extent 1 only: those axes are taken out and put in elsewhere."""
    rank = len(perm)
    ones = [i for i in range(rank) if dims[perm[i]].static_value == 1]
    offset = rank - rank_of(base)
    old_ones = [axis - offset for axis in range(offset, rank) if dims[axis].static_value == 1]
    value = base
    if old_ones:
        value = emit(SqueezeOp.make(value, vector(emit, old_ones)))
    return emit(UnsqueezeOp.make(value, vector(emit, ones))) if ones else value
