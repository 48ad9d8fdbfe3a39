"""Lowering of einsum: pairs of operands become matrix products, the rest sums of products in nested loops.

An operand is a buffer with a stride per label: a label that a term repeats walks its diagonal (the strides add up), an
extent of 1 that others stretch has stride 0. Labels that one operand alone has and the output lacks are summed first.
Two operands of floats that share a label to be summed are brought into the order [batch, m, k] and [batch, k, n], where
they are not in it, and multiplied by the contraction kernel. Several operands are taken from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import is_worth_splitting, offset_of
from sardonyx.backends.llvm.lowering.matmul import Matrix, contract
from sardonyx.backends.llvm.lowering.pack import Source, pack_matrices, panel_block
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import Axis, Size, axis, copy_region, inside, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.einsum import EinsumOp

PACKED_FROM = 24
"""Rows from which on the right matrix is packed."""


@dataclass(frozen=True)
class Term:
    """An operand: its labels in the order of its axes, the strides, and whether it is contiguous in that order."""

    buffer: SSAValue
    labels: tuple[str, ...]
    strides: tuple[Size, ...]
    dtype: DType
    whole: bool

    def stride(self, label: str) -> Size:
        return self.strides[self.labels.index(label)] if label in self.labels else Dim.of(0)


@lowers(EinsumOp)
def _einsum(plan: Plan, op: EinsumOp) -> None:
    shapes = [dims_of(v) for v in op.inputs]
    labels, output = op.parsed().labels([len(s) for s in shapes])
    extents: dict[str, Dim] = {}
    for term, shape in zip(labels, shapes, strict=True):
        for label, extent in zip(term, shape, strict=True):
            extents[label] = Dim.broadcast(extents.get(label, Dim.of(1)), extent)
    dtype = dtype_of(op.output)
    # Sums of 16-bit floats are rounded once, at the end: what lies between is float32.
    between = compute_dtype(dtype)
    maker = _Maker(plan, extents, between)
    terms = [maker.operand(v, term) for v, term in zip(op.inputs, labels, strict=True)]
    while len(terms) > 2:
        first, second, *rest = terms
        needed = {*output, *(label for term in rest for label in term.labels)}
        made = [label for label in extents if label in needed and label in (*first.labels, *second.labels)]
        product = maker.product([first, second], made, plan.workspace(between, maker.sizes(made)), between)
        terms = [product, *rest]
    maker.product(terms, output, plan.new_buffer(op.output), dtype)


class _Maker:
    """Makes the kernels of one einsum; `extents` has every label's."""

    def __init__(self, plan: Plan, extents: dict[str, Dim], between: DType) -> None:
        self.plan, self.extents, self.between = plan, extents, between

    def sizes(self, labels: Sequence[str]) -> list[SSAValue]:
        return [self.plan.dim(self.extents[label]) for label in labels]

    def dims(self, labels: Sequence[str]) -> list[Dim]:
        return [self.extents[label] for label in labels]

    def operand(self, value: SSAValue, term: Sequence[str]) -> Term:
        """The term of an operand: one axis a label."""
        plan, body = self.plan, self.plan.body
        strides: dict[str, Size] = {}
        whole = len(set(term)) == len(term)
        dims = dims_of(value)
        for label, own, step in zip(term, dims, row_major(dims), strict=True):
            full = self.extents[label]
            stride: Size = step
            if equal(own, full) is not Proof.PROVED:
                whole = False
                if own.static_value == 1:
                    stride = Dim.of(0)
                else:
                    size, wanted = plan.dim(own), plan.dim(full)
                    single = body.compare("eq", size, 1)
                    failure = plan.failure(f"'{label}' has extents {{0}} and {{1}}")
                    body.require(body.either(single, body.compare("eq", size, wanted)), failure, size, wanted)
                    stride = body.select(single, body.index(0), plan.dim(step))
            strides[label] = self._plus(strides[label], stride) if label in strides else stride
        return Term(plan.buffer(value), tuple(strides), tuple(strides.values()), dtype_of(value), whole)

    def _plus(self, a: Size, b: Size) -> Size:
        if isinstance(a, Dim) and isinstance(b, Dim):
            return a + b
        x, y = (self.plan.dim(s) if isinstance(s, Dim) else s for s in (a, b))
        return self.plan.body.plus(x, y)

    def _made(self, labels: Sequence[str], dtype: DType, target: SSAValue | None = None) -> Term:
        """A contiguous term in the target, or in workspace."""
        buffer = self.plan.workspace(dtype, self.sizes(labels)) if target is None else target
        return Term(buffer, tuple(labels), tuple(row_major(self.dims(labels))), dtype, True)

    def product(self, terms: Sequence[Term], output: Sequence[str], target: SSAValue, dtype: DType) -> Term:
        """The sum of products of the terms, contiguous with the output's labels, in the target."""
        made = self._made(output, dtype, target)
        if len(terms) == 2 and dtype.is_float and self._contracted(terms, output):
            self._contract([self._summed(t, terms, output) for t in terms], output, made)
            return made
        if len(terms) == 1 and set(terms[0].labels) == set(output) and terms[0].dtype == dtype:
            copy_region(self.plan, "einsum", self._axes(terms[0], made), terms[0].buffer, target)
            return made
        self._nested(terms, output, made)
        return made

    def _axes(self, source: Term, target: Term) -> list[Axis]:
        """The region that copies a term into another of the same labels."""
        return [axis(self.extents[label], source.stride(label), target.stride(label)) for label in target.labels]

    def _contracted(self, terms: Sequence[Term], output: Sequence[str]) -> list[str]:
        """The labels of both terms that are summed over."""
        return [label for label in terms[0].labels if label in terms[1].labels and label not in output]

    def _summed(self, term: Term, terms: Sequence[Term], output: Sequence[str]) -> Term:
        """A term without the labels that it alone has, and in the dtype of sums."""
        others = {label for t in terms if t is not term for label in t.labels}
        kept = [label for label in term.labels if label in others or label in output]
        if len(kept) == len(term.labels) and term.dtype == self.between:
            return term
        made = self._made(kept, self.between)
        self._nested([term], kept, made)
        return made

    def _contract(self, terms: Sequence[Term], output: Sequence[str], made: Term) -> None:
        """Multiply two terms, whose labels are all in both or in the output, as matrices."""
        plan, (a, b), dtype = self.plan, terms, self.between
        inner = self._contracted(terms, output)
        batch = [label for label in output if label in a.labels and label in b.labels]
        rows = [label for label in output if label in a.labels and label not in b.labels]
        columns = [label for label in output if label in b.labels and label not in a.labels]
        m, n, k, count = (Dim.product(self.dims(part)) for part in (rows, columns, inner, batch))
        left, left_turned = self._ordered(a, [*batch, *rows, *inner], [*batch, *inner, *rows])
        right, right_turned = self._ordered(b, [*batch, *inner, *columns], [*batch, *columns, *inner])
        one = Dim.of(1)
        source = Matrix(left.buffer, one, m) if left_turned else Matrix(left.buffer, k, one)
        width = panel_width(plan.target, dtype.bits, m.static_value, n.static_value)
        blocks = [plan.count([m, k]), plan.count([k, n])]
        row, column = (one, k) if right_turned else (n, one)
        into = Matrix(right.buffer, row, column)
        few = m.static_value is not None and m.static_value < PACKED_FROM
        if n.static_value != 1 and not few:
            origin = Source(right.buffer, blocks[1], plan.dim(row), plan.dim(column), dtype)
            packed = pack_matrices(plan, origin, dtype, (count, k, n), width)
            into = Matrix(packed, Dim.of(width), one, width)
            blocks[1] = panel_block(plan, k, n, width)
        straight = [*batch, *rows, *columns] == list(output) and made.dtype == dtype
        target = made.buffer if straight else plan.workspace(dtype, self.sizes([*batch, *rows, *columns]))
        lines = [(plan.count(self.dims(batch)), blocks[0], blocks[1])] if batch else []
        contract(plan, "einsum", dtype, source, into, target, (m, n, k), lines)
        if not straight:
            order = [*batch, *rows, *columns]
            self._nested([self._made(order, dtype, target)], output, made)

    def _ordered(self, term: Term, order: Sequence[str], turned: Sequence[str]) -> tuple[Term, bool]:
        """The term as contiguous matrices in either order, copied where it is in none; whether it is the second."""
        if term.whole and [*term.labels] == [*order]:
            return term, False
        if term.whole and [*term.labels] == [*turned]:
            return term, True
        made = self._made(order, term.dtype)
        copy_region(self.plan, "order", self._axes(term, made), term.buffer, made.buffer)
        return made, False

    def _nested(self, terms: Sequence[Term], output: Sequence[str], made: Term) -> None:
        """Loops over the output's labels around those that are summed over."""
        plan = self.plan
        summed = [label for label in self.extents if label not in output and any(label in t.labels for t in terms)]
        if not summed and len(terms) == 1 and terms[0].dtype == made.dtype:
            copy_region(plan, "einsum", self._axes(terms[0], made), terms[0].buffer, made.buffer)
            return
        kernel = plan.kernel("einsum")
        reads = [kernel.read_buffer(t.buffer) for t in terms]
        write = kernel.write_buffer(made.buffer)
        wide = compute_dtype(made.dtype)
        order = [*output, *summed]
        bounds = [inside(plan, kernel, self.extents[label]) for label in order]
        strides = [[inside(plan, kernel, t.stride(label)) for label in order] for t in terms]
        to = [inside(plan, kernel, made.stride(label)) for label in output]

        def element(b: Body, where: Sequence[SSAValue]) -> SSAValue:
            value: SSAValue | None = None
            for term, read, steps in zip(terms, reads, strides, strict=True):
                own = b.convert(b.load(read, offset_of(b, where, steps)), term.dtype, wide)
                value = own if value is None else b.arithmetic("mul", wide, value, own)
            return value if value is not None else b.const(wide, 1)

        def sum_up(b: Body, where: list[SSAValue]) -> SSAValue:
            if len(where) == len(order):
                return element(b, where)

            def step(c: Body, i: SSAValue, total: Sequence[SSAValue]) -> list[SSAValue]:
                return [c.arithmetic("add", wide, total[0], sum_up(c, [*where, i]))]

            last = len(where) == len(order) - 1
            start = ("add", b.const(wide, 0))
            return b.loop(bounds[len(where)], step, [start], vector=last and not output)[0]

        def level(b: Body, where: list[SSAValue]) -> None:
            if len(where) == len(output):
                value = b.convert(sum_up(b, where), wide, made.dtype)
                b.store(value, write, offset_of(b, where, to))
                return
            last = len(where) == len(output) - 1
            split = not where and is_worth_splitting(bounds)
            b.loop(bounds[len(where)], lambda c, i, _: level(c, [*where, i]), vector=last, parallel=split)

        level(kernel, [])
        kernel.launch()
