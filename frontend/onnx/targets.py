"""What a runtime lacks of a model: operators, opsets and dtypes that it does not support, and what would close the gap.

onnxruntime's execution providers are asked for real: every kind of node is loaded by itself. For runtimes that cannot
be asked there are tables with their source and date, in `target_tables/`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import onnx
from onnx import defs

from sardonyx.backends.onnx.decompose import DECOMPOSITIONS
from sardonyx.backends.onnx.options import MAX_OPSET, MIN_OPSET
from sardonyx.backends.onnx.parity import PROVIDERS, installed_providers, ort_version, refuses
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.onnx.validate import describe, normal_domain, subgraphs
from sardonyx.passes.pipeline import PassManager

UNSUPPORTED, RESTRICTED = "unsupported", "restricted"
ONNXRUNTIME = "onnxruntime"
DECOMPOSE, CAST = "decompose", "cast "
"""What closes a gap: a decomposition, or `cast A to B`."""
_KNOWN_DOMAINS = ("", "ai.onnx.ml", "com.microsoft")


@dataclass(frozen=True)
class Gap:
    """What a target may not take of a node.

    Attributes:
        node, operator: The node; '' for the model as a whole.
        kind: 'unsupported', or 'restricted' where the target takes the operator with limits that are for a person to
            check.
        reason: In words.
        fix: What would close it; '' where nothing is known.
    """

    node: str
    operator: str
    kind: str
    reason: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        return {k: v for k, v in vars(self).items() if v}


@dataclass(frozen=True)
class GapReport:
    """The gaps between a model and a target.

    Attributes:
        target: What it was held against, with its version.
        source: Where what is known of it comes from.
        operators: How many nodes there are of each operator.
        gaps: What is missing.
    """

    target: str
    source: str
    operators: Mapping[str, int]
    gaps: tuple[Gap, ...]

    @property
    def ok(self) -> bool:
        return not any(g.kind == UNSUPPORTED for g in self.gaps)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "source": self.source,
            "ok": self.ok,
            "operators": dict(self.operators),
            "gaps": [g.to_json() for g in self.gaps],
        }


@dataclass(frozen=True)
class _Table:
    """What is known of a target that cannot be asked."""

    title: str
    source: str
    opsets: tuple[int, int]
    supported: frozenset[str]
    domains: Mapping[str, frozenset[str]]
    dtypes: frozenset[str] | None
    restrictions: Mapping[str, str]


def targets() -> list[str]:
    """The names of the targets that there are."""
    tables = resources.files("sardonyx.frontend.onnx") / "target_tables"
    return sorted([ONNXRUNTIME, *(f"{ONNXRUNTIME}:{p}" for p in PROVIDERS)]) + sorted(
        Path(entry.name).stem for entry in tables.iterdir() if entry.name.endswith(".json")
    )


def find_gaps(model: OnnxModel, target: str) -> GapReport:
    """Hold a model against a target.

    Args:
        model: The model.
        target: `tensorrt`, `openvino`, `coreml`, `onnx-mlir`, `onnxruntime` or `onnxruntime:PROVIDER`; with `@N`
            behind it the highest opset that it takes.

    Raises:
        InvalidArgumentError: There is no such target.
    """
    name, _, opset = target.partition("@")
    if opset and not opset.isdecimal():
        raise InvalidArgumentError(f"'{target}' names no opset", hint="write tensorrt@17")
    limit = int(opset) if opset else None
    if name.partition(":")[0] == ONNXRUNTIME:
        return _ask_onnxruntime(model, name.partition(":")[2] or "cpu", limit)
    table = _table(name)
    proto = model.nodes_proto
    gaps = [*_opset_gaps(model, table.opsets, limit), *_table_gaps(proto, table), *_dtype_gaps(model, table)]
    return GapReport(table.title, table.source, model.inspect().operators, tuple(gaps))


def foreign_nodes(model: OnnxModel) -> list[Gap]:
    """Nodes of domains that neither ONNX nor onnxruntime defines, and operators of torch that were left over.

    Custom operators whose domain the model imports and whose nodes the user made are among them: a runtime needs a
    library for them.
    """
    proto = model.nodes_proto
    functions = {(normal_domain(f.domain), f.name) for f in proto.functions}
    found: list[Gap] = []
    for node in _nodes(proto):
        domain = normal_domain(node.domain)
        if (domain, node.op_type) in functions or domain in _KNOWN_DOMAINS and "::" not in node.op_type:
            continue
        name = node.name or next((o for o in node.output if o), "")
        found.append(Gap(name, f"{domain}.{node.op_type}", UNSUPPORTED, "no runtime has it by itself"))
    return found


def close_gaps(model: OnnxModel, target: str) -> tuple[OnnxModel, list[str]]:
    """The model with those gaps closed that can be: a lower opset, operators decomposed, dtypes cast.

    Returns:
        The new model, and what was done.

    Raises:
        SardonyxError: The model cannot be stated in an opset or in dtypes that the target takes.
    """
    from sardonyx.backends.onnx.cast_dtypes import change_dtypes, compute_in, used_dtypes
    from sardonyx.backends.onnx.decompose_operators import DecomposeOperatorsPass

    report = find_gaps(model, target)
    missing = sorted({g.operator for g in report.gaps if g.fix == DECOMPOSE})
    highest = _highest_opset(target)
    opset = min(model.opset or highest, highest)
    graph = model.compile()
    done: list[str] = []
    if missing:
        with graph.edit() as module:
            found = PassManager([DecomposeOperatorsPass(opset, tuple(missing))]).run(module)
        if found.changed:
            done.append(f"decomposed: {', '.join(missing)}")
    supported = None if target.partition(":")[0].partition("@")[0] == ONNXRUNTIME else _table(_name(target)).dtypes
    mapping = _stand_ins(used_dtypes(graph.module), supported)
    if mapping:
        with graph.edit() as module:
            done += [str(changes) for changes in change_dtypes(module, graph.store, mapping)]
    cast = {g.node: tuple(g.fix.split()[1::2]) for g in report.gaps if g.fix.startswith(CAST) and supported is None}
    for pair in sorted(set(cast.values())):
        with graph.edit() as module:
            nodes = compute_in(module, {n for n, p in cast.items() if p == pair}, {pair[0]: pair[1]})
        if nodes:
            done.append(f"between casts from {pair[0]} to {pair[1]}: {', '.join(nodes)}")
    if opset != model.opset:
        done.append(f"opset {model.opset} became {opset}")
    return OnnxModel.from_graph(graph, opset_version=max(opset, MIN_OPSET)), done


def _name(target: str) -> str:
    return target.partition("@")[0]


def _stand_ins(used: Iterable[str], supported: frozenset[str] | None) -> dict[str, str]:
    """For each dtype that a target lacks, the one that stands in for it."""
    from sardonyx.backends.onnx.cast_dtypes import stand_in

    if supported is None:
        return {}
    found = {dtype: stand_in(dtype, supported) for dtype in sorted(set(used) - supported)}
    return {old: new for old, new in found.items() if new is not None}


def _highest_opset(target: str) -> int:
    name, _, opset = target.partition("@")
    if opset:
        return int(opset)
    if name.partition(":")[0] == ONNXRUNTIME:
        return MAX_OPSET
    return min(_table(name).opsets[1], MAX_OPSET)


# ---- tables


@cache
def _table(name: str) -> _Table:
    file = resources.files("sardonyx.frontend.onnx") / "target_tables" / f"{name}.json"
    if not name.replace("-", "").isalnum() or not file.is_file():
        raise InvalidArgumentError(f"there is no target '{name}'", hint=f"there are: {', '.join(targets())}")
    data = json.loads(file.read_text(encoding="utf-8"))
    if "supported" in data:
        supported = frozenset(data["supported"])
    else:
        supported = _operators(data["operators_of_opset"]) - frozenset(data["unsupported"])
    return _Table(
        data["title"],
        f"{data['source']}, read on {data['read_on']}",
        (data["opsets"][0], data["opsets"][1]),
        supported,
        {domain: frozenset(names) for domain, names in data["domains"].items()},
        None if data["dtypes"] is None else frozenset(data["dtypes"]),
        data["restrictions"],
    )


def _operators(opset: int) -> frozenset[str]:
    """The operators of ai.onnx that an opset has."""
    return frozenset(s.name for s in defs.get_all_schemas_with_history() if s.domain == "" and s.since_version <= opset)


def _opset_gaps(model: OnnxModel, opsets: tuple[int, int], limit: int | None) -> Iterator[Gap]:
    highest = opsets[1] if limit is None else limit
    fix = f"opset {highest}" if highest >= MIN_OPSET else ""
    if model.opset > highest:
        yield Gap("", "", UNSUPPORTED, f"opset {model.opset} is above the target's {highest}", fix)
    elif 0 < model.opset < opsets[0]:
        yield Gap("", "", UNSUPPORTED, f"opset {model.opset} is below the target's {opsets[0]}", f"opset {MIN_OPSET}")


def _table_gaps(proto: onnx.ModelProto, table: _Table) -> Iterator[Gap]:
    functions = {(normal_domain(f.domain), f.name) for f in proto.functions}
    for node in _nodes(proto):
        domain = normal_domain(node.domain)
        if (domain, node.op_type) in functions:
            continue
        shown = f"{domain}.{node.op_type}" if domain else node.op_type
        name = node.name or next((o for o in node.output if o), "")
        known = table.supported if not domain else table.domains.get(domain, frozenset())
        if node.op_type not in known:
            yield Gap(name, shown, UNSUPPORTED, _why(domain, node.op_type, table), _fix(domain, node.op_type))
        elif not domain and node.op_type in table.restrictions:
            yield Gap(name, shown, RESTRICTED, table.restrictions[node.op_type])


def _why(domain: str, op_type: str, table: _Table) -> str:
    if op_type.startswith("aten::") or domain in ("org.pytorch.aten", "aten"):
        return "an operator of torch that the export left behind"
    if domain:
        return f"the domain '{domain}' has no such operator in {table.title}"
    return f"{table.title} has no {op_type}"


def _fix(domain: str, op_type: str) -> str:
    """What would state a node otherwise."""
    if domain:
        return ""
    return DECOMPOSE if op_type in _decomposable() else ""


@cache
def _decomposable() -> frozenset[str]:
    """The ONNX operators for which there is a decomposition."""
    import sardonyx.backends.onnx.legalize  # noqa: F401 -- it registers all of them
    from sardonyx.dialects.sx import OPS

    forms = {op.name: op.ONNX for op in OPS}
    return frozenset(form.name for name in DECOMPOSITIONS if (form := forms.get(name)) is not None)


def _dtype_gaps(model: OnnxModel, table: _Table) -> Iterator[Gap]:
    """Dtypes of inputs, weights and nodes' results that the target has not."""
    if table.dtypes is None:
        return
    for name, operator, dtype in _typed(model):
        if dtype not in table.dtypes:
            mapping = _stand_ins([dtype], table.dtypes)
            fix = f"{CAST}{dtype} to {mapping[dtype]}" if mapping else ""
            yield Gap(name, operator, UNSUPPORTED, f"{table.title} has no {dtype}", fix)


