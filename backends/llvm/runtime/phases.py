"""Where the time of a compilation goes: a tree of phases, measured only while somebody has asked for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Phase:
    """A phase: its name, seconds, and the phases inside it, by name in order."""

    name: str
    seconds: float = 0.0
    count: int = 0
    inner: dict[str, Phase] = field(default_factory=dict)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The tree as text, a line a phase: milliseconds, name, how often if not once."""
        times = f" ×{self.count}" if self.count > 1 else ""
        yield f"{self.seconds * 1e3:9.1f} ms  {'  ' * depth}{self.name}{times}"
        for one in self.inner.values():
            yield from one.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


_current: ContextVar[Phase | None] = ContextVar("phase", default=None)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Count the time in here to a phase of the report that is being made, if there is one."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with _timed(outer.inner.setdefault(name, Phase(name))):
        yield


@contextmanager
def time_report(name: str) -> Iterator[Phase]:
    """Make a report of what happens in here."""
    report = Phase(name)
    with _timed(report):
        yield report


@contextmanager
def _timed(one: Phase) -> Iterator[None]:
    token = _current.set(one)
    start = time.perf_counter()
    try:
        yield
    finally:
        one.seconds += time.perf_counter() - start
        one.count += 1
        _current.reset(token)


def note(name: str, seconds: float) -> None:
    """Add a phase that was measured elsewhere, as in another process."""
    outer = _current.get()
    if outer is not None:
        one = outer.inner.setdefault(name, Phase(name))
        one.seconds += seconds
        one.count += 1
