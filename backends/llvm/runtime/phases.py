"""Where the time of a compilation goes, and how far it is: phases, measured and told while somebody asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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


@dataclass(frozen=True)
class CompileProgress:
    """How far a compilation is: the phase, and how many of its ops or kernels are done; of 0 where nobody counts."""

    stage: str
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.stage}: {self.done} of {self.total}" if self.total else self.stage


Listener = Callable[[CompileProgress], object]


@dataclass
class _Told:
    """Who is told, and what the phase is."""

    listener: Listener
    stage: str = ""


_current: ContextVar[Phase | None] = ContextVar("phase", default=None)
_told: ContextVar[_Told | None] = ContextVar("told", default=None)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Count the time in here to a phase of the report that is being made, and tell who listens, if there are any."""
    outer, told = _current.get(), _told.get()
    if outer is None and told is None:
        yield
        return
    with _staged(told, name), nullcontext() if outer is None else _timed(outer.inner.setdefault(name, Phase(name))):
        yield


@contextmanager
def _staged(told: _Told | None, name: str) -> Iterator[None]:
    if told is None:
        yield
        return
    before, told.stage = told.stage, name
    told.listener(CompileProgress(name))
    try:
        yield
    finally:
        told.stage = before


def advance(done: int, total: int) -> None:
    """Tell who listens, if somebody does, how much of the phase is done."""
    told = _told.get()
    if told is not None:
        told.listener(CompileProgress(told.stage, done, total))


@contextmanager
def progress_to(listener: Listener | None) -> Iterator[None]:
    """Have all compilations in here tell how far they are; with None whoever is told now goes on being told.

    The listener is called on the thread that compiles. What it raises ends the compilation.
    """
    if listener is None:
        yield
        return
    token = _told.set(_Told(listener))
    try:
        yield
    finally:
        _told.reset(token)


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
