"""`Tensor`: an eager tensor, which holds an array, or a traced one, which stands for a value of the graph being traced.

Operators, methods and NumPy's protocols do the same on both, by the functions in `functions/`. Arrays are never written
to: what writes in place (`inplace.py`) gives the tensor another array. What needs the contents of a traced tensor is
refused, naming the user's line and what to do instead.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, is_anonymous
from sardonyx.dialects.dtypes import DType, bool_
from sardonyx.errors import InvalidArgumentError, UnsupportedError
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.inplace import InPlace
from sardonyx.frontend.operators import Operators, functions
from sardonyx.frontend.rewrites import rewrite_of_line
from sardonyx.frontend.source import user_line

if TYPE_CHECKING:
    from sardonyx.frontend.trace import Trace

_dtypes: dict[object, DType] = {}
_births: dict[int, list[dict[int, Tensor]]] = {}
"""By thread, for each trace that runs in it, the eager tensors that were made meanwhile, by their `id`."""


_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Of the array API standard; each has what the one before has."""


class Tensor(Operators, InPlace):
    """A tensor.

    Args:
        data: An array, a number, nested lists of numbers, or an object with `__dlpack__` or `__array__`. Arrays are
            shared, not copied.
        dtype: What the elements become.
    """

    # Eager: `_array`. Traced: `_array` is None, and `_value` and `_trace` are set. An eager tensor on the way out of a
    # run costs one object and one attribute.
    __slots__ = ("__weakref__", "_array", "_trace", "_value")

    _array: np.ndarray[Any, Any]
    _trace: Trace
    _value: SSAValue

    def __init__(self, data: Any, dtype: object = None) -> None:
        if type(data) is not np.ndarray or dtype is not None or data.dtype not in _dtypes:
            made = functions("creation").asarray(data, dtype=dtype)
            if made.is_traced:
                self._trace, self._value = made._trace, made._value
            data = made._array
        self._array = data
        if _births:
            note_birth(self)

    @classmethod
    def of_array(cls, array: np.ndarray[Any, Any]) -> Self:
        """An eager tensor that shares the array, whose dtype is one of ours."""
        tensor = object.__new__(cls)
        tensor._array = array
        if _births:
            note_birth(tensor)
        return tensor

    _from_array = of_array

    @classmethod
    def of_value(cls, trace: Trace, value: SSAValue) -> Self:
        """A traced tensor."""
        tensor = object.__new__(cls)
        tensor._array = None  # pyright: ignore[reportAttributeAccessIssue]
        tensor._trace = trace
        tensor._value = value
        return tensor

    def _become(self, other: Tensor) -> None:
        """Stand for what another tensor stands for."""
        self._array = other._array
        if other._array is None:
            self._trace, self._value = other._trace, other._value

    # ---- what it is
    @property
    def is_traced(self) -> bool:
        """Whether it stands for a value of a graph and has no contents."""
        return self._array is None

    @property
    def trace(self) -> Trace:
        """The trace that a traced tensor belongs to."""
        return self._trace

    @property
    def value(self) -> SSAValue:
        """The IR value of a traced tensor."""
        return self._value

    @property
    def dtype(self) -> DType:
        if self._array is None:
            return dtype_of(self._value)
        dtype = self._array.dtype
        known = _dtypes.get(dtype)
        if known is None:
            known = DType.of_array(self._array)
            if known.kind != "s":  # arrays of objects are checked each time that one is taken in
                _dtypes[dtype] = known
        return known

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: ints, and `Extent`s for the dynamic dims of a traced tensor."""
        if self._array is not None:
            return self._array.shape
        self._check_ranked()
        return tuple(
            self._extent(axis, dim) if dim.static_value is None else dim.static_value
            for axis, dim in enumerate(dims_of(self._value))
        )

    def _extent(self, axis: int, dim: Any) -> Extent:
        def compute() -> Tensor:
            known = self._trace.extents.get(dim)
            if known is None:
                known = functions("shape").shape_vector(self, axis, axis + 1)
                self._trace.extents[dim] = known
            return known

        return Extent(dim, compute)

    def _check_ranked(self) -> None:
        if isinstance(self._value.type, UnrankedTensorType):
            raise InvalidArgumentError(
                "the rank of this tensor depends on data, and is known only when the graph runs; reshape it to a "
                "shape of known length first",
                location=user_line(),
            )

    @property
    def ndim(self) -> int:
        if self._array is not None:
            return self._array.ndim
        self._check_ranked()
        return len(dims_of(self._value))

    @property
    def size(self) -> Any:
        """The number of elements: an int, or an `Extent` where a dim is dynamic."""
        if self._array is not None:
            return self._array.size
        count: Any = 1
        for extent in self.shape:
            count = count * extent
        return count

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        return "cpu"

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The namespace whose functions take this tensor, of the array API standard: `sardonyx`.

        Raises:
            InvalidArgumentError: Another version of the standard is wanted.
        """
        if api_version not in (None, *_API_VERSIONS):
            raise InvalidArgumentError(
                f"version {api_version!r} of the array API is not offered", hint=f"there are {', '.join(_API_VERSIONS)}"
            )
        return sys.modules["sardonyx"]  # importing it here would be an arrow that points up

    def to_device(self, device: str, /, *, stream: object = None) -> Tensor:
        """Itself: the one device is "cpu"."""
        if device != "cpu":
            raise InvalidArgumentError(f"there is no device {device!r}", hint="the only one is 'cpu'")
        return self

    def __repr__(self) -> str:
        if self._array is None:
            if isinstance(self._value.type, UnrankedTensorType):
                return f"<traced tensor {self.dtype}[...] of '{self._trace.name}'>"
            dims = ", ".join("?" if is_anonymous(d) else str(d) for d in dims_of(self._value))
            return f"<traced tensor {self.dtype}[{dims}] of '{self._trace.name}'>"
        shown = np.array2string(self._array, separator=", ", prefix="Tensor(")
        return f"Tensor({shown}, shape={self.shape}, dtype={self.dtype})"

    # ---- contents
    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise InvalidArgumentError(
            f"{what}: the contents of a traced tensor are known only when the graph runs; {remedy}",
            location=user_line(),
            hint=rewrite_of_line(),
        )

    def numpy(self) -> np.ndarray[Any, Any]:
        """The contents, shared; treat them as read-only.

        Raises:
            InvalidArgumentError: The tensor is traced.
        """
        if self._array is None:
            self._refuse("numpy() of a traced tensor", _USE_FUNCTIONS)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self._array is None:
            self._refuse("a NumPy array is asked of a traced tensor", _USE_FUNCTIONS)
        return np.array(self._array, dtype=dtype, copy=copy)

    def tolist(self) -> Any:
        """The contents as nested lists of Python numbers."""
        if self._array is None:
            self._refuse("tolist() of a traced tensor", _USE_FUNCTIONS)
        return _python(self._array).tolist()

    def item(self) -> bool | int | float:
        """The one element as a Python number."""
        if self._array is None:
            self._refuse("item() of a traced tensor", _USE_FUNCTIONS)
        return _python(self._array).item()

    def __bool__(self) -> bool:
        if self._array is None:
            self._refuse(
                "a traced tensor has no truth value (if, while, and, or, not, assert)",
                "use sardonyx.where(condition, a, b) to choose between values, sardonyx.cond and while_loop for "
                "branches and loops, and & | ~ between conditions",
            )
        return bool(self._array)

    def __int__(self) -> int:
        if self._array is None:
            self._refuse("int() of a traced tensor", "keep it a tensor: x.astype(sardonyx.int64)")
        return int(_python(self._array))

    def __float__(self) -> float:
        if self._array is None:
            self._refuse("float() of a traced tensor", "keep it a tensor: x.astype(sardonyx.float32)")
        return float(_python(self._array))

    def __complex__(self) -> complex:
        if self._array is None:
            self._refuse("complex() of a traced tensor", "keep it a tensor")
        return complex(_python(self._array))

    def __index__(self) -> int:
        if self._array is None:
            self._refuse(
                "a traced tensor is used as an index or a count", "index with the tensor itself, or use sardonyx.gather"
            )
        return self._array.__index__()

    def __iter__(self) -> Iterator[Tensor]:
        if self._array is None:
            self._refuse(
                "iteration over a traced tensor",
                "compute with whole tensors, loop by sardonyx.scan, or take the parts apart with sardonyx.split or "
                "sardonyx.unstack",
            )
        return map(Tensor.of_array, map(np.asarray, self._array))

    def __contains__(self, value: object) -> bool:
        if self._array is None:
            self._refuse("`in` of a traced tensor", "use sardonyx.any(x == value)")
        return value in self._array

    def __len__(self) -> int:
        """The first extent.

        Raises:
            InvalidArgumentError: It is dynamic.
        """
        if self._array is not None:
            return len(self._array)
        if not self.ndim:
            raise TypeError("len() of a tensor without axes")
        first = self.shape[0]
        if isinstance(first, Extent):
            self._refuse(f"len() of a traced tensor whose first dim '{first}' is dynamic", "use x.shape[0]")
        return first

    # ---- DLPack
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares the contents."""
        if self._array is None:
            self._refuse("a DLPack capsule is asked of a traced tensor", _USE_FUNCTIONS)
        array = self._array
        if array.dtype.isbuiltin != 1:
            raise UnsupportedError(
                f"NumPy cannot hand on {self.dtype} by DLPack", hint="convert it first: x.astype(sardonyx.float32)"
            )
        if not array.flags.writeable and max_version is None:
            array = array.copy()  # who asks for the old protocol could write to it
        options: dict[str, Any] = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    # ---- NumPy's protocols
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from sardonyx.frontend.numpy_protocol import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from sardonyx.frontend.numpy_protocol import call_function

        return call_function(func, args, kwargs)

    # ---- copies
    def copy(self) -> Tensor:
        """A tensor with a copy of the contents."""
        return Tensor.of_value(self._trace, self._value) if self._array is None else Tensor.of_array(self._array.copy())

    def __pos__(self) -> Tensor:
        return self.copy()

    def __copy__(self) -> Tensor:
        return Tensor.of_value(self._trace, self._value) if self._array is None else Tensor.of_array(self._array)

    def __deepcopy__(self, memo: object) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[object, ...]:
        if self._array is None:
            self._refuse("pickling a traced tensor", "pickle the graph")
        return _restore, (self._array,)

    def __getitem__(self, key: object) -> Tensor:
        from sardonyx.frontend.indexing import index

        return index(self, key)

    # ---- methods
    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return functions("shape").transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return functions("linalg").matrix_transpose(self)

    def astype(self, dtype: object, copy: bool = True) -> Tensor:
        """The elements as another dtype."""
        return functions("elementwise").astype(self, dtype, copy=copy)

    def to(self, *dtype_or_device: Any, dtype: object = None, device: object = None, copy: bool = False) -> Tensor:
        """`astype` and `to_device` in one, as PyTorch has it: `x.to(sardonyx.float64)`, `x.to("cpu")`, `x.to(other)`.

        The tensor itself where nothing changes, unless a copy is wanted.
        """
        wanted = functions("data_types").dtype_of_to(dtype_or_device, dtype, device)
        if wanted is None or wanted == self.dtype:
            return self.copy() if copy else self
        return self.astype(wanted)

    def reshape(self, *shape: Any) -> Tensor:
        return functions("shape").reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], Sequence | None) else axes or None
        return functions("shape").transpose(self, given)

    def flatten(self) -> Tensor:
        """All elements as a vector, as NumPy has it; `sardonyx.flatten` is ONNX's."""
        return functions("shape").reshape(self, (-1,))

    def squeeze(self, axis: Any = None) -> Tensor:
        return functions("shape").squeeze(self, axis)

    def unsqueeze(self, axis: Any) -> Tensor:
        return functions("shape").unsqueeze(self, axis)

    def sum(self, axis: Any = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
        return functions("reductions").sum(self, axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
        return functions("reductions").prod(self, axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").mean(self, axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").max(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").min(self, axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").all(self, axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").any(self, axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        return functions("reductions").var(self, axis, correction=correction, keepdims=keepdims)

    def std(self, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        return functions("reductions").std(self, axis, correction=correction, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").argmax(self, axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return functions("reductions").argmin(self, axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, *, dtype: object = None) -> Tensor:
        return functions("reductions").cumsum(self, axis, dtype=dtype)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        return functions("elementwise").clip(self, min, max)


def note_birth(tensor: Tensor) -> None:
    """Tell the trace that runs in this thread of a tensor that is made."""
    running = _births.get(threading.get_ident())
    if running:
        running[-1][id(tensor)] = tensor


@contextmanager
def births() -> Iterator[dict[int, Tensor]]:
    """The eager tensors that this thread makes meanwhile, by their `id`."""
    thread, made = threading.get_ident(), dict[int, Tensor]()
    stack = _births.setdefault(thread, [])
    stack.append(made)
    try:
        yield made
    finally:
        stack.pop()
        if not stack:
            _births.pop(thread, None)


_USE_FUNCTIONS = "compute with sardonyx's functions, or run the graph and look at its result"


def _python(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in a dtype of which NumPy makes Python numbers."""
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float32 if DType.of(array.dtype).is_float else np.int8)


def _restore(array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor.of_array(array)


def is_bool(tensor: Tensor) -> bool:
    return tensor.dtype == bool_
