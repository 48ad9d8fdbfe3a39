"""An ExportedProgram as a graph of the `sx` dialect: one translation per node of its ATen graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import fresh_dim, tensor_type, type_dims
from sardonyx.dialects.base import refine
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.locations import name_location
from sardonyx.dialects.module import set_outputs
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.elementwise import cast
from sardonyx.frontend.functions.shape import reshape
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.arrays import array_of, dtype_of_torch
from sardonyx.frontend.torch.aten.fourier import complex_rule
from sardonyx.frontend.torch.dims import dim_of
from sardonyx.frontend.torch.errors import as_export_error, unsupported
from sardonyx.frontend.torch.places import describe_node, location_of
from sardonyx.frontend.torch.recorder import Recorder
from sardonyx.frontend.torch.registry import IGNORED, Call, Translation, table
from sardonyx.frontend.torch.shapes import input_leaves

DROPPED = frozenset({
    "aten._assert_scalar.default", "aten._assert_async.msg", "aten._assert_async.default",
    "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
})  # fmt: skip
"""What only guards: torch's assumptions on sizes. Ours are checked from the dims when the graph runs."""


@dataclass
class Slot:
    """An input of the graph: the user's, or a weight that the user wants to supply."""

    name: str
    target: str
    """The placeholder's name in torch's graph."""


@dataclass
class Translated:
    """What comes of a translation."""

    graph: ModelGraph
    inputs: list[Slot]
    constants: dict[int, Any] = field(default_factory=dict)
    """User outputs that are no tensors, by their place."""
    baked: set[str] = field(default_factory=set)
    """Parameters that cannot be replaced: the graph has what was computed of them."""


