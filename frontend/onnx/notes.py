"""What a model says of its parts beyond their computation, noted in the module (see `backends.onnx.notes`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from sardonyx.backends.onnx import notes
from sardonyx.backends.onnx.options import MAX_OPSET, MIN_OPSET
from sardonyx.backends.onnx.skeleton import ir_version_for
from sardonyx.backends.onnx.training import note_training
from sardonyx.backends.onnx.types import type_proto
from sardonyx.dialects.types import is_tensor
from sardonyx.frontend.onnx.validate import subgraphs


def note_model(proto: onnx.ModelProto, module: ModuleOp, opset: int, values: Mapping[str, SSAValue]) -> None:
    """Note what a model says of its values and tensors, of devices and of training; warn of what has no place.

    Args:
        proto: The model.
        module: Its module.
        opset: Its version of ai.onnx, or 0.
        values: The values of its outermost graph, by name.
    """
    graphs = list(_graphs(proto.graph))
    defined = Counter(name for graph in graphs for name in _names(graph))
    ambiguous = {name for name, count in defined.items() if count > 1}
    said: dict[str, Attribute] = {}
    tensors: dict[str, Attribute] = {}
    unclear: set[str] = set()
    for graph in graphs:
        inner = graph is not proto.graph
        for info in (*graph.value_info, *((*graph.input, *graph.output) if inner else ())):
            note = value_note(info, None if inner else values.get(info.name))
            if note is None:
                continue
            if info.name in ambiguous:
                unclear.add(info.name)
            else:
                said[info.name] = notes.text_of(note)
        for tensor in graph.initializer:
            _note_tensor(tensor, tensor.name, tensors, ambiguous, unclear)
        for sparse in graph.sparse_initializer:
            _note_tensor(sparse.values, sparse.values.name, tensors, ambiguous, unclear)
            if not inner and sparse.values.data_type != onnx.TensorProto.STRING:
                entry = tensors.get(sparse.values.name)
                known = entry.data if isinstance(entry, DictionaryAttr) else {}
                form = notes.LINEAR if len(sparse.indices.dims) == 1 else notes.BY_AXIS
                tensors[sparse.values.name] = DictionaryAttr({**known, notes.SPARSE: StringAttr(form)})
    _note_types(proto.graph, module, said, ambiguous)
    for key, entries in ((notes.VALUES, said), (notes.TENSORS, tensors)):
        if entries:
            module.attributes[key] = DictionaryAttr(dict(sorted(entries.items())))
    if proto.configuration:
        module.attributes[notes.CONFIGURATION] = notes.text_of(onnx.ModelProto(configuration=proto.configuration))
    note_training(proto, module)
    needed = _needed_ir(proto, graphs)
    if MIN_OPSET <= opset <= MAX_OPSET and proto.ir_version >= needed > ir_version_for(opset):
        module.attributes[notes.IR_VERSION] = IntegerAttr(needed, i64)
    if unclear:
        notes.warn(f"what is said of '{min(unclear)}' is left out: values of several graphs have that name")
    _warn_of_functions(proto)
    _warn_of_unknown_fields(proto)


def interface_note(info: onnx.ValueInfoProto) -> dict[str, Attribute]:
    """The attribute of an argument or a result for what is said of it besides doc string and dims."""
    note = value_note(info, None, docs=False)
    return {} if note is None else {notes.VALUE: notes.text_of(note)}


def value_note(info: onnx.ValueInfoProto, value: SSAValue | None, docs: bool = True) -> onnx.ValueInfoProto | None:
    """What a declaration says beside the type, and of the type what inference does not find; None where that is
    nothing.

    Args:
        info: The declaration.
        value: The value, where it is known; its dims without a name take those that are declared.
        docs: Whether the doc string counts.
    """
    note = onnx.ValueInfoProto(metadata_props=info.metadata_props)
    if docs and info.doc_string:
        note.doc_string = info.doc_string
    found = onnx.TypeProto()
    if value is not None and is_tensor(value.type):
        found = type_proto(value.type)
        whole = onnx.TypeProto.FromString(found.SerializeToString())
        notes.overlay(whole, info.type)
        more = whole != found
    else:
        more = _denotes(info.type)
    if more:
        note.type.CopyFrom(info.type)
    return note if note.ByteSize() else None


def _denotes(ty: onnx.TypeProto) -> bool:
    """Whether a type, or one in it, or an axis has a denotation."""
    kind = ty.WhichOneof("value")
    if ty.denotation:
        return True
    if kind in ("sequence_type", "optional_type"):
        return _denotes(getattr(ty, kind).elem_type)
    if kind == "map_type":
        return _denotes(ty.map_type.value_type)
    return kind == "tensor_type" and any(d.denotation for d in ty.tensor_type.shape.dim)


def _note_types(graph: onnx.GraphProto, module: ModuleOp, said: dict[str, Attribute], ambiguous: set[str]) -> None:
    """Note whose types the model states: those of most values, or some by name."""
    between = {name for node in graph.node for name in node.output if name} - {v.name for v in graph.output}
    stated = [v.name for v in graph.value_info if v.name in between]
    if stated and 2 * len(stated) >= len(between):
        module.attributes[notes.TYPED] = notes.MARK
        return
    for name in stated:
        if name not in ambiguous:
            said.setdefault(name, StringAttr(""))


def _note_tensor(
    tensor: onnx.TensorProto, name: str, tensors: dict[str, Attribute], ambiguous: set[str], unclear: set[str]
) -> None:
    if not tensor.doc_string and not tensor.metadata_props:
        return
    if name in ambiguous:
        unclear.add(name)
        return
    note = onnx.TensorProto(metadata_props=tensor.metadata_props)
    if tensor.doc_string:
        note.doc_string = tensor.doc_string
    tensors[name] = DictionaryAttr({notes.SAID: notes.text_of(note)})


def node_notes(node: onnx.NodeProto) -> dict[str, Attribute]:
    """What a node says of its attributes, the graphs in them and its devices."""
    found: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    graphs: dict[str, Attribute] = {}
    for attribute in node.attribute:
        note = onnx.AttributeProto()
        if attribute.doc_string:
            note.doc_string = attribute.doc_string
        if attribute.type == onnx.AttributeProto.TENSOR and (attribute.t.doc_string or attribute.t.metadata_props):
            note.t.metadata_props.extend(attribute.t.metadata_props)
            for key in ("name", "doc_string"):
                if getattr(attribute.t, key):
                    setattr(note.t, key, getattr(attribute.t, key))
        if note.ByteSize():
            attributes[attribute.name] = notes.text_of(note)
        inner = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        if inner:
            graphs[attribute.name] = ArrayAttr(notes.text_of(_graph_note(g)) for g in inner)
    if attributes:
        found[notes.ATTRIBUTES] = DictionaryAttr(attributes)
    if graphs:
        found[notes.GRAPHS] = DictionaryAttr(graphs)
    if node.device_configurations:
        found[notes.DEVICES] = notes.text_of(onnx.NodeProto(device_configurations=node.device_configurations))
    return found


def _graph_note(graph: onnx.GraphProto) -> onnx.GraphProto:
    note = onnx.GraphProto(metadata_props=graph.metadata_props, quantization_annotation=graph.quantization_annotation)
    for key in ("name", "doc_string"):
        if getattr(graph, key):
            setattr(note, key, getattr(graph, key))
    return note


# ---- walks


def _graphs(outermost: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the graphs in its nodes' attributes."""
    stack = [outermost]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            stack.extend(subgraphs(node))


