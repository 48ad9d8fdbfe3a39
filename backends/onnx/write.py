"""Model files: whole or not at all, with the weights inside or beside.

Everything is written to temporary files in the target's folder, which are then renamed; a refusal or a failure leaves
what was there before. Weights beside the model are in `<stem>_data`, one after the other: exactly their bytes, in the
order of the model's initializers, each once; a tensor of 1 MiB and more begins at a multiple of 64 KiB (so that it can
be mapped), unless it is the first.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import onnx
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.onnx.inputs import is_weight
from sardonyx.backends.onnx.options import ExportOptions
from sardonyx.backends.onnx.skeleton import Content, Skeleton
from sardonyx.backends.onnx.stream import can_stream, write_inside
from sardonyx.backends.onnx.tensors import array_from_proto, fill, place, raw_view, stored_size
from sardonyx.backends.onnx.texts import is_text, refuse_unwritable, serialized
from sardonyx.dialects.files import write_files, write_whole
from sardonyx.dialects.weights import FileSlice, Weight, WeightStore
from sardonyx.errors import InvalidArgumentError, MissingWeightError

INSIDE_LIMIT = 2**31
"""A model file has fewer bytes: Protobuf's limit."""
ALIGNED_FROM = 1 << 20
ALIGNMENT = 1 << 16
CHUNK = 1 << 24
CONTENTS = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data")
"""The fields of a tensor that hold its elements."""


