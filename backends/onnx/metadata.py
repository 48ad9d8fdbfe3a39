"""What a model declares beyond its computation, in the IR and in ONNX: metadata, doc strings, defaults, declared dims.

All of it stands in attributes that passes neither read nor need: on the module (`sx.metadata`, `sx.doc`, …) and on
the arguments and results of its function (`sx.default`, `sx.declared`, `sx.doc`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import DimsAttr, WeightAttr
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import PRODUCER

METADATA = "sx.metadata"
GRAPH_METADATA = "sx.graph_metadata"
DOC = "sx.doc"
MODEL_DOC = "sx.model_doc"
MODEL_DOMAIN = "sx.model_domain"
MODEL_VERSION = "sx.model_version"
DOMAINS = "sx.domains"
"""The versions of the domains beside ai.onnx that the model imports."""
QUANTIZATION = "sx.quantization"
"""How the model says that its tensors are quantised: by a tensor's name, the names of its parameters by their role."""
NODE_METADATA = "sx.node_metadata"
LOCATION_KEY = "sardonyx.location"
"""The key of a node's metadata for the user's line that it comes from."""
DEFAULT = "sx.default"
"""On an argument: the weight that an input has when it is not given."""
DECLARED = "sx.declared"
"""On a result: the dims that the imported model declared."""


def from_proto(proto: onnx.ModelProto, module: ModuleOp) -> None:
    """Note in the module what the model declares."""
    texts = {
        PRODUCER: proto.producer_name, MODEL_DOC: proto.doc_string, DOC: proto.graph.doc_string,
        MODEL_DOMAIN: proto.domain,
    }  # fmt: skip
    for key, text in texts.items():
        if text:
            module.attributes[key] = StringAttr(text)
    if proto.model_version:
        module.attributes[MODEL_VERSION] = IntegerAttr(proto.model_version, i64)
    for key, props in ((METADATA, proto.metadata_props), (GRAPH_METADATA, proto.graph.metadata_props)):
        if props:
            module.attributes[key] = DictionaryAttr({p.key: StringAttr(p.value) for p in props})
    annotations = {
        a.tensor_name: DictionaryAttr({p.key: StringAttr(p.value) for p in a.quant_parameter_tensor_names})
        for a in proto.graph.quantization_annotation
    }
    if annotations:
        module.attributes[QUANTIZATION] = DictionaryAttr(annotations)
    domains = {o.domain: IntegerAttr(o.version, i64) for o in proto.opset_import if o.domain not in ("", "ai.onnx")}
    if domains:
        module.attributes[DOMAINS] = DictionaryAttr(dict(sorted(domains.items())))


def to_proto(module: ModuleOp, proto: onnx.ModelProto) -> None:
    """Put what `from_proto` noted into a model."""
    texts = _texts(module.attributes)
    for key, holder, name in (
        (MODEL_DOC, proto, "doc_string"),
        (DOC, proto.graph, "doc_string"),
        (MODEL_DOMAIN, proto, "domain"),
    ):
        if texts.get(key):
            setattr(holder, name, texts[key])
    version = module.attributes.get(MODEL_VERSION)
    if isinstance(version, IntegerAttr):
        proto.model_version = version.value.data
    for key, target in ((METADATA, proto.metadata_props), (GRAPH_METADATA, proto.graph.metadata_props)):
        props = module.attributes.get(key)
        if isinstance(props, DictionaryAttr):
            for name, value in sorted(_texts(props.data).items()):
                target.add(key=name, value=value)
    annotations = module.attributes.get(QUANTIZATION)
    if isinstance(annotations, DictionaryAttr):
        _annotate(proto.graph, annotations)


def _annotate(graph: onnx.GraphProto, annotations: DictionaryAttr) -> None:
    """State how tensors are quantised, of those that the graph still has, with all that is named for them."""
    names = {v.name for v in (*graph.input, *graph.initializer)}
    names.update(name for node in graph.node for name in node.output)
    for tensor, parameters in sorted(annotations.data.items()):
        texts = _texts(parameters.data) if isinstance(parameters, DictionaryAttr) else {}
        if names.issuperset((tensor, *texts.values())):
            target = graph.quantization_annotation.add(tensor_name=tensor)
            for key, value in sorted(texts.items()):
                target.quant_parameter_tensor_names.add(key=key, value=value)


