"""Which values of two runs are the same by how they are computed, and by which nodes the graphs differ.

Values have hashes of what computes them, from the inputs on. Where the two first differ, a small region of the model is
held against a small region of the source that starts at the same values: if what follows is the same again when their
ends are taken for each other, the two regions are an edit (a node changed, missing, put in, or several replaced), and
the search goes on behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from sardonyx.frontend.verify.observe import Plan, Step, Trace

REGION = 8
"""How many values of a region may be its end, on either side."""
ROUNDS = 100
"""How many edits are looked for."""


@dataclass(frozen=True)
class Edit:
    """Nodes of the model that stand for nodes of the source.

    Attributes:
        model, source: The nodes of either, in order; one of them may be empty.
        ends: The values of model and source that stand for each other.
        reader: The model's node that reads the end; None where that is an output.
        proved: Whether what follows is the same again.
    """

    model: tuple[Step, ...]
    source: tuple[Step, ...]
    ends: tuple[tuple[int, int], ...]
    reader: Step | None
    proved: bool


@dataclass
class Alignment:
    """How two runs correspond.

    Attributes:
        same: The model's values that the source computes in the same way.
        twins: By value of the model, the value of the source that stands for it; through edits, too.
        edits: By which nodes the graphs differ, in order.
        complete: Whether with these edits all values asked for are the same.
    """

    same: frozenset[int]
    twins: dict[int, int] = field(default_factory=dict[int, int])
    edits: list[Edit] = field(default_factory=list[Edit])
    complete: bool = False


def align(source: Trace, model: Trace, wanted: Sequence[int]) -> Alignment:
    """Align a model's run with that of its source, up to the values of the model that are wanted."""
    return _Aligner(source, model, wanted).run()


def value_hashes(trace: Trace | Plan, by_name: bool, given: Mapping[int, str]) -> list[str]:
    """A hash for each value, of how it is computed; those that are given count as they are."""
    found = [""] * len(trace.names)
    for place, number in enumerate(trace.inputs):
        found[number] = f"input {trace.names[number] if by_name else place}"
    for step in trace.steps:
        base = _step_hash(step, [found[r] for r in step.reads])
        for place, number in enumerate(step.makes):
            found[number] = given.get(number) or f"{base} {place}"
    return found


def same_inputs(a: Trace | Plan, b: Trace | Plan) -> bool:
    """Whether the inputs have the same names; else they correspond by their order."""
    names = [{t.names[n] for n in t.inputs} for t in (a, b)]
    return names[0] == names[1]


def _step_hash(step: Step, reads: Sequence[str]) -> str:
    return hashlib.blake2b("|".join([step.digest, *reads]).encode(), digest_size=16).hexdigest()


