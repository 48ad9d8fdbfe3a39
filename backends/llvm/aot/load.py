"""Loads a library that `library` made into this process, as a `CompiledGraph`: checks, threads, memory and errors are
those of a graph that was compiled here; nothing is compiled again."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.backends.llvm.aot.runtime import ABI, WORDS
from sardonyx.backends.llvm.runtime.call import CompiledGraph, Program
from sardonyx.backends.llvm.runtime.program_cache import read_program
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InvalidArgumentError, UnsupportedError


class Loaded:
    """What `CompiledGraph` takes for a library: the addresses of the entries."""

    def __init__(self, handle: ctypes.CDLL, addresses: dict[str, int]) -> None:
        self.handle = handle
        self.addresses = addresses


def load_library(path: str | os.PathLike[str]) -> tuple[CompiledGraph, str]:
    """The graph of a library, and the target whose code this CPU was given.

    Raises:
        InvalidArgumentError: The file cannot be loaded, or is no library of Sardonyx (of this version).
        UnsupportedError: The CPU lacks what its code needs.
    """
    place = Path(path).resolve()
    if not place.is_file():
        raise InvalidArgumentError(f"there is no file '{path}'")
    try:
        handle = ctypes.CDLL(str(place))
    except OSError as error:
        raise InvalidArgumentError(f"'{path}' cannot be loaded: {error}") from None
    try:
        model = (ctypes.c_int64 * 5).in_dll(handle, "sardonyx_model")
    except ValueError:
        raise InvalidArgumentError(f"'{path}' is no library that Sardonyx compiled") from None
    if model[0] != ABI:
        raise InvalidArgumentError(f"'{path}' is a library of another version of Sardonyx; compile the model again")
    descriptor = ctypes.CFUNCTYPE(ctypes.c_void_p)(model[1])()
    if not descriptor:
        raise UnsupportedError(f"'{path}': {_text(model[3])}")
    words = (ctypes.c_int64 * len(WORDS)).from_address(descriptor)
    word = {name: words[k] for k, name in enumerate(WORDS)}
    base = ctypes.CFUNCTYPE(ctypes.c_void_p)(model[2])()
    if not base and word["constants"]:
        raise InvalidArgumentError(f"'{path}': {_text(model[4])}")
    try:
        stated = json.loads(ctypes.string_at(word["metadata"], word["metadata_bytes"]))
        offsets = (ctypes.c_int64 * max(1, word["constants"])).from_address(word["offsets"])
        constants = [_constant(one, (base or 0) + offsets[k], handle) for k, one in enumerate(stated["constants"])]
        program: Program = read_program(stated, constants)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidArgumentError(f"'{path}' is damaged: {error}") from None
    loaded: Any = Loaded(handle, {name: word[name] for name in ("entry", "entry_py")})
    return CompiledGraph(program, loaded, handle), _text(word["target"])


def _text(address: int) -> str:
    return ctypes.string_at(address).decode()


def _constant(stated: dict[str, Any], address: int, handle: ctypes.CDLL) -> np.ndarray[Any, Any]:
    """A constant where the library has it."""
    dtype = DType.of(np.dtype(stated["dtype"]) if stated["dtype"] in np.sctypeDict else stated["dtype"]).numpy
    if not stated["bytes"]:
        return np.zeros(stated["shape"], dtype)
    raw = (ctypes.c_uint8 * stated["bytes"]).from_address(address)
    raw._sardonyx_handle = handle
    array = np.frombuffer(raw, np.uint8).view(dtype).reshape(stated["shape"])
    array.flags.writeable = False
    return array