def domain_version(module: ModuleOp, domain: str, default: int = 1) -> int:
    """The version of a domain: the one that the graph was imported with, else `default`."""
    domains = module.attributes.get(DOMAINS)
    found = domains.data.get(domain) if isinstance(domains, DictionaryAttr) else None
    return found.value.data if isinstance(found, IntegerAttr) else default


def set_domain_versions(module: ModuleOp, versions: Mapping[str, int]) -> None:
    """State the versions of domains beside ai.onnx; others stay."""
    known = module.attributes.get(DOMAINS)
    entries = dict(known.data) if isinstance(known, DictionaryAttr) else {}
    entries |= {domain: IntegerAttr(version, i64) for domain, version in versions.items()}
    module.attributes[DOMAINS] = DictionaryAttr(dict(sorted(entries.items())))


def node_notes(node: onnx.NodeProto) -> dict[str, Attribute]:
    """The attributes of the op that computes a node's outputs, for what the node says beside its computation."""
    notes: dict[str, Attribute] = {}
    if node.doc_string:
        notes[DOC] = StringAttr(node.doc_string)
    if node.metadata_props:
        notes[NODE_METADATA] = DictionaryAttr({p.key: StringAttr(p.value) for p in node.metadata_props})
    return notes


def note_node(node: onnx.NodeProto, attributes: Mapping[str, Attribute], with_metadata: bool) -> None:
    """Put what `node_notes` made back into a node; older IR versions have no metadata of nodes."""
    doc, props = attributes.get(DOC), attributes.get(NODE_METADATA)
    if isinstance(doc, StringAttr):
        node.doc_string = doc.data
    if with_metadata and isinstance(props, DictionaryAttr):
        for key, value in sorted(_texts(props.data).items()):
            node.metadata_props.add(key=key, value=value)


def annotate_arguments(function: func.FuncOp, index: int, attributes: Mapping[str, Attribute]) -> None:
    """Add attributes to an argument of the function."""
    function.properties["arg_attrs"] = _merged(function.properties.get("arg_attrs"), index, attributes)


def annotate_results(function: func.FuncOp, index: int, attributes: Mapping[str, Attribute]) -> None:
    """Add attributes to a result of the function."""
    function.properties["res_attrs"] = _merged(function.properties.get("res_attrs"), index, attributes)


def input_defaults(function: func.FuncOp) -> dict[int, WeightAttr]:
    """The inputs that may be left out, by position, and what they are then."""
    found = _entries(function.properties.get("arg_attrs"), DEFAULT)
    return {index: attr for index, attr in found if isinstance(attr, WeightAttr)}


def declared_dims(function: func.FuncOp) -> dict[int, tuple[Dim | None, ...]]:
    """The dims that the imported model declared for its outputs, by position."""
    found = _entries(function.properties.get("res_attrs"), DECLARED)
    return {index: attr.data for index, attr in found if isinstance(attr, DimsAttr)}


def input_docs(function: func.FuncOp) -> dict[int, str]:
    return _docs(function.properties.get("arg_attrs"))


def output_docs(function: func.FuncOp) -> dict[int, str]:
    return _docs(function.properties.get("res_attrs"))


def _docs(attr: Attribute | None) -> dict[int, str]:
    return {index: doc.data for index, doc in _entries(attr, DOC) if isinstance(doc, StringAttr)}


def _entries(attr: Attribute | None, key: str) -> Iterator[tuple[int, Attribute]]:
    if not isinstance(attr, ArrayAttr):
        return
    for index, entry in enumerate(attr.data):
        if isinstance(entry, DictionaryAttr) and key in entry.data:
            yield index, entry.data[key]


def _merged(attr: Attribute | None, index: int, attributes: Mapping[str, Attribute]) -> ArrayAttr[DictionaryAttr]:
    entries = list(attr.data) if isinstance(attr, ArrayAttr) else []
    while len(entries) <= index:
        entries.append(DictionaryAttr({}))
    old = entries[index]
    entries[index] = DictionaryAttr({**(old.data if isinstance(old, DictionaryAttr) else {}), **attributes})
    return ArrayAttr(entries)


def _texts(attributes: Mapping[str, Attribute]) -> dict[str, str]:
    return {key: value.data for key, value in attributes.items() if isinstance(value, StringAttr)}
