"""Regular expressions in RE2's syntax that match in a time bounded by the sizes of pattern and text.

ONNX's RegexFullMatch is defined by RE2 (https://github.com/google/re2/wiki/Syntax). Python's `re` backtracks, so that
a short pattern can take for ever, and reads some patterns otherwise: its `\\d` are all of Unicode's digits, and it has
references back. Here a pattern becomes an automaton (Thompson, "Regular Expression Search Algorithm", 1968), whose
states are followed all at once, each set of them by a table that is made as it is needed.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, lru_cache

MAX_STATES = 20_000
"""A pattern that needs more is refused, as RE2 refuses one that needs too much memory."""
MAX_REPEAT = 1000
MAX_NESTING = 100
MAX_TABLE = 500_000
"""How many states the remembered sets have in all; then the table starts anew."""


class PatternError(ValueError):
    """A pattern that RE2's syntax does not have, or one that is too large."""


Ranges = tuple[tuple[int, int], ...]

_DIGIT: Ranges = ((48, 57),)
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (127, 127)), "digit": _DIGIT, "graph": ((33, 126),),
    "lower": ((97, 122),), "print": ((32, 126),), "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": _WORD, "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_LAST = 0x10FFFF


@dataclass(frozen=True)
class Characters:
    """A set of characters: some ranges and categories of Unicode (a category may be excluded), or all but them."""

    ranges: Ranges
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False
    folded: bool = False

    def has(self, character: str) -> bool:
        if not self.folded:
            return self._has(character) != self.negated
        cases = {character, character.lower(), character.upper(), character.title(), character.casefold()}
        return any(self._has(c) for c in cases if len(c) == 1) != self.negated

    def _has(self, character: str) -> bool:
        code = ord(character)
        at = bisect_right(self.ranges, (code, _LAST)) - 1
        if at >= 0 and code <= self.ranges[at][1]:
            return True
        if not self.categories:
            return False
        category = unicodedata.category(character)
        return any(category.startswith(prefix) != excluded for prefix, excluded in self.categories)


