"""Layer networks: sequences of layers from one input to one output."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx.activation import EluOp, ReluOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.matmul import GemmOp
from sardonyx.dialects.sx.softmax import SoftmaxOp
from sardonyx.dialects.sx.unary import IdentityOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError, UnsupportedError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.layers.layer import (
    ELULayer,
    FeatureInputLayer,
    FullyConnectedLayer,
    Layer,
    ReLULayer,
    SoftmaxLayer,
)
from sardonyx.frontend.tensor import Tensor

Array = np.ndarray[Any, Any]
SUPPORTED = (FeatureInputLayer, FullyConnectedLayer, ReLULayer, ELULayer, SoftmaxLayer)
"""What computes; output layers end a network."""


class Network:
    """A network of layers, `layers` in the order in which data goes through them.

    Args:
        layers: At least one; those without a name get one (`fc`, `fc_1`, …).

    Raises:
        InvalidArgumentError: It is no list of layers, or a name occurs twice.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        if isinstance(layers, Layer) or not isinstance(layers, Sequence) or isinstance(layers, str | bytes):
            raise InvalidArgumentError(f"{type(self).__name__}() takes a list of layers, not {type(layers).__name__}")
        for number, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise InvalidArgumentError(f"entry {number} is no layer, but {type(layer).__name__}")
        self.layers = list(layers)
        self._name_all()
        self._graphs: dict[str, ModelGraph] = {}

    def _name_all(self) -> None:
        taken: set[str] = set()
        for layer in self.layers:
            if layer.name and layer.name in taken:
                raise InvalidArgumentError(f"two layers are called '{layer.name}'")
            taken.add(layer.name)
        for layer in self.layers:
            if layer.name:
                continue
            base = _SHORT.get(layer.kind, layer.kind.removesuffix("Layer").lower())
            name, number = base, 1
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            layer.name = name
            taken.add(name)

    # ---- checks
    @property
    def order(self) -> list[Layer]:
        """The layers in the order in which data goes through them.

        Raises:
            UnsupportedError: They are no sequence.
        """
        return self.layers

    def check(self) -> np.dtype[Any]:
        """Hold the network against what can be computed; returns the dtype of its learnables (float64 if it has none).

        Raises:
            InvalidArgumentError: A layer stands in the wrong place, or learnables are malformed.
            UnsupportedError: A layer is not one that can be computed, or the layers are no sequence.
            FailedPreconditionError: Learnables are missing.
        """
        order = self.order
        if not order or not isinstance(order[0], FeatureInputLayer):
            raise InvalidArgumentError("a network begins with a feature_input_layer")
        dtype: np.dtype[Any] | None = None
        width = order[0].input_size
        for number, layer in enumerate(order):
            where = f"layer '{layer.name}'"
            if layer.is_output:
                if number != len(order) - 1:
                    raise InvalidArgumentError("an output layer ends a network, but others follow it", location=where)
            elif not isinstance(layer, SUPPORTED):
                raise UnsupportedError(f"{layer.kind} is no layer that can be computed", location=where)
            elif isinstance(layer, FeatureInputLayer) and number:
                raise InvalidArgumentError("a network has one input layer, and begins with it", location=where)
            if isinstance(layer, FullyConnectedLayer):
                dtype = _check_learnables(layer, width, dtype)
                width = layer.output_size
        return np.dtype(np.float64) if dtype is None else dtype

    # ---- what it computes
    def graph(self, batch_size: int | None = None, input_name: str = "", output_name: str = "") -> ModelGraph:
        """The network as a graph: [batch, features] to [batch, outputs].

        Args:
            batch_size: The number of rows; None: a dim named `batch`.
            input_name: What the input is called; by default as the input layer.
            output_name: What the output is called; by default as the last layer that computes.

        Raises:
            SardonyxError: As `check`.
        """
        dtype = DType.of(self.check())
        first, *rest = self.order
        computing = [layer for layer in rest if not layer.is_output]
        dims = [Dim.symbol("batch") if batch_size is None else Dim.of(batch_size), Dim.of(_features(first))]
        name_in = input_name or first.name
        module, block = create_module("network", [(name_in, tensor_type(dtype, dims), None)])
        store = WeightStore()
        value: SSAValue = block.args[0]
        for layer in computing:
            for op in _ops_of(layer, value, store):
                block.add_op(op)
                value = op.results[0]
        if not computing or output_name == name_in:
            op = IdentityOp.make(value)
            block.add_op(op)
            value = op.results[0]
        name_out = output_name or (computing[-1].name if computing else "output")
        set_outputs(module, [value], [name_out])
        return ModelGraph(module, store)

    def predict(self, inputs: Any) -> Tensor:
        """The outputs for rows of features, natively.

        Args:
            inputs: A tensor or an array [rows, features] of the learnables' dtype; float64 where there are none.

        Raises:
            SardonyxError: As `check`, or the input does not fit.
        """
        key = self._state()
        graph = self._graphs.get(key)
        if graph is None:
            graph = self.graph()
            graph.finalize()
            self._graphs = {key: graph}
        (result,) = graph.run([inputs])
        return result

    def _state(self) -> str:
        """What the compiled network depends on: learnables may be changed in place."""
        digest = hashlib.blake2b()
        for layer in self.order:
            digest.update(f"{layer.kind} {layer.name} {getattr(layer, 'alpha', '')}".encode())
            if isinstance(layer, FullyConnectedLayer):
                for given in (layer.weights, layer.bias):
                    array = _array(given)
                    digest.update(
                        b"none" if array is None else f"{array.dtype}{array.shape}".encode() + array.tobytes()
                    )
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' -> '.join(layer.name for layer in self.layers)}>"


