"""Single rewrites under control: traces of them, fuel, and debug counters.

A *try* is one pattern on one op, whether it fires or not; a rewrite is a try that fired. Fuel counts rewrites. Debug
counters count tries, as mlir-opt's do: only so can one rewrite be left out and those behind it be kept, since whether
a pattern fires is known after it was tried. `--trace-rewrites` prints both numbers. Both are the same in every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from xdsl.ir import Operation

from sardonyx.dialects import locations
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.base import RewriteEvent, RewriteListener


@dataclass(frozen=True)
class Counter:
    """Which tries of a pass, of one pattern, or of all (`*`) are made: ranges of numbers from 0, both ends included."""

    name: str
    ranges: tuple[tuple[int, int], ...]

    def allows(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.ranges)


def parse_counter(text: str) -> Counter:
    """Read `NAME=RANGES`, where RANGES are `3`, `0-4` or `7-` with colons in between; none allows nothing.

    Raises:
        InvalidArgumentError: It is not of that form.
    """
    name, equals, ranges = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError
        found: list[tuple[int, int]] = []
        for part in filter(None, ranges.split(":")):
            low, dash, high = part.partition("-")
            found.append((int(low), int(high) if high else (1 << 62) if dash else int(low)))
        return Counter(name, tuple(found))
    except ValueError:
        raise InvalidArgumentError(
            f"--debug-counter '{text}' is not NAME=RANGES", hint="for example cse=0-4:7 or simplify:add-zero="
        ) from None


class RewriteControl(RewriteListener):
    """The listener of `sardonyx-opt`.

    Args:
        stream: Where the trace goes.
        fuel: How many rewrites are done; None for all.
        counters: Restrictions of the tries.
        traced: The passes whose rewrites are printed; `*` means all.
        marks: Where the times of rewrites are noted, for a Chrome trace.
    """

    def __init__(
        self,
        stream: TextIO,
        fuel: int | None = None,
        counters: Sequence[Counter] = (),
        traced: frozenset[str] = frozenset(),
        marks: list[tuple[str, float]] | None = None,
    ) -> None:
        self.stream = stream
        self.fuel = fuel
        self.counters = counters
        self.traced = traced
        self.marks = marks
        self.done = 0
        self.tries: dict[str, int] = {}
        self.rewrites: dict[str, int] = {}
        self._names = {counter.name for counter in counters}

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        """Number the try, and say whether it is made."""
        if self.fuel is not None and self.done >= self.fuel:
            return False
        name = f"{pass_name}:{pattern}"
        numbers: dict[str, int] = {}
        for key in (name, pass_name, "*"):
            numbers[key] = self.tries.get(key, 0)
            self.tries[key] = numbers[key] + 1
        return all(c.allows(numbers[c.name]) for c in self.counters if c.name in numbers)

    def on_rewrite(self, event: RewriteEvent) -> None:
        """Note the rewrite, and print it."""
        name = f"{event.pass_name}:{event.pattern}"
        if self.marks is not None:
            self.marks.append((name, time.perf_counter()))
        if "*" in self.traced or event.pass_name in self.traced:
            made = ", ".join(new.name for new in event.inserted)
            where = locations.describe(event.location)
            at = f" at {where}" if where else ""
            tried = self.tries.get(name, 1) - 1
            result = f" -> {made}" if made else ""
            self.stream.write(f"rewrite {self.done} (try {tried}): {name} on {event.op}{at}{result}\n")
        self.done += 1
        self.rewrites[name] = self.rewrites.get(name, 0) + 1

    def print_counters(self, stream: TextIO) -> None:
        """How often each pattern was tried, and how often it fired."""
        stream.write("===--- Debug counters ---===\n     tries  rewrites\n")
        for name in sorted({*(name for name in self.tries if ":" in name), *self.rewrites}):
            stream.write(f"  {self.tries.get(name, 0):8d}  {self.rewrites.get(name, 0):8d}  {name}\n")


class Listeners(RewriteListener):
    """Several listeners as one; a try is made if all of them allow it."""

    def __init__(self, several: Iterable[RewriteListener]) -> None:
        self.several = tuple(several)

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        answers = [one.on_match(pass_name, pattern, op) for one in self.several]  # all of them are told
        return all(answers)

    def on_rewrite(self, event: RewriteEvent) -> None:
        for one in self.several:
            one.on_rewrite(event)
