"""Tensors whose contents lie in files beside a model: found, confined to the model's folder, and held against the file.

Nothing is read: a weight names its bytes and maps them when they are needed.
"""

from __future__ import annotations

import math
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from sardonyx.backends.onnx.tensors import dtype_from_onnx, tensor_shape
from sardonyx.dialects.weights import FileSlice
from sardonyx.errors import InvalidArgumentError


def is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def locate(tensor: onnx.TensorProto, folder: Path | None, where: str) -> FileSlice:
    """Where an external tensor's bytes lie.

    Raises:
        InvalidArgumentError: The path leaves the model's folder, there is no such file, or the range is not the
            tensor's size or not in the file.
    """
    dtype = dtype_from_onnx(tensor.data_type, where)
    needed = dtype.stored_size(math.prod(tensor_shape(tensor, dtype, where)))
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise InvalidArgumentError(
            f"{where}: its contents are in the file '{location}', but the model was not read from a file",
            hint="open the model by its path",
        )
    offset = _number(entries, "offset", 0, where)
    length = _number(entries, "length", needed, where)
    path = confined(folder, location, where)
    size = path.stat().st_size
    if length != needed:
        raise InvalidArgumentError(
            f"{where}: dims {list(tensor.dims)} of {dtype} take {needed} bytes, but its length is {length}"
        )
    if offset + length > size:
        raise InvalidArgumentError(
            f"{where}: bytes {offset} to {offset + length} are beyond the end of '{location}', which has {size}"
        )
    return FileSlice(path, offset, length, dtype.packed)


def confined(folder: Path, location: str, where: str) -> Path:
    """The file of that name in the folder or below it.

    Raises:
        InvalidArgumentError: The name leads out of the folder (an absolute path, `..`, a link), or to no file.
    """
    parts = PurePosixPath(location).parts
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor != ""
    if not location or absolute or ".." in parts or ".." in PureWindowsPath(location).parts or "\0" in location:
        raise InvalidArgumentError(f"{where}: its file '{location}' is not inside the model's folder")
    path = folder / location
    try:
        real, root = path.resolve(strict=True), folder.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError) as error:
        raise InvalidArgumentError(f"{where}: its file '{location}' is not there: {error}") from error
    if not real.is_relative_to(root):
        raise InvalidArgumentError(f"{where}: its file '{location}' is a link out of the model's folder")
    if not stat.S_ISREG(mode):
        raise InvalidArgumentError(f"{where}: '{location}' is no file")
    return real


def _number(entries: dict[str, str], key: str, default: int, where: str) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 19:
        raise InvalidArgumentError(f"{where}: its {key} '{text[:40]}' is no byte count")
    return int(text)
