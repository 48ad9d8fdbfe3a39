"""Building, evaluating and printing single ops in tests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, Builtin, ModuleOp, TensorType, UnrankedTensorType
from xdsl.ir import Block, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from sardonyx.dialects.attributes import dtype_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx import BY_NAME, SX
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.values import contents

Array = np.ndarray[Any, Any]


def op(name: str) -> Any:
    """The class of `sx.<name>`; not typed, so that tests reach the members of that op."""
    return BY_NAME[f"sx.{name}"]


def value(dtype: DType | str, dims: Sequence[int | str | Dim] | None) -> SSAValue:
    """A graph input of that dtype and those dims; no dims: unknown rank."""
    dtype = DType.of(dtype)
    ty = UnrankedTensorType(dtype.ir) if dims is None else tensor_type(dtype, dims)
    return Block(arg_types=[ty]).args[0]


def constant(array: Any, dtype: DType | str | None = None) -> SSAValue:
    """A dense constant."""
    found = np.asarray(array) if dtype is None else np.asarray(array, DType.of(dtype).numpy)
    return ConstantOp.dense(found).output


def extents(dims: Sequence[int | str | Dim]) -> SSAValue:
    """An int64 vector whose elements are known to be these extents."""
    out = value("int64", [len(dims)])
    out._sx_contents = tuple(Dim.of(d) for d in dims)  # pyright: ignore[reportAttributeAccessIssue]
    return out


def known(made: SxOp) -> list[str | None] | None:
    """What value inference says of an op's only result."""
    facts = contents(made.results[0])
    return None if facts is None else [None if d is None else str(d) for d in facts]


def shape(made: SxOp, result: int = 0) -> list[str] | None:
    """The dims of a result as text, `?` for one that nobody named; None where the rank is unknown."""
    ty = made.results[result].type
    if not isinstance(ty, TensorType):
        return None
    named = getattr(ty.encoding, "data", (None,) * len(ty.get_shape()))
    out: list[str] = []
    for size, dim in zip(ty.get_shape(), named):
        text = str(size) if size != DYNAMIC_INDEX else str(dim)
        out.append("?" if "?" in text else text)
    return out


def run(cls: type[SxOp], *slots: Any, **properties: Any) -> Array:
    """The only result of the op on these arrays; see `run_all`."""
    (out,) = run_all(cls, *slots, **properties)
    return out


def run_all(cls: type[SxOp], *slots: Any, results: int | None = None, **properties: Any) -> list[Array]:
    """The op on these arrays, built three times: with static dims, with dynamic ones, and with small integer operands
    as constants. The three agree in every bit and with the inferred types; operands stay as they are.

    A slot is an array, None, or a list of arrays for a variadic group.
    """
    outcomes = [_run(cls, slots, mode, results, properties) for mode in ("static", "dynamic", "constant")]
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return outcomes[0]


def _run(cls: type[SxOp], slots: Sequence[Any], mode: str, results: int | None, properties: Any) -> list[Array]:
    ctx = EvalContext()
    before: list[tuple[Array, bytes]] = []

    def operand(given: Any) -> SSAValue:
        array = np.asarray(given)
        dtype = DType.of(array.dtype)
        if mode == "constant" and dtype.name in ("int64", "int32", "bool") and array.size <= 64:
            at = constant(array)
        else:
            dims = [f"s{len(before)}_{i}" for i in range(array.ndim)] if mode == "dynamic" else array.shape
            at = value(dtype, dims)
        before.append((array, array.tobytes()))
        ctx.values[at] = array
        return at

    built = [None if s is None else [operand(o) for o in s] if isinstance(s, list) else operand(s) for s in slots]
    made = cls.make(*built, results=results, **properties)
    made.verify()
    evaluate_op(made, ctx)
    for array, data in before:
        assert array.tobytes() == data, "an operand was changed"
    out = [ctx.values[r] for r in made.results]
    for result, array in zip(made.results, out, strict=True):
        assert DType.of(array.dtype) == dtype_of(result)
        ty = result.type
        if isinstance(ty, TensorType):
            assert len(ty.get_shape()) == array.ndim, f"{ty} inferred, {array.shape} found"
            sizes = zip(ty.get_shape(), array.shape, strict=True)
            assert all(s in (DYNAMIC_INDEX, n) for s, n in sizes), f"{ty} inferred, {array.shape} found"
        facts = contents(result)
        if facts is not None:
            found = [int(v) for v in array.reshape(-1)]
            stated = [None if d is None else d.static_value for d in facts]
            assert all(s in (None, n) for s, n in zip(stated, found, strict=True)), f"{facts} inferred, {found} found"
    return out


def round_trip(made: SxOp) -> str:
    """The op's line in a module's custom form, once custom and generic form were parsed back to the same module."""
    operands = list(made.operands)
    module, block = create_module("g", [(f"x{i}", o.type, None) for i, o in enumerate(operands)])
    inside = made.clone(dict(zip(operands, block.args, strict=True)))
    block.add_op(inside)
    set_outputs(module, inside.results, [f"y{i}" for i in range(len(inside.results))])
    custom, generic = _text(module, False), _text(module, True)
    for text in (custom, generic):
        again = Parser(_context(), text).parse_module()
        again.verify()
        assert _text(again, False) == custom and _text(again, True) == generic
    return next(line.strip() for line in custom.splitlines() if made.name in line)


def _context() -> Context:
    ctx = Context()
    for dialect in (Builtin, func.Func, SX):
        ctx.load_dialect(dialect)
    return ctx


def _text(module: ModuleOp, generic: bool) -> str:
    out = io.StringIO()
    Printer(stream=out, print_generic_format=generic).print_op(module)
    return out.getvalue()
