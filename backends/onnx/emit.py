"""Emission: a legalised module as a ModelProto, one node per op.

The result is a skeleton: initializers state name, dtype and dims, and their contents are listed beside it, so that a
model of any size is built without a copy of its weights. Constants are initializers; everything else is the node that
`forms.form_of` states.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx
from onnx import helper
from xdsl.dialects import func
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from sardonyx.backends.onnx import metadata
from sardonyx.backends.onnx.contrib import CONTRIB
from sardonyx.backends.onnx.forms import form_of, onnx_form
from sardonyx.backends.onnx.names import NameSpace, node_name, value_names
from sardonyx.backends.onnx.nodes import NodeForm, Unstatable
from sardonyx.backends.onnx.notes import LINEAR, Notes
from sardonyx.backends.onnx.skeleton import Content, Skeleton, ir_version_for
from sardonyx.backends.onnx.tensors import empty_tensor, sparse_from_array, tensor_from_array
from sardonyx.backends.onnx.training import state_training
from sardonyx.backends.onnx.types import value_info
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import WeightAttr
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import GRAPH_NAME, get_text, input_names, main_function, output_names, return_op
from sardonyx.dialects.sx.constant import ConstantOp, dense_array
from sardonyx.dialects.sx.control import YieldOp
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.dialects.types import UnknownType
from sardonyx.dialects.weights import Weight, WeightStore
from sardonyx.errors import UnsupportedError


def emit(module: ModuleOp, store: WeightStore, opset: int, producer: str, producer_version: str) -> Skeleton:
    """The module as a model of an opset.

    Raises:
        UnsupportedError: An op has no form in that opset (`legalize-for-opset` was not run, or could not help).
    """
    return _Emitter(module, store, opset).emit(producer, producer_version)


class _Emitter:
    def __init__(self, module: ModuleOp, store: WeightStore, opset: int) -> None:
        self.module = module
        self.store = store
        self.opset = opset
        self.function = main_function(module)
        self.inputs = input_names(module)
        self.outputs = output_names(module)
        self.values = NameSpace([*self.inputs, *self.outputs])
        self.nodes = NameSpace()
        self.names: dict[SSAValue, str] = {}
        self.node_names: dict[SxOp, str] = {}
        self.forms: dict[SxOp, NodeForm] = {}
        self.contents: dict[str, Content] = {}
        self.copies: list[tuple[SSAValue, str]] = []
        """Outputs that are stated by an Identity: of an input, or of a value that has another output's name."""
        self.unnamed: dict[tuple[Block | None, Attribute], str] = {}
        """Constants that nobody named, by contents (and block, where they stay in it): equal ones are one
        initializer."""
        self.proto = onnx.ModelProto()
        self.graph = self.proto.graph
        self.graph.name = get_text(module, GRAPH_NAME) or "main_graph"
        self.domains = {"": opset}
        self.opaque: dict[str, int] = {}
        self.notes = Notes(module, opset, ir_version_for(opset))

    def emit(self, producer: str, producer_version: str) -> Skeleton:
        sx_ops: list[SxOp] = []
        for op in self.function.body.walk():
            if isinstance(op, func.ReturnOp | YieldOp):
                continue
            if not isinstance(op, SxOp):
                raise UnsupportedError(f"{op.name} has no ONNX form", location=locations.describe(op.location))
            sx_ops.append(op)
            if not isinstance(op, ConstantOp):
                self.forms[op] = self._form(op)
        self._name_all(sx_ops)
        graph, domains = self.graph, self.domains
        self._emit_inputs(graph)
        self._emit_ops(graph, self.function.body.block)
        for value, name in self.copies:
            node = helper.make_node("Identity", [self.names[value]], [name], name=self.nodes.claim(name))
            graph.node.append(node)
        self._emit_outputs(graph)
        proto = self.proto
        proto.ir_version, proto.producer_name, proto.producer_version = (
            self.notes.ir_version,
            producer,
            producer_version,
        )
        for domain in state_training(self.module, self.opset, proto):
            domains.setdefault(domain, metadata.domain_version(self.module, domain))
        for domain in sorted(domains):
            proto.opset_import.append(helper.make_opsetid(domain, domains[domain]))
        metadata.to_proto(self.module, proto)
        self.notes.finish(proto)
        return Skeleton(proto, self.contents, self.opaque)

    def _emit_ops(self, graph: onnx.GraphProto, block: Block) -> None:
        """The initializers and nodes of a block."""
        for op in block.ops:
            if isinstance(op, ConstantOp):
                self._emit_constant(graph, op)
            elif isinstance(op, SxOp):
                self._emit_node(graph, op)
                if isinstance(op, OpaqueOp):
                    self._count_opaque(op)
                self._emit_types(graph, op)
                domain = self.forms[op].domain
                if domain:
                    least = 1 if (form := onnx_form(op)) is None else form.since
                    stated = metadata.domain_version(self.module, domain, least)
                    self.domains[domain] = max(self.domains.get(domain, 1), stated)

    def _emit_types(self, graph: onnx.GraphProto, op: SxOp) -> None:
        """The types of an op's results: where ONNX cannot infer them, and where the imported model stated them."""
        every = self.notes.typed or isinstance(op, OpaqueOp) or self.forms[op].domain == CONTRIB
        for result in op.results:
            name = self.names[result]
            if name in self.outputs or not (every or self.notes.names(name)) or isinstance(result.type, UnknownType):
                continue
            graph.value_info.append(self.notes.value(value_info(name, result.type)))

    def _count_opaque(self, op: OpaqueOp) -> None:
        self.opaque[op.operator] = self.opaque.get(op.operator, 0) + 1

    def _emit_body(self, name: str, region: Region) -> onnx.GraphProto:
        """A region as the graph of an attribute.

        What it yields is computed by its own nodes, each under a name of its own: an Identity states what comes from
        outside, is a constant or an input, or is yielded twice.
        """
        graph = onnx.GraphProto(name=name)
        block = region.block
        for argument in block.args:
            graph.input.append(self.notes.value(value_info(self.names[argument], argument.type)))
        self._emit_ops(graph, block)
        stated: set[str] = set()
        last = block.last_op
        for value in last.operands if last is not None else ():
            name, owner = self.names[value], value.owner
            if name in stated or not isinstance(owner, SxOp) or isinstance(owner, ConstantOp) or owner.parent != block:
                output = self.values.claim(f"{name}_out")
                graph.node.append(helper.make_node("Identity", [name], [output], name=self.nodes.claim(output)))
                name = output
            stated.add(name)
            graph.output.append(self.notes.value(value_info(name, value.type)))
        between = [info for info in graph.value_info if info.name not in stated]
        del graph.value_info[:]
        graph.value_info.extend(between)
        return graph

    def _form(self, op: SxOp) -> NodeForm:
        try:
            return form_of(op, self.opset)
        except Unstatable as error:
            name = locations.describe(op.location) or op.name
            raise UnsupportedError(
                f"{op.name} cannot be stated in opset {self.opset}: {error.reason}", location=name, op=op.name
            ) from error

    # ---- names
    def _name_all(self, ops: list[SxOp]) -> None:
        for argument, name in zip(self.function.body.block.args, self.inputs, strict=True):
            self.names[argument] = name
        taken: set[str] = set(self.inputs)
        for value, name in zip(return_op(self.function).operands, self.outputs, strict=True):
            if value in self.names:
                if self.names[value] != name:
                    self.copies.append((value, name))
            elif name in taken:  # an input has this name
                raise UnsupportedError(f"output '{name}' has the name of another value")
            else:
                self.names[value] = name
            taken.add(name)
        # From the end: where a pass made several ops from one, the last computes its value and gets its name. Outer
        # blocks go first, and the first of several bodies.
        blocks: dict[Block | None, list[SxOp]] = {}
        for op in ops:
            blocks.setdefault(op.parent, []).append(op)
        for op in (op for within in blocks.values() for op in reversed(within)):
            if isinstance(op, ConstantOp):
                continue
            wanted = node_name(op.location)
            if wanted:
                self.node_names[op] = self.nodes.claim(wanted)
            for result, name in zip(op.results, value_names(op.location, len(op.results)), strict=True):
                if name and result not in self.names:
                    self.names[result] = self.values.claim(name)
        for op in ops:
            if isinstance(op, ConstantOp):
                self._name_constant(op)
                continue
            for region in op.regions:
                for argument in region.block.args:
                    wanted = value_names(argument.location, 1)[0]
                    self.names[argument] = self.values.claim(wanted) if wanted else self.values.claim_numbered("arg")
            node = self.node_names.get(op)
            if node is None:
                node = self.node_names[op] = self.nodes.claim_numbered(self.forms[op].op_type)
            for index, result in enumerate(op.results):
                if result not in self.names:
                    suffix = f"_output_{index}" if len(op.results) > 1 else "_output"
                    self.names[result] = self.values.claim(node + suffix)

    def _name_constant(self, op: ConstantOp) -> None:
        if op.output in self.names:
            return
        wanted = value_names(op.location, 1)[0]
        same = (None if self._is_outermost(op) else op.parent), op.value
        if wanted is None and same in self.unnamed:
            self.names[op.output] = self.unnamed[same]
            return
        if wanted is not None:
            self.names[op.output] = self.values.claim(wanted)
            return
        key = op.value.data.key if isinstance(op.value, WeightAttr) else None
        name = self.values.claim(key) if key else self.values.claim_numbered("constant")
        self.unnamed[same] = self.names[op.output] = name

    def _is_outermost(self, op: ConstantOp) -> bool:
        """Whether a constant is an initializer of the model's graph: weights always are, small ones stay in bodies."""
        return op.parent is self.function.body.block or isinstance(op.value, WeightAttr)

    # ---- parts of the graph
    def _emit_inputs(self, graph: onnx.GraphProto) -> None:
        defaults = metadata.input_defaults(self.function)
        docs = metadata.input_docs(self.function)
        for index, argument in enumerate(self.function.body.block.args):
            info = graph.input.add()
            info.CopyFrom(value_info(self.inputs[index], argument.type))
            if index in docs:
                info.doc_string = docs[index]
            self.notes.interface(info, self.function, "arg_attrs", index)
            weight = defaults.get(index)
            if weight is not None:
                self._add_initializer(graph, self.inputs[index], self._weight(weight))

    def _emit_constant(self, graph: onnx.GraphProto, op: ConstantOp) -> None:
        name = self.names[op.output]
        if name in self.contents:
            return  # an equal constant made it
        value = op.value
        sparse = self.notes.sparse(name)
        if sparse and self._is_outermost(op):
            if all(known.values.name != name for known in self.graph.sparse_initializer):
                self.graph.sparse_initializer.append(sparse_from_array(name, op.array(), sparse == LINEAR))
                self.notes.tensor(self.graph.sparse_initializer[-1].values, op.attributes)
        elif isinstance(value, WeightAttr):
            self._add_initializer(self.graph, name, self._weight(value), op.attributes)
        elif self._is_outermost(op) and isinstance(value, DenseIntOrFPElementsAttr):
            self._add_initializer(graph, name, dense_array(value), op.attributes)
        elif all(tensor.name != name for tensor in graph.initializer):
            graph.initializer.append(tensor_from_array(name, op.array()))
            self.notes.tensor(graph.initializer[-1], op.attributes)

    def _weight(self, attr: WeightAttr) -> Weight:
        return attr.data.source or self.store[attr.data.key]

    def _add_initializer(
        self,
        graph: onnx.GraphProto,
        name: str,
        content: Content,
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> None:
        dtype = content.dtype if isinstance(content, Weight) else DType.of(content.dtype)
        graph.initializer.append(empty_tensor(name, dtype, tuple(content.shape)))
        self.notes.tensor(graph.initializer[-1], attributes)
        self.contents[name] = content

    def _emit_node(self, graph: onnx.GraphProto, op: SxOp) -> None:
        form = self.forms[op]
        node = graph.node.add(op_type=form.op_type, name=self.node_names[op])
        if form.domain:
            node.domain = form.domain
        if form.overload:
            node.overload = form.overload
        node.input.extend("" if v is None else self.names[v] for v in form.inputs)
        node.output.extend("" if v is None else self.names[v] for v in form.outputs)
        attributes = dict(form.attributes)
        for name, regions in form.graphs.items():
            bodies = [self._emit_body(f"{node.name}_{name}", region) for region in regions]
            if name in form.lists:
                kind = onnx.AttributeProto.GRAPHS
                attributes[name] = onnx.AttributeProto(name=name, type=kind, graphs=bodies)
            else:
                attributes[name] = onnx.AttributeProto(name=name, type=onnx.AttributeProto.GRAPH, g=bodies[0])
        node.attribute.extend(attributes[name] for name in sorted(attributes))
        metadata.note_node(node, op.attributes, self.notes.with_metadata)
        self.notes.node(node, op.attributes)
        if self.notes.with_metadata:
            where = _source(op)
            if where is not None and all(p.key != metadata.LOCATION_KEY for p in node.metadata_props):
                node.metadata_props.add(key=metadata.LOCATION_KEY, value=where)

    def _emit_outputs(self, graph: onnx.GraphProto) -> None:
        declared = metadata.declared_dims(self.function)
        docs = metadata.output_docs(self.function)
        for index, value in enumerate(return_op(self.function).operands):
            info = graph.output.add()
            info.CopyFrom(value_info(self.outputs[index], value.type, declared.get(index)))
            if index in docs:
                info.doc_string = docs[index]
            self.notes.interface(info, self.function, "res_attrs", index)


def _source(op: SxOp) -> str | None:
    """The user's line from which the op comes."""
    for leaf in locations.leaves(op.location):
        if isinstance(leaf, FileLineColLoc):
            return f"{leaf.filename.data}:{leaf.line.data}"
    return None
