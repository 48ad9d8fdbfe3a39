"""The table of translations: from an operator of ATen to the function that states it in the dialect.

A translation is a function `f(n, *args, **kwargs)`: `n` is the `Call`, the arguments are those of the operator's
schema, tensors as `Tensor`s of the running trace, SymInts as `Extent`s, torch dtypes as `DType`s. It returns a tensor,
a tuple of them (None for a result that it doesn't make, which is an error only where somebody reads it), an extent or
a number.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.elementwise import cast
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.errors import OnnxExporterError, unsupported

if TYPE_CHECKING:
    from sardonyx.frontend.torch.translate import Translator

Translation = Callable[..., Any]

_TABLE: dict[str, Translation] = {}

FAMILIES = (
    "activation attention backward compare control conv creation distance embedding factorizations fourier indexing "
    "linalg norm pointwise pool random recurrent reductions resample scatter sorting symbolic views"
).split()

IGNORED = frozenset({"layout", "device", "pin_memory", "non_blocking", "memory_format", "generator", "sparse_grad"})
"""Arguments that say where or how torch keeps elements, not what they are."""


def aten(*names: str) -> Callable[[Translation], Translation]:
    """Register a translation of operators: `aten("add.Tensor")`; a name with a colon is not of ATen."""

    def register(function: Translation) -> Translation:
        for name in names:
            _TABLE[name.replace("::", ".") if "::" in name else f"aten.{name}"] = function
        return function

    return register


def table() -> dict[str, Translation]:
    """All translations, by the name that torch prints (`aten.add.Tensor`); loads their modules."""
    for family in FAMILIES:
        importlib.import_module(f"sardonyx.frontend.torch.aten.{family}")
    return _TABLE


class Call:
    """One node of the ATen graph that is being translated."""

    def __init__(self, translator: Translator, node: Any) -> None:
        self.translator = translator
        self.node = node

    @property
    def name(self) -> str:
        """The operator, as torch prints it."""
        return str(self.node.target)

    # ---- what torch knows of the results and arguments
    @property
    def meta(self) -> Any:
        """What torch knows of the result: a fake tensor, a tuple of them, a SymInt, …"""
        return self.node.meta.get("val")

    @property
    def dtype(self) -> DType:
        """The dtype of the (first) result."""
        meta = self.meta[0] if isinstance(self.meta, tuple | list) else self.meta
        return self.translator.dtype(meta.dtype)

    def arg_meta(self, index: int) -> Any:
        """What torch knows of a positional argument."""
        return meta_of(self.node.args[index])

    def common(self, *indices: int) -> DType:
        """The dtype that torch computes in for these positional arguments."""
        import torch

        metas = [plain(self.arg_meta(i)) for i in indices]
        found = metas[0]
        if len(metas) == 1:
            return self.translator.dtype(found.dtype)
        found = torch.result_type(metas[0], metas[1])
        for other in metas[2:]:
            found = torch.promote_types(found, torch.result_type(other, other))
        return self.translator.dtype(found)

    # ---- operands
    def to(self, value: Any, dtype: DType | None = None) -> Tensor:
        """A tensor, extent or number as a tensor of that dtype (by default, of the result's)."""
        target = dtype or self.dtype
        if isinstance(value, bool | int | float):
            return constant(value, target)
        return cast(to_tensor(value), target)

    def both(self, a: Any, b: Any, dtype: DType | None = None) -> tuple[Tensor, Tensor]:
        """Two operands in one dtype."""
        return self.to(a, dtype), self.to(b, dtype)

    def refuse(self, message: str, hint: str | None = None) -> OnnxExporterError:
        """The error for something that this operator cannot be translated with, ready to raise."""
        return unsupported(f"{self.name}: {message}", hint=hint)

    def ints(self, values: Any, what: str) -> list[int]:
        """A list that has to be of plain numbers."""
        found: list[Any] = [values] if isinstance(values, int | Extent) else list(values)
        for value in found:
            if isinstance(value, bool) or not isinstance(value, int):
                raise self.refuse(f"{what} {[str(v) for v in found]} depends on a dynamic dim", "make that dim static")
        return found

    def static_shape(self, x: Tensor, what: str) -> list[int]:
        """The shape of a tensor, which has to be static."""
        return self.ints(x.shape, f"the shape of {what}")


def meta_of(argument: Any) -> Any:
    """What torch knows of an argument of a node: the value of a node, or a plain value itself."""
    import torch

    if isinstance(argument, torch.fx.Node):
        return argument.meta.get("val")
    return argument


def plain(meta: Any) -> Any:
    """A symbolic number as a plain one of its kind, for rules that look at types."""
    import torch

    if isinstance(meta, torch.SymInt):
        return 1
    if isinstance(meta, torch.SymFloat):
        return 1.0
    return True if isinstance(meta, torch.SymBool) else meta


def constant(value: bool | int | float, dtype: DType) -> Tensor:
    """A Python number as torch turns it into an element of a tensor: integers wrap around."""
    if dtype.is_integer and isinstance(value, int):
        bits = dtype.bits
        value = int(value) & ((1 << bits) - 1)
        if dtype.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    with np.errstate(all="ignore"):
        return Tensor.of_array(np.array(value).astype(dtype.numpy))


def axes_of(n: Call, dims: Any, rank: int) -> list[int]:
    """Axes as torch states them: a number, a list, None or an empty list (all); without repetition."""
    if dims is None:
        return list(range(rank))
    found = n.ints(dims, "the axes")
    if not found:
        return list(range(rank))
    return [d % rank if rank else 0 for d in found]


def axis_of(dim: int, rank: int) -> int:
    return dim % rank if rank else 0


def listed(values: Any, rank: int) -> list[Any]:
    """A window parameter: one entry for all axes, or one each."""
    found = [values] if isinstance(values, int | Extent) else list(values)
    return found * rank if len(found) == 1 else found


def is_static(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int) for v in values)