class _Aligner:
    def __init__(self, source: Trace, model: Trace, wanted: Sequence[int]) -> None:
        self.source, self.model = source, model
        self.by_name = same_inputs(source, model)
        self.in_source = value_hashes(source, self.by_name, {})
        self.of_hash = {h: n for n, h in reversed(list(enumerate(self.in_source)))}
        self.given: dict[int, str] = {}
        self.settled: set[int] = set()
        self.wanted = wanted
        self.failed = model.failed[0] if model.failed is not None else None
        self.steps = [*steps_behind(model, wanted), *([self.failed] if self.failed is not None else [])]
        self.bases = {_step_hash(s, [self.in_source[r] for r in s.reads]): s for s in reversed(source.steps)}
        self.readers = _readers(model), _readers(source)
        self.outputs = {n: [k for k, v in model.outputs.items() if v == n] for n in model.outputs.values()}

    def run(self) -> Alignment:
        hashes = value_hashes(self.model, self.by_name, self.given)
        found = Alignment(frozenset(n for n, h in enumerate(hashes) if h in self.of_hash))
        done = False
        for _ in range(ROUNDS):
            front = [s for s in self.steps if id(s) not in self.settled and self._parts(s, hashes)]
            edit = self._edit(front, hashes) if front else None
            if edit is None:
                done = not front
                break
            found.edits.append(edit)
            self.settled.update(map(id, edit.model))
            if edit.reader is not None and edit.reader is self.failed:
                done = True
                break
            self.given.update((a, self.in_source[b]) for a, b in edit.ends)
            hashes = value_hashes(self.model, self.by_name, self.given)
        found.twins = {n: self.of_hash[h] for n, h in enumerate(hashes) if h in self.of_hash}
        found.complete = done and all(hashes[n] in self.of_hash for n in self.wanted)
        return found

    def _parts(self, step: Step, hashes: Sequence[str]) -> bool:
        """Whether the source lacks a node of the model, though it has what the node reads."""
        if not all(hashes[r] in self.of_hash for r in step.reads):
            return False
        if step is self.failed:
            return _step_hash(step, [hashes[r] for r in step.reads]) not in self.bases
        return not all(hashes[m] in self.of_hash for m in step.makes)

    def _edit(self, front: Sequence[Step], hashes: list[str]) -> Edit | None:
        """The next edit: one that what follows proves, else a pair of nodes that are alike."""
        known = set(hashes)
        own = self.in_source
        sources = [
            s
            for s in self.source.steps
            if all(own[r] in known for r in s.reads) and not all(own[m] in known for m in s.makes)
        ]
        for step in front:
            for read in step.reads:
                place = self.of_hash[hashes[read]]
                starts = [s for s in sources if place in {self.of_hash[own[r]] for r in s.reads}]
                found = self._proved(step, read, starts, hashes)
                if found is not None:
                    return found
        for step in front:
            twin = _alike(step, hashes, sources, own)
            if twin is not None and (step is self.failed or (step.makes and len(twin.makes) == len(step.makes))):
                reader = step if step is self.failed else None
                return Edit((step,), (twin,), tuple(zip(step.makes, twin.makes)), reader, False)
        return None

    def _proved(self, step: Step, read: int, starts: Sequence[Step], hashes: list[str]) -> Edit | None:
        """A region behind `read` that begins with `step`, and one of the source, with ends that are the same to what
        reads them."""
        ours: list[tuple[int, tuple[Step, ...]]] = [(read, ())]
        ours += [(v, path) for v, path in self._ends(step, self.readers[0]) if hashes[v] not in self.of_hash]
        theirs: list[tuple[int, tuple[Step, ...]]] = [(self.of_hash[hashes[read]], ())]
        for start in starts:
            theirs += self._ends(start, self.readers[1])
        for (mine, path), (other, twin) in sorted(product(ours, theirs), key=lambda p: len(p[0][1]) + len(p[1][1])):
            if not path and not twin:
                continue
            if path and self._same_output(mine, other):
                return Edit(path, twin, ((mine, other),), None, True)
            for reader in self.readers[0].get(mine, ()) if path else (step,):
                if reader in path or not all(hashes[r] for r in reader.reads):
                    continue
                for reads in self._exchanged(reader, mine, other, hashes):
                    partner = self.bases.get(_step_hash(reader, reads))
                    if partner is not None:
                        ends = ((mine, other),) if path else tuple(zip(reader.makes, partner.makes))
                        return Edit(path, twin, ends, reader, True)
        return None

    def _exchanged(self, reader: Step, mine: int, other: int, hashes: Sequence[str]) -> Iterator[list[str]]:
        """What a node reads, with one value taken for another: everywhere, then in single places."""
        own, places = [hashes[r] for r in reader.reads], [i for i, r in enumerate(reader.reads) if r == mine]
        for chosen in [places, *([i] for i in places if len(places) > 1)]:
            yield [self.in_source[other] if i in chosen else h for i, h in enumerate(own)]

    def _same_output(self, mine: int, other: int) -> bool:
        """Whether the values are the outputs of a common name."""
        hashes = [
            self.in_source[self.source.outputs[n]] for n in self.outputs.get(mine, ()) if n in self.source.outputs
        ]
        return self.in_source[other] in hashes

    def _ends(self, start: Step, readers: Mapping[int, Sequence[Step]]) -> Iterator[tuple[int, tuple[Step, ...]]]:
        """The values that a region which begins at `start` may end with, each with the nodes on the way."""
        waiting: list[tuple[Step, tuple[Step, ...]]] = [(start, (start,))]
        seen = {id(start)}
        count = 0
        while waiting and count < REGION:
            step, path = waiting.pop(0)
            for value in step.makes:
                yield value, path
                count += 1
                for reader in readers.get(value, ()):
                    if id(reader) not in seen and len(path) < REGION:
                        seen.add(id(reader))
                        waiting.append((reader, (*path, reader)))


def _alike(step: Step, hashes: Sequence[str], sources: Sequence[Step], others: Sequence[str]) -> Step | None:
    """The source's node that a node most likely stands for."""
    reads = sorted(hashes[r] for r in step.reads)
    same = [s for s in sources if sorted(others[r] for r in s.reads) == reads]
    for wanted in (
        [s for s in same if s.operator == step.operator],
        [s for s in sources if s.operator == step.operator and s.name == step.name],
    ):
        if wanted:
            return next((s for s in wanted if s.name == step.name), wanted[0])
    return None


def _readers(trace: Trace) -> dict[int, list[Step]]:
    found: dict[int, list[Step]] = {}
    steps = [*trace.steps, trace.failed[0]] if trace.failed is not None else trace.steps
    for step in steps:
        for read in step.reads:
            found.setdefault(read, []).append(step)
    return found


def steps_behind(trace: Trace, values: Sequence[int]) -> list[Step]:
    """The nodes that values depend on, in order."""
    maker = {value: step for step in trace.steps for value in step.makes}
    waiting = list(values)
    kept: set[int] = set()
    while waiting:
        step = maker.get(waiting.pop())
        if step is not None and id(step) not in kept:
            kept.add(id(step))
            waiting.extend(step.reads)
    return [step for step in trace.steps if id(step) in kept]
