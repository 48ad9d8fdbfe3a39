"""All values of a graph as native code or onnxruntime computes them: where an execution leaves the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.parity import ort_session
from sardonyx.dialects.module import main_function, output_names, output_values, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.verify.align import steps_behind
from sardonyx.frontend.verify.inputs import Feeds
from sardonyx.frontend.verify.locate import Culprit, first_jump
from sardonyx.frontend.verify.observe import Fingerprint, Trace
from sardonyx.frontend.verify.sources import plain

BYTES_AT_ONCE = 256 << 20
"""How much a probe holds of a model's intermediate values."""


def locate_execution(
    graph: ModelGraph, execution: str, providers: Sequence[str], feeds: Feeds, reference: Trace, bad: Sequence[str]
) -> Culprit | None:
    """The first node at which an execution ('native' or 'onnxruntime…') leaves the reference.

    The values between are made outputs, group by group; None where the difference vanishes when one looks at them, as
    it does if nodes were fused wrongly.
    """
    numbers = dict(_numbered(graph, reference))
    distance = [0.0] * len(reference.prints)
    steps = steps_behind(reference, [reference.outputs[n] for n in bad if n in reference.outputs])
    wanted = {number for step in steps for number in step.makes}
    group: list[tuple[SSAValue, int]] = []
    size = 0
    pending = [(v, n) for v, n in numbers.items() if n in wanted and reference.prints[n] is not None]
    for place, (value, number) in enumerate(pending):
        entry = reference.prints[number]
        group.append((value, number))
        size += 8 * int(np.prod(entry.shape)) if entry is not None else 0
        if size < BYTES_AT_ONCE and place + 1 < len(pending):
            continue
        for (_, at), found in zip(group, _run(graph, [v for v, _ in group], execution, providers, feeds)):
            expected = reference.prints[at]
            if expected is not None and found is not None:
                distance[at] = expected.distance(found)
        last = max(at for _, at in group)
        culprit = first_jump(reference, [s for s in steps if max(s.makes, default=0) <= last], distance, 1e-5)
        if culprit is not None:
            after, before = culprit.distance, culprit.before
            why = f"{execution} is off by {after:.2g} of the largest element, what it reads by {before:.2g}"
            return Culprit(**{**vars(culprit), "why": why})
        group, size = [], 0
    return None


def _numbered(graph: ModelGraph, trace: Trace) -> list[tuple[SSAValue, int]]:
    """The values of a graph with their numbers in a trace of it: the order of both is the graph's."""
    found: list[tuple[SSAValue, int]] = []
    number = len(trace.inputs)
    for op in main_function(graph.module).body.block.ops:
        if isinstance(op, ConstantOp | func.ReturnOp):
            continue
        for result in op.results:
            if number < len(trace.prints):
                found.append((result, number))
            number += 1
    return found


def _run(
    graph: ModelGraph, values: Sequence[SSAValue], execution: str, providers: Sequence[str], feeds: Feeds
) -> list[Fingerprint | None]:
    """Fingerprints of values of the graph, as the execution computes them; None where it cannot."""
    probe = graph.clone()
    copies = _twins(graph, probe, values)
    asked = [v for v in copies if is_tensor(v.type)]
    with probe.edit():
        old = list(zip(output_values(probe.module), output_names(probe.module)))
        names = [f"sardonyx_probe_{i}" for i in range(len(asked))]
        set_outputs(probe.module, [v for v, _ in old] + asked, [n for _, n in old] + names)
    try:
        results = _execute(probe, execution, providers, feeds)[len(old) :]
    except SardonyxError:
        return [None] * len(values)
    by_value = dict(zip(asked, results))
    return [Fingerprint.of(by_value[v]) if v in by_value else None for v in copies]


def _execute(probe: ModelGraph, execution: str, providers: Sequence[str], feeds: Feeds) -> list[Any]:
    if execution == "native":
        probe.finalize()
        return [plain(r) for r in probe.run(dict(feeds))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.onnx"
        probe.export_onnx(path, optimize=False)
        return ort_session(path, providers)(feeds)


def _twins(graph: ModelGraph, copy: ModelGraph, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The values of a clone that stand where the given ones do."""
    wanted = set(values)
    places: dict[SSAValue, SSAValue] = {}
    pairs = zip(main_function(graph.module).body.block.ops, main_function(copy.module).body.block.ops)
    for original, twin in pairs:
        for old, new in zip(original.results, twin.results):
            if old in wanted:
                places[old] = new
    return [places[v] for v in values]
