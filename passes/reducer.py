"""Makes a module smaller as long as it stays interesting: delta debugging over functions, results, ops and inputs, then
over extents and constants.

What is interesting is a predicate's business. Every candidate is a verified copy, so a predicate sees valid IR only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, FunctionType, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sardonyx.dialects.attributes import dtype_of, tensor_type, type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import MissingWeightError
from sardonyx.passes.effects import is_dead
from sardonyx.passes.propagate import sync_functions

T = TypeVar("T")
Interesting = Callable[[ModuleOp], bool]


def ddmin(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """A smallest part of the items that still holds: no single one can be left out (Zeller and Hildebrandt, 2002)."""
    kept = list(items)
    parts = 2
    while len(kept) >= 1:
        size = max(1, len(kept) // parts)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if len(rest) < len(kept) and holds(rest):
                kept = rest
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                return kept
            parts = min(len(kept), parts * 2)
    return kept


LARGE = 10_000
"""With more elements in inputs and constants, extents are made small first."""


class Reducer:
    """Reduces modules.

    Args:
        interesting: Whether a module still shows what it has to show; it may change the module that it is given. What
            it raises counts as no.
        seconds: When to stop with what there is.
        max_extent: Static extents beyond this are tried smaller.
    """

    def __init__(self, interesting: Interesting, seconds: float = 60.0, max_extent: int = 2) -> None:
        self.predicate = interesting
        self.deadline = time.monotonic() + seconds
        self.max_extent = max_extent
        self.tried = 0
        self.module = ModuleOp([])

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > self.deadline

    def reduce(self, module: ModuleOp) -> ModuleOp:
        """The smallest module that was found; the one given where nothing smaller is interesting."""
        self.module = module
        if _measure(module)[2] > LARGE:
            self._extents()  # what follows is quicker then
        while not self.out_of_time:
            before = _measure(self.module)
            self._functions()
            self._results()
            self._cut()
            self._bypass()
            self._drop_operations()
            self._inputs()
            self._extents()
            self._constants()
            if _measure(self.module) >= before:
                break
        return self.module

    # ---- one candidate
    def accept(self, change: Callable[[ModuleOp], bool | None]) -> bool:
        """Try a change on a copy, and keep the copy if it is valid and interesting.

        A change that finds nothing to do returns False.
        """
        if self.out_of_time:
            return False
        candidate = self.module.clone()
        self.tried += 1
        try:
            if change(candidate) is False:
                return False
            _clean(candidate)
            sync_functions(candidate)
            candidate.verify()
            if not self.predicate(candidate.clone()):
                return False
        except Exception:  # noqa: BLE001 -- whatever a half-made module raises, it is not a smaller case of the same
            return False
        self.module = candidate
        return True

    # ---- steps
    def _functions(self) -> None:
        names = [op.sym_name.data for op in _functions(self.module)]
        if len(names) > 1:
            ddmin(names, lambda kept: self.accept(lambda m: _keep_functions(m, kept)))

    def _results(self) -> None:
        """Leave out results; then let the function return what lies in between instead."""
        for number, function in enumerate(_functions(self.module)):
            last = function.body.blocks[0].last_op if len(function.body.blocks) == 1 else None
            if isinstance(last, func.ReturnOp) and len(last.operands) > 1:
                places = list(range(len(last.operands)))
                ddmin(places, lambda kept, n=number: bool(kept) and self.accept(lambda m: _keep_results(m, n, kept)))
        for number in range(len(_functions(self.module))):
            self._return_first(number)
            self._return_earlier(number)

    def _return_first(self, number: int) -> None:
        """Return the first value that is interesting, found by halving: what comes behind it goes."""
        last = _functions(self.module)[number].body.blocks[0].last_op
        if not isinstance(last, func.ReturnOp) or len(last.operands) != 1:
            return
        bad = len(list(_functions(self.module)[number].body.blocks[0].ops)) - 1
        low = 0
        while bad - low > 8 and not self.out_of_time:
            middle = (low + bad) // 2
            if self.accept(lambda m, a=middle: _return_at(m, number, a)):
                bad = len(list(_functions(self.module)[number].body.blocks[0].ops)) - 1
            else:
                low = middle

    def _return_earlier(self, number: int) -> None:
        """Return an operand of what is returned, as long as that is interesting."""
        while not self.out_of_time:
            last = _functions(self.module)[number].body.blocks[0].last_op
            if not isinstance(last, func.ReturnOp) or len(last.operands) != 1:
                return
            owner = last.operands[0].owner
            if not isinstance(owner, Operation):
                return
            for place in range(len(owner.operands)):
                if self.accept(lambda m, p=place: _return_operand(m, number, p)):
                    break
            else:
                return

    def _cut(self) -> None:
        """Make results of ops inputs, so that what computes them goes: late ones first, then several at once."""
        count = len(_body_ops(self.module))
        at = count - 1
        while at >= 0 and not self.out_of_time:
            ops = _body_ops(self.module)
            if at < len(ops) and not isinstance(ops[at], ConstantOp | func.ReturnOp) and ops[at].results:
                self.accept(lambda m, a=at: _to_inputs(m, a))
            at = min(at, len(_body_ops(self.module))) - 1

    def _bypass(self) -> None:
        """Let the readers of an op read one of its operands of the same type."""
        at = len(_body_ops(self.module)) - 1
        while at >= 0 and not self.out_of_time:
            ops = _body_ops(self.module)
            if at < len(ops) and len(ops[at].results) == 1:
                for place, operand in enumerate(ops[at].operands):
                    if operand.type == ops[at].results[0].type and self.accept(
                        lambda m, a=at, p=place: _replace(m, a, p)
                    ):
                        break
            at = min(at, len(_body_ops(self.module))) - 1

    def _drop_operations(self) -> None:
        """Leave out ops whose results nobody reads: those with effects, which dead code removal keeps."""
        at = len(_body_ops(self.module)) - 1
        while at >= 0 and not self.out_of_time:
            ops = _body_ops(self.module)
            if at < len(ops) and not isinstance(ops[at], func.ReturnOp) and _unread(ops[at]):
                self.accept(lambda m, a=at: _erase(m, a))
            at = min(at, len(_body_ops(self.module))) - 1

    def _inputs(self) -> None:
        """Leave out inputs that nothing reads."""
        for number, function in enumerate(_functions(self.module)):
            if function.body.blocks and any(a.first_use is None for a in function.body.blocks[0].args):
                self.accept(lambda m, n=number: _drop_inputs(m, n))

    def _extents(self) -> None:
        """Make static extents small, all equal ones at once; make symbols numbers."""
        sizes = {
            e for a in _arguments(self.module) if isinstance(a.type, TensorType) for e in a.type.get_shape() if e > 1
        }
        for size in sorted(sizes, reverse=True):
            for smaller in range(1, min(size, self.max_extent + 2)):
                if self.accept(lambda m, s=size, t=smaller: _resize(m, Dim.of(s), t)):
                    break
        symbols = {s for a in _arguments(self.module) if (dims := _dims(a.type)) for d in dims for s in d.symbols()}
        for symbol in sorted(symbols):
            for number in range(1, self.max_extent + 2):
                if self.accept(lambda m, s=symbol, t=number: _resize(m, Dim.symbol(s), t)):
                    break

    def _constants(self) -> None:
        """Make the contents of constants plain: all zeros, all ones, or counted through."""
        at = 0
        while at < len(_body_ops(self.module)) and not self.out_of_time:
            op = _body_ops(self.module)[at]
            if isinstance(op, ConstantOp):
                for plain in _plainer(op):
                    if self.accept(lambda m, a=at, p=plain: _restate(m, a, p)):
                        break
            at += 1


# ---- what there is


def _measure(module: ModuleOp) -> tuple[int, int, int]:
    """How large a module is: ops, inputs, elements of constants and inputs."""
    ops = list(module.walk())
    arguments = _arguments(module)
    elements = sum(_size(op.output.type) for op in ops if isinstance(op, ConstantOp))
    return len(ops), len(arguments), elements + sum(_size(a.type) for a in arguments)


def _size(ty: object) -> int:
    return int(np.prod([max(e, 0) for e in ty.get_shape()], dtype=np.int64)) if isinstance(ty, TensorType) else 1


def _functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]


def _arguments(module: ModuleOp) -> list[BlockArgument]:
    return [a for f in _functions(module) if f.body.blocks for a in f.body.blocks[0].args]


def _body_ops(module: ModuleOp) -> list[Operation]:
    return [op for f in _functions(module) for block in f.body.blocks for op in block.ops]


def _unread(op: Operation) -> bool:
    return all(r.first_use is None for r in op.results)


def _clean(module: ModuleOp) -> None:
    """Remove what nobody reads."""
    for op in reversed(list(module.walk())):
        if op is not module and op.parent is not None and is_dead(op):
            op.detach()
            op.erase()


# ---- changes


def _keep_functions(module: ModuleOp, kept: Sequence[str]) -> bool:
    for function in _functions(module):
        if function.sym_name.data not in kept:
            function.detach()
            function.erase()
    return bool(kept)


def _set_results(function: func.FuncOp, values: Sequence[SSAValue], kept: Sequence[int] | None) -> None:
    block = function.body.blocks[0]
    last = block.last_op
    assert last is not None
    location = last.location
    last.detach()
    last.erase()
    returned = func.ReturnOp(*values)
    returned.location = location
    block.add_op(returned)
    attrs = function.properties.get("res_attrs")
    if isinstance(attrs, ArrayAttr):
        function.properties["res_attrs"] = ArrayAttr([attrs.data[i] for i in (kept if kept is not None else ())])
        if not function.properties["res_attrs"].data or len(function.properties["res_attrs"].data) != len(values):
            del function.properties["res_attrs"]
    inputs = [a.type for a in block.args]
    function.properties["function_type"] = FunctionType.from_lists(inputs, [v.type for v in values])


def _keep_results(module: ModuleOp, number: int, kept: Sequence[int]) -> None:
    function = _functions(module)[number]
    last = function.body.blocks[0].last_op
    assert last is not None
    _set_results(function, [last.operands[i] for i in kept], kept)


def _return_operand(module: ModuleOp, number: int, place: int) -> bool:
    function = _functions(module)[number]
    last = function.body.blocks[0].last_op
    owner = last.operands[0].owner if last is not None else None
    if not isinstance(owner, Operation):
        return False
    _set_results(function, [owner.operands[place]], [0])
    return True


def _return_at(module: ModuleOp, number: int, at: int) -> bool:
    """Return the first result of the op at that place, or of the next one that has one and is no constant."""
    function = _functions(module)[number]
    for op in list(function.body.blocks[0].ops)[at:]:
        if op.results and not isinstance(op, ConstantOp):
            _set_results(function, [op.results[0]], None)
            return True
    return False


def _to_inputs(module: ModuleOp, at: int) -> bool:
    op = _body_ops(module)[at]
    block = op.parent
    read = [r for r in op.results if r.first_use is not None]
    if not isinstance(block, Block) or not read:
        return False
    for result in read:
        argument = block.insert_arg(result.type, len(block.args), op.location)
        argument.name_hint = result.name_hint
        result.replace_all_uses_with(argument)
    function = op.parent_op()
    if isinstance(function, func.FuncOp):
        function.properties.pop("arg_attrs", None)
        _retype(function)
    return True


def _retype(function: func.FuncOp) -> None:
    block = function.body.blocks[0]
    last = block.last_op
    outputs = [o.type for o in last.operands] if last is not None else []
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], outputs)


def _replace(module: ModuleOp, at: int, place: int) -> None:
    op = _body_ops(module)[at]
    op.results[0].replace_all_uses_with(op.operands[place])


def _erase(module: ModuleOp, at: int) -> None:
    op = _body_ops(module)[at]
    op.detach()
    op.erase()


def _drop_inputs(module: ModuleOp, number: int) -> None:
    function = _functions(module)[number]
    block = function.body.blocks[0]
    kept = [i for i, a in enumerate(block.args) if a.first_use is not None]
    for argument in list(block.args):
        if argument.first_use is None:
            block.erase_arg(argument)
    attrs = function.properties.get("arg_attrs")
    if isinstance(attrs, ArrayAttr):
        function.properties["arg_attrs"] = ArrayAttr([attrs.data[i] for i in kept])
    _retype(function)


def _dims(ty: object) -> tuple[Dim, ...]:
    ranked = isinstance(ty, TensorType) and DType.from_ir(ty.element_type) is not None
    return type_dims(ty) if isinstance(ty, TensorType) and ranked else ()


def _resize(module: ModuleOp, size: Dim, smaller: int) -> None:
    """Make every extent of that size smaller: of inputs, of constants that have it, and of entries of shapes; or put a
    number in a symbol's place."""
    for function in _functions(module):
        for argument in function.body.blocks[0].args:
            if isinstance(argument.type, TensorType) and isinstance(argument.type.encoding, NoneAttr):
                argument._type = _resized(argument.type, size, smaller)
            elif dims := _dims(argument.type):
                argument._type = tensor_type(dtype_of(argument), [_smaller(d, size, smaller) for d in dims])
        for op in function.walk():
            if isinstance(op, ConstantOp) and size.static_value is not None:
                _resize_constant(op, size.static_value, smaller)
    for function in _functions(module):
        for op in function.walk():
            if isinstance(op, SxOp) and op.results and not op.regions:
                for result, ty in zip(op.results, op.infer(), strict=True):
                    result._type = ty
            elif not isinstance(op, SxOp) and op is not function:
                _resize_foreign(op, size, smaller)
        _retype(function)


