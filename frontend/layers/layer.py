"""The layers of layer networks. A layer is a description; a network gives it its place, and checks its learnables.

Each factory takes its options in Python's spelling or in that of the tools that have such networks (`name` or `Name`,
`alpha` or `Alpha`).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from sardonyx.errors import InvalidArgumentError


@dataclass
class Layer:
    """A layer: `name` is its name in the network, '' for one that the network makes."""

    name: str = ""

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def is_output(self) -> bool:
        """Whether it ends a network: it says what the outputs mean, and computes nothing."""
        return False


@dataclass
class FeatureInputLayer(Layer):
    """The input: `input_size` features for each row."""

    input_size: int = 1


@dataclass
class FullyConnectedLayer(Layer):
    """`X * W' + b`, with `weights` [output_size, features] and `bias` [output_size] or [output_size, 1].

    Both are float64 or float32, and of one dtype; None until they are learned (a `dlnetwork` initialises them).
    """

    output_size: int = 1
    weights: Any = None
    bias: Any = None


@dataclass
class ReLULayer(Layer):
    """max(0, x)."""


@dataclass
class ELULayer(Layer):
    """x for positive x, else alpha * (exp(x) - 1)."""

    alpha: float = 1.0


@dataclass
class SoftmaxLayer(Layer):
    """exp(x) / sum(exp(x)) over the features."""


@dataclass
class ClassificationOutputLayer(Layer):
    """The end of a network that classifies; `classes` are their names, None for none."""

    classes: tuple[str, ...] | None = None

    @property
    def is_output(self) -> bool:
        return True


@dataclass
class RegressionOutputLayer(Layer):
    """The end of a network that estimates numbers."""

    @property
    def is_output(self) -> bool:
        return True


def feature_input_layer(input_size: int, **options: Any) -> FeatureInputLayer:
    """The input. Options: `name`.

    Raises:
        InvalidArgumentError: The size is not positive, or an option is unknown.
    """
    size = _size("feature_input_layer", "input_size", input_size)
    return FeatureInputLayer(input_size=size, **_options("feature_input_layer", options, "name"))


def fully_connected_layer(output_size: int, **options: Any) -> FullyConnectedLayer:
    """A dense layer. Options: `name`, `weights`, `bias`.

    Raises:
        InvalidArgumentError: The size is not positive, or an option is unknown.
    """
    size = _size("fully_connected_layer", "output_size", output_size)
    return FullyConnectedLayer(
        output_size=size, **_options("fully_connected_layer", options, "name", "weights", "bias")
    )


def relu_layer(**options: Any) -> ReLULayer:
    """ReLU. Options: `name`."""
    return ReLULayer(**_options("relu_layer", options, "name"))


def elu_layer(alpha: float = 1.0, **options: Any) -> ELULayer:
    """ELU. Options: `name`, `alpha`."""
    found = _options("elu_layer", options, "name", "alpha")
    value = found.pop("alpha", alpha)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentError(f"elu_layer(): alpha is a number, not {type(value).__name__}")
    return ELULayer(alpha=float(value), **found)


def softmax_layer(**options: Any) -> SoftmaxLayer:
    """Softmax. Options: `name`."""
    return SoftmaxLayer(**_options("softmax_layer", options, "name"))


def classification_layer(**options: Any) -> ClassificationOutputLayer:
    """The end of a classifier. Options: `name`, `classes`."""
    found = _options("classification_layer", options, "name", "classes")
    classes = found.pop("classes", None)
    return ClassificationOutputLayer(classes=None if classes is None else tuple(map(str, classes)), **found)


def regression_layer(**options: Any) -> RegressionOutputLayer:
    """The end of a regression. Options: `name`."""
    return RegressionOutputLayer(**_options("regression_layer", options, "name"))


def canonical(name: str) -> str:
    """An option's name in Python's spelling: `OpsetVersion` is `opset_version`."""
    if name.islower() or not name.isidentifier():
        return name
    return "".join(f"_{c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(name))


def given_options(call: str, given: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Options by their names in Python's spelling.

    Raises:
        InvalidArgumentError: One is unknown, or given twice.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        plain = canonical(name)
        if plain not in known:
            raise InvalidArgumentError(f"{call}() has no option '{name}'", hint=f"it takes {', '.join(known)}")
        if plain in found:
            raise InvalidArgumentError(f"{call}(): the option '{plain}' is given twice")
        found[plain] = value
    return found


def _options(call: str, given: dict[str, Any], *known: str) -> dict[str, Any]:
    found = given_options(call, given, known)
    name = found.get("name", "")
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{call}(): name is a text, not {type(name).__name__}")
    return found


def _size(call: str, what: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        size = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise InvalidArgumentError(f"{call}(): {what} is an int, not {type(value).__name__}") from None
    if size < 1:
        raise InvalidArgumentError(f"{call}(): {what} is at least 1, not {size}")
    return size
