"""`Module`: a function on tensors that has parameters, named by their place in a tree of modules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.files import write_files
from sardonyx.dialects.weights import Weight
from sardonyx.dialects.weights_file import read_weights, write_weights
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions.data_types import dtype_of_to
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import current


class Parameter(Tensor):
    """A tensor that belongs to a module: it is saved and loaded, and an exported model has it under its name."""

    __slots__ = ()

    def __init__(self, data: Any, dtype: object = None) -> None:
        super().__init__(data, dtype)
        if self.is_traced:
            raise InvalidArgumentError("a Parameter has contents; this tensor is traced", location=user_line())


class Module:
    """A function with parameters; a subclass sets these and other modules as attributes, and states `forward`.

    Called while a trace runs, its parameters are weights of the graph, under their names from the outermost module.
    """

    _parameters: dict[str, Tensor]
    _modules: dict[str, Module]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        object.__setattr__(made, "_parameters", {})
        object.__setattr__(made, "_modules", {})
        return made

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        running = current()
        if running is not None and id(self) not in running.modules:
            running.modules.update(id(m) for _, m in self.named_modules())
            running.capture_parameters(self.named_tensors())
        return self.forward(*args, **kwargs)

    # ---- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        for table in (self._parameters, self._modules):
            table.pop(name, None)
        if isinstance(value, Module):
            self._modules[name] = value
        elif isinstance(value, Tensor):
            self._parameters[name] = value
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._parameters.pop(name, None)
        self._modules.pop(name, None)
        object.__delattr__(self, name)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module (under the prefix) and all below it, by their dotted names."""
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters and other tensors (such as running means), by their dotted names; each once."""
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, tensor in module._parameters.items():
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{prefix}.{name}" if prefix else name), tensor

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters by their dotted names."""
        return ((name, tensor) for name, tensor in self.named_tensors() if isinstance(tensor, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        return (tensor for _, tensor in self.named_parameters())

    def num_parameters(self) -> int:
        """The number of all parameters' elements."""
        return sum(int(p.size) for p in self.parameters())

    def __repr__(self) -> str:
        inner = "\n".join(
            f"  ({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()
        )
        head = f"{type(self).__name__}({self.extra()})"
        return f"{head[:-1]}\n{inner}\n)" if inner else head

    def extra(self) -> str:
        """What its `repr` tells beside the modules below."""
        return ""

    # ---- contents
    def state_dict(self) -> dict[str, Tensor]:
        """All tensors by name; they share the contents."""
        return {name: Tensor.of_array(tensor.numpy()) for name, tensor in self.named_tensors()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Take over tensors by name; dtypes are converted.

        Args:
            state: Tensors or arrays by name; they are shared, not copied.
            strict: Whether all must be there, and no others.

        Raises:
            InvalidArgumentError: Names are missing or unknown, or a shape differs; nothing is changed then.
        """
        own = dict(self.named_tensors())
        missing = [n for n in own if n not in state]
        unknown = [n for n in state if n not in own]
        if strict and (missing or unknown):
            parts = [f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
                     for what, names in (("missing", missing), ("unknown", unknown)) if names]  # fmt: skip
            raise InvalidArgumentError(
                f"load_state_dict(): the names do not fit ({'; '.join(parts)})",
                location=user_line(),
                hint="strict=False takes those that fit",
            )
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        for name, tensor in own.items():
            if name in state:
                arrays[name] = _fitting(name, state[name], tensor)
        for name, array in arrays.items():
            own[name]._array = array

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all tensors: `.npz` as NumPy's, anything else as safetensors."""
        target = Path(path)
        arrays = {name: tensor.numpy() for name, tensor in self.named_tensors()}
        if target.suffix == ".npz":
            content: dict[str, Any] = arrays
            write_files([(target, lambda file: np.savez(file, **content))])
        else:
            weights = {n: Weight(n, DType.of_array(a), a.shape, a) for n, a in arrays.items()}
            write_files([(target, lambda file: write_weights(weights, file))])

    def load(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Read all tensors from a file that `save` or another library wrote; safetensors are mapped, not read.

        Raises:
            InvalidArgumentError: The file cannot be read, or does not fit.
        """
        if Path(path).suffix == ".npz":
            try:
                with np.load(path, allow_pickle=False) as file:
                    state: Mapping[str, Any] = {name: file[name] for name in file.files}
            except (OSError, ValueError) as error:
                raise InvalidArgumentError(f"load(): {path} cannot be read: {error}", location=user_line()) from error
        else:
            state = {name: weight.array() for name, weight in read_weights(path).items()}
        self.load_state_dict(state, strict)

    def to(self, *dtype_or_device: Any, dtype: object = None, device: object = None) -> Self:
        """Convert all tensors of floats to another float dtype, in place: `to(sardonyx.float16)`.

        A tensor stands for its dtype; the device "cpu" changes nothing.

        Raises:
            InvalidArgumentError: The dtype is no float's, or there is no such device.
        """
        target = dtype_of_to(dtype_or_device, dtype, device)
        if target is None:
            return self
        if not target.is_float:
            raise InvalidArgumentError(f"to(): {target} is no dtype of floats", location=user_line())
        for _, tensor in self.named_tensors():
            if tensor.dtype.is_float:
                tensor._array = tensor.numpy().astype(target.numpy)
        return self


def _fitting(name: str, given: Any, tensor: Tensor) -> np.ndarray[Any, Any]:
    from sardonyx.frontend.operands import from_foreign

    array = given.numpy() if isinstance(given, Tensor) else from_foreign(given)
    if array.shape != tensor.shape:
        raise InvalidArgumentError(
            f"load_state_dict(): '{name}' has shape {list(array.shape)}, expected {list(tensor.shape)}",
            location=user_line(),
        )
    wanted = tensor.dtype.numpy
    if array.dtype != wanted and DType.of_array(array).is_float != tensor.dtype.is_float:
        raise InvalidArgumentError(
            f"load_state_dict(): '{name}' is {array.dtype}, expected {tensor.dtype}", location=user_line()
        )
    return array if array.dtype == wanted else array.astype(wanted)


# ---- first contents

_generator = [np.random.default_rng(0)]


def manual_seed(seed: int) -> None:
    """Begin the random numbers anew with which modules fill their parameters."""
    _generator[0] = np.random.default_rng(seed)


def uniform(bound: float, *shape: int) -> Parameter:
    """A parameter of float32 between the bounds."""
    return _owned(_generator[0].uniform(-bound, bound, shape).astype(np.float32))


def normal(deviation: float, *shape: int) -> Parameter:
    """A parameter of float32 around 0."""
    return _owned(_generator[0].standard_normal(shape, np.float32) * np.float32(deviation))


def filled(value: float, *shape: int) -> Parameter:
    """A parameter of one number."""
    return _owned(np.full(shape, value, np.float32))


def _owned(array: np.ndarray[Any, Any]) -> Parameter:
    """A parameter of an array that nobody else has: a trace then need not copy it."""
    array.flags.writeable = False
    return Parameter(array)
