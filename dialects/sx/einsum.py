"""Sums of products by Einstein's convention: `sx.einsum`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def, result_def, var_operand_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import NUMERIC, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_run_allocation, refuse, slots
from sardonyx.dialects.sx.numeric import double, is_float, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, same_dtype

_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")
MAX_AXES = 32
"""How many different axes an equation may have together, those of ellipses counted."""


@dataclass(frozen=True)
class Equation:
    """An equation's terms without spaces, and its output's (in implicit form, the one that follows)."""

    inputs: tuple[str, ...]
    output: str

    @staticmethod
    def parse(text: str) -> Equation:
        """The equation.

        Raises:
            ValueError: It is none; the text says why.
        """
        left, arrow, right = "".join(text.split()).partition("->")
        terms = tuple(left.split(","))
        for term in (*terms, right):
            if _TERM.fullmatch(term) is None:
                raise ValueError(f"'{term}' is no term: letters and at most one ellipsis make one")
        letters = "".join(terms).replace(".", "")
        if not arrow:
            # Implicit form: the axes of ellipses, then the labels that occur once, in alphabetical order.
            once = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
            return Equation(terms, ("..." if "..." in left else "") + once)
        plain = right.replace("...", "")
        repeated = next((c for c in plain if plain.count(c) > 1), None)
        unknown = next((c for c in plain if c not in letters), None)
        if repeated is not None:
            raise ValueError(f"the output repeats '{repeated}'")
        if unknown is not None:
            raise ValueError(f"the output's '{unknown}' is in no operand")
        if "..." in right and "..." not in left:
            raise ValueError("the output has an ellipsis that no operand has")
        return Equation(terms, right)

    def labels(self, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
        """A label per axis of each operand and of the output; the axes of an ellipsis are numbered from the right.

        Raises:
            ValueError: A term does not fit its operand's rank.
        """
        if len(ranks) != len(self.inputs):
            raise ValueError(f"{len(self.inputs)} terms for {len(ranks)} operands")
        out: list[list[str]] = []
        longest = 0
        for term, rank in zip(self.inputs, ranks, strict=True):
            named = len(term.replace("...", ""))
            hidden = rank - named
            if hidden < 0 or (hidden and "..." not in term):
                raise ValueError(f"the term '{term}' does not fit an operand of rank {rank}")
            longest = max(longest, hidden)
            out.append(_expanded(term, hidden))
        return out, _expanded(self.output, longest)


def _expanded(term: str, hidden: int) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *(f".{i}" for i in reversed(range(hidden if dots else 0))), *after]


@irdl_op_definition
class EinsumOp(SxOp):
    """The sum of products that `equation` states, as in `ij,jk->ik`.

    A term has a letter per axis of its operand; equal letters go together, also within a term (its diagonal). Letters
    that the output lacks are summed over. `...` stands for any further axes, which broadcast; so do extents of 1. In
    implicit form (without `->`) the output has the axes of ellipses and then, in alphabetical order (capitals first),
    the letters that occur once. Floats add in float64 and round once, integers wrap around.

    (C1) There is an operand, and all have one dtype of `DTYPES`. (C2) The equation is well-formed and has a term per
    operand. (C3) Each term has a letter per axis, or an ellipsis. (C4) The extents of a letter are equal, or 1.
    """

    name = "sx.einsum"
    inputs = var_operand_def()
    equation = prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Einsum", since=12)
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def parsed(self) -> Equation:
        try:
            return Equation.parse(self.equation.data)
        except ValueError as error:
            raise self.fail(f"(C2) the equation '{self.equation.data}': {error}") from None

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            raise self.fail("(C1) there is no operand")
        dtype = same_dtype(self, self.inputs, "(C1)")
        check_dtype(self, self.inputs[0], self.DTYPES, "(C1)")
        equation = self.parsed()
        if len(equation.inputs) != len(self.inputs):
            raise self.fail(f"(C2) the equation has {len(equation.inputs)} terms for {len(self.inputs)} operands")
        if any(is_unranked(v) for v in self.inputs):
            if "..." in equation.output:
                return [unranked_type(dtype)]
            extents = self._extents(equation, [None if is_unranked(v) else dims_of(v) for v in self.inputs])
            return [tensor_type(dtype, [extents.get(label, Dim.of(1)) for label in equation.output])]
        shapes = [dims_of(v) for v in self.inputs]
        extents = self._extents(equation, shapes)
        _, output = self._labels(equation, [len(s) for s in shapes])
        return [tensor_type(dtype, [extents[label] for label in output])]

    def _labels(self, equation: Equation, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
        try:
            labels, output = equation.labels(ranks)
        except ValueError as error:
            raise self.fail(f"(C3) {error}") from None
        if len({label for term in labels for label in term}) > MAX_AXES:
            raise self.fail(f"(C3) the equation has more than {MAX_AXES} axes")
        return labels, output

    def _extents(self, equation: Equation, shapes: Sequence[tuple[Dim, ...] | None]) -> dict[str, Dim]:
        """The extent of each label; an operand of unknown rank makes those of its letters unknown."""
        known = [s for s in shapes if s is not None]
        ranks = [len(t.replace("...", "")) if s is None else len(s) for s, t in zip(shapes, equation.inputs)]
        labels, _ = self._labels(equation, ranks)
        out: dict[str, Dim] = {}
        for term, shape in zip(labels, shapes, strict=True):
            for label, extent in zip(term, shape or [fresh_dim() for _ in term], strict=True):
                have = out.get(label, Dim.of(1))
                both = have.static_value, extent.static_value
                if None not in both and 1 not in both and both[0] != both[1]:
                    raise self.fail(
                        f"(C4) '{label}' has extents {have} and {extent} in {', '.join(map(format_dims, known))}"
                    )
                out[label] = Dim.broadcast(have, extent)
        return out

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        operands = slots(arrays)
        try:
            labels, output = self.parsed().labels([a.ndim for a in operands])
        except ValueError as error:
            raise refuse(self, str(error)) from None
        extents: dict[str, int] = {}
        for term, array in zip(labels, operands, strict=True):
            for label, extent in zip(term, array.shape, strict=True):
                have = extents.setdefault(label, extent)
                if have != extent and 1 not in (have, extent):
                    raise refuse(self, f"'{label}' has extents {have} and {extent}")
                extents[label] = extent if have == 1 else have
        numbers = {label: i for i, label in enumerate(extents)}
        if len(numbers) > MAX_AXES:
            raise refuse(self, f"the equation has more than {MAX_AXES} axes")
        dtype = operands[0].dtype
        check_run_allocation(self, dtype, [extents[label] for label in output])
        interleaved: list[object] = []
        for term, array in zip(labels, operands, strict=True):
            wide = double(array) if is_float(array) else array
            # An extent of 1 is stretched first, so that a diagonal or a sum over the letter has the letter's extent.
            whole = np.broadcast_to(wide, [extents[label] for label in term])
            interleaved += [whole, [numbers[label] for label in term]]
        total = np.einsum(*interleaved, [numbers[label] for label in output], optimize=len(operands) > 2)  # pyright: ignore[reportCallIssue, reportArgumentType]
        return [narrow(np.asarray(total), dtype) if is_float(operands[0]) else np.asarray(total).astype(dtype)]
