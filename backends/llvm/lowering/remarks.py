"""Remarks of the lowering: which ops became one kernel. Collected only while somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.ir import Operation

from sardonyx.dialects import locations
from sardonyx.passes.base import Remark

_collected: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


@contextmanager
def collecting() -> Iterator[list[Remark]]:
    """The remarks of what is lowered in here."""
    found: list[Remark] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def fused(how: str, root: Operation, ops: Iterable[Operation]) -> None:
    """Note that these ops are computed by one kernel, at the root; one op alone is no news."""
    found = _collected.get()
    if found is None:
        return
    several = [op for op in dict.fromkeys((*ops, root)) if op.name != "sx.constant"]
    if len(several) < 2:
        return
    places = {where for op in several if (where := locations.describe(op.location))}
    names = ", ".join(op.name.removeprefix("sx.") for op in several)
    lines = f" of {len(places)} lines" if len(places) > 1 else ""
    message = f"{len(several)} ops{lines} are one kernel ({how}): {names}"
    found.append(Remark("fusion", message, root.name, locations.describe(root.location)))