def characters(
    ranges: list[tuple[int, int]], categories: list[tuple[str, bool]], negated: bool, folded: bool
) -> Characters:
    """A set whose ranges are in order and do not overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return Characters(tuple(merged), tuple(categories), negated, folded)


Step = Characters | str | None
"""What a state waits for: a character, a place ('start', 'end', 'line start', …), or nothing."""


class Pattern:
    """A compiled pattern.

    State k waits for `steps[k]` and goes on to `targets[k]`; the last state is the end.
    """

    def __init__(self, text: str) -> None:
        self.steps: list[Step] = []
        self.targets: list[list[int]] = []
        parser = _Parser(text, self)
        first, ends = parser.whole()
        self.last = self.state(None)
        self.patch(ends, self.last)
        self.first = first
        self._placed = any(isinstance(step, str) for step in self.steps)
        self._table: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._held = 0

    def state(self, step: Step) -> int:
        if len(self.steps) >= MAX_STATES:
            raise PatternError("the pattern is too large")
        self.steps.append(step)
        self.targets.append([])
        return len(self.steps) - 1

    def patch(self, ends: list[int], target: int) -> None:
        for end in ends:
            self.targets[end].append(target)

    def matches(self, text: str) -> bool:
        """Whether the text as a whole matches."""
        states = frozenset((self.first,))
        for index, character in enumerate(text):
            if self._placed:
                reached = self._closure(states, text, index)
                states = frozenset(t for s in reached for t in self._after(s, character))
            else:
                states = self._next(states, character)
            if not states:
                return False
        return self.last in self._closure(states, text, len(text))

    def _next(self, states: frozenset[int], character: str) -> frozenset[int]:
        """The states behind a character, where none waits for a place."""
        key = states, character
        found = self._table.get(key)
        if found is None:
            reached = self._closure(states, "", 0)
            found = frozenset(t for s in reached for t in self._after(s, character))
            self._held += len(states) + len(found) + 1
            if self._held > MAX_TABLE:
                self._table.clear()
                self._held = len(states) + len(found) + 1
            self._table[key] = found
        return found

    def _after(self, state: int, character: str) -> list[int]:
        step = self.steps[state]
        return self.targets[state] if isinstance(step, Characters) and step.has(character) else []

    def _closure(self, states: frozenset[int], text: str, index: int) -> set[int]:
        """The states that are reached without a further character, at that place of the text."""
        seen, stack = set(states), list(states)
        while stack:
            state = stack.pop()
            step = self.steps[state]
            if step is None or (isinstance(step, str) and _is_at(step, text, index)):
                new = [t for t in self.targets[state] if t not in seen]
                seen.update(new)
                stack.extend(new)
        return seen


def _is_at(place: str, text: str, index: int) -> bool:
    if place == "start":
        return index == 0
    if place == "end":
        return index == len(text)
    if place == "line start":
        return index == 0 or text[index - 1] == "\n"
    if place == "line end":
        return index == len(text) or text[index] == "\n"
    word = Characters(_WORD)
    boundary = (index > 0 and word.has(text[index - 1])) != (index < len(text) and word.has(text[index]))
    return boundary == (place == "boundary")


Part = tuple[int, list[int]]
"""A piece of the automaton: its first state, and those from which it goes on."""


class _Parser:
    """Reads a pattern and makes the automaton's states."""

    def __init__(self, text: str, pattern: Pattern) -> None:
        self.text = text
        self.at = 0
        self.pattern = pattern
        self.depth = 0
        self.flags = frozenset[str]()

    def whole(self) -> Part:
        part = self.alternatives()
        if self.at < len(self.text):
            raise PatternError("there is a ) without its (")
        return part

    def peek(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def take(self, what: str) -> bool:
        if self.peek(what):
            self.at += len(what)
            return True
        return False

    def single(self, step: Step) -> Part:
        state = self.pattern.state(step)
        return state, [state]

    def alternatives(self) -> Part:
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        if len(parts) == 1:
            return parts[0]
        fork = self.pattern.state(None)
        self.pattern.targets[fork].extend(first for first, _ in parts)
        return fork, [end for _, ends in parts for end in ends]

    def sequence(self) -> Part:
        first, ends = self.single(None)
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            start = self.at
            part = self.atom()
            if part is None:
                continue
            part = self.repeated(part, start)
            self.pattern.patch(ends, part[0])
            ends = part[1]
        return first, ends

    def repeated(self, part: Part, start: int) -> Part:
        """A piece with the repetition behind it."""
        stop = self.at
        bounds = self.repetition()
        if bounds is None:
            return part
        self.take("?")  # how much is matched at first doesn't matter to the whole
        before = self.at
        if self.repetition() is not None:
            raise PatternError(f"{self.text[stop : self.at]} repeats a repetition")
        self.at = before
        low, high = bounds
        return self.times(part, start, low, high)

    def repetition(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        end = self.text.find("}", self.at)
        if not self.peek("{") or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None  # a brace that is a character
        self.at = end + 1
        if (
            len(low) > 4
            or len(high) > 4
            or max(int(low), int(high or 0)) > MAX_REPEAT
            or (high and int(high) < int(low))
        ):
            raise PatternError(f"{{{low}{comma}{high}}} is no repetition, or one of more than {MAX_REPEAT}")
        return int(low), int(high) if high else None if comma else int(low)

    def times(self, part: Part, start: int, low: int, high: int | None) -> Part:
        """A piece `low` to `high` times; its further copies are read again from `start`."""
        pattern, behind = self.pattern, self.at
        first, ends = self.single(None)
        copies = max(low, 1) if high is None else high
        out: list[int] = []
        for number in range(copies):
            if number:
                self.at = start
                again = self.atom()
                if again is None:
                    raise PatternError("a repetition has nothing to repeat")
                part = again
            if number >= low:
                out.extend(ends)
            pattern.patch(ends, part[0])
            ends = part[1]
            if high is None and number == copies - 1:
                fork = pattern.state(None)
                pattern.patch(ends, fork)
                pattern.targets[fork].append(part[0])
                ends = [fork]
        self.at = behind
        return first, [*out, *ends]

    # ---- atoms
    def atom(self) -> Part | None:
        """The next piece; None for flags, which make none."""
        before = self.at
        if self.repetition() is not None:
            raise PatternError(f"there is nothing that {self.text[before : self.at]} could repeat")
        if self.take("("):
            return self.group()
        if self.take("["):
            return self.single(self.bracket())
        if self.take("."):
            return self.single(self.any())
        if self.take("^"):
            return self.single("line start" if "m" in self.flags else "start")
        if self.take("$"):
            return self.single("line end" if "m" in self.flags else "end")
        if self.take("\\"):
            return self.escape()
        self.at += 1
        return self.single(self.literal(ord(self.text[self.at - 1])))

    def any(self) -> Characters:
        return Characters(() if "s" in self.flags else ((10, 10),), negated=True)

    def literal(self, code: int) -> Characters:
        return Characters(((code, code),), folded="i" in self.flags)

    def group(self) -> Part | None:
        outer = self.flags
        if self.take("?"):
            if self.take("P<") or self.take("<"):
                name, bracket, _ = self.text[self.at :].partition(">")
                if not bracket or not all(ord(c) < 128 and (c.isalnum() or c == "_") for c in name) or not name:
                    raise PatternError("a group's name is not in order, or it looks around, which RE2 cannot")
                self.at += len(name) + 1
            elif self.set_flags():
                return None
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise PatternError(f"groups are nested more than {MAX_NESTING} deep")
        part = self.alternatives()
        self.depth -= 1
        if not self.take(")"):
            raise PatternError("there is a ( without its )")
        self.flags = outer
        return part

    def set_flags(self) -> bool:
        """Read `flags)`, which hold to the end of the group around (True), or `flags:`, which hold in a group."""
        flags, adding = set(self.flags), True
        while self.at < len(self.text):
            sign = self.text[self.at]
            self.at += 1
            if sign in "):":
                self.flags = frozenset(flags)
                return sign == ")"
            if sign == "-" and adding:
                adding = False
            elif sign in "imsU":
                flags = flags | {sign} if adding else flags - {sign}
            else:
                break
        raise PatternError("a group begins with what RE2 has not")

    def escape(self) -> Part | None:
        """What follows a backslash."""
        if self.at >= len(self.text):
            raise PatternError("it ends with a backslash")
        sign = self.text[self.at]
        places = {"b": "boundary", "B": "no boundary", "A": "start", "z": "end"}
        if sign in places:
            self.at += 1
            return self.single(places[sign])
        if self.take("Q"):
            text, end, _ = self.text[self.at :].partition("\\E")
            self.at += len(text) + len(end)
            first, ends = self.single(None)
            for character in text:
                part = self.single(self.literal(ord(character)))
                self.pattern.patch(ends, part[0])
                ends = part[1]
            return first, ends
        found = self.escaped_class()
        if found is not None:
            ranges, categories, negated = found
            return self.single(characters(ranges, categories, negated, "i" in self.flags))
        return self.single(self.literal(self.escaped()))

    def escaped_class(self) -> tuple[list[tuple[int, int]], list[tuple[str, bool]], bool] | None:
        """The class that an escape names: ranges, categories, and whether all but them are meant."""
        sign = self.text[self.at : self.at + 1]
        if sign.lower() in _PERL and sign:
            self.at += 1
            return list(_PERL[sign.lower()]), [], sign.isupper()
        if sign not in ("p", "P"):
            return None
        name = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if name == "{":
            name, end, _ = self.text[self.at :].partition("}")
            self.at += len(name) + len(end)
            if not end:
                raise PatternError("a Unicode class has no }")
        negated = (sign == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return [(0, _LAST)], [], negated
        if name not in _categories():
            raise PatternError(f"the Unicode class '{name}' is none of the general categories")
        return [], [(name, False)], negated

    def escaped(self) -> int:
        """The code of the character that an escape names."""
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign in _CONTROLS and sign:
            return _CONTROLS[sign]
        if sign == "x":
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            if digits.startswith("{"):
                digits, end, _ = self.text[self.at - 1 :].partition("}")
                self.at += len(digits) + len(end) - 1
            if digits and len(digits) <= 8 and all(c in "0123456789abcdefABCDEF" for c in digits):
                code = int(digits, 16)
                if code <= _LAST:
                    return code
        elif sign in tuple("01234567") and (sign == "0" or self.text[self.at : self.at + 1] in tuple("01234567")):
            digits = sign
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                digits += self.text[self.at]
                self.at += 1
            return int(digits, 8)
        elif sign and ord(sign) < 128 and not sign.isalnum():
            return ord(sign)
        raise PatternError(f"\\{sign} is no escape that RE2 has")

    def bracket(self) -> Characters:
        """A class in brackets, behind the first of them."""
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        first = True
        while first or not self.take("]"):
            first = False
            if self.at >= len(self.text):
                raise PatternError("there is a [ without its ]")
            if self.peek("[:") and (end := self.text.find(":]", self.at)) >= 0:
                name = self.text[self.at + 2 : end]
                if name.removeprefix("^") not in _POSIX:
                    raise PatternError(f"[:{name}:] is no class that RE2 has")
                self.at = end + 2
                found = list(_POSIX[name.removeprefix("^")])
                ranges += _without(found) if name.startswith("^") else found
                continue
            if self.peek("\\"):
                self.at += 1
                named = self.escaped_class()
                if named is not None:
                    found, classes, excluded = named
                    ranges += _without(found) if excluded and not classes else found
                    categories += [(name, excluded) for name, _ in classes]
                    continue
                low = self.escaped()
            else:
                low = ord(self.text[self.at])
                self.at += 1
            high = low
            if self.peek("-") and not self.peek("-]"):
                self.at += 1
                if self.at >= len(self.text):
                    raise PatternError("there is a [ without its ]")
                if self.take("\\"):
                    high = self.escaped()
                else:
                    high = ord(self.text[self.at])
                    self.at += 1
                if high < low:
                    raise PatternError(f"the range from {chr(low)!r} to {chr(high)!r} is empty")
            ranges.append((low, high))
        return characters(ranges, categories, negated, "i" in self.flags)


def _without(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All characters but these."""
    out: list[tuple[int, int]] = []
    begin = 0
    for low, high in sorted(ranges):
        if begin < low:
            out.append((begin, low - 1))
        begin = high + 1
    return [*out, (begin, _LAST)]


def _is_number(text: str) -> bool:
    return bool(text) and all(c in "0123456789" for c in text)


@lru_cache(maxsize=64)
def compiled(text: str) -> Pattern:
    """The pattern of a text.

    Raises:
        PatternError: RE2's syntax does not have it, or it is too large.
    """
    return Pattern(text)


@cache
def _categories() -> frozenset[str]:
    pairs = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
    return frozenset(pairs) | {pair[0] for pair in pairs}
