"""What a model consists of, for a person: `OnnxModel.inspect()`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from sardonyx.backends.onnx.skeleton import Skeleton
from sardonyx.backends.onnx.tensors import BY_ONNX
from sardonyx.dialects.weights import FileSlice, Weight
from sardonyx.frontend.onnx.validate import normal_domain, subgraphs


@dataclass(frozen=True)
class ModelSummary:
    """A model in numbers.

    Attributes:
        name: The graph's name.
        ir_version: The version of the file format.
        opsets: The imported versions by domain, '' for ai.onnx.
        producer: Who made it, with the version.
        inputs, outputs: Each as `name: type`.
        operators: How many nodes there are of each operator, the most frequent first; bodies and functions included.
        nodes: How many nodes there are at the top level.
        initializers: How many tensors are stored.
        weight_bytes: How many bytes they take.
        largest: The five largest, as (name, bytes).
        files: How many of the bytes lie in which file.
        functions: The names of the model's own functions.
        metadata: The model's metadata.
    """

    name: str
    ir_version: int
    opsets: Mapping[str, int]
    producer: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operators: Mapping[str, int]
    nodes: int
    initializers: int
    weight_bytes: int
    largest: tuple[tuple[str, int], ...]
    files: Mapping[str, int]
    functions: tuple[str, ...]
    metadata: Mapping[str, str]

    def __str__(self) -> str:
        opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())
        lines = [
            f"model '{self.name}', IR version {self.ir_version}, {opsets}"
            + (f", by {self.producer}" * bool(self.producer)),
            *(f"  input   {text}" for text in self.inputs),
            *(f"  output  {text}" for text in self.outputs),
            f"  {self.nodes} nodes, {self.initializers} initializers of {size_text(self.weight_bytes)}",
        ]
        if self.functions:
            lines.append(f"  functions: {', '.join(self.functions)}")
        lines.extend(f"  {count:6d}  {name}" for name, count in self.operators.items())
        lines.extend(f"  {size_text(size):>10}  {name}" for name, size in self.largest)
        lines.extend(f"  {size_text(size):>10}  in {path}" for path, size in self.files.items())
        return "\n".join(lines)


def summarize(skeleton: Skeleton) -> ModelSummary:
    """The summary of a model."""
    proto = skeleton.proto
    graph = proto.graph
    operators: Counter[str] = Counter()
    stack: list[onnx.GraphProto | onnx.FunctionProto] = [graph, *proto.functions]
    while stack:
        for node in stack.pop().node:
            domain = normal_domain(node.domain)
            operators[f"{domain}.{node.op_type}" if domain else node.op_type] += 1
            stack.extend(subgraphs(node))
    sizes: dict[str, int] = {}
    files: Counter[str] = Counter()
    for tensor in graph.initializer:
        content = skeleton.contents.get(tensor.name)
        sizes[tensor.name] = _stored(tensor) if content is None else content.nbytes
        if isinstance(content, Weight) and isinstance(content.content, FileSlice):
            files[content.content.path.name] += content.nbytes
    initializers = {t.name for t in graph.initializer}
    return ModelSummary(
        name=graph.name,
        ir_version=proto.ir_version,
        opsets={normal_domain(o.domain): o.version for o in proto.opset_import},
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        inputs=tuple(_shown(v) for v in graph.input if v.name not in initializers),
        outputs=tuple(_shown(v) for v in graph.output),
        operators=dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        nodes=len(graph.node),
        initializers=len(graph.initializer) + len(graph.sparse_initializer),
        weight_bytes=sum(sizes.values()),
        largest=tuple(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:5]),
        files=dict(sorted(files.items())),
        functions=tuple(f.name for f in proto.functions),
        metadata={p.key: p.value for p in proto.metadata_props},
    )


def _stored(tensor: onnx.TensorProto) -> int:
    """The bytes of a tensor that states its contents itself."""
    dtype = BY_ONNX.get(tensor.data_type)
    if dtype is None:
        return len(tensor.raw_data) + sum(len(s) for s in tensor.string_data)
    size = 1
    for dim in tensor.dims:
        size *= dim
    return -(-size * dtype.bits // 8) if dtype.kind != "b" else size


def _shown(info: onnx.ValueInfoProto) -> str:
    return f"{info.name}: {_type_text(info.type)}"


def _type_text(proto: onnx.TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({_type_text(proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_text(proto.optional_type.elem_type)})"
    if kind != "tensor_type":
        return (kind or "unknown").removesuffix("_type")
    tensor = proto.tensor_type
    dtype = BY_ONNX.get(tensor.elem_type)
    name = dtype.name if dtype is not None else onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"{name}[…]"
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{name}[{', '.join(dims)}]"


def size_text(count: int) -> str:
    """A number of bytes for people."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
