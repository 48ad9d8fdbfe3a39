"""A ModelProto as a module and its weights.

Names are kept: those of inputs and outputs as `sx.name`, those of nodes and values as locations. Initializers become
constants; one that is an input too (since IR version 4) is an input with a default. Older forms of operators go
through `adapters`, model-local functions and operators that ONNX defines by a function are put in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import onnx
from onnx import defs
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue

from sardonyx.backends.onnx import metadata
from sardonyx.backends.onnx.names import node_location
from sardonyx.backends.onnx.skeleton import without_collector
from sardonyx.backends.onnx.tensors import array_from_proto, dtype_from_onnx, tensor_shape
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import (
    DimsAttr,
    WeightAttr,
    WeightRef,
    dims_of,
    dtype_of,
)
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import create_module, main_function, set_opset, set_outputs
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, ConstantOp
from sardonyx.dialects.types import UnknownType, describe_type
from sardonyx.dialects.weights import FileSlice, Weight, WeightStore
from sardonyx.errors import InvalidArgumentError, SardonyxError, UnsupportedError
from sardonyx.frontend.onnx import inline, notes
from sardonyx.frontend.onnx.adapters import find
from sardonyx.frontend.onnx.adapters.constants import dense_of_sparse
from sardonyx.frontend.onnx.generic import import_generically
from sardonyx.frontend.onnx.node import NodeContext, rank_of
from sardonyx.frontend.onnx.opaque import import_opaquely
from sardonyx.frontend.onnx.types import contradicts, declared_types, dim_of, stated_kind, value_type
from sardonyx.frontend.onnx.validate import (
    FunctionKey,
    called_function,
    describe,
    function_key,
    normal_domain,
    opsets_of,
    schema_of,
    validate,
)

OpT = TypeVar("OpT", bound=SxOp)

MAX_NODES = 2_000_000
"""How many nodes a model may have once its functions are expanded: nested ones grow exponentially."""
MAX_NESTING = 64


@dataclass
class Scope:
    """The names that a node sees, and how those that it defines are called in the outermost graph."""

    values: dict[str, SSAValue]
    opsets: dict[str, int]
    prefix: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    outer: Scope | None = None
    depth: int = 0
    declared: Mapping[str, onnx.ValueInfoProto] = field(default_factory=dict)
    loops: int = 0
    """How many loops are around; see `adapters.control`."""

    def find(self, name: str) -> SSAValue | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def public(self, name: str) -> str:
        """A name of this scope as the outermost graph has it."""
        if not name:
            return ""
        return self.renamed.get(name) or self.prefix + name


class Importer:
    """Imports one model.

    Args:
        proto: The model; it is validated, and unsorted nodes are put in order in place.
        files: Where the contents of external initializers lie.
        weights: Contents of initializers that state none themselves, by name (those of an export's skeleton).
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        files: Mapping[str, FileSlice] | None = None,
        weights: Mapping[str, object] | None = None,
    ) -> None:
        self.proto = proto
        self.files = files or {}
        self.weights = weights or {}
        self.store = WeightStore()
        self.functions: dict[FunctionKey, onnx.FunctionProto] = {function_key(f): f for f in proto.functions}
        self.opsets = opsets_of(proto.opset_import, proto.ir_version)
        self.declared = declared_types(proto.graph)
        self.block = Block()
        self.values: dict[str, SSAValue] = {}
        """The values of the outermost graph, by name."""
        self.count = 0

    def run(self) -> tuple[ModuleOp, WeightStore]:
        """The module and its weights.

        Raises:
            InvalidArgumentError: The model is malformed.
            UnsupportedError: It uses what Sardonyx has not.
        """
        graph = self.proto.graph
        initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        given = [v for v in graph.input if v.name not in initializers or self.proto.ir_version >= 4]
        inputs = [(v.name, value_type(v), locations.name_location(v.name)) for v in given]
        module, self.block = create_module(graph.name or "main_graph", inputs)
        self.values = {v.name: a for v, a in zip(given, self.block.args, strict=True)}
        scope = Scope(self.values, self.opsets, declared=self.declared)
        defaults = self._initializers(graph, scope)
        self.nodes(graph.node, scope)
        self._outputs(module, scope)
        function = main_function(module)
        for index, info in enumerate(given):
            said = notes.interface_note(info)
            if info.name in defaults:
                weight = defaults[info.name]
                said[metadata.DEFAULT] = WeightAttr(WeightRef(weight.key, weight))
            if info.doc_string:
                said[metadata.DOC] = StringAttr(info.doc_string)
            if said:
                metadata.annotate_arguments(function, index, said)
        metadata.from_proto(self.proto, module)
        notes.note_model(self.proto, module, self.opsets.get("", 0), self.values)
        if "" in self.opsets:
            set_opset(module, self.opsets[""])
        return module, self.store

    def add(self, op: OpT) -> OpT:
        self.block.add_op(op)
        return op

    @contextmanager
    def into(self, block: Block) -> Iterator[None]:
        """The time in which ops are added to another block."""
        before, self.block = self.block, block
        try:
            yield
        finally:
            self.block = before

    # ---- initializers
    def _initializers(self, graph: onnx.GraphProto, scope: Scope) -> dict[str, Weight]:
        """Make the initializers constants; returns those that are defaults of inputs instead."""
        defaults: dict[str, Weight] = {}
        for tensor in graph.initializer:
            if tensor.name in scope.values:
                defaults[tensor.name] = self._default(tensor, scope.values[tensor.name])
            else:
                scope.values[tensor.name] = self._constant(tensor, scope).output
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            array = dense_of_sparse(sparse, f"initializer '{name}'")
            location = locations.name_location(scope.public(name))
            scope.values[name] = self.add(ConstantOp.of(array, self.store, name, location)).output
        return defaults

    def _constant(self, tensor: onnx.TensorProto, scope: Scope) -> ConstantOp:
        name = scope.public(tensor.name)
        location = locations.name_location(name)
        where = f"initializer '{tensor.name}'"
        content = self.weights.get(tensor.name) if scope.depth == 0 else None
        file = self.files.get(tensor.name) if scope.depth == 0 else None
        if file is not None:
            dtype = dtype_from_onnx(tensor.data_type, where)
            content = Weight(name, dtype, tensor_shape(tensor, dtype, where), file)
        if isinstance(content, Weight):
            if content.nbytes > MAX_DENSE_BYTES:
                return self.add(ConstantOp.of_weight(self._known(content), location))
            content = content.array()  # inference looks at small ones
        array = content if content is not None else array_from_proto(tensor, where)
        return self.add(ConstantOp.of(array, self.store, name, location))  # pyright: ignore[reportArgumentType]

    def _known(self, weight: Weight) -> Weight:
        """A weight of another store, under its key or, if that is taken, another one."""
        known = self.store.get(weight.key)
        if known is None:
            return self.store.insert(weight)
        if known is weight or known.content is weight.content:
            return known
        number = 1
        while f"{weight.key}_{number}" in self.store:
            number += 1
        return self.store.insert(Weight(f"{weight.key}_{number}", weight.dtype, weight.shape, weight.content))

    def _default(self, tensor: onnx.TensorProto, argument: SSAValue) -> Weight:
        where = f"initializer '{tensor.name}'"
        content = self.weights.get(tensor.name)
        dtype = dtype_from_onnx(tensor.data_type, where)
        if dtype != dtype_of(argument):
            raise InvalidArgumentError(f"{where} is {dtype}, but the input of that name is {dtype_of(argument)}")
        shape = tensor_shape(tensor, dtype, where)
        dims = [d.static_value for d in dims_of(argument)] if rank_of(argument) is not None else [None] * len(shape)
        if len(dims) != len(shape) or any(d not in (None, e) for d, e in zip(dims, shape)):
            raise InvalidArgumentError(
                f"{where} has the shape {list(shape)}, but the input of that name is {describe_type(argument.type)}"
            )
        if dtype.kind == "s":
            raise UnsupportedError(f"{where} is the default of an input of strings, which is not supported yet")
        if isinstance(content, Weight):
            return self._known(content)
        if tensor.name in self.files:
            return self.store.add_file(self.files[tensor.name], dtype, shape, tensor.name)
        array = content if content is not None else array_from_proto(tensor, where)
        return self.store.add(array, tensor.name)  # pyright: ignore[reportArgumentType]

    # ---- nodes
    def body(self, graph: onnx.GraphProto, scope: Scope) -> None:
        """Import the contents of a graph in an attribute."""
        self._initializers(graph, scope)
        self.nodes(graph.node, scope)

    def nodes(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Import nodes in order."""
        if scope.depth > MAX_NESTING:
            raise UnsupportedError(f"functions and branches are nested more than {MAX_NESTING} deep")
        for node in nodes:
            self.count += 1
            if self.count > MAX_NODES:
                raise UnsupportedError(f"the model expands to more than {MAX_NODES} nodes")
            try:
                self._node(node, scope)
            except SardonyxError as error:
                named = scope.public(node.name or next((o for o in node.output if o), ""))
                if error.location is None or error.location == f"node '{named}'":
                    error.location = f"node '{named}' ({node.op_type})"
                raise

    def _node(self, node: onnx.NodeProto, scope: Scope) -> None:
        inputs: list[SSAValue | None] = []
        for name in node.input:
            value = scope.find(name) if name else None
            if name and value is None:
                raise InvalidArgumentError(f"its input '{name}' is not defined", location=describe(node))
            inputs.append(value)
        domain = normal_domain(node.domain)
        function = self.functions.get(called_function(node))
        schema = None if function is not None else schema_of(node, scope.opsets)
        outputs = [scope.public(name) for name in node.output]
        named = scope.prefix + node.name if node.name else ""
        location = node_location(named or next((o for o in outputs if o), ""), ())
        context = NodeContext(self, node, scope.opsets.get(domain, 1), schema, inputs, location, scope)
        before = self.block.last_op
        values: Sequence[SSAValue | None]
        if function is not None:
            values = inline.call(self, function, node, inputs, scope)
        else:
            values = self._operator(context, domain, schema, scope)
            if not context.expanded:
                self._name(before, values, named, outputs)
                self._note(before, values, node)
        for name, value in zip(node.output, values):
            if name and value is not None:
                scope.values[name] = value
        missing = next((name for name in node.output[len(values) :] if name), None)
        if missing is not None:
            raise UnsupportedError(f"its output '{missing}' is not supported")

    def _operator(
        self, context: NodeContext, domain: str, schema: defs.OpSchema | None, scope: Scope
    ) -> Sequence[SSAValue | None]:
        node = context.node
        if any(value is not None and isinstance(value.type, UnknownType) for value in context.inputs):
            return import_opaquely(context, domain)  # what it computes depends on a type that nobody knows
        adapter = find(domain, node.op_type, context.opset)
        if adapter is not None:
            return adapter(context)
        values: Sequence[SSAValue | None] | None = import_generically(context, domain)
        if values is None and schema is not None:
            body = inline.body_of(schema, context)
            if body is not None:
                context.expanded = True
                values = inline.call(self, body, node, context.inputs, scope)
        return import_opaquely(context, domain) if values is None else values

    def _name(self, before: object, values: Sequence[SSAValue | None], node: str, outputs: Sequence[str]) -> None:
        """Give the ops that compute the node's outputs their names; ops made on the way bear the node's."""
        names: dict[SxOp, list[str]] = {}
        for value, name in zip(values, outputs):
            op = None if value is None else value.owner
            if value is None or not isinstance(op, SxOp) or op.parent is not self.block or not name:
                continue
            entry = names.setdefault(op, [""] * len(op.results))
            entry[op.results.index(value)] = entry[op.results.index(value)] or name
        made: set[object] = set()
        at = self.block.last_op
        while at is not None and at is not before:
            made.add(at)
            at = at.prev_op
        for op, found in names.items():
            if op in made:
                op.location = node_location(node, found)

    def _note(self, before: object, values: Sequence[SSAValue | None], node: onnx.NodeProto) -> None:
        """Give the op that computes the node's first output what the node says of itself."""
        said = metadata.node_notes(node) | notes.node_notes(node)
        if not said:
            return
        op = next((v.owner for v in values if v is not None), None)
        at = self.block.last_op
        while at is not None and at is not before and at is not op:
            at = at.prev_op
        if at is op and isinstance(op, SxOp) and at is not before:  # else it is an earlier node's
            op.attributes.update(said)

    # ---- the interface
    def _outputs(self, module: ModuleOp, scope: Scope) -> None:
        graph = self.proto.graph
        values: list[SSAValue] = []
        for info in graph.output:
            value = scope.values[info.name]
            if contradicts(stated := stated_kind(info.type), value.type):
                raise InvalidArgumentError(
                    f"output '{info.name}' is declared as {stated}, but is {describe_type(value.type)}"
                )
            values.append(value)
        set_outputs(module, values, [v.name for v in graph.output])
        function = main_function(module)
        for index, info in enumerate(graph.output):
            said = notes.interface_note(info)
            if info.type.tensor_type.HasField("shape"):
                said[metadata.DECLARED] = DimsAttr(tuple(dim_of(d) for d in info.type.tensor_type.shape.dim))
            if info.doc_string:
                said[metadata.DOC] = StringAttr(info.doc_string)
            if said:
                metadata.annotate_results(function, index, said)


def import_model(
    proto: onnx.ModelProto, files: Mapping[str, FileSlice] | None = None, weights: Mapping[str, object] | None = None
) -> tuple[ModuleOp, WeightStore]:
    """Validate and import a model (see `Importer`)."""
    validate(proto)
    with without_collector():
        return Importer(proto, files, weights).run()
