"""`decompose-operators`: states operators that a runtime lacks by others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.onnx.forms import onnx_form
from sardonyx.backends.onnx.legalize import LegalizeForOpsetPass, OpsetError
from sardonyx.backends.onnx.nodes import Unstatable
from sardonyx.backends.onnx.options import DEFAULT_OPSET, check_opset
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.passes.base import PassRun, Promise, reassociates


@dataclass(frozen=True)
class DecomposeOperatorsPass(LegalizeForOpsetPass):
    """Decompose the ops that would become one of the named ONNX operators, as their definitions say.

    Cases:
    1. An op of one of the names is decomposed.
    2. So is what comes of it, if it bears one of the names.
    3. One for which there is no decomposition stays.

    Requires: nothing. Ensures: what is named is left only where no decomposition is known.
    Promise: reassociates; decomposing rounds in other places than before.
    """

    name = "decompose-operators"
    PROMISE: ClassVar[Promise] = reassociates(8)

    version: int = field(default=DEFAULT_OPSET, metadata={"help": "the opset, 13 to 28, that the rest is stated in"})
    names: tuple[str, ...] = field(default=(), metadata={"help": "ONNX's names of the operators"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        check_opset(self.version)
        named = set(self.names)
        work = [op for op in main_function(module).walk() if isinstance(op, SxOp)]
        work.reverse()
        while work:
            op = work.pop()
            form = onnx_form(op)
            if isinstance(op, ConstantOp) or form is None or form.name not in named:
                continue
            try:
                work.extend(reversed(self._rewrite(op, Unstatable("it is to be decomposed"), run)))
            except OpsetError:
                continue  # case 3