def _names(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph defines."""
    names = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    names |= {t.values.name for t in graph.sparse_initializer}
    return names | {name for node in graph.node for name in node.output if name}


def _needed_ir(proto: onnx.ModelProto, graphs: Iterable[onnx.GraphProto]) -> int:
    """The IR version from which a model may say what this one says of its parts."""
    nodes = [node for graph in graphs for node in graph.node]
    if proto.configuration or any(node.device_configurations for node in nodes):
        return notes.DEVICES_IR
    parts = (
        part
        for graph in graphs
        for part in (*graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info)
    )
    return notes.METADATA_IR if any(part.metadata_props for part in parts) else 0


def _warn_of_functions(proto: onnx.ModelProto) -> None:
    """The functions of a model are put in the place of their calls: what it says of them has no place."""
    for function in proto.functions:
        if function.doc_string or function.metadata_props or any(v.doc_string for v in function.value_info):
            notes.warn(
                f"function '{function.name}' is put in the place of its calls; what it says of itself is left out"
            )
            return


def _warn_of_unknown_fields(proto: onnx.ModelProto) -> None:
    """Fields that this version of ONNX does not know, in the model, its nodes, attributes and tensors."""
    unknown = next(((m, u) for m in _messages(proto) if len(u := UnknownFieldSet(m))), None)
    if unknown is not None:
        message, fields = unknown
        name = message.DESCRIPTOR.name
        notes.warn(f"a {name} has the field {fields[0].field_number}, which ONNX {onnx.__version__} does not know")


def _messages(proto: onnx.ModelProto) -> Iterator[Message]:
    yield proto
    yield from proto.functions
    for holder in (*_graphs(proto.graph), *(g for f in proto.functions for n in f.node for g in subgraphs(n))):
        yield holder
        yield from (*holder.input, *holder.output, *holder.value_info, *holder.initializer)
    for nodes in (*(g.node for g in _graphs(proto.graph)), *(f.node for f in proto.functions)):
        for node in nodes:
            yield node
            for attribute in node.attribute:
                yield attribute
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield attribute.t
