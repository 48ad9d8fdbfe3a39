"""`OnnxModel`: an ONNX model in memory, opened from a file or built from a graph.

It holds the model's proto and, beside it, the contents of its initializers as they are: arrays, memory maps of files,
or a graph's weights. They are copied only into what is written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from sardonyx.backends.onnx.options import ExportOptions
from sardonyx.backends.onnx.skeleton import Content, Skeleton
from sardonyx.backends.onnx.tensors import dtype_from_onnx, tensor_shape
from sardonyx.backends.onnx.types import value_info
from sardonyx.backends.onnx.write import as_path, save, whole_proto
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.types import UnknownType, with_dtype_of
from sardonyx.dialects.weights import Weight
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.onnx import edit
from sardonyx.frontend.onnx.importer import Importer, import_model
from sardonyx.frontend.onnx.inspect_model import ModelSummary, summarize
from sardonyx.frontend.onnx.load import LoadedModel, load_file, load_proto
from sardonyx.frontend.onnx.types import type_of
from sardonyx.frontend.onnx.validate import opsets_of, validate

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph, Passes
    from sardonyx.passes.pipeline import PipelineReport

Slot = tuple[str, DType, tuple[int, ...] | None]
"""A name, a dtype and dims: -1 for a dynamic one, None for an unknown rank (and for a sequence or an optional)."""


class OnnxModel:
    """An ONNX model. `open`, `from_proto` and `from_graph` make one."""

    def __init__(self, skeleton: Skeleton, external: bool | None = None) -> None:
        self._skeleton = skeleton
        self._external = external

    # ---- making one
    @staticmethod
    def open(path: str | os.PathLike[str]) -> OnnxModel:
        """Read a model file; weights beside it are mapped when they are needed.

        Raises:
            TypeError: `path` is neither a str nor an os.PathLike.
            InvalidArgumentError: The file cannot be read, or is malformed.
        """
        return OnnxModel._of(load_file(as_path("open", path)))

    @staticmethod
    def from_proto(proto: onnx.ModelProto) -> OnnxModel:
        """Take a model that is in memory; later changes to `proto` do not reach it.

        Raises:
            TypeError: `proto` is no ModelProto.
            InvalidArgumentError: The model is malformed.
        """
        if not isinstance(proto, onnx.ModelProto):
            raise TypeError(f"from_proto(): proto is an onnx.ModelProto, not {type(proto).__name__}")
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        return OnnxModel._of(load_proto(copy))

    @staticmethod
    def from_graph(graph: ModelGraph, **options: Any) -> OnnxModel:
        """The model that `graph.export_onnx` writes, in memory: the graph's weights are read when it is saved.

        Args:
            graph: The graph, as it is now.
            options: Those of `export_onnx` (see `ExportOptions`).

        Raises:
            TypeError: `graph` is no ModelGraph, or an option is wrong.
            InvalidArgumentError, UnsupportedError: As `export_onnx`.
        """
        from sardonyx.backends.onnx.build import build
        from sardonyx.frontend.graph import ModelGraph

        if not isinstance(graph, ModelGraph):
            raise TypeError(f"from_graph(): graph is a ModelGraph, not {type(graph).__name__}")
        graph.require_idle("from_graph")
        chosen = ExportOptions.of("from_graph", options)
        return OnnxModel(build(graph.module, graph.store, chosen), chosen.save_as_external_data)

    @staticmethod
    def _of(loaded: LoadedModel) -> OnnxModel:
        validate(loaded.proto)
        contents: dict[str, Content] = {}
        for tensor in loaded.proto.graph.initializer:
            file = loaded.files.get(tensor.name)
            if file is None:
                continue
            where = f"initializer '{tensor.name}'"
            dtype = dtype_from_onnx(tensor.data_type, where)
            contents[tensor.name] = Weight(tensor.name, dtype, tensor_shape(tensor, dtype, where), file)
            del tensor.external_data[:]
            tensor.ClearField("data_location")
        return OnnxModel(Skeleton(loaded.proto, contents))

    # ---- using it
    def compile(self) -> ModelGraph:
        """The model as a graph, as it stands; the weights are shared, not copied.

        Raises:
            UnsupportedError: It uses what Sardonyx has not; names the node.
            InvalidArgumentError: Its types or shapes contradict each other.
        """
        from sardonyx.frontend.graph import ModelGraph

        return ModelGraph(*import_model(self._skeleton.proto, weights=self._skeleton.contents))

    def save(self, path: str | os.PathLike[str], *, save_as_external_data: bool | None = None) -> None:
        """Write the model, whole or not at all.

        Args:
            path: The file.
            save_as_external_data: Weights beside it as `<stem>_data` (True), inside (False), or inside until 2 GiB
                (None); by default what `from_graph` was told.
        """
        target = as_path("save", path)
        ExportOptions.of("save", {"save_as_external_data": save_as_external_data})
        if save_as_external_data is None:
            save_as_external_data = self._external
        save(self._skeleton, target, save_as_external_data)

    def to_proto(self) -> onnx.ModelProto:
        """The model with its weights inside: a copy."""
        return whole_proto(self._skeleton)

    @property
    def nodes_proto(self) -> onnx.ModelProto:
        """The model's own proto, to look at: weights whose contents lie elsewhere are empty in it."""
        return self._skeleton.proto

    @property
    def contents(self) -> Mapping[str, Content]:
        """Contents of initializers that lie outside of `nodes_proto`, by name."""
        return self._skeleton.contents

    def optimize(self, passes: Passes = None, **options: Any) -> PipelineReport:
        """Simplify the model in place, by way of a graph; returns what was done.

        Args:
            passes: As `ModelGraph.optimize` takes them; by default the pipeline `optimize`, which leaves the fewest
                nodes and lets weights take up scales and batch norms.
            options: Those of `export_onnx`; by default the opset stays, where it can state the result.

        Raises:
            SardonyxError: As `compile`, `ModelGraph.optimize` and `from_graph`; the model is then as it was.
        """
        from sardonyx.backends.onnx.build import build

        chosen = ExportOptions.of("optimize", options)
        graph = self.compile()
        report = graph.optimize("optimize" if passes is None else passes)
        self._skeleton = build(graph.module, graph.store, chosen)
        return report

    # ---- editing it
    def rename(self, old: str, new: str) -> None:
        """Give a value (an input, an output, an initializer or one between nodes) another name.

        Raises:
            InvalidArgumentError: There is no such value, or the name is taken.
        """
        edit.rename(self._skeleton, old, new)

    def rename_node(self, old: str, new: str) -> None:
        """Give a node another name."""
        edit.rename_node(self._skeleton, old, new)

    def add_node(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        name: str = "",
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Add a node that makes new values; returns its name.

        Args:
            op_type: The operator, of `domain` at the version that the model imports.
            inputs: Values that exist, '' for an optional one that is left out.
            outputs: Names of new values; `reconnect` lets others read them, `add_output` makes them outputs.
            name: The node's name; by default that of its first output.
            domain: '' for ai.onnx.
            attributes: Numbers, texts, lists of these, or arrays.

        Raises:
            InvalidArgumentError: A name is wrong, or the node breaks the operator's schema.
        """
        return edit.add_node(self._skeleton, op_type, inputs, outputs, name, domain, attributes)

    def remove_node(self, name: str, *, bypass: bool = False) -> None:
        """Take out the node of that name (or the one that makes the value of that name).

        Args:
            name: The node.
            bypass: Let what reads its first output read its first input.

        Raises:
            InvalidArgumentError: There is no such node, or what it makes is read.
        """
        edit.remove_node(self._skeleton, name, bypass)

    def reconnect(self, old: str, new: str) -> None:
        """Let the nodes that read the value `old` read `new`; a node that makes `new` from `old` stays as it is.

        Raises:
            InvalidArgumentError: There is no such value, or a circle would come of it.
        """
        edit.reconnect(self._skeleton, old, new)

    def set_initializer(self, name: str, array: Any) -> None:
        """Give an initializer other contents, or make a new one; the array is copied.

        Raises:
            InvalidArgumentError: A node makes that value, or an input of that name is declared otherwise.
        """
        edit.set_initializer(self._skeleton, name, array)

    def add_output(self, name: str) -> None:
        """Make a value an output, behind the others."""
        edit.add_output(self._skeleton, name, self._types)

    def remove_output(self, name: str) -> None:
        """Let a value be no output any more."""
        edit.remove_output(self._skeleton, name)

    def extract(self, inputs: Sequence[str], outputs: Sequence[str]) -> OnnxModel:
        """The part of the model that computes the values `outputs` from `inputs`, as a model of its own.

        Weights are shared, not copied; types that the model does not declare are inferred.

        Raises:
            InvalidArgumentError: There is no such value, or the part needs a further input; it is named.
        """
        return OnnxModel(edit.extract(self._skeleton, inputs, outputs, self._types), self._external)

    def _types(self) -> dict[str, onnx.ValueInfoProto]:
        """The types of all values that are known: declared ones, else inferred ones."""
        proto = self._skeleton.proto
        importer = Importer(proto, None, self._skeleton.contents)
        importer.run()
        found = {
            name: value_info(name, value.type)
            for name, value in importer.values.items()
            if not isinstance(value.type, UnknownType)
        }
        declared = (*proto.graph.value_info, *proto.graph.input, *proto.graph.output)
        return found | {v.name: v for v in declared if v.type.WhichOneof("value")}

    # ---- looking at it
    def inspect(self) -> ModelSummary:
        """What the model consists of; printed, it is a table."""
        return summarize(self._skeleton)

    def inputs(self) -> list[Slot]:
        """The inputs that have to be given, as (name, dtype, dims)."""
        initializers = {t.name for t in self._graph.initializer}
        return [_slot(v, "input") for v in self._graph.input if v.name not in initializers]

    def outputs(self) -> list[Slot]:
        """The outputs, as (name, dtype, dims)."""
        return [_slot(v, "output") for v in self._graph.output]

    @property
    def opset(self) -> int:
        """The version of ai.onnx that the model imports (0: it imports other domains only)."""
        return opsets_of(self._skeleton.proto.opset_import, self._skeleton.proto.ir_version).get("", 0)

    @property
    def opaque_nodes(self) -> dict[str, int]:
        """Of a model that was made from a graph: how many nodes went through as operators that Sardonyx does not know,
        by operator."""
        return dict(self._skeleton.opaque)

    @property
    def num_initializers(self) -> int:
        return len(self._graph.initializer) + len(self._graph.sparse_initializer)

    @property
    def _graph(self) -> onnx.GraphProto:
        return self._skeleton.proto.graph

    def __repr__(self) -> str:
        nodes = len(self._graph.node)
        return (
            f"<OnnxModel '{self._graph.name}', opset {self.opset}, {nodes} nodes, {self.num_initializers} initializers>"
        )


def _slot(info: onnx.ValueInfoProto, what: str) -> Slot:
    where = f"{what} '{info.name}'"
    kind = info.type.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return info.name, with_dtype_of(type_of(info.type, where)), None
    if kind != "tensor_type":
        raise UnsupportedError(f"{where} is a {kind}, which has no dtype and dims")
    dtype = dtype_from_onnx(info.type.tensor_type.elem_type, f"{what} '{info.name}'")
    if not info.type.tensor_type.HasField("shape"):
        return info.name, dtype, None
    dims = info.type.tensor_type.shape.dim
    return info.name, dtype, tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in dims)
