"""Value inference: what is known of the contents of small integer tensors, as dim expressions.

Shape(x) is a tensor whose contents are x's extents. Followed through Gather, Concat, Slice, Cast and arithmetic, they
reach a Reshape or an Expand, whose result then keeps its symbols instead of becoming unknown. Facts are cached on the
SSA value: rewrites keep values, so a fact once found stays true.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import OpResult, SSAValue

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, int32, int64

MAX_ELEMENTS = 64
"""Larger tensors are not followed: shapes and axes are short."""

Contents = tuple[Dim | None, ...]
_CACHE = "_sx_contents"
_UNKNOWN: Any = object()


def contents(value: SSAValue) -> Contents | None:
    """The elements of a small integer tensor, flat in row-major order, None per unknown element; a bool is 0 or 1.

    None where the value is no int32, int64 or bool tensor of static shape with at most `MAX_ELEMENTS` elements, or
    where nothing at all is known of it.
    """
    found = _facts(value).get(_CACHE, _UNKNOWN)
    if found is not _UNKNOWN:
        return found
    stack = [value]
    while stack:  # no recursion: chains may be thousands of ops long
        at = stack[-1]
        if _CACHE in _facts(at):
            stack.pop()
            continue
        if not isinstance(at, OpResult) or not _followed(at):
            _facts(at)[_CACHE] = None
            stack.pop()
            continue
        missing = [o for o in at.op.operands if _CACHE not in _facts(o) and o not in stack[-2:-1] and _followed(o)]
        if missing:
            stack.extend(missing)
            continue
        infer: Any = getattr(at.op, "infer_values", None)
        facts: Any = infer() if infer is not None else [None] * len(at.op.results)
        for result, fact in zip(at.op.results, list(facts), strict=True):
            if fact is not None and all(d is None for d in fact) and fact:
                fact = None
            _facts(result)[_CACHE] = fact
        stack.pop()
    return _facts(value)[_CACHE]


def _facts(value: Any) -> dict[str, Any]:
    """Where an SSA value keeps what is found out about it."""
    return value.__dict__


def forget(value: SSAValue) -> None:
    """Drop what is cached on a value whose op was changed in place."""
    _facts(value).pop(_CACHE, None)


def known_ints(value: SSAValue | None) -> tuple[int, ...] | None:
    """The elements as integers where all of them are known numbers; None otherwise (and for an absent value)."""
    if value is None:
        return None
    known = contents(value)
    if known is None:
        return None
    out: list[int] = []
    for d in known:
        number = None if d is None else d.static_value
        if number is None:
            return None
        out.append(number)
    return tuple(out)


def _followed(value: SSAValue) -> bool:
    shape = static_shape(value)
    if shape is None or len(shape) > 2:
        return False
    count = 1
    for extent in shape:
        count *= extent
    return count <= MAX_ELEMENTS and dtype_of(value) in (int32, int64, bool_)
