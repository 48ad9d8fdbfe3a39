"""The cache of whole programs: what a graph was compiled to, with the constants that were packed for it.

The name of a program (`program_key.py`) follows from the graph, its weights and all else that decides what it becomes;
so a second process compiles and packs nothing. A file is a line of format, a header in JSON, the object code, and the
constants, which begin at cache lines and are mapped, not read. Constants that are weights of the graph as they stand
are not kept. A file that is damaged is noticed by its checksums and made anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.interface import EntrySizes, Failure, Port
from sardonyx.backends.llvm.runtime import cache as object_cache
from sardonyx.backends.llvm.runtime.cache import STATISTICS
from sardonyx.backends.llvm.runtime.call import Program
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.weights import Weight
from sardonyx.dialects.weights_file import module_weights

FORMAT = b"sardonyx program 2\n"
SUFFIX = ".program"
LINE = 64
BLOCK = 1 << 12
"""How many bytes share a sum of their checksum."""
LARGEST = 1 << 33
"""Programs with more bytes of constants are not kept."""


def load_program(key: str, module: ModuleOp) -> tuple[Program, list[bytes]] | None:
    """The program of that name and its objects, or None."""
    where = object_cache.folder()
    if where is None:
        return None
    path = where / (key + SUFFIX)
    try:
        with path.open("rb") as file:
            if file.readline() != FORMAT:
                raise ValueError("another format")
            length, digest = file.readline().split()
            header = file.read(int(length))
            if hashlib.sha256(header).hexdigest() != digest.decode():
                raise ValueError("a damaged header")
            whole = np.memmap(path, np.uint8, "r")
        known = json.loads(header)
        weights = module_weights(module)
        program = read_program(known, [_constant(c, whole, weights) for c in known["constants"]])
        objects = [_checked(whole, place).tobytes() for place in known["objects"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        STATISTICS.damaged += 1
        return None
    STATISTICS.loaded += 1
    return program, objects


def store_program(
    key: str, module: ModuleOp, constants: Sequence[Any], program: Program, objects: Sequence[bytes]
) -> None:
    """Keep a program. What cannot be kept costs time, never the run.

    `constants` are what the program's were made of: a weight of the module, or an array.
    """
    weights = {id(w): k for k, w in module_weights(module).items()}
    parts: list[Any] = list(objects)
    stated: list[dict[str, Any]] = []
    for entry, array in zip(constants, program.constants, strict=True):
        if id(entry) in weights:
            stated.append({"weight": weights[id(entry)]})
            continue
        dtype = DType.of(array.dtype)
        stated.append({"dtype": dtype.name, "shape": array.shape, "part": len(parts)})
        parts.append(array.reshape(-1).view(np.uint8).data if array.size else b"")
    if sum(len(p) for p in parts) > LARGEST or not all(_is_stated(p) for p in (*program.inputs, *program.outputs)):
        return
    places: list[list[int]] = []
    at = 0
    for part in parts:
        places.append([at, len(part), checksum(part)])
        at += -(-len(part) // LINE) * LINE
    for constant in stated:
        if "part" in constant:
            constant["place"] = places[constant.pop("part")]
    head = stated_program(program.inputs, program.outputs, program.failures, program.sizes)
    header = json.dumps({**head, "constants": stated, "objects": places[: len(objects)]}).encode()
    first = FORMAT + f"{len(header)} {hashlib.sha256(header).hexdigest()}\n".encode() + header
    chunks: list[Any] = [first, b"\n" * (-len(first) % LINE)]
    for part in parts:
        chunks += [part, bytes(-len(part) % LINE)]
    # Places count from where the parts begin, which the last 8 bytes tell: the header's own length moves none of them.
    object_cache.store_file(key + SUFFIX, [*chunks, at.to_bytes(8, "little")])


def stated_program(
    inputs: Sequence[Port], outputs: Sequence[Port], failures: Sequence[Failure], sizes: EntrySizes
) -> dict[str, Any]:
    """What a run needs beside code and constants, as JSON has it."""
    return {
        "inputs": [_stated(port) for port in inputs],
        "outputs": [_stated(port) for port in outputs],
        "failures": [[f.message, f.location, f.op] for f in failures],
        "sizes": dataclasses.asdict(sizes),
    }


def read_program(stated: dict[str, Any], constants: list[Any]) -> Program:
    """The reverse of `stated_program`."""
    return Program(
        [_port(p) for p in stated["inputs"]],
        [_port(p) for p in stated["outputs"]],
        constants,
        [Failure(*f) for f in stated["failures"]],
        _sizes(stated["sizes"]),
    )


def _is_stated(port: Port) -> bool:
    """Whether the port's extents can be read back from their text."""
    try:
        return all(Dim.parse(str(d)) == d for d in port.dims)
    except ValueError:
        return False


def _sizes(stated: dict[str, Any]) -> EntrySizes:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in stated.items()}
    return EntrySizes(**fields)


def _stated(port: Port) -> list[Any]:
    return [port.name, port.dtype.name, [str(d) for d in port.dims], port.kind, port.record_words]


def _port(stated: list[Any]) -> Port:
    name, dtype, dims, kind, record_words = stated
    return Port(name, DType.of(dtype), tuple(Dim.parse(d) for d in dims), kind, record_words)


def _constant(stated: dict[str, Any], whole: np.ndarray[Any, Any], weights: dict[str, Weight | None]) -> Any:
    if "weight" in stated:
        weight = weights[stated["weight"]]
        if weight is None:
            raise ValueError("a weight without bytes")
        return np.ascontiguousarray(weight.array())
    part = _checked(whole, stated["place"])
    return part.view(DType.of(stated["dtype"]).numpy).reshape(stated["shape"])


def _checked(whole: np.ndarray[Any, Any], place: list[int]) -> np.ndarray[Any, Any]:
    """The bytes of a part.

    Raises:
        ValueError: They are not what was written.
    """
    offset, length, expected = place
    total = int.from_bytes(whole[-8:].tobytes(), "little")
    start = len(whole) - 8 - total + offset
    if start < 0 or offset < 0 or length < 0 or start + length > len(whole) - 8:
        raise ValueError("a damaged file")
    part = whole[start : start + length]
    if checksum(part) != expected:
        raise ValueError("a damaged part")
    return part


def checksum(part: Any) -> int:
    """A checksum of bytes, at the speed of memory: the CRC of the sums and of the rest behind the last block.

    Damage to a file shows in it (a block that is another one's, zeros, bits that fell over), unless changes of the
    words of one block cancel. It is not there to tell two contents apart: that is the key's affair.
    """
    data = np.frombuffer(part, np.uint8)
    whole = len(data) - len(data) % BLOCK
    sums = data[:whole].view(np.uint64).reshape(-1, BLOCK // 8).sum(1, dtype=np.uint64)
    return zlib.crc32(data[whole:].data, zlib.crc32(sums.data))
