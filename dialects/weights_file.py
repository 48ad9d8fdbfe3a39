"""Weights beside text: the safetensors file that goes with an `.mlir` file.

Format: https://huggingface.co/docs/safetensors (an 8-byte header length, a JSON header, the bytes). Files are read by
mapping: nothing is copied until it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.dialects.files import write_files
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.weights import FileSlice, Weight, WeightStore
from sardonyx.errors import InvalidArgumentError, MissingWeightError

_CODES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "float8e4m3fn": "F8_E4M3", "float8e5m2": "F8_E5M2", "float8e8m0": "F8_E8M0", "float8e4m3fnuz": "F8_E4M3FNUZ",
    "float8e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
_BY_CODE = {code: DTYPES[name] for name, code in _CODES.items()}
_METADATA = "__metadata__"
_DTYPE_OF = "sardonyx.dtype:"
"""The metadata `sardonyx.dtype:KEY` is the dtype of a weight for which the format has no code: it stands there as U8, a
byte an element."""
MAX_HEADER = 100 << 20


def weights_path(text_path: str | os.PathLike[str]) -> Path:
    """`x.weights.safetensors` for `x.mlir`."""
    path = Path(text_path)
    return path.with_name(f"{path.stem}.weights.safetensors")


def module_weights(module: ModuleOp) -> dict[str, Weight | None]:
    """The weights that constants and tables of the module name; None where the bytes are not here."""
    return {attr.data.key: attr.data.source for _, _, attr in _named(module)}


def _named(module: ModuleOp) -> Iterator[tuple[Operation, str, WeightAttr]]:
    """Each op with a property that is a weight: a constant's value, or a table of a tree ensemble."""
    for op in module.walk():
        for name, attr in list(op.properties.items()):
            if isinstance(attr, WeightAttr):
                yield op, name, attr


def write_weights(weights: Mapping[str, Weight], file: BinaryIO) -> None:
    """Write weights in the safetensors format, under these keys."""
    import numpy as np

    header: dict[str, Any] = {}
    coded = {_DTYPE_OF + k: w.dtype.name for k, w in weights.items() if w.dtype.name not in _CODES}
    if coded:
        header[_METADATA] = coded
    at = 0
    for key, weight in weights.items():
        if key == _METADATA:
            raise InvalidArgumentError(f"a weight cannot be called '{key}' in a safetensors file")
        header[key] = {
            "dtype": _CODES.get(weight.dtype.name, "U8"),
            "shape": list(weight.shape),
            "data_offsets": [at, at + weight.nbytes],
        }
        at += weight.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for weight in weights.values():
        if weight.nbytes:
            file.write(np.ascontiguousarray(weight.array()).reshape(-1).view(np.uint8).data)


def save_weights(module: ModuleOp, path: str | os.PathLike[str]) -> None:
    """Write the bytes of all weights that the module names; no file where it names none.

    Raises:
        MissingWeightError: The bytes of one are not here.
    """
    found: dict[str, Weight] = {}
    for key, weight in module_weights(module).items():
        if weight is None:
            raise MissingWeightError(f"the bytes of weight '{key}' are not here", hint="give them with --weights")
        found[key] = weight
    if found:
        write_files([(Path(path), lambda file: write_weights(found, file))])


def read_weights(path: str | os.PathLike[str], wanted: Collection[str] | None = None) -> dict[str, Weight]:
    """The weights of a safetensors file, mapped: all of them, or those wanted that it has.

    Raises:
        InvalidArgumentError: The file is not there, or is none of that format; offsets beyond the file are refused.
    """
    where = Path(os.path.abspath(path))
    try:
        size = where.stat().st_size
        with where.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MAX_HEADER):
                raise ValueError("the header's length is wrong")
            header = json.loads(file.read(length))
        coded = header.get(_METADATA) or {}
        return {
            key: _entry(where, key, entry, 8 + length, size, coded.get(_DTYPE_OF + key))
            for key, entry in header.items()
            if key != _METADATA and (wanted is None or key in wanted)
        }
    except OSError as error:
        raise InvalidArgumentError(f"cannot read '{path}': {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(f"'{path}' is no safetensors file: {error}") from error


def _entry(path: Path, key: str, entry: Any, base: int, size: int, stated: str | None) -> Weight:
    dtype = _BY_CODE.get(entry["dtype"]) if stated is None else DTYPES.get(stated)
    if dtype is None or dtype.kind == "s" or (stated is not None and (entry["dtype"] != "U8" or dtype.name in _CODES)):
        raise ValueError(f"'{key}' has the dtype {entry['dtype']}, which is not supported")
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
    found = read_weights(path, names.keys())
    for op, name, attr in _named(module):
        weight = found.get(attr.data.key)
        if weight is None:
            if weights_file:
                raise InvalidArgumentError(f"'{path}' holds no weight '{attr.data.key}'")
            continue
        if isinstance(op, ConstantOp):
            ty: Any = op.output.type
            if DType.of(ty.element_type) != weight.dtype or tuple(ty.get_shape()) != weight.shape:
                raise InvalidArgumentError(
                    f"weight '{weight.key}' is {weight.dtype}{list(weight.shape)} in '{path}', but {ty} in the text"
                )
        op.properties[name] = WeightAttr(WeightRef(weight.key, weight))
        store.insert(weight)
