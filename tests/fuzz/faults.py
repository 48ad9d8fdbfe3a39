"""Plants ten faults in models, one at a time, and has `verify` find them: `python tests/fuzz/faults.py MODEL.onnx …`.

For each kind of fault the first node is taken where it changes a value by more than rounding does. The fault must be
caught, and the node named must be that one (`exact`); a node that is gone is named as missing, and several nodes that
replace one are named by any of them. Where a model's node cannot be told (what it reads is wrong only in the shape that
a folded constant has), the first node that reads its result counts as `downstream`. Any other is `wrong`. What a model
has no place for is skipped. A fault that breaks a type wherever it is planted is `refused` when the model is read, at
the node or one that reads it, or `refused behind` these.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import SardonyxError
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.verify.bindings import bindings_of
from sardonyx.frontend.verify.inputs import generate
from sardonyx.frontend.verify.sources import Source, source_of
from sardonyx.frontend.verify.verify import CaseResult, Verification, verify
from sardonyx.tools.objects import UserFiles

CAUGHT = ("exact", "downstream", "wrong")
SEEN = 1e-5
"""Of the scale: what changes less, changes nothing that could be told from rounding."""
Model = onnx.ModelProto
Planted = tuple[str, Model]
"""The name of the node where the fault is, and the model with it."""
Cases = list[dict[str, Any]]


def names(model: Model) -> Model:
    """The model with a name for every node."""
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    return model


def nodes(model: Model, *kinds: str) -> Iterator[int]:
    """Where the nodes of these operators stand, the last first: what is late changes less of the rest."""
    for number in reversed(range(len(model.graph.node))):
        if model.graph.node[number].op_type in kinds:
            yield number


def attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((a for a in node.attribute if a.name == name), None)


def wrong_axis(model: Model) -> Iterator[Planted]:
    for number in nodes(model, "Softmax", "Concat", "ArgMax", "LogSoftmax", "Gather", "ReduceMean"):
        for axis in (0, 1, 2):
            made = copy.deepcopy(model)
            node = made.graph.node[number]
            found = attribute(node, "axis")
            if found is None:
                node.attribute.append(helper.make_attribute("axis", axis))
            elif found.i == axis:
                continue
            else:
                found.i = axis
            yield node.name, made


def changed_epsilon(model: Model) -> Iterator[Planted]:
    for number in nodes(model, "LayerNormalization", "BatchNormalization", "InstanceNormalization"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        found = attribute(node, "epsilon")
        if found is None:
            node.attribute.append(helper.make_attribute("epsilon", 1e-2))
        else:
            found.f = max(found.f * 1000, 1e-2)
        yield node.name, made


def shifted_weight(model: Model) -> Iterator[Planted]:
    weights = {t.name: t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT and len(t.dims) >= 2}
    for number in nodes(model, "MatMul", "Gemm", "Conv"):
        name = next((i for i in model.graph.node[number].input if i in weights), None)
        if name is None:
            continue
        made = copy.deepcopy(model)
        for tensor in made.graph.initializer:
            if tensor.name == name:
                array = numpy_helper.to_array(tensor)
                tensor.CopyFrom(numpy_helper.from_array(np.roll(array, 1, 0), name))
        yield made.graph.node[number].name, made


def swapped_input(model: Model) -> Iterator[Planted]:
    for number in nodes(model, "Sub", "Div", "Pow", "MatMul"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        node.input[0], node.input[1] = node.input[1], node.input[0]
        yield node.name, made


def reordered_concat(model: Model) -> Iterator[Planted]:
    for number in nodes(model, "Concat"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        if len(set(node.input)) > 1:
            node.input[:] = [*node.input[1:], node.input[0]]
            yield node.name, made


def missing_node(model: Model) -> Iterator[Planted]:
    outputs = {o.name for o in model.graph.output}
    for number in nodes(model, "Relu", "Sigmoid", "Tanh", "LeakyRelu", "PRelu", "Clip", "HardSwish", "Erf", "Exp"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        name, gone, instead = node.name, node.output[0], node.input[0]
        if gone in outputs:
            continue
        del made.graph.node[number]
        _rename(made.graph, gone, instead)
        yield name, made


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Have all nodes read another value, those in bodies too."""
    for node in graph.node:
        node.input[:] = [new if i == old else i for i in node.input]
        for found in node.attribute:
            for body in (found.g, *found.graphs):
                _rename(body, old, new)