def export_module(module: ModuleOp, store: WeightStore, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a graph as an ONNX model file.

    Args:
        module: The graph; it is left as it is.
        store: Its weights.
        path: The file.
        options: See `ExportOptions`.

    Raises:
        TypeError: The path or an option is of another type.
        InvalidArgumentError: The opset is unknown, or the path cannot be written.
        UnsupportedError: The graph cannot be stated in the opset.
    """
    from sardonyx.backends.onnx.build import build  # whoever opens a model needs no exporter

    target = as_path("export_onnx", path)
    chosen = ExportOptions.of("export_onnx", options)
    save(build(module, store, chosen), target, chosen.save_as_external_data)


def as_path(call: str, path: object) -> Path:
    """The path that a call was given: a str or an os.PathLike of one."""
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(found, str):
        raise TypeError(f"{call}(): path is a str or an os.PathLike, not {type(path).__name__}")
    return Path(found)


def whole_proto(skeleton: Skeleton) -> onnx.ModelProto:
    """The model with its weights inside."""
    proto = onnx.ModelProto()
    proto.CopyFrom(skeleton.proto)
    for tensor in proto.graph.initializer:
        content = skeleton.contents.get(tensor.name)
        if content is not None:
            fill(tensor, content)
    return proto


def save(skeleton: Skeleton, path: Path, external: bool | None) -> None:
    """Write a model; `external` says where the weights go (None: inside until 2 GiB).

    A file whose name ends in .json or .textproto (see `texts`) is written as text.

    Raises:
        InvalidArgumentError: The path cannot be written, or the weights do not fit inside.
        UnsupportedError: The name asks for ONNX's own syntax.
        MissingWeightError: The bytes of a weight are not here.
    """
    if path.is_dir():
        raise InvalidArgumentError(f"cannot write {path}: it is a folder")
    refuse_unwritable(path)
    if external:
        skeleton = _outside(skeleton)
    size = skeleton.proto.ByteSize() + skeleton.nbytes() + 16 * len(skeleton.contents)
    if external is None:
        external = size >= INSIDE_LIMIT
    if not external and size >= INSIDE_LIMIT:
        raise InvalidArgumentError(
            f"the weights of {path.name} take {skeleton.nbytes()} bytes, but a model file has fewer than 2 GiB",
            hint="save_as_external_data=True writes them beside the model",
        )
    if not external or not any(is_weight(content) for content in skeleton.contents.values()):
        if skeleton.contents and not is_text(path) and can_stream(skeleton):
            write_files([(path, lambda file: write_inside(skeleton, file))])
        else:
            write_whole(path, serialized(whole_proto(skeleton) if skeleton.contents else skeleton.proto, path))
        return
    beside = path.with_name(f"{path.stem}_data")
    if beside.is_dir() or beside == path:
        raise InvalidArgumentError(f"cannot write the weights to {beside}: it is taken")
    proto = onnx.ModelProto()
    proto.CopyFrom(skeleton.proto)
    write_files(
        [
            (beside, lambda file: _write_beside(skeleton, proto, file, beside.name)),
            (path, lambda file: file.write(serialized(proto, path))),
        ]
    )


def _outside(skeleton: Skeleton) -> Skeleton:
    """The model with the contents of all weights beside the proto, those too that it was read with inside."""
    inside: dict[str, Content] = {}
    for tensor in skeleton.proto.graph.initializer:
        if tensor.name not in skeleton.contents and tensor.data_type != onnx.TensorProto.STRING:
            array = array_from_proto(tensor, f"initializer '{tensor.name}'")
            if is_weight(array):
                inside[tensor.name] = array
    if not inside:
        return skeleton
    proto = onnx.ModelProto()
    proto.CopyFrom(skeleton.proto)
    for tensor in proto.graph.initializer:
        for field in CONTENTS if tensor.name in inside else ():
            tensor.ClearField(field)
    return Skeleton(proto, {**skeleton.contents, **inside}, skeleton.opaque)


def _write_beside(skeleton: Skeleton, proto: onnx.ModelProto, out: BinaryIO, location: str) -> None:
    """Write the weights one after the other, and say in the model where each lies."""
    offset = 0
    placed: dict[int, int] = {}
    for tensor in proto.graph.initializer:
        content = skeleton.contents.get(tensor.name)
        if content is None:
            continue
        if not is_weight(content):
            fill(tensor, content)
            continue
        at = placed.get(id(content)) if isinstance(content, Weight) else None
        if at is None:
            if offset and stored_size(content) >= ALIGNED_FROM:
                padding = -offset % ALIGNMENT
                out.write(bytes(padding))
                offset += padding
            at = placed[id(content)] = offset
            where = content.content if isinstance(content, Weight) else None
            as_stored = sys.byteorder == "little" and stored_size(content) == content.nbytes
            if isinstance(content, Weight) and isinstance(where, FileSlice) and as_stored:
                _copy(content, where, out)
            else:
                view = raw_view(content)
                for start in range(0, len(view), CHUNK):
                    out.write(view[start : start + CHUNK])
            offset += stored_size(content)
        place(tensor, location, at, stored_size(content))


def _copy(weight: Weight, where: FileSlice, out: BinaryIO) -> None:
    """Copy a weight's bytes from file to file; by the kernel where it can, so that they pass through no memory of ours.

    Raises:
        MissingWeightError: The file is gone, or too short.
    """
    done = 0
    out.flush()
    by_kernel = hasattr(os, "copy_file_range")
    try:
        source = where.path.open("rb", buffering=0)
    except OSError as error:
        raise _missing(weight, where, str(error)) from error
    with source:
        while done < where.length:
            count = 0
            wanted = min(CHUNK, where.length - done)
            if by_kernel:
                try:
                    count = os.copy_file_range(source.fileno(), out.fileno(), wanted, where.offset + done)
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                        raise
                    by_kernel = False  # other file systems, or an old kernel
            if not count:  # some file systems copy nothing and say so
                by_kernel = False
                source.seek(where.offset + done)
                data = source.read(wanted)
                count = len(data)
                out.write(data)
                out.flush()
            if not count:
                raise _missing(weight, where, "the file is too short")
            done += count


def _missing(weight: Weight, where: FileSlice, why: str) -> MissingWeightError:
    return MissingWeightError(f"weight '{weight.key}' cannot be read from {where.path}: {why}")
