"""`ONNXProgram`: what an export returns. It is callable, and works without torch where the model did."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.state import StateWriteOp
from sardonyx.dialects.weights import Weight
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.arrays import array_of, is_torch_tensor, tensor_of
from sardonyx.frontend.torch.errors import export_errors, invalid, unsupported
from sardonyx.frontend.torch.options import Options

if TYPE_CHECKING:
    from sardonyx.frontend.onnx.model import OnnxModel


class ONNXProgram:
    """An exported program, callable with torch tensors or arrays.

    Attributes:
        exported_program: The ExportedProgram that it was made of; None where the model was not torch's.
    """

    def __init__(
        self,
        source: ModelGraph,
        exported_program: Any = None,
        options: Options | None = None,
        *,
        inputs: Any = None,
        output_axes: Mapping[str, Mapping[int, str]] | None = None,
    ) -> None:
        self.exported_program = exported_program
        self.options = options or Options()
        self._source = source
        """The graph as it was translated: parameters stand in it under their names."""
        self._inputs = inputs
        """How the user's arguments become the graph's inputs; None: one each."""
        self._output_axes = {name: dict(axes) for name, axes in (output_axes or {}).items()}
        self._optimized = False
        self._graph: ModelGraph | None = None
        self._model: OnnxModel | None = None
        self.baked: frozenset[str] = frozenset()
        """Parameters of which the graph has only what was computed of them (the gates of recurrent layers in order)."""
        self.report: str = ""
        """The report of the export, in Markdown."""

    # ---- what it is
    @property
    def graph(self) -> ModelGraph:
        """The graph, optimized if it was asked for: runs natively, prints, is edited."""
        if self._graph is None:
            self._graph = self._source.clone()
            if self._optimized:
                self._graph.optimize()
        return self._graph

    @property
    def model(self) -> OnnxModel:
        """The ONNX model."""
        if self._model is None:
            from sardonyx.frontend.onnx.model import OnnxModel

            with export_errors():
                self._check_stateless()
                self._model = OnnxModel.from_graph(self.graph, **self.options.onnx_options())
            self._name_output_axes(self._model)
        return self._model

    @property
    def model_proto(self) -> Any:
        """The ONNX model as an `onnx.ModelProto`, weights inside: a copy."""
        return self.model.to_proto()

    def _check_stateless(self) -> None:
        """Refuse a graph with state, which an ONNX model would lose.

        Raises:
            UnsupportedError: It has.
        """
        written = [op for op in self.graph.module.walk() if isinstance(op, StateWriteOp)]
        if written:
            names = ", ".join(f"'{op.buffer_name}'" for op in written)
            raise unsupported(
                f"the model writes into its buffers {names} in place: that is state, which ONNX cannot state",
                hint="take the state as an input and return it; or graph.export_onnx(path, explicit_state=True) makes "
                "it one, and the program itself runs natively with its state",
            )

    def _name_output_axes(self, model: OnnxModel) -> None:
        for value in model._graph.output:
            for axis, name in self._output_axes.get(value.name, {}).items():
                dims = value.type.tensor_type.shape.dim
                if -len(dims) <= axis < len(dims) and dims[axis].HasField("dim_param"):
                    dims[axis].dim_param = name

    def __repr__(self) -> str:
        return f"ONNXProgram({self.graph!r})"

    # ---- running it
    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, natively: torch tensors if an input is one, else `Tensor`s.

        Raises:
            UnsupportedError: An op has no native form; `call_reference` runs it.
        """
        with export_errors():
            graph = self.graph
            graph.finalize()
            return self._wrapped(graph.run(self._flat(args, kwargs)), args, kwargs)

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs by the reference evaluator."""
        with export_errors():
            return self._wrapped(self.graph.evaluate(self._flat(args, kwargs)), args, kwargs)

    def compute_values(self, value_names: Sequence[str], args: Any = (), kwargs: Any = None) -> dict[str, Any]:
        """The values of these names (of the ONNX model's: nodes' outputs, inputs, initializers) for some inputs."""
        with export_errors():
            model = self.model
            names = list(dict.fromkeys(value_names))
            part = model.extract([n for n, *_ in model.inputs()], names).compile()
            given = dict(zip(self.graph.input_names(), self._flat(tuple(args), dict(kwargs or {}))))
            found = part.evaluate({name: given[name] for name in part.input_names()})
            wrapped = self._wrapped(found, tuple(args), dict(kwargs or {}))
            return dict(zip(names, wrapped))

    def _flat(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        given = self._inputs(args, kwargs) if self._inputs is not None else [*args, *kwargs.values()]
        wanted = self.graph.input_names()
        if len(given) != len(wanted):
            raise invalid(f"the program takes {len(wanted)} inputs ({', '.join(wanted)}), got {len(given)}")
        return [array_of(v) if is_torch_tensor(v) else v for v in given]

    def _wrapped(self, results: Sequence[Tensor], args: Any, kwargs: Any) -> tuple[Any, ...]:
        given = self._inputs(args, kwargs) if self._inputs is not None else [*args, *kwargs.values()]
        if not any(is_torch_tensor(v) for v in given) and self.exported_program is None:
            return tuple(results)
        if given and not any(is_torch_tensor(v) for v in given):
            return tuple(results)
        return tuple(tensor_of(r.numpy()) for r in results)

    # ---- changing it
    def optimize(self) -> None:
        """Run the default pipeline over the graph."""
        with export_errors():
            if not self._optimized:
                self._optimized = True
                self._graph = self._model = None

    def apply_weights(self, state_dict: Mapping[str, Any]) -> None:
        """Give parameters and buffers other contents, by name; names that the graph has not are ignored.

        Raises:
            InvalidArgumentError: A tensor has another shape or dtype, or belongs to a recurrent layer, whose weights
                stand in the model in another order.
        """
        with export_errors():
            fixed = sorted(self.baked & set(state_dict))
            if fixed:
                raise invalid(
                    f"'{fixed[0]}' cannot be replaced: the model has it in another order",
                    hint="give the weights to the module, and export that again",
                )
            store = self._source.store
            for op in list(main_function(self._source.module).body.block.ops):
                if not isinstance(op, ConstantOp):
                    continue
                name = next(locations.names(op.location), None)
                if name is None or name not in state_dict:
                    continue
                array = array_of(state_dict[name])
                known = op.array()
                if array.shape != known.shape or array.dtype != known.dtype:
                    raise invalid(f"'{name}' is {known.dtype}{list(known.shape)}, not {array.dtype}{list(array.shape)}")
                if isinstance(op.value, WeightAttr):
                    view = np.ascontiguousarray(array).view()
                    view.flags.writeable = False
                    key = op.value.data.key
                    weight = Weight(key, DType.of(view.dtype), tuple(view.shape), view)
                    op.properties["value"] = WeightAttr(WeightRef(key, store.insert(weight)))
                else:
                    op.properties["value"] = ConstantOp.dense(np.array(array)).value
            self._graph = self._model = None

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Give dynamic dims other names.

        Raises:
            InvalidArgumentError: There is no dim of that name.
        """
        from sardonyx.frontend.torch.rename import rename_symbols

        with export_errors():
            named = {name for axes in self._output_axes.values() for name in axes.values()}
            graph_names = {o: n for o, n in rename_mapping.items() if o not in named}
            for axes in self._output_axes.values():
                axes.update({axis: rename_mapping.get(name, name) for axis, name in axes.items()})
            self._source = rename_symbols(self._source, graph_names)
            self._graph = self._model = None

    # ---- taking it elsewhere
    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model, whole or not at all.

        Args:
            destination: The file.
            include_initializers: Whether the weights' contents are written; without, they are inputs.
            keep_initializers_as_inputs: Whether the weights are listed among the inputs.
            external_data: Weights beside the model (True), inside (False), or inside until 2 GiB (None).
        """
        with export_errors():
            if include_initializers and not keep_initializers_as_inputs:
                self.model.save(destination, save_as_external_data=external_data)
                return
            from sardonyx.frontend.onnx.model import OnnxModel

            self._check_stateless()
            chosen = self.options.onnx_options()
            chosen["export_params"] = include_initializers
            chosen["keep_initializers_as_inputs"] = keep_initializers_as_inputs
            model = OnnxModel.from_graph(self.graph, **chosen)
            self._name_output_axes(model)
            model.save(destination, save_as_external_data=external_data)

    def finish(self) -> None:
        """Optimize and write, as the options say."""
        options = self.options
        if options.optimize:
            self.optimize()
        if options.f is not None:
            self.save(
                options.f,
                include_initializers=options.export_params,
                keep_initializers_as_inputs=options.keep_initializers_as_inputs,
                external_data=options.external_data,
            )