def fp16_overflow(model: Model) -> Iterator[Planted]:
    for number in nodes(model, "Conv", "MatMul", "Gemm", "Relu", "Add"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        value = node.output[0]
        if any(o.name == value for o in made.graph.output):
            continue
        node.output[0] = f"{value}_before"
        made.graph.initializer.append(numpy_helper.from_array(np.array(1e6, np.float32), "planted_scale"))
        chain = [
            helper.make_node("Mul", [f"{value}_before", "planted_scale"], ["planted_large"], "planted_up"),
            helper.make_node("Cast", ["planted_large"], ["planted_half"], "planted_half", to=TensorProto.FLOAT16),
            helper.make_node("Cast", ["planted_half"], ["planted_back"], "planted_back", to=TensorProto.FLOAT),
            helper.make_node("Div", ["planted_back", "planted_scale"], [value], "planted_down"),
        ]
        rest = list(made.graph.node)
        del made.graph.node[:]
        made.graph.node.extend([*rest[: number + 1], *chain, *rest[number + 1 :]])
        yield "planted_half", made


def dropped_output(model: Model) -> Iterator[Planted]:
    if len(model.graph.output) > 1:
        made = copy.deepcopy(model)
        gone = made.graph.output[-1].name
        del made.graph.output[-1]
        maker = next((n.name for n in made.graph.node if gone in n.output), gone)
        yield maker, made


def softmax_of_old(model: Model) -> Iterator[Planted]:
    """Before opset 13 Softmax flattened its operand from axis 1 on."""
    for number in nodes(model, "Softmax"):
        made = copy.deepcopy(model)
        node = made.graph.node[number]
        x, y = node.input[0], node.output[0]
        chain = [
            helper.make_node("Flatten", [x], ["planted_flat"], "planted_flatten", axis=1),
            helper.make_node("Softmax", ["planted_flat"], ["planted_rows"], "planted_softmax", axis=-1),
            helper.make_node("Shape", [x], ["planted_shape"], "planted_shape"),
            helper.make_node("Reshape", ["planted_rows", "planted_shape"], [y], "planted_reshape"),
        ]
        rest = list(made.graph.node)
        del made.graph.node[:]
        made.graph.node.extend([*rest[:number], *chain, *rest[number + 1 :]])
        yield "planted_flatten", made


def frozen_dim(model: Model, cases: Cases) -> Iterator[Planted]:
    """A shape that is computed becomes what it was for the first inputs; or an input's dim does."""
    fixed = {t.name for t in model.graph.initializer}
    fixed |= {o for n in model.graph.node if n.op_type == "Constant" for o in n.output}
    for number in nodes(model, "Reshape", "Expand", "ConstantOfShape"):
        place = 0 if model.graph.node[number].op_type == "ConstantOfShape" else 1
        shape = model.graph.node[number].input[place]
        found = None if shape in fixed else computed(model, shape, cases[0])
        if found is None:
            continue
        made = copy.deepcopy(model)
        made.graph.initializer.append(numpy_helper.from_array(found, "planted_shape"))
        made.graph.node[number].input[place] = "planted_shape"
        yield made.graph.node[number].name, made
    for place, value in enumerate(model.graph.input):
        shape = value.type.tensor_type.shape
        for axis, dim in enumerate(shape.dim):
            if value.name in cases[0] and not dim.HasField("dim_value"):
                made = copy.deepcopy(model)
                size = np.shape(cases[0][value.name])[axis]
                made.graph.input[place].type.tensor_type.shape.dim[axis].dim_value = size
                yield f"frozen:{dim.dim_param or f'{value.name}.{axis}'}", made


def computed(model: Model, value: str, feeds: Mapping[str, Any]) -> np.ndarray | None:
    """A value of the model for these inputs, as onnxruntime computes it; None where it does not."""
    probe = copy.deepcopy(model)
    probe.graph.output.append(helper.make_tensor_value_info(value, TensorProto.INT64, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(probe.SerializeToString(), options, ["CPUExecutionProvider"])
        return np.asarray(session.run([value], dict(feeds))[0])
    except Exception:  # noqa: BLE001 -- onnxruntime has no common class of its own; then this is no place
        return None


FAULTS: dict[str, Callable[..., Iterator[Planted]]] = {
    "wrong axis": wrong_axis,
    "frozen dim": frozen_dim,
    "changed epsilon": changed_epsilon,
    "shifted weight": shifted_weight,
    "swapped input": swapped_input,
    "reordered concat": reordered_concat,
    "missing node": missing_node,
    "fp16 overflow": fp16_overflow,
    "dropped output": dropped_output,
    "another opset's semantics": softmax_of_old,
}


@dataclass
class Found:
    """How one kind of fault fared in one model."""

    kind: str
    node: str
    verdict: str
    """'exact', 'downstream', 'wrong', or 'missed'; 'refused' when the model was read, by an error that names the node
    or one that reads it, or 'refused behind' these."""
    said: str


@dataclass
class Outcome:
    """What became of the faults in one model, and which kinds had no place in it."""

    model: str
    found: list[Found] = field(default_factory=list[Found])
    skipped: list[str] = field(default_factory=list[str])

    def count(self, verdict: str) -> int:
        return sum(f.verdict == verdict for f in self.found)


def readers(model: Model, node: str) -> set[str]:
    """The nodes that read what a node makes; constants between count as nothing."""
    graph = {n.name: n for n in model.graph.node}
    if node not in graph:
        return set()
    made = set(graph[node].output)
    return {n.name for n in model.graph.node if made & set(n.input)}


def judge(source: Model, made: Model, node: str, named: set[str], text: str) -> str:
    """Whether the node at fault is among those named, or one that reads it."""
    wanted = {node}
    if node.startswith("planted_"):
        wanted |= {n.name for n in made.graph.node if n.name.startswith("planted_")}
    if wanted & named or (node.startswith("frozen:") and node[7:] in text):
        return "exact"
    near = readers(source, node) | readers(made, node)
    return "downstream" if near & named else "wrong"


def named_by(found: Verification, failures: Sequence[CaseResult]) -> tuple[set[str], str]:
    """The nodes that a verification names, the first of each result, and its words."""
    culprits = [r.culprit for r in failures if r.culprit is not None]
    names = {c.node for c in culprits} | {c.missing for c in culprits if c.missing}
    return names, "; ".join([*dict.fromkeys(map(str, culprits)), *(f"frozen: {n}" for n in found.frozen)])


def try_model(path: Path, cases: Cases | None, tries: int, seconds: float) -> Outcome:
    """Plant every kind of fault in a model."""
    source = names(onnx.load(path))
    outcome = Outcome(path.name)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        good, bad = Path(folder) / "good.onnx", Path(folder) / "bad.onnx"
        onnx.save(source, good)
        graph = OnnxModel.open(good).compile()
        specs = [s for s in graph.input_specs() if not s.optional]
        kept = cases or [generate(graph.module, specs, b, 0) for b in bindings_of(specs, {})]
        origin = replace(source_of(good, graph.input_names()), memories={})
        sound = [all(r.status == "passed" for r in _run(origin, good, c)) for c in kept]
        for kind, plant in FAULTS.items():
            places = plant(source, kept) if kind == "frozen dim" else plant(source)
            few = kept if kind == "frozen dim" else kept[:1]
            found = None
            for number, (node, made) in enumerate(places):
                if number >= tries or time.monotonic() - started > seconds:
                    break
                onnx.save(made, bad)
                now = _plant(kind, node, source, made, bad, origin, list(zip(few, sound)))
                found = now if now is not None and (found is None or now.verdict in CAUGHT) else found
                if found is not None and found.verdict in CAUGHT:
                    break
            if found is None:
                outcome.skipped.append(kind)
            else:
                outcome.found.append(found)
                if found.verdict not in ("exact", "refused"):
                    print(f"  {path.name}: {kind} at '{found.node}': {found.verdict}: {found.said[:400]}", flush=True)
    return outcome


def _run(origin: Source, model: Path, case: Mapping[str, Any]) -> Sequence[CaseResult]:
    return verify(origin, model, inputs=[case], only=["reference"]).results


def _plant(
    kind: str,
    node: str,
    source: Model,
    made: Model,
    bad: Path,
    origin: Source,
    cases: list[tuple[dict[str, Any], bool]],
) -> Found | None:
    """How a planted fault fares; None where it changes nothing that can be told from rounding."""
    changed = 0.0
    for case, sound in cases:
        try:
            found = verify(origin, bad, inputs=[case], only=["reference"])
        except SardonyxError as error:  # the fault broke a type: it is refused when the model is read
            text = "; ".join([str(error), *error.notes])
            named = {n.name for n in made.graph.node if f"'{n.name}'" in text}
            near = judge(source, made, node, named, text) != "wrong"
            return Found(kind, node, "refused" if near else "refused behind", text)
        # Where the reference and onnxruntime differ anyway, only the two references are held against each other.
        failures = [r for r in found.failures if sound or r.execution == "semantics"]
        if failures or found.frozen:
            named, text = named_by(found, failures)
            return Found(kind, node, judge(source, made, node, named, text), text)
        changed = max([changed, *(d.max_abs / max(1.0, d.scale) for r in found.results for d in r.differences)])
    return Found(kind, node, "missed", f"the values change by {changed:.2g} of the scale") if changed > SEEN else None


def cases_from(text: str | None, model: Path) -> Cases | None:
    """The inputs for a model: of an .npz file, or of a function of a file that is called with the model's name."""
    if text is None:
        return None
    if text.endswith(".npz"):
        with np.load(text) as arrays:
            return [dict(arrays)]
    return list(UserFiles().load(text)(model.stem))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument(
        "--inputs", metavar="FILE", help="FILE.npz for all of them, or FILE.py:FUNCTION, called with a model's stem"
    )
    parser.add_argument("--tries", type=int, default=4, help="how many places of a kind are tried (4)")
    parser.add_argument("--seconds", type=float, default=1e9, help="how long one model may take")
    options = parser.parse_args(arguments)
    totals: dict[str, int] = dict.fromkeys((*CAUGHT, "refused", "refused behind", "missed"), 0)
    for path in options.models:
        began = time.monotonic()
        outcome = try_model(path, cases_from(options.inputs, path), options.tries, options.seconds)
        counts = {verdict: outcome.count(verdict) for verdict in totals}
        totals = {verdict: totals[verdict] + counts[verdict] for verdict in totals}
        shown = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        took = time.monotonic() - began
        print(f"{path.name}: {shown}; no place for {', '.join(outcome.skipped) or 'none'} ({took:.0f} s)", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in totals.items()))
    return int(totals["wrong"] + totals["missed"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
