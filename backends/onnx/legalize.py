"""`legalize-for-opset`: rewrites what an opset cannot state into what it can, or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.backends.onnx import (
    decompose_attention as decompose_attention,  # they register their decompositions
    decompose_quantized as decompose_quantized,
    decompose_recurrent as decompose_recurrent,
    decompose_sampling as decompose_sampling,
)
from sardonyx.backends.onnx.decompose import DECOMPOSITIONS
from sardonyx.backends.onnx.forms import form_of, onnx_form
from sardonyx.backends.onnx.nodes import Unstatable
from sardonyx.backends.onnx.options import DEFAULT_OPSET, MAX_OPSET, check_opset
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.backends.onnx.widen import widened, widens
from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import InferenceError, UnsupportedError
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates


class OpsetError(UnsupportedError):
    """An op has no form in an opset; `lowest` is the lowest later one that has one."""

    lowest: int | None = None


@dataclass(frozen=True)
class LegalizeForOpsetPass(SxPass):
    """Rewrite each op that ONNX's opset `version` cannot state as one node.

    Cases:
    1. An op that the opset states stays as it is.
    2. An operator that came later is decomposed as its definition says (Gelu before 20, Swish before 24, LayerNorm
       before 17, …).
    3. An attribute or input that came later is stated otherwise: Shape's start and end as a Slice, Pad's axes as pads
       of all axes, Split into unequal parts with their sizes, axes as attributes where they are known.
    4. A dtype that the schema lacks is wrapped in casts, where the wider dtype holds all its values and the result is
       the same: 16-bit floats by float32, small integers by larger ones that wrap around alike.
    5. Anything else is refused; the error names the node, the op, the opset and the lowest one that could.

    Requires: nothing. Ensures: each op is one node of the opset.
    Promise: reassociates; only case 2 rounds in other places than before.
    """

    name = "legalize-for-opset"
    PROMISE: ClassVar[Promise] = reassociates(8)

    version: int = field(default=DEFAULT_OPSET, metadata={"help": "the opset, 13 to 28"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        check_opset(self.version)
        work = [op for op in main_function(module).walk() if isinstance(op, SxOp)]
        work.reverse()
        while work:
            op = work.pop()
            if isinstance(op, ConstantOp):
                continue
            try:
                form_of(op, self.version)
            except Unstatable as reason:
                work.extend(reversed(self._rewrite(op, reason, run)))

    def _rewrite(self, op: SxOp, reason: Unstatable, run: PassRun) -> list[SxOp]:
        """State the op otherwise; returns the new ops, which may need rewriting too."""
        name, location = op.name, op.location
        if reason.dtype_only:
            made = widened(op, self.version)
            if made is not None:
                run.rewritten("widen", name, location, made)
                return made
        decompose = DECOMPOSITIONS.get(op.name)
        if decompose is not None and run.allows(op.name.removeprefix("sx."), op):
            expansion = Expansion(op, op.name.removeprefix("sx."))
            try:
                values = decompose(op, expansion, self.version)
            except InferenceError as error:
                expansion.undo()
                raise self._refusal(op, Unstatable(str(error))) from error
            if values is not None and not any(_same(made, op, values) for made in expansion.made):
                made = expansion.replace(values)
                run.rewritten(name.removeprefix("sx."), name, location, made)
                return made
            expansion.undo()
        raise self._refusal(op, reason)

    def _refusal(self, op: SxOp, reason: Unstatable) -> OpsetError:
        form = onnx_form(op)
        onnx_name = form.name if form is not None else op.name
        lowest = _lowest_opset(op, self.version)
        remedy = f"opset {lowest} is the lowest that can" if lowest is not None else "no opset can"
        hint = op.results[0].name_hint if op.results else None
        where = locations.describe(op.location) or (f"%{hint}" if hint else op.name)
        error = OpsetError(
            f"{onnx_name} cannot be stated in opset {self.version}: {reason.reason}; {remedy}",
            location=where,
            op=op.name,
            hint=f"export with opset_version={lowest}" if lowest is not None else None,
        )
        error.lowest = lowest
        return error


def _same(made: SxOp, op: SxOp, values: Sequence[SSAValue | None]) -> bool:
    """Whether a decomposition says what was there before, with the same results: it is for another reason."""
    alike = made.name == op.name and made.properties == op.properties and tuple(made.operands) == tuple(op.operands)
    return alike and all(v is None or v is r for v, r in zip(values, made.results, strict=True))


def _lowest_opset(op: SxOp, above: int) -> int | None:
    """The lowest opset over `above` in which the op is one node, between casts perhaps."""
    for opset in range(above + 1, MAX_OPSET + 1):
        try:
            form_of(op, opset)
        except Unstatable as reason:
            if not reason.dtype_only or not widens(op, opset):
                continue
        return opset
    return None
