"""The embedding API: MLIR text in, passes over it, values out: `parse`, `run_pipeline`, `IRModule.evaluate`.

    module = sardonyx.parse(text)
    sardonyx.run_pipeline(module, "simplify,cse")
    assert module.evaluate([x])[0] == ...

Ops of `sx` and of upstream's arith, func, scf, tensor and linalg are evaluated; `register_evaluator` adds others.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from sardonyx.dialects.evaluate import (
    EvalContext as EvalContext,
    Value,
    evaluate_function,
    register_evaluator as register_evaluator,
)
from sardonyx.dialects.module import main_function
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.check_inputs import scalar_dtype
from sardonyx.passes.context import make_context
from sardonyx.passes.pipeline import PassManager, PipelineReport
from sardonyx.passes.text import Text, parse_text, verify_located

if TYPE_CHECKING:
    from sardonyx.passes.checked import CheckOptions


class IRModule:
    """A module of MLIR with the dialects that it was read with; `op` is xDSL's module, `str(…)` its text."""

    def __init__(self, op: ModuleOp, context: Context | None = None) -> None:
        self.op = op
        self.context = context if context is not None else make_context()

    def __str__(self) -> str:
        out = io.StringIO()
        Printer(stream=out).print_op(self.op)
        return out.getvalue() + "\n"

    def __repr__(self) -> str:
        names = ", ".join(f"@{op.sym_name.data}" for op in self.op.body.block.ops if isinstance(op, FuncOp))
        return f"<IRModule of {names or 'no functions'}>"

    def clone(self) -> IRModule:
        """A copy that shares nothing that passes change."""
        return IRModule(self.op.clone(), self.context)

    def verify(self) -> None:
        """Verify the module.

        Raises:
            InvalidArgumentError: It is invalid; the error names the op and its line.
        """
        verify_located(self.op, "the module is invalid")

    def function(self, name: str | None = None) -> FuncOp:
        """A function by name; None: `@main`, or the only one.

        Raises:
            InvalidArgumentError: There is none.
        """
        if name is None:
            return main_function(self.op)
        functions = {op.sym_name.data: op for op in self.op.body.block.ops if isinstance(op, FuncOp)}
        if name not in functions:
            known = ", ".join(f"@{n}" for n in functions) or "none"
            raise InvalidArgumentError(f"the module has no function @{name}", hint=f"its functions: {known}")
        return functions[name]

    def evaluate(self, inputs: Sequence[Any] | Mapping[str, Any] = (), function: str | None = None) -> list[Value]:
        """The outputs of a function by the reference semantics of its ops.

        Args:
            inputs: A value per argument (in order, or by the argument's name): anything that NumPy makes an array of,
                in the argument's dtype; a list for a sequence.
            function: Its name; None: `@main`, or the only one.

        Raises:
            InvalidArgumentError: The inputs do not fit.
            UnsupportedError: An op has no semantics here; `register_evaluator` gives it some.
            ExecutionError: The data is refused.
        """
        chosen = self.function(function)
        arguments = chosen.body.block.args
        if isinstance(inputs, Mapping):
            names = [a.name_hint or str(i) for i, a in enumerate(arguments)]
            if set(inputs) != set(names):
                raise InvalidArgumentError(f"inputs are {sorted(inputs)}, and the function takes {names}")
            inputs = [inputs[name] for name in names]
        if len(inputs) != len(arguments):
            raise InvalidArgumentError(f"{len(inputs)} inputs were given, and the function takes {len(arguments)}")
        values = [_as_value(value, argument.type) for value, argument in zip(inputs, arguments, strict=True)]
        return evaluate_function(chosen, values)


def _as_value(value: Any, ty: Any) -> Value:
    dtype = scalar_dtype(ty)
    if dtype is None or value is None or isinstance(value, list) and not _is_numeric(value):
        return value
    array = np.asarray(value)
    if array.dtype != dtype.numpy and isinstance(value, np.ndarray):
        raise InvalidArgumentError(f"an input is {array.dtype}, and its argument {ty}")
    return array.astype(dtype.numpy)


def _is_numeric(value: list[Any]) -> bool:
    return not any(isinstance(v, np.ndarray) for v in value)


def parse(text: str, name: str = "<text>", dialects: Sequence[Dialect] = (), unregistered: bool = False) -> IRModule:
    """Read and verify a module of MLIR text.

    Args:
        text: The text; ops that state no location get the line on which they stand.
        name: What errors and locations call it.
        dialects: Dialects beside ours, upstream's, and those that were loaded.
        unregistered: Whether ops of unknown dialects are accepted.

    Raises:
        InvalidArgumentError: The text does not parse, or the module is invalid.
    """
    context = make_context(unregistered)
    for dialect in dialects:
        if dialect.name not in context.registered_dialect_names:
            context.load_dialect(dialect)
    return IRModule(parse_text(context, Text(text, name)), context)


def run_pipeline(
    module: IRModule | ModuleOp,
    pipeline: str | Sequence[ModulePass],
    *,
    check: CheckOptions | int | None = None,
    verify_each: bool = True,
) -> PipelineReport:
    """Run passes over a module, in place; the report says what they did.

    Args:
        module: What `parse` gave, or a module of xDSL's.
        pipeline: Its text, such as `simplify,fold-constants{max-bytes=64}`, or passes.
        check: Evaluate what each pass changed before and after on so many inputs (see `docs/checked-passes.md`).
        verify_each: Verify the module after each pass that changed it.

    Raises:
        SardonyxError: A pass failed, left invalid IR, or (with `check`) changed values.
    """
    wrapped = module if isinstance(module, IRModule) else IRModule(module)
    return PassManager(pipeline, verify_each=verify_each, check=check).run(wrapped.op, wrapped.context)