def _resize_foreign(op: Operation, size: Dim, smaller: int) -> None:
    """Ops of other dialects infer nothing: their results and constants change alike."""
    for result in op.results:
        if isinstance(result.type, TensorType) and isinstance(result.type.encoding, NoneAttr):
            result._type = _resized(result.type, size, smaller)
    for name, attr in list(op.properties.items()):
        if isinstance(attr, DenseIntOrFPElementsAttr) and isinstance(attr.type, TensorType) and attr.is_splat():
            ty = _resized(attr.type, size, smaller)
            op.properties[name] = DenseIntOrFPElementsAttr.from_list(ty, [attr.get_values()[0]])


def _resized(ty: TensorType[Any], size: Dim, smaller: int) -> TensorType[Any]:
    shape = [smaller if e == size.static_value else e for e in ty.get_shape()]
    return TensorType(ty.element_type, shape, ty.encoding)


def _smaller(dim: Dim, size: Dim, smaller: int) -> Dim:
    if size.static_value is not None:
        return Dim.of(smaller) if dim == size else dim
    return dim.substitute({str(size.symbol_name): smaller})


def _resize_constant(op: ConstantOp, size: int, smaller: int) -> None:
    ty = op.output.type
    if not isinstance(ty, TensorType):
        return
    shape = ty.get_shape()
    vector = len(shape) == 1 and ty.element_type == DType.of("int64").ir and shape[0] <= 8
    if size not in shape and not vector:
        return
    array = op.array()
    cut = array[tuple(slice(0, smaller) if e == size and not (vector and size <= 8) else slice(None) for e in shape)]
    if vector:
        cut = np.where(cut == size, smaller, cut)
    op.properties["value"] = ConstantOp.dense(np.ascontiguousarray(cut).reshape(cut.shape)).value


def _plainer(op: ConstantOp) -> Iterator[Array]:
    """Plainer contents than the constant has, the plainest first."""
    if not isinstance(op.output.type, TensorType) or DType.of(op.output.type.element_type).kind == "s":
        return
    try:
        array = op.array()
    except MissingWeightError:
        return
    if not array.size:
        return
    for plain in (np.zeros(array.shape), np.ones(array.shape), np.arange(1, array.size + 1).reshape(array.shape)):
        made = plain.astype(array.dtype)
        if (made == array).all():
            return
        yield made


def _restate(module: ModuleOp, at: int, array: Array) -> None:
    op = _body_ops(module)[at]
    assert isinstance(op, ConstantOp)
    op.properties["value"] = ConstantOp.dense(array).value