def _typed(model: OnnxModel) -> Iterator[tuple[str, str, str]]:
    """Names, operators ('' for what is no node) and dtypes of what a model holds and computes."""
    from sardonyx.backends.onnx.tensors import BY_ONNX

    graph = model.nodes_proto.graph
    declared = [(v.name, v.type.tensor_type.elem_type) for v in graph.input]
    declared += [(t.name, t.data_type) for t in graph.initializer]
    for name, number in dict(declared).items():
        dtype = BY_ONNX.get(number)
        if dtype is not None:
            yield name, "", dtype.name
    for node in model.compile().nodes():
        if not node.is_input and not node.is_constant:
            for dtype in sorted({o.spec().dtype.name for o in node.outputs() if o.spec().container is None}):
                yield node.name, node.operator, dtype


def _nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """All nodes: of the graph, of bodies, and of the model's functions."""
    stack: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    while stack:
        for node in stack.pop().node:
            yield node
            stack.extend(subgraphs(node))


# ---- onnxruntime


def _ask_onnxruntime(model: OnnxModel, provider: str, limit: int | None) -> GapReport:
    from sardonyx.backends.onnx.parity import provider_name

    full = provider_name(provider)
    version = ort_version()
    if version is None or full not in installed_providers():
        raise InvalidArgumentError(
            f"onnxruntime's {full} is not installed here, so that it cannot be asked",
            hint="install it, or hold the model against a table: " + ", ".join(t for t in targets() if ":" not in t),
        )
    gaps = list(_opset_gaps(model, (1, MAX_OPSET), limit))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.save(path)
        reason = refuses(path, full)
        if reason is not None:
            gaps += _refused_nodes(model, full, Path(folder)) or [Gap("", "", UNSUPPORTED, reason)]
    return GapReport(f"onnxruntime {version}, {full}", "asked", model.inspect().operators, tuple(gaps))


