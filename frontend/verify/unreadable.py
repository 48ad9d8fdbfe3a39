"""Which node of a model that cannot be read is to blame: the error names the node at which types meet and contradict
each other, and the first node on the way there that its source has not may stand far before it."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.errors import SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.onnx.part import before_node
from sardonyx.frontend.verify.align import same_inputs, value_hashes
from sardonyx.frontend.verify.observe import Plan, Step


def explain(error: SardonyxError, model: OnnxModel, source: ModelGraph) -> SardonyxError:
    """The error that a model gave when it was made a graph, with a note on the node behind it, where that is another.

    Args:
        error: It names the node at which the importer stopped.
        model: The model.
        source: What the model is held against.
    """
    found = _first_unknown(error, model, source)
    if found is not None:
        note = f"of what it reads, node '{found.name}' ({found.operator.removeprefix('sx.')}) is the first that the "
        error.notes = (*error.notes, f"{note}source has not in this form")
    return error


def _first_unknown(error: SardonyxError, model: OnnxModel, source: ModelGraph) -> Step | None:
    """The first node before the one that the error names whose like the source has not."""
    part = before_node(model, error.location)
    if part is None:
        return None
    module, read = part
    plan, theirs = Plan.of(module, ()), Plan.of(source.module, source.output_names())
    by_name = same_inputs(theirs, plan)
    known = set(value_hashes(theirs, by_name, {}))
    ours = value_hashes(plan, by_name, {})
    wanted = [plan.numbers[v] for v in read if v in plan.numbers]
    return next((s for s in _behind(plan, wanted) if any(ours[m] not in known for m in s.makes)), None)


def _behind(plan: Plan, values: Sequence[int]) -> list[Step]:
    """The nodes that values depend on, in order; those that compute constants included."""
    maker = {value: step for step in plan.steps for value in step.makes}
    waiting, kept = list(values), set[int]()
    while waiting:
        step = maker.get(waiting.pop())
        if step is not None and id(step) not in kept:
            kept.add(id(step))
            waiting += [*step.reads, *step.computed]
    return [step for step in plan.steps if id(step) in kept]
