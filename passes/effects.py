"""What may be removed, merged or evaluated: side effects and determinism of ops."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, MemoryWriteEffect, Pure, SymbolOpInterface, is_side_effect_free
from xdsl.transforms.dead_code_elimination import result_only_effects

_PURE: dict[type[Operation], bool] = {}


def _is_pure_type(cls: type[Operation]) -> bool:
    """Whether all ops of the class are pure whatever their operands; cached, since passes ask it of each op."""
    found = _PURE.get(cls)
    if found is None:
        # Traits are inherited: an op of ours that writes a buffer has the effect beside its base's `Pure`.
        others = (IsTerminator, SymbolOpInterface, MemoryWriteEffect)
        found = cls.has_trait(Pure) and not any(cls.has_trait(other) for other in others)
        _PURE[cls] = found
    return found


def is_removable(op: Operation) -> bool:
    """Whether the op may go once nobody reads its results: no terminator, no symbol, no effect but on its results."""
    if _is_pure_type(type(op)):
        return True
    if op.has_trait(IsTerminator, value_if_unregistered=True) or op.has_trait(
        SymbolOpInterface, value_if_unregistered=False
    ):
        return False
    return result_only_effects(op)


def is_unused(op: Operation) -> bool:
    return all(result.first_use is None for result in op.results)


def is_dead(op: Operation) -> bool:
    """Whether the op can be removed now."""
    return is_unused(op) and is_removable(op)


def is_deterministic(op: Operation) -> bool:
    """Whether equal operands give equal results: no effects, and nothing random.

    An op class that draws random numbers says so by an attribute or property `DETERMINISTIC` that is False.
    """
    if not all(getattr(each, "DETERMINISTIC", True) for each in (op.walk() if op.regions else (op,))):
        return False
    return _is_pure_type(type(op)) or (
        is_side_effect_free(op) and not op.has_trait(IsTerminator, value_if_unregistered=True)
    )
