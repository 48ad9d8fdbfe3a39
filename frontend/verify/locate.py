"""The first node where two runs part.

Two graphs of one source need not have the same nodes or names, so values are matched by what they are: a value of the
model is at the distance of the nearest value of the source that has its shape. The node at fault is the first whose
result is far from all values of the source while what it reads is near to some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.frontend.verify.observe import Fingerprint, Step, Trace

FLOOR = {"float64": 1e-6, "float32": 1e-6, "bfloat16": 4e-3, "float16": 5e-4, "float8": 3e-2, "quantised": 1e-2}
"""The distance that rounding alone explains, by the model's precision."""
JUMP = 10.0
"""By how much a node's result is further off than what it reads, to be at fault."""


@dataclass(frozen=True)
class Culprit:
    """The node at fault.

    Attributes:
        node: Its name in the model.
        operator: Its operator.
        location: Where it comes from.
        value: The name of its result.
        distance: How far its result is from the nearest value of the source, as a share of the largest magnitude.
        before: How far what it reads is.
        why: In words.
        missing: The source's node whose result the model does not have, as far as one could be told.
    """

    node: str
    operator: str
    location: str | None
    value: str
    distance: float
    before: float
    why: str
    missing: str | None = None

    def to_json(self) -> dict[str, Any]:
        found = {k: v for k, v in vars(self).items() if v is not None}
        for key in ("distance", "before"):
            found[key] = found[key] if np.isfinite(found[key]) else None
        return found

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location and self.node not in self.location else ""
        tail = f"; the source's node '{self.missing}' has no counterpart" if self.missing else ""
        return f"node '{self.node}' ({self.operator}){where}: {self.why}{tail}"


class _Index:
    """The values of a run by shape, to find the nearest to a given one."""

    def __init__(self, prints: Sequence[Fingerprint | None]) -> None:
        self._by_shape: dict[tuple[int, ...], list[Fingerprint]] = {}
        for entry in prints:
            if entry is not None:
                self._by_shape.setdefault(entry.shape, []).append(entry)

    def distance(self, wanted: Fingerprint) -> float:
        """The distance of the nearest value; infinite where none has its shape."""
        candidates = self._by_shape.get(wanted.shape, ())
        best = np.inf
        for candidate in candidates:
            best = min(best, wanted.distance(candidate))
            if best == 0:
                break
        return best


def locate(source: Trace, model: Trace, bad_outputs: Sequence[str], precision: str = "float32") -> Culprit | None:
    """The node of the model that makes its outputs differ from the source's; None where no node stands out.

    Args:
        source, model: Reference runs of both on the same inputs.
        bad_outputs: The names of the outputs that differ.
        precision: The model's narrowest arithmetic.
    """
    floor = FLOOR[precision]
    if model.failed is not None and source.failed is None:
        step = next((s for s in model.steps if s.name == model.failed[0]), None)
        operator = step.operator if step is not None else "?"
        return Culprit(model.failed[0], operator, None, "", np.inf, 0.0, f"it refuses the data: {model.failed[1]}")
    index = _Index(source.prints)
    distance = [0.0 if p is None else index.distance(p) for p in model.prints]
    for number in model.inputs:
        distance[number] = 0.0
    steps = steps_behind(model, bad_outputs)
    found = _non_finite(source, model, steps, distance) or first_jump(model, steps, distance, floor)
    if found is None:
        return None
    return _with_missing(found, source, model, floor)


def steps_behind(model: Trace, outputs: Sequence[str]) -> list[Step]:
    """The nodes that the outputs depend on, in order."""
    maker = {value: step for step in model.steps for value in step.makes}
    waiting = [model.outputs[name] for name in outputs if name in model.outputs]
    kept: dict[str, Step] = {}
    while waiting:
        step = maker.get(waiting.pop())
        if step is not None and step.name not in kept:
            kept[step.name] = step
            waiting.extend(step.reads)
    return [step for step in model.steps if step.name in kept]


def maker_of(source: Trace, output: str, verb: str) -> Culprit | None:
    """The source's node that makes an output which the model lacks."""
    step = next((s for s in source.steps if source.outputs[output] in s.makes), None)
    if step is None:
        return None
    why = f"{verb} the output '{output}', which the model lacks"
    return Culprit(step.name, step.operator, step.location, output, np.inf, 0.0, why)


def _non_finite(source: Trace, model: Trace, steps: Sequence[Step], distance: Sequence[float]) -> Culprit | None:
    """The first node that makes NaN or infinities of finite numbers, where the source's outputs have none."""
    if any(p.odd for n in source.outputs.values() if (p := source.prints[n]) is not None):
        return None
    if not any(p.odd for n in model.outputs.values() if (p := model.prints[n]) is not None):
        return None
    for step in steps:
        made = [n for n in step.makes if (p := model.prints[n]) is not None and p.odd]
        read = [n for n in step.reads if (p := model.prints[n]) is not None and p.odd]
        if made and not read and distance[made[0]] > 0:
            why = "it makes NaN or infinities of finite numbers"
            return Culprit(step.name, step.operator, step.location, model.names[made[0]], np.inf, 0.0, why)
    return None


def first_jump(model: Trace, steps: Sequence[Step], distance: Sequence[float], floor: float) -> Culprit | None:
    """The first node whose result is much further off than what it reads; else the one with the largest jump."""
    best: tuple[float, Step, int, float] | None = None
    for step in steps:
        before = max((distance[n] for n in step.reads), default=0.0)
        if not step.makes or not np.isfinite(before):
            continue
        value = max(step.makes, key=lambda n: distance[n])
        after = distance[value]
        ratio = after / max(before, floor)
        if ratio >= JUMP:
            best = (ratio, step, value, before)
            break
        if after > floor and (best is None or ratio > best[0]):
            best = (ratio, step, value, before)
    if best is None or best[0] <= 1.0:
        return None
    ratio, step, value, before = best
    after = distance[value]
    if not np.isfinite(after):
        why = "no value of the source has its result's shape and contents"
    else:
        why = f"its result is off by {after:.2g} of the largest element, what it reads by {before:.2g}"
    return Culprit(step.name, step.operator, step.location, model.names[value], after, before, why)


def _with_missing(found: Culprit, source: Trace, model: Trace, floor: float) -> Culprit:
    """Name the source's first node whose result the model lacks, if the model has what that node reads."""
    index = _Index(model.prints)
    lacking: Mapping[int, bool] = {
        n: p is not None and index.distance(p) > floor * JUMP for n, p in enumerate(source.prints)
    }
    for step in source.steps:
        if step.makes and all(lacking[n] for n in step.makes) and not any(lacking[n] for n in step.reads):
            return Culprit(**{**vars(found), "missing": step.name})
    return found
