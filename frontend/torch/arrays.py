"""Tensors of torch as arrays, and back: memory is shared wherever both can."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.torch.errors import invalid, unsupported

_NAMES = {
    "bool": "bool", "uint8": "uint8", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "float16": "float16", "float32": "float32",
    "float64": "float64", "bfloat16": "bfloat16", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2",
    "float8_e4m3fnuz": "float8e4m3fnuz", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0",
}  # fmt: skip
_SHELLS = {2: "int16", 1: "uint8"}


def is_torch_tensor(value: object) -> bool:
    """Whether it is a tensor of torch; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def dtype_of_torch(dtype: Any) -> DType:
    """Our dtype for one of torch's.

    Raises:
        UnsupportedError: There is none (complex and quantized dtypes).
    """
    name = _NAMES.get(str(dtype).removeprefix("torch."))
    if name is None:
        raise unsupported(
            f"the dtype {dtype} has no counterpart", hint="use real dtypes; torch.view_as_real splits complex ones"
        )
    return DTYPES[name]


def torch_dtype(dtype: DType) -> Any:
    """torch's dtype for one of ours."""
    import torch

    for theirs, ours in _NAMES.items():
        if ours == dtype.name:
            found = getattr(torch, theirs, None)
            if found is not None:
                return found
    raise InvalidArgumentError(f"torch has no dtype for {dtype}")


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The contents of a torch tensor, shared where its memory is the CPU's.

    Raises:
        InvalidArgumentError: The tensor has no contents (it is on the meta device).
    """
    import torch

    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor)
    if tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor":
        raise invalid(
            f"a tensor of shape {list(tensor.shape)} has no contents: it is on the meta device",
            hint="load the model's weights before exporting it, or export with export_params=False",
        )
    dtype = dtype_of_torch(tensor.dtype)
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        raise unsupported(f"a tensor with the layout {plain.layout} has no counterpart", hint="call to_dense() on it")
    if plain.device.type != "cpu":
        plain = plain.cpu()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if dtype.name in ("bfloat16",) or dtype.name.startswith("float8"):
        return plain.contiguous().view(getattr(torch, _SHELLS[dtype.itemsize])).numpy().view(dtype.numpy)
    return plain.numpy()


def tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """An array as a torch tensor that shares it, if it may be written to."""
    import torch

    dtype = DType.of(array.dtype)
    if not array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C")
    if dtype.name in ("bfloat16",) or dtype.name.startswith("float8"):
        return torch.from_numpy(array.view(_SHELLS[dtype.itemsize])).view(torch_dtype(dtype))
    return torch.from_numpy(array)
