"""Model files: whole or not at all, with the weights inside or beside.

Everything is written to temporary files in the target's folder, which are then renamed; a refusal or a failure leaves
what was there before. Weights beside the model are in `<stem>_data`, one after the other: exactly their bytes, in the
order of the model's initializers, each once; a tensor of 1 MiB and more begins at a multiple of 64 KiB (so that it can
be mapped), unless it is the first.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.onnx.build import build
from sardonyx.backends.onnx.emit import Content, Skeleton
from sardonyx.backends.onnx.options import ExportOptions
from sardonyx.backends.onnx.tensors import fill, place, raw_view
from sardonyx.dialects.weights import Weight, WeightStore
from sardonyx.errors import InvalidArgumentError

INSIDE_LIMIT = 2**31
"""A model file has fewer bytes: Protobuf's limit."""
ALIGNED_FROM = 1 << 20
ALIGNMENT = 1 << 16
SMALL = 1024
"""Integers up to this size (shapes, axes, indices) stay inside: shape inference reads them."""
CHUNK = 1 << 24


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

    Raises:
        InvalidArgumentError: The path cannot be written, or the weights do not fit inside.
        MissingWeightError: The bytes of a weight are not here.
    """
    if path.is_dir():
        raise InvalidArgumentError(f"cannot write {path}: it is a folder")
    size = skeleton.proto.ByteSize() + skeleton.nbytes() + 16 * len(skeleton.contents)
    if external is None:
        external = size >= INSIDE_LIMIT
    if not external and size >= INSIDE_LIMIT:
        raise InvalidArgumentError(
            f"the weights of {path.name} take {skeleton.nbytes()} bytes, but a model file has fewer than 2 GiB",
            hint="save_as_external_data=True writes them beside the model",
        )
    with _writing(path), contextlib.ExitStack() as stack:
        if not external:
            model_file = stack.enter_context(_temporary(path))
            Path(model_file).write_bytes(whole_proto(skeleton).SerializeToString(deterministic=True))
            _replace([(model_file, path)])
            return
        beside = path.with_name(f"{path.stem}_data")
        if beside.is_dir() or beside == path:
            raise InvalidArgumentError(f"cannot write the weights to {beside}: it is taken")
        data_file = stack.enter_context(_temporary(beside))
        proto = _write_beside(skeleton, data_file, beside.name)
        model_file = stack.enter_context(_temporary(path))
        Path(model_file).write_bytes(proto.SerializeToString(deterministic=True))
        moves = [(model_file, path)]
        if os.path.getsize(data_file):
            moves.insert(0, (data_file, beside))
        _replace(moves)


def _goes_beside(content: Content) -> bool:
    """Whether a tensor counts as a weight: all but what shape computations and scalars need."""
    kind = content.dtype.kind
    return bool(content.shape) and content.nbytes > 0 and (kind not in "biu" or content.nbytes > SMALL)


def _write_beside(skeleton: Skeleton, data_file: str, location: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    proto.CopyFrom(skeleton.proto)
    offset = 0
    placed: dict[int, int] = {}
    with open(data_file, "wb") as out:
        for tensor in proto.graph.initializer:
            content = skeleton.contents.get(tensor.name)
            if content is None:
                continue
            if not _goes_beside(content):
                fill(tensor, content)
                continue
            at = placed.get(id(content)) if isinstance(content, Weight) else None
            if at is None:
                if offset and content.nbytes >= ALIGNED_FROM:
                    padding = -offset % ALIGNMENT
                    out.write(bytes(padding))
                    offset += padding
                at = placed[id(content)] = offset
                view = raw_view(content)
                for start in range(0, len(view), CHUNK):
                    out.write(view[start : start + CHUNK])
                offset += content.nbytes
            place(tensor, location, at, content.nbytes)
    return proto


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[str]:
    """A new file in the folder of `path`, with its permissions or a new file's; removed unless it was renamed."""
    name = str(path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp"))
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, path.stat().st_mode & 0o777)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _replace(moves: list[tuple[str, Path]]) -> None:
    """Rename the files; if one cannot be, those before it get back what they had."""
    done: list[tuple[Path, str | None]] = []
    try:
        for source, target in moves:
            kept: str | None = None
            if target is not moves[-1][1] and target.exists():
                kept = f"{source}.old"
                os.link(target, kept)
            done.append((target, kept))
            os.replace(source, target)
    except OSError:
        for target, kept in done[:-1]:
            if kept is not None:
                os.replace(kept, target)
            else:
                target.unlink(missing_ok=True)
        raise
    finally:
        for _, kept in done:
            if kept is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(kept)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgumentError(f"cannot write {path}: {error.strerror or error}") from error