class SeriesNetwork(Network):
    """Layers one after the other, with their learnables."""


class DAGNetwork(Network):
    """Layers with connections between them; those that form a sequence can be computed.

    Args:
        layers: The layers, in any order.
        connections: Pairs (source, destination) of layers' names; None: one after the other.

    Raises:
        InvalidArgumentError: A connection names no layer.
    """

    def __init__(self, layers: Sequence[Layer], connections: Sequence[tuple[str, str]] | None = None) -> None:
        super().__init__(layers)
        names = [layer.name for layer in self.layers]
        self.connections = list(zip(names, names[1:])) if connections is None else [tuple(c) for c in connections]
        for pair in self.connections:
            if len(pair) != 2:
                raise InvalidArgumentError(f"{pair!r} is no connection", hint="write ('source', 'destination')")
            for name in pair:
                if name not in names:
                    raise InvalidArgumentError(f"a connection names the layer '{name}', which the network has not")

    @property
    def order(self) -> list[Layer]:
        by_name = {layer.name: layer for layer in self.layers}
        following: dict[str, str] = {}
        reached: set[str] = set()
        for source, destination in self.connections:
            if source in following or destination in reached:
                raise UnsupportedError(
                    f"the layers are no sequence: '{source if source in following else destination}' has several "
                    f"{'successors' if source in following else 'predecessors'}"
                )
            following[source] = destination
            reached.add(destination)
        starts = [name for name in by_name if name not in reached]
        if len(starts) != 1:
            raise UnsupportedError(f"the layers are no sequence: {len(starts)} of them have no predecessor")
        found, at = [starts[0]], starts[0]
        while at in following:
            at = following[at]
            found.append(at)
        if len(found) != len(by_name):
            raise UnsupportedError("the layers are no sequence: some lie on a circle")
        return [by_name[name] for name in found]