class Translator:
    """Translates one program.

    Args:
        program: The ExportedProgram, after `decompose`.
        name: The graph's name.
        symbols: What torch's symbols are called.
        custom: Translations that go before ours, by target.
    """

    def __init__(
        self,
        program: Any,
        name: str,
        symbols: Mapping[str, str] | None = None,
        custom: Mapping[Any, Translation] | None = None,
    ) -> None:
        self.program = program
        self.name = name
        self.symbols = dict(symbols or {})
        self.custom = dict(custom or {})
        self.table = table()
        self.values: dict[Any, Any] = {}
        self.recorder: Recorder
        self.module: Any = program.graph_module

    def dtype(self, dtype: Any) -> DType:
        """Our dtype for one of torch's."""
        return dtype_of_torch(dtype)

    def input_count(self) -> int:
        """How many inputs the graph has."""
        names = set(input_leaves(self.program))
        nodes = [n for n in self.module.graph.nodes if n.op == "placeholder" and n.name in names]
        return sum(1 for node in nodes if _is_tensor_input(node))

    # ---- the whole
    def run(self, input_names: Sequence[str | None], output_names: Callable[[list[str]], list[str]]) -> Translated:
        """The graph.

        Args:
            input_names: A name for each user input that is a tensor, in order; None for torch's.
            output_names: Makes the outputs' names, given the inputs'.

        Raises:
            SardonyxError: Something has no translation; the error names the user's line and the module.
        """
        signature = self.program.graph_signature
        placeholders = {node.name: node for node in self.module.graph.nodes if node.op == "placeholder"}
        kinds = {spec.arg.name: spec for spec in signature.input_specs if hasattr(spec.arg, "name")}
        users = [n for n in placeholders if kinds[n].kind.name == "USER_INPUT" and _is_tensor_input(placeholders[n])]
        given = list(input_names) + [None] * (len(users) - len(input_names))
        slots = [Slot(wanted or node, node) for node, wanted in zip(users, given)]
        specs = [self.spec(slot, placeholders[slot.target]) for slot in slots]
        self.recorder = Recorder(self.name, specs)
        by_target = {slot.target: tensor for slot, tensor in zip(slots, self.recorder.inputs)}
        for slot, tensor in zip(slots, self.recorder.inputs):
            argument: Any = tensor.value
            argument.location = name_location(slot.name)
        self.mutated: set[str] = {s.target for s in signature.output_specs if s.kind.name == "BUFFER_MUTATION"}
        with self.recorder.recording():
            self._placeholders(placeholders, kinds, by_target)
            returned = self.block_of(self.module)
            outputs, constants, written = self._outputs(signature, returned)
        names = output_names([slot.name for slot in slots])
        names = [n for i, n in enumerate(names) if i not in constants]
        names += [f"state_out_{number}" for number in range(len(written))]
        set_outputs(self.recorder.module, [*outputs, *written], names)
        graph = ModelGraph(self.recorder.module, self.recorder.store, self.recorder.buffers)
        return Translated(graph, slots, constants, self.recorder.baked)

    def spec(self, slot: Slot, node: Any) -> TensorSpec:
        """An input's name, dtype and dims."""
        meta = node.meta["val"]
        if not hasattr(meta, "dtype"):
            return TensorSpec(slot.name, int64, [])
        try:
            dtype = self.dtype(meta.dtype)
        except SardonyxError as error:
            error.location = f"input '{slot.name}'"
            raise
        return TensorSpec(slot.name, dtype, [dim_of(size, self.symbols) for size in meta.shape])

    def _placeholders(self, nodes: Mapping[str, Any], kinds: Mapping[str, Any], given: Mapping[str, Tensor]) -> None:
        shared: dict[tuple[Any, ...], Tensor] = {}
        for name, node in nodes.items():
            spec = kinds.get(name)
            if name in given:
                tensor = given[name]
                symbolic = not hasattr(node.meta["val"], "dtype")
                self.values[node] = self.symbol_input(node, tensor) if symbolic else tensor
            elif spec is None or spec.kind.name == "USER_INPUT":
                self.values[node] = getattr(spec.arg, "value", None) if spec is not None else None
            elif spec.kind.name == "TOKEN":
                self.values[node] = None
            else:
                self.values[node] = self._weight(spec, node, shared)

    def symbol_input(self, node: Any, tensor: Tensor) -> Any:
        """An input that is a size: the extent of torch's symbol."""
        dim = dim_of(node.meta["val"], self.symbols)
        return tensor if dim is None else Extent(dim, lambda: reshape(tensor, (1,)))

    def _weight(self, spec: Any, node: Any, shared: dict[tuple[Any, ...], Tensor]) -> Any:
        target = spec.target
        if not node.users and target not in self.mutated:
            return None
        source = self.program.state_dict.get(target) if spec.kind.name in ("PARAMETER", "BUFFER") else None
        if source is None:
            source = self.program.constants.get(target)
        if source is None or not hasattr(source, "dtype"):
            raise unsupported(
                f"the {spec.kind.name.lower()} '{target}' of the model is a {type(source).__name__}, not a tensor"
            )
        if target in self.mutated:
            return self.recorder.buffer(target, array_of(source))
        key = (source.data_ptr(), source.dtype, tuple(source.shape), tuple(source.stride()))
        if source.numel() and key in shared:
            return shared[key]
        made = shared[key] = self.recorder.weight(target, array_of(source))
        return made

    def _outputs(
        self, signature: Any, returned: Sequence[Any]
    ) -> tuple[list[SSAValue], dict[int, Any], list[SSAValue]]:
        """The values of the user's outputs, those that are no tensors by their place, and what states become."""
        values: list[SSAValue] = []
        written: list[SSAValue] = []
        constants: dict[int, Any] = {}
        complex_nodes = {n.name for n in self.module.graph.nodes if getattr(n.meta.get("val"), "is_complex", bool)()}
        place = 0
        for spec, value in zip(signature.output_specs, returned):
            kind = spec.kind.name
            if kind != "USER_OUTPUT":
                if kind == "BUFFER_MUTATION":
                    dtype = self.recorder.buffers[spec.target].dtype
                    written.append(self.recorder.write_buffer(spec.target, cast(to_tensor(value), dtype)))
                elif kind in ("USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
                    raise self._mutation(kind, spec.target)
                continue
            if value is None or isinstance(value, bool | int | float | str):
                constants[place] = value
            else:
                if spec.arg.name in complex_nodes:
                    raise unsupported(
                        f"the output {place} is complex, which has no form here", hint="return torch.view_as_real of it"
                    )
                values.append(self.recorder.value_of(to_tensor(value)))
            place += 1
        return values, constants, written

    def _mutation(self, kind: str, target: str) -> SardonyxError:
        if kind == "USER_INPUT_MUTATION":
            return unsupported(
                f"the model writes into its input '{target}' in place",
                hint="clone the input in forward() and return what is written",
            )
        return unsupported(
            f"the model writes into its parameter '{target}' in place, which would be lost",
            hint="register it as a buffer: buffers that forward() writes become state",
        )

    # ---- graphs
    def block_of(self, module: Any) -> list[Any]:
        """Translate the nodes of a graph whose placeholders have values; returns what it returns."""
        outer, self.module = self.module, module
        try:
            for node in module.graph.nodes:
                if node.op == "output":
                    returned = node.args[0]
                    several = returned if isinstance(returned, tuple | list) else (returned,)
                    return [self.argument(value) for value in several]
                if node.op != "placeholder":
                    self.values[node] = self._node(node)
        finally:
            self.module = outer
        return []

    def _node(self, node: Any) -> Any:
        before, self.recorder.at = self.recorder.at, location_of(node)
        try:
            if node.op == "get_attr":
                return self._attribute(node)
            if node.op != "call_function":
                raise unsupported(f"a node '{node.op}' ({node.target}) has no translation")
            return self._call(node)
        except SardonyxError as error:
            made = as_export_error(error)
            place = describe_node(node)
            if made.location is None or not getattr(made, "placed", False):
                made.location = place
                made.placed = True  # pyright: ignore[reportAttributeAccessIssue]
            made.op = made.op or str(node.target)
            if made is error:
                raise
            raise made from error
        finally:
            self.recorder.at = before

    def _attribute(self, node: Any) -> Any:
        import torch

        found: Any = self.module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if isinstance(found, torch.nn.Module):
            return found
        return self.recorder.weight(str(node.target), array_of(found))

    def _call(self, node: Any) -> Any:
        name = str(node.target)
        if name in DROPPED:
            return None
        if node.target is operator.getitem:
            return self._item(node)
        raw = node.target in self.custom
        if not raw and _touches_complex(node):
            translation = complex_rule(name)
            if translation is None:
                raise unsupported(f"{name} of complex numbers has no form here", hint="torch.view_as_real splits them")
        else:
            translation = self.translation_of(node.target)
        if translation is None:
            raise no_translation(name)
        args = [self.argument(a) for a in node.args]
        kwargs = {k: self.argument(v) for k, v in node.kwargs.items() if k not in IGNORED}
        call = Call(self, node)
        result = translation(*args, **kwargs) if raw else translation(call, *args, **kwargs)
        return self._checked(node, result)

    def translation_of(self, target: Any) -> Translation | None:
        """The translation of an operator: the user's, else ours."""
        return self.custom.get(target) or self.table.get(str(target)) or self._plain(target)

    def _plain(self, target: Any) -> Translation | None:
        """The translation of a Python function on symbolic sizes (`operator.mul`), or of a higher-order operator."""
        import torch

        if isinstance(target, torch._ops.HigherOrderOperator):
            return self.table.get(f"hop.{target.name()}")
        name = getattr(target, "__name__", None)
        return None if name is None or isinstance(target, torch._ops.OpOverload) else self.table.get(f"python.{name}")

    def extent_of(self, meta: Any, vector: Tensor) -> Extent:
        """The extent that a vector of one element holds, under torch's name where it has one."""
        import torch

        dim = dim_of(meta, self.symbols) if isinstance(meta, int | torch.SymInt) else None
        return Extent(fresh_dim() if dim is None else dim, lambda: vector)

    def _item(self, node: Any) -> Any:
        source, index = node.args
        found = self.values[source][index]
        is_token = index == 0 and str(source.target) == "with_effects"  # orders effects; no value
        if found is None and node.users and not is_token:
            raise unsupported(f"result {index} of {source.target} has no translation")
        return found

    def argument(self, value: Any) -> Any:
        """An argument of a node: nodes become their values, torch's dtypes ours."""
        import torch

        if isinstance(value, torch.fx.Node):
            return self.values[value]
        if isinstance(value, tuple | list):
            return [self.argument(v) for v in value]
        if isinstance(value, torch.dtype):
            return None if value.is_complex else self.dtype(value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            raise unsupported(f"the symbolic number {value} stands in the graph itself")
        if isinstance(value, torch.device | torch.layout | torch.memory_format):
            return None
        if isinstance(value, complex):
            raise unsupported(f"the complex number {value}: complex values have no form here")
        return value

    # ---- what comes of a node
    def _checked(self, node: Any, result: Any) -> Any:
        meta = node.meta.get("val")
        if isinstance(meta, tuple | list):
            given = list(result) if isinstance(result, tuple | list) else [result]
            given += [None] * (len(meta) - len(given))
            return tuple(self._fitting(node, r, m) for r, m in zip(given, meta))
        if isinstance(result, tuple | list):
            result = result[0]
        return self._fitting(node, result, meta)

    def _fitting(self, node: Any, result: Any, meta: Any) -> Any:
        """The result, held against what torch knows of it."""
        if not hasattr(meta, "dtype") or result is None:
            return result
        tensor = to_tensor(result)
        if meta.is_complex():
            return tensor
        wanted = self.dtype(meta.dtype)
        if tensor.is_traced and not isinstance(tensor.value.type, TensorType):  # of an operator that nobody knows
            known = [dim_of(size, self.symbols) for size in meta.shape]
            tensor.value._type = tensor_type(wanted, [fresh_dim() if d is None else d for d in known])
        tensor = cast(tensor, wanted)
        dims = [dim_of(size, self.symbols) for size in meta.shape]
        if not tensor.is_traced:
            if len(dims) != tensor.ndim or any(
                d is not None and d.static_value not in (None, s) for d, s in zip(dims, tensor.shape)
            ):
                raise InferenceError(self._disagreement(node, tensor.shape, meta))
            return tensor
        ours = type_dims(tensor.value.type)
        if len(ours) != len(dims):
            raise InferenceError(self._disagreement(node, tensor.shape, meta))
        try:
            refine(tensor.value.type, tensor_type(wanted, [o if d is None else d for o, d in zip(ours, dims)]))
        except InferenceError:
            raise InferenceError(self._disagreement(node, tensor.shape, meta)) from None
        return tensor

    def _disagreement(self, node: Any, shape: Sequence[Any], meta: Any) -> str:
        return (
            f"the translation of {node.target} has shape {[str(s) for s in shape]}, "
            f"where torch has {[str(s) for s in meta.shape]}"
        )


def _touches_complex(node: Any) -> bool:
    """Whether a tensor that goes into the node or comes out of it is complex."""
    import torch

    found = [node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)]
    leaves = torch.utils._pytree.tree_leaves(found)
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in leaves)


def no_translation(name: str) -> SardonyxError:
    """The error for an operator that has none, ready to raise."""
    return unsupported(
        f"the operator {name} has no translation",
        hint="give one as custom_translation_table={torch.ops...: function over sardonyx functions}",
    )


def _is_tensor_input(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.Tensor | torch.SymInt)
