"""The node at which two runs part.

Two graphs of one source need not have the same nodes or names. So values are matched first by how they are computed
(`align`): if the graphs are the same but for some nodes, those are known, and the fault is the first of them that
changes values. Else they are matched by what they are: a value of the model is at the distance of the nearest value of
the source that has its shape, and the node at fault is the first whose result is far from all values of the source
while what it reads is near to some, on the way back from the outputs that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sardonyx.frontend.verify.align import Alignment, Edit, align
from sardonyx.frontend.verify.observe import Fingerprint, Step, Trace

FLOOR = {"float64": 1e-6, "float32": 1e-6, "bfloat16": 4e-3, "float16": 5e-4, "float8": 3e-2, "quantised": 1e-2}
"""The distance that rounding alone explains, by the model's precision."""
JUMP = 10.0
"""By how much a node's result is further off than what it reads, to be at fault."""
MOVED = 1e-3
"""By how much of the largest magnitude a node's result is off where it computes something else, and not the same in
other words."""
TELLING = 8
"""How many different samples a value must have to be found by its contents alone."""


@dataclass(frozen=True)
class Culprit:
    """The node at fault.

    Attributes:
        node: Its name in the model.
        operator: Its operator.
        location: Where it comes from.
        value: The name of its result.
        distance: How far its result is from the value of the source that stands for it, as a share of the largest
            magnitude.
        before: How far what it reads is.
        why: In words.
        missing: The source's node that stands in its place or that the model lacks, as far as one could be told.
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
        said = f"'{self.missing}'" in self.why or self.missing == self.node
        tail = f"; the source's node '{self.missing}' has no counterpart" if self.missing and not said else ""
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
    refused = model.failed if source.failed is None else None
    if refused is not None:
        wanted = list(refused[0].reads)
    else:
        wanted = [model.outputs[n] for n in bad_outputs if n in model.outputs]
    aligned = align(source, model, wanted)
    search = _Search(source, model, wanted, aligned, FLOOR[precision])
    found = search.by_edits() if aligned.complete else search.by_values()
    if refused is None:
        found = found and search.behind_constants(found)
        return found or _other_output(source, model, aligned, bad_outputs)
    step, message = refused
    refusal = f"it refuses the data: {message}"
    if found is None:
        found = Culprit(step.name, step.operator, step.location, "", np.inf, 0.0, refusal)
    elif found.node == step.name:
        found = replace(found, why=f"{found.why}; {refusal}")
    else:
        found = replace(found, why=f"{found.why}; then node '{step.name}' refuses the data: {message}")
    return search.behind_constants(found)


def moved(source: Trace, model: Trace, outputs: Sequence[str], precision: str = "float32") -> Culprit | None:
    """The node that computes something else than the source's, though the outputs are hardly off.

    None where the graphs are not the same but for some nodes, or none of these moves what it makes.
    """
    wanted = [model.outputs[n] for n in outputs if n in model.outputs]
    aligned = align(source, model, wanted)
    found = _Search(source, model, wanted, aligned, FLOOR[precision]).by_edits() if aligned.complete else None
    return found if found is not None and MOVED <= found.distance < np.inf else None


def maker_of(source: Trace, output: str, verb: str) -> Culprit | None:
    """The source's node that makes an output which the model lacks."""
    step = next((s for s in source.steps if source.outputs[output] in s.makes), None)
    if step is None:
        return None
    why = f"{verb} the output '{output}', which the model lacks"
    return Culprit(step.name, step.operator, step.location, output, np.inf, 0.0, why)


def _other_output(source: Trace, model: Trace, aligned: Alignment, bad_outputs: Sequence[str]) -> Culprit | None:
    """The node behind an output that the model takes from elsewhere than the source, all nodes being the same."""
    for name in bad_outputs:
        if name not in model.outputs or name not in source.outputs:
            continue
        here, there = model.outputs[name], source.outputs[name]
        maker = next((s for s in model.steps if here in s.makes), None)
        wanted = next((s for s in source.steps if there in s.makes), None)
        if maker is None or wanted is None or aligned.twins.get(here) in (None, there):
            continue
        why = f"it makes the output '{name}', which in the source is made by '{wanted.name}' ({wanted.operator})"
        far = _between(model.prints[here], source.prints[there])
        return Culprit(maker.name, maker.operator, maker.location, name, far, 0.0, why, wanted.name)
    return None


