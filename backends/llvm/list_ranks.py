"""Ranks of the tensors in lists that a loop fills, beginning with an empty one.

An empty sequence has elements of no known rank, and so has what a loop carries that begins with it, though every
tensor that the loop puts into it may be of one rank. Where that is so, the carried list is of that rank.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from sardonyx.backends.llvm.copies import located_copy
from sardonyx.dialects.sx.control import LoopOp
from sardonyx.dialects.sx.sequence import SequenceInsertOp, is_empty
from sardonyx.dialects.types import SequenceType, escaped, innermost, join, known_symbols, stored
from sardonyx.errors import InferenceError
from sardonyx.passes.pipeline import run


def with_list_ranks(module: ModuleOp) -> ModuleOp:
    """A copy in which such lists have their ranks, or the module itself where there are none."""
    places = [k for k, op in enumerate(module.walk()) if isinstance(op, LoopOp) and any(map(_is_open, _states(op)))]
    for place in places:
        module = _refined(module, place)
    return module


def _states(op: LoopOp) -> list[tuple[SSAValue, SSAValue, SSAValue]]:
    """(initial value, the body's argument, what the body yields) of each state."""
    block = op.body.block
    return list(zip(op.initial, block.args[2:], op.yielded(op.body, "(C2)")[1:], strict=False))


def _is_open(state: tuple[SSAValue, SSAValue, SSAValue]) -> bool:
    first, argument, _ = state
    return is_empty(first) and isinstance(argument.type, SequenceType) and not _is_ranked(argument.type)


def _is_ranked(ty: Attribute) -> bool:
    return isinstance(innermost(ty), TensorType)


def _refined(module: ModuleOp, place: int) -> ModuleOp:
    """A copy with the ranks of one loop's lists; the module itself where they do not follow from what is put in."""
    copy = located_copy(module)
    op = next(op for k, op in enumerate(copy.walk()) if k == place)
    if not isinstance(op, LoopOp):
        return module
    known = known_symbols(op)
    states = [state for state in _states(op) if _is_open(state)]
    for _, argument, _ in states:
        element = _inserted(op, argument, known)
        if element is None:
            return module
        argument._type = SequenceType(element)
    try:
        run(copy, "infer-types")
        fits = all(join(argument.type, escaped(after.type, known)) == argument.type for _, argument, after in states)
    except InferenceError:
        return module
    return copy if fits else module


def _inserted(op: LoopOp, argument: SSAValue, known: frozenset[str]) -> Attribute | None:
    """The type of all tensors of the list's dtype that the body puts into lists, with no dims; None if ranks differ."""
    found: Attribute | None = None
    for one in op.body.walk():
        if not isinstance(one, SequenceInsertOp) or one.input_sequence.type != argument.type:
            continue
        ty = one.tensor.type
        if not isinstance(ty, TensorType):
            return None
        open_type = stored(ty, [None] * len(ty.get_shape()))
        if found is not None and found != open_type:
            return None
        found = open_type
    return found