def _refused_nodes(model: OnnxModel, provider: str, folder: Path) -> list[Gap]:
    """The nodes that the provider refuses, each loaded by itself; equal ones once."""
    found: list[Gap] = []
    asked: dict[bytes, tuple[str, str] | None] = {}
    for node in model.nodes_proto.graph.node:
        outputs = [o for o in node.output if o]
        inputs = [i for i in node.input if i]
        try:
            single = model.extract(inputs, outputs)
        except SardonyxError:
            continue
        key = _shape_of_node(single.nodes_proto)
        if key not in asked:
            reason = _refusal(single, provider, folder)
            fix = "" if reason is None else _cast_that_helps(single, provider, folder)
            asked[key] = None if reason is None else (reason, fix or _fix(normal_domain(node.domain), node.op_type))
        answer = asked[key]
        if answer is not None:
            domain = normal_domain(node.domain)
            shown = f"{domain}.{node.op_type}" if domain else node.op_type
            found.append(Gap(node.name or describe(node), shown, UNSUPPORTED, *answer))
    return found


def _refusal(model: OnnxModel, provider: str, folder: Path) -> str | None:
    """Why a provider refuses a model, if it does."""
    path = folder / "node.onnx"
    model.save(path)
    return refuses(path, provider)


def _cast_that_helps(single: OnnxModel, provider: str, folder: Path) -> str:
    """The casts around a node with which the provider takes it; '' where none do."""
    from sardonyx.backends.onnx.cast_dtypes import compute_in, stand_in, used_dtypes

    name = single.nodes_proto.graph.node[0].name
    for dtype in sorted(used_dtypes(single.compile().module)):
        for wanted in ("float32", "float64", "int32", "int64"):
            if not name or stand_in(dtype, (wanted,)) is None:
                continue
            graph = single.compile()
            with graph.edit() as module:
                done = compute_in(module, {name}, {dtype: wanted})
            try:
                if done and _refusal(OnnxModel.from_graph(graph, opset_version=single.opset), provider, folder) is None:
                    return f"{CAST}{dtype} to {wanted}"
            except SardonyxError:
                continue  # this dtype cannot be stated either
    return ""


def _shape_of_node(proto: onnx.ModelProto) -> bytes:
    """A model of one node without its names and weights: nodes alike are asked for once."""
    node = onnx.NodeProto()
    node.CopyFrom(proto.graph.node[0])
    node.name = node.doc_string = ""
    del node.input[:], node.output[:], node.metadata_props[:]
    types = [v.type.SerializeToString() for v in (*proto.graph.input, *proto.graph.output)]
    weights = [bytes([t.data_type, *t.dims]) if max(t.dims, default=0) < 256 else b"" for t in proto.graph.initializer]
    return b"|".join([node.SerializeToString(deterministic=True), *types, *weights])