class dlnetwork(Network):
    """A network whose learnables are initialised where they are missing: Glorot weights and zero biases, in float64.

    Args:
        layers: The layers, one after the other.
        initialize: Whether to initialise.
        seed: Of the weights; the same seed gives the same network.
    """

    def __init__(self, layers: Sequence[Layer], *, initialize: bool = True, seed: int = 0) -> None:
        super().__init__(layers)
        if initialize:
            self.initialize(seed)

    def initialize(self, seed: int = 0) -> None:
        """Fill in missing learnables."""
        generator = np.random.default_rng(seed)
        width = _features(self.layers[0]) if self.layers and isinstance(self.layers[0], FeatureInputLayer) else None
        for layer in self.layers:
            if not isinstance(layer, FullyConnectedLayer):
                continue
            if layer.weights is None and width is not None:
                bound = np.sqrt(6 / (width + layer.output_size))
                layer.weights = generator.uniform(-bound, bound, (layer.output_size, width))
            if layer.bias is None and layer.weights is not None:
                layer.bias = np.zeros(layer.output_size, np.asarray(layer.weights).dtype)
            width = layer.output_size


_SHORT = {
    "FeatureInputLayer": "input",
    "FullyConnectedLayer": "fc",
    "ClassificationOutputLayer": "classoutput",
    "RegressionOutputLayer": "regressionoutput",
}


def _features(layer: Layer) -> int:
    return layer.input_size if isinstance(layer, FeatureInputLayer) else 0


def _check_learnables(layer: FullyConnectedLayer, width: int, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    where = f"layer '{layer.name}'"
    for what, given, shapes in (
        ("Weights", layer.weights, [(layer.output_size, width)]),
        ("Bias", layer.bias, [(layer.output_size,), (layer.output_size, 1), (1, layer.output_size)]),
    ):
        if given is None:
            raise FailedPreconditionError(
                f"its {what} are missing", location=where, hint="give them, or make the network a dlnetwork"
            )
        array = _array(given)
        if array is None or array.dtype.kind not in "fc" or array.dtype.kind == "c" or array.dtype.itemsize < 4:
            kind = type(given).__name__ if array is None else str(array.dtype)
            raise InvalidArgumentError(f"its {what} are {kind}, expected float64 or float32", location=where)
        if array.shape not in shapes:
            wanted = " or ".join(str(list(s)) for s in shapes)
            raise InvalidArgumentError(f"its {what} have shape {list(array.shape)}, expected {wanted}", location=where)
        if dtype is not None and array.dtype != dtype:
            raise InvalidArgumentError(
                f"its {what} are {array.dtype}, but the learnables before them {dtype}", location=where
            )
        dtype = array.dtype
    return np.dtype(np.float64) if dtype is None else dtype


def _array(given: Any) -> Array | None:
    if isinstance(given, Tensor):
        return None if given.is_traced else given.numpy()
    try:
        array = np.asarray(given)
    except (ValueError, TypeError):
        return None
    return None if array.dtype.kind not in "fciub" else array


def _ops_of(layer: Layer, value: SSAValue, store: WeightStore) -> list[Any]:
    """The ops of a layer; constants bear the names of its learnables."""
    where = locations.name_location(layer.name)
    if isinstance(layer, FullyConnectedLayer):
        weights, bias = _array(layer.weights), _array(layer.bias)
        if weights is None or bias is None:
            raise FailedPreconditionError("its learnables are missing", location=f"layer '{layer.name}'")
        first = ConstantOp.of_weight(store.add(weights, f"{layer.name}_Weights", distinct=True))
        second = ConstantOp.of_weight(store.add(bias.reshape(-1), f"{layer.name}_Bias", distinct=True))
        gemm = GemmOp.make(value, first.output, second.output, transB=True, location=where)
        return [first, second, gemm]
    if isinstance(layer, ReLULayer):
        return [ReluOp.make(value, location=where)]
    if isinstance(layer, ELULayer):
        return [EluOp.make(value, alpha=layer.alpha, location=where)]
    if isinstance(layer, SoftmaxLayer):
        return [SoftmaxOp.make(value, axis=-1, location=where)]
    raise UnsupportedError(f"{layer.kind} is no layer that can be computed", location=f"layer '{layer.name}'")
