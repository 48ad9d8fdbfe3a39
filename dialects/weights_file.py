"""Weights beside text: the safetensors file that goes with an `.mlir` file, and files that are written whole.

Format: https://huggingface.co/docs/safetensors (an 8-byte header length, a JSON header, the bytes). Files are read by
mapping: nothing is copied until it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.dialects.weights import FileSlice, Weight, WeightStore
from sardonyx.errors import InvalidArgumentError, MissingWeightError

_CODES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_BY_CODE = {code: DTYPES[name] for name, code in _CODES.items()}
MAX_HEADER = 100 << 20


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that appears complete or not at all: written under a temporary name, then renamed.

    Raises:
        InvalidArgumentError: The folder is not there or cannot be written to.
    """
    target = Path(path)
    temporary: str | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            yield file  # pyright: ignore[reportReturnType]
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise InvalidArgumentError(f"cannot write '{target}': {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole."""
    with whole_file(path) as file:
        file.write(content)


def weights_path(text_path: str | os.PathLike[str]) -> Path:
    """`x.weights.safetensors` for `x.mlir`."""
    path = Path(text_path)
    return path.with_name(f"{path.stem}.weights.safetensors")


def module_weights(module: ModuleOp) -> dict[str, Weight | None]:
    """The weights that constants of the module name; None where the bytes are not here."""
    found: dict[str, Weight | None] = {}
    for op in module.walk():
        value = op.properties.get("value")
        if isinstance(value, WeightAttr):
            found[value.data.key] = value.data.source
    return found


def save_weights(module: ModuleOp, path: str | os.PathLike[str]) -> None:
    """Write the bytes of all weights that the module names; no file where it names none.

    Raises:
        MissingWeightError: The bytes of one are not here.
    """
    import numpy as np

    weights = module_weights(module)
    if not weights:
        return
    header: dict[str, Any] = {}
    at = 0
    for key, weight in weights.items():
        if weight is None:
            raise MissingWeightError(f"the bytes of weight '{key}' are not here", hint="give them with --weights")
        header[key] = {
            "dtype": _CODES[weight.dtype.name],
            "shape": list(weight.shape),
            "data_offsets": [at, at + weight.nbytes],
        }
        at += weight.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for weight in weights.values():
            if weight is not None and weight.nbytes:
                file.write(memoryview(np.ascontiguousarray(weight.array()).reshape(-1).view(np.uint8)))


def read_weights(path: str | os.PathLike[str]) -> dict[str, Weight]:
    """The weights of a safetensors file, mapped.

    Raises:
        InvalidArgumentError: The file is not there, or is none of that format; offsets beyond the file are refused.
    """
    where = Path(path)
    try:
        size = where.stat().st_size
        with where.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MAX_HEADER):
                raise ValueError("the header's length is wrong")
            header = json.loads(file.read(length))
        weights: dict[str, Weight] = {}
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            weights[key] = _entry(where, key, entry, 8 + length, size)
        return weights
    except OSError as error:
        raise InvalidArgumentError(f"cannot read '{where}': {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(f"'{where}' is no safetensors file: {error}") from error


def _entry(path: Path, key: str, entry: Any, base: int, size: int) -> Weight:
    dtype: DType = _BY_CODE[entry["dtype"]]
    shape = tuple(int(s) for s in entry["shape"])
    start, end = (int(o) for o in entry["data_offsets"])
    if any(s < 0 for s in shape) or not 0 <= start <= end or base + end > size:
        raise ValueError(f"'{key}' lies outside the file")
    weight = Weight(key, dtype, shape, FileSlice(path, base + start, end - start))
    if weight.nbytes != end - start:
        raise ValueError(f"'{key}' has {end - start} bytes, its shape takes {weight.nbytes}")
    return weight


def bind_weights(
    module: ModuleOp, store: WeightStore, text_path: str | None = None, weights_file: str | None = None
) -> None:
    """Give the weights that parsed text names their bytes: from the file given, else from the one beside the text.

    Without a file they stay without; whatever needs the bytes names the missing key.

    Raises:
        InvalidArgumentError: A file was given and lacks a key, or a weight's type differs from the text's.
    """
    names = module_weights(module)
    if not names:
        return
    path = Path(weights_file) if weights_file else weights_path(text_path) if text_path else None
    if path is None or (not weights_file and not path.exists()):
        return
    found = read_weights(path)
    for op in module.walk():
        value = op.properties.get("value")
        if not isinstance(value, WeightAttr):
            continue
        weight = found.get(value.data.key)
        if weight is None:
            if weights_file:
                raise InvalidArgumentError(f"'{path}' holds no weight '{value.data.key}'")
            continue
        ty: Any = op.results[0].type
        if DType.of(ty.element_type) != weight.dtype or tuple(ty.get_shape()) != weight.shape:
            raise InvalidArgumentError(
                f"weight '{weight.key}' is {weight.dtype}{list(weight.shape)} in '{path}', but {ty} in the text"
            )
        op.properties["value"] = WeightAttr(WeightRef(weight.key, weight))
        store.insert(weight)
