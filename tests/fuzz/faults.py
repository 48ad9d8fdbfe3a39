"""Plants faults in a model, one at a time, and has `verify` find them: `python tests/fuzz/faults.py MODEL.onnx …`.

For each kind of fault the first node is taken where it changes a value (the references say so); the fault must be
caught, and the node named must be that one, or one next to it. What a model has no place for is skipped.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import SardonyxError
from sardonyx.frontend.verify.verify import CaseResult, verify

SEEN = 1e-5
"""Of the scale: what changes less, changes nothing that could be told from rounding."""
Model = onnx.ModelProto
Planted = tuple[str, Model]
"""The name of the node where the fault is, and the model with it."""


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
        for other in made.graph.node:
            other.input[:] = [instead if i == gone else i for i in other.input]
        yield name, made


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


FAULTS: dict[str, Callable[[Model], Iterator[Planted]]] = {
    "wrong axis": wrong_axis,
    "changed epsilon": changed_epsilon,
    "shifted weight": shifted_weight,
    "swapped input": swapped_input,
    "reordered concat": reordered_concat,
    "missing node": missing_node,
    "fp16 overflow": fp16_overflow,
    "dropped output": dropped_output,
    "another opset's semantics": softmax_of_old,
}


def neighbours(model: Model, node: str) -> set[str]:
    """The node, and those that read what it makes or make what it reads."""
    graph = {n.name: n for n in model.graph.node}
    if node not in graph:
        return {node}
    own = graph[node]
    found = {node}
    for other in model.graph.node:
        if set(other.input) & set(own.output) or set(other.output) & set(own.input):
            found.add(other.name)
    return found


def _case(result: CaseResult) -> tuple[object, ...]:
    """On what a result was computed."""
    return result.origin, tuple(result.binding.items())


def try_model(path: Path, inputs: Path | None, tries: int) -> tuple[int, int, int, int]:
    """Caught, named, missed and skipped kinds of faults of one model."""
    source = names(onnx.load(path))
    caught = named = missed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        good, bad = Path(folder) / "good.onnx", Path(folder) / "bad.onnx"
        onnx.save(source, good)
        sound = {
            _case(r) for r in verify(good, good, inputs=inputs, only=["reference"]).results if r.status == "passed"
        }
        for kind, plant in FAULTS.items():
            verdict = None
            for number, (node, made) in enumerate(plant(source)):
                if number >= tries:
                    break
                onnx.save(made, bad)
                try:
                    found = verify(good, bad, inputs=inputs, only=["reference"])
                except SardonyxError:
                    continue  # the fault broke a type: that is no silent one
                failures = [r for r in found.failures if _case(r) in sound]
                if not failures:
                    if any(d.max_abs > SEEN * max(1.0, d.scale) for r in found.results for d in r.differences):
                        print(f"  {path.name}: {kind} at '{node}' changes values within the limits")
                    continue
                culprits = [r.culprit for r in failures if r.culprit is not None]
                near = neighbours(made, node) | neighbours(source, node)
                verdict = (
                    any(c.node in near or c.missing in near for c in culprits),
                    node,
                    [str(c) for c in culprits][:1],
                )
                break
            if verdict is None:
                skipped += 1
                continue
            caught += 1
            named += verdict[0]
            missed += not verdict[0]
            if not verdict[0]:
                print(f"  {path.name}: {kind} at '{verdict[1]}' was caught, but named {verdict[2]}")
    return caught, named, missed, skipped


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--inputs", type=Path, help="inputs for all of them (.npz); generated otherwise")
    parser.add_argument("--tries", type=int, default=4, help="how many places of a kind are tried (4)")
    options = parser.parse_args(arguments)
    totals = np.zeros(4, int)
    for path in options.models:
        found = try_model(path, options.inputs, options.tries)
        totals += found
        print(
            f"{path.name}: {found[0]} caught, {found[1]} with the right node, {found[3]} kinds have no place",
            flush=True,
        )
    print(f"{totals[0]} caught, {totals[1]} with the right node, {totals[2]} with another one")
    return int(totals[2] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