def _between(a: Fingerprint | None, b: Fingerprint | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else np.inf
    return a.distance(b)


class _Search:
    """Looks for the node, given which values correspond."""

    def __init__(self, source: Trace, model: Trace, wanted: Sequence[int], aligned: Alignment, floor: float) -> None:
        self.source, self.model, self.wanted, self.aligned, self.floor = source, model, wanted, aligned, floor
        self.direct = {n: _between(model.prints[n], source.prints[t]) for n, t in aligned.twins.items()}
        for edit in aligned.edits:
            self.direct.update((a, _between(model.prints[a], source.prints[b])) for a, b in edit.ends)

    # ---- by the edits that make one graph the other

    def by_edits(self) -> Culprit | None:
        """The first edit that moves values much further apart than what it reads; else the one that does so most."""
        best: tuple[float, Edit] | None = None
        for edit in self.aligned.edits:
            after = self._effect(edit)
            if after <= 0:
                continue
            before = self._before(edit.model or ((edit.reader,) if edit.reader is not None else ()))
            ratio = after / max(before, self.floor)
            if ratio >= JUMP:
                best = (ratio, edit)
                break
            if best is None or ratio > best[0]:
                best = (ratio, edit)
        return None if best is None else self._culprit(best[1])

    def _effect(self, edit: Edit) -> float:
        """How far the values are apart that an edit ends with; infinite where the model does not get so far."""
        if edit.reader is not None and not edit.reader.makes:
            return np.inf
        return max((self.direct[a] for a, _ in edit.ends), default=np.inf)

    def _before(self, steps: Sequence[Step]) -> float:
        made = {m for s in steps for m in s.makes}
        return max((self.direct.get(r, 0.0) for s in steps for r in s.reads if r not in made), default=0.0)

    def _culprit(self, edit: Edit) -> Culprit:
        step = self._of_region(edit) if edit.model else edit.reader
        if step is None:
            raise ValueError("an edit without nodes")
        twin = edit.source[0] if edit.source else None
        after, before = self._effect(edit), self._before(edit.model or (step,))
        value = self.model.names[step.makes[0]] if step.makes else ""
        why = _reason(edit, step, twin)
        if np.isfinite(after):
            why += f"; what it makes is off by {after:.2g} of the largest element"
        missing = twin.name if twin is not None else None
        return Culprit(step.name, step.operator, step.location, value, after, before, why, missing)

    def _of_region(self, edit: Edit) -> Step:
        """The node of several that replace others: the one that makes numbers infinite or NaN, else the first."""
        for step in edit.model:
            if self._loses(step):
                return step
        return edit.model[0]

    def _loses(self, step: Step) -> bool:
        """Whether a node makes NaN or infinities of finite numbers."""
        odd = [any(p.odd for n in ns if (p := self.model.prints[n]) is not None) for ns in (step.makes, step.reads)]
        return odd[0] and not odd[1]

    # ---- what is computed of constants

    def behind_constants(self, found: Culprit) -> Culprit:
        """Where a node reads what others made of constants, otherwise than in the source: the first of those."""
        steps = [*self.model.steps, *([self.model.failed[0]] if self.model.failed is not None else [])]
        step = next((s for s in steps if s.name == found.node), None)
        maker = {m: s for s in self.model.steps for m in s.makes}
        known = {s.digest for s in self.source.steps}
        behind: Step | None = None
        while step is not None:
            others = (maker.get(n) for n in step.computed)
            step = next((s for s in others if s is not None and s.digest not in known), None)
            behind = step or behind
        if behind is None:
            return found
        twin = next((s for s in self.source.steps if s.name == behind.name), None)
        value = self.model.names[behind.makes[0]] if behind.makes else ""
        why = f"the constant that it makes is another one than in the source; node '{found.node}' reads it: {found.why}"
        missing = twin.name if twin is not None else None
        return Culprit(behind.name, behind.operator, behind.location, value, found.distance, 0.0, why, missing)

    # ---- by the values

    def by_values(self) -> Culprit | None:
        distance = self._distances()
        steps = self._reached(distance)
        found = self._non_finite(steps, distance) or first_jump(self.model, steps, distance, self.floor)
        return None if found is None else self._with_missing(found)

    def _distances(self) -> list[float]:
        """How far each value of the model is from the source's: nothing where it is computed in the same way."""
        everything = _Index(self.source.prints)
        shared = {self.aligned.twins[n] for n in self.aligned.same if n in self.aligned.twins}
        others = _Index([None if n in shared else p for n, p in enumerate(self.source.prints)])
        found: list[float] = []
        for number, entry in enumerate(self.model.prints):
            if entry is None or number in self.aligned.same:
                found.append(0.0)
                continue
            telling = len(set(entry.samples.tolist())) >= TELLING
            nearest = (everything if telling else others).distance(entry)
            found.append(min(nearest, self.direct.get(number, np.inf)))
        return found

    def _reached(self, distance: Sequence[float]) -> list[Step]:
        """The nodes from which values that are off lead to the outputs without being right again in between."""
        maker = {value: step for step in self.model.steps for value in step.makes}
        waiting, kept = list(self.wanted), dict[int, Step]()
        while waiting:
            step = maker.get(waiting.pop())
            if step is not None and id(step) not in kept:
                kept[id(step)] = step
                waiting.extend(r for r in step.reads if distance[r] > self.floor)
        return [step for step in self.model.steps if id(step) in kept]

    def _non_finite(self, steps: Sequence[Step], distance: Sequence[float]) -> Culprit | None:
        """The first node that makes NaN or infinities of finite numbers, where the source's outputs have none."""
        if any(p.odd for n in self.source.outputs.values() if (p := self.source.prints[n]) is not None):
            return None
        if not any(p.odd for n in self.model.outputs.values() if (p := self.model.prints[n]) is not None):
            return None
        for step in steps:
            if self._loses(step) and max(distance[n] for n in step.makes) > 0:
                why = "it makes NaN or infinities of finite numbers"
                return Culprit(
                    step.name, step.operator, step.location, self.model.names[step.makes[0]], np.inf, 0.0, why
                )
        return None

    def _with_missing(self, found: Culprit) -> Culprit:
        """Name the source's first node whose result the model lacks, if the model has what that node reads."""
        known = set(self.aligned.twins.values())
        index = _Index(self.model.prints)
        lacking: Mapping[int, bool] = {
            n: p is not None and n not in known and index.distance(p) > self.floor * JUMP
            for n, p in enumerate(self.source.prints)
        }
        for step in self.source.steps:
            if step.makes and all(lacking[n] for n in step.makes) and not any(lacking[n] for n in step.reads):
                return replace(found, missing=step.name)
        return found


def _reason(edit: Edit, step: Step, twin: Step | None) -> str:
    """What an edit did, in words."""
    if twin is None:
        return "the source has no such node"
    other = f"'{twin.name}' ({twin.operator})"
    if not edit.model:
        return f"before it the source has {other}, which the model lacks"
    if len(edit.model) > 1 or len(edit.source) > 1 or step.operator != twin.operator:
        return f"it stands where the source has {other}"
    mine, theirs = ({a.partition(" : ")[0] for a in s.attributes} for s in (step, twin))
    if mine != theirs:
        own, others = ", ".join(sorted(mine - theirs)), ", ".join(sorted(theirs - mine))
        return f"it has {own or 'the default'}, the source's '{twin.name}' {others or 'the default'}"
    if step.constants != twin.constants and len(step.reads) == len(twin.reads):
        return f"a weight or constant of it is another one than that of the source's '{twin.name}'"
    if len(step.reads) < len(twin.reads):
        return f"it reads a constant where the source's '{twin.name}' reads what is computed"
    return f"its operands, or their order, are others than those of the source's '{twin.name}'"


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
