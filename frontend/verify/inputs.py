"""The inputs of a verification: the user's (npz, npy, a Python generator), or generated ones."""

from __future__ import annotations

import inspect
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.files import write_whole
from sardonyx.dialects.module import input_names, main_function
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.verify.bindings import Binding, dim_name, shape_of
from sardonyx.passes.check_inputs import integers_for

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One set of inputs by name, and where they come from: a file, a generator, or a seed and the sizes of dims."""

    origin: str
    binding: Binding
    feeds: Feeds


# ---- generated


def generate(module: ModuleOp, specs: Sequence[TensorSpec], binding: Binding, seed: int) -> dict[str, Array]:
    """Inputs for these sizes: normal numbers, and integers in the range that the graph can use them in.

    The same seed, name and shape give the same numbers.

    Raises:
        InvalidArgumentError: An input is a sequence, an optional, or of unknown rank.
    """
    arguments = dict(zip(input_names(module), main_function(module).body.block.args))
    found: dict[str, Array] = {}
    sizes = _sizes(specs, binding)
    for spec in specs:
        if spec.container is not None:
            raise InvalidArgumentError(
                f"inputs for '{spec.name}' ({spec}) are not generated",
                hint="give inputs with --inputs FILE.py:FUNCTION",
            )
        shape = shape_of(spec, binding)
        generator = np.random.default_rng([seed, zlib.crc32(spec.name.encode())])
        found[spec.name] = _array(spec.name, spec.dtype, shape, arguments.get(spec.name), sizes, generator)
    return found


def _array(
    name: str,
    dtype: DType,
    shape: tuple[int, ...],
    argument: SSAValue | None,
    sizes: Binding,
    generator: np.random.Generator,
) -> Array:
    if dtype.kind == "s":
        words = np.array([f"text{i}" for i in range(8)], object)
        return words[generator.integers(0, len(words), shape)]
    if dtype.kind == "b":
        return np.asarray(generator.integers(0, 2, shape), bool)
    if dtype.kind in "iu":
        bits = dtype.bits - (dtype.kind == "i")
        wanted = None if argument is None else integers_for(argument, shape, sizes, generator)
        if wanted is None:
            high = 1 if "mask" in name.lower() else 9
            wanted = generator.integers(0, min(high, 2**bits - 1) + 1, shape)
        return np.asarray(wanted).astype(dtype.numpy)
    return np.asarray(generator.standard_normal(shape)).astype(dtype.numpy)


def _sizes(specs: Sequence[TensorSpec], binding: Binding) -> dict[str, int]:
    """The binding with the symbols of the dims that nobody named."""
    found = dict(binding)
    for spec in specs:
        for axis, dim in enumerate(spec.extents or ()):
            name = dim_name(spec, axis)
            if dim.symbol_name is not None and name in binding:
                found.setdefault(dim.symbol_name, binding[name])
    return found


# ---- the user's


def read_arrays(path: Path) -> dict[str, Array] | Array:
    """The arrays of an `.npz` file by name, or that of an `.npy` file. Nothing in it is executed.

    Raises:
        InvalidArgumentError: It cannot be read.
    """
    try:
        content = path.read_bytes()
        if not content.startswith((b"PK", b"\x93NUMPY")):
            raise ValueError("it is neither .npz nor .npy")
        # Not by name: NumPy leaves a file open that turns out to be none of its own.
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {key: loaded[key] for key in loaded.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidArgumentError(f"the arrays in '{path}' cannot be read: {reason}") from error


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write an `.npz` file, whole or not at all; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    write_whole(path, buffer.getvalue())


def load_cases(source: str | os.PathLike[str], names: Sequence[str]) -> list[Case]:
    """Cases from `.npz` (one case by input name, or several as `case/name`) or `.npy` (for the only input).

    Raises:
        InvalidArgumentError: The file cannot be read, or lacks an input.
    """
    path = Path(source)
    arrays = read_arrays(path)
    if not isinstance(arrays, dict):
        if len(names) != 1:
            raise InvalidArgumentError(
                f"'{path}' holds one array, but there are {len(names)} inputs", hint="save them by name in an .npz file"
            )
        return [Case(str(path), {}, {names[0]: arrays})]
    if all(name in arrays for name in names):
        return [Case(str(path), {}, {name: arrays[name] for name in names})]
    grouped: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        group, separator, name = key.partition("/")
        if separator:
            grouped.setdefault(group, {})[name] = array
    cases: list[Case] = []
    for group, feeds in grouped.items():
        missing = [name for name in names if name not in feeds]
        if missing:
            raise InvalidArgumentError(f"the case '{group}' of '{path}' has no array '{missing[0]}'")
        cases.append(Case(f"{path}:{group}", {}, {name: feeds[name] for name in names}))
    if not cases:
        missing = next(name for name in names if name not in arrays)
        raise InvalidArgumentError(f"'{path}' has no array '{missing}'", hint=f"the inputs are {', '.join(names)}")
    return cases


def cases_of_generator(
    function: Callable[..., Any], bindings: Sequence[Binding], names: Sequence[str], seed: int, origin: str
) -> Iterator[Case]:
    """Cases from a user's function: called for each binding, with the sizes as keywords that it takes.

    It gives a dict by name, a list in the inputs' order, or yields several.
    It may take `seed` too.

    Raises:
        InvalidArgumentError: It fails, or gives something else.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    taken = list(bindings) or [{}]
    if not every and not any(name in parameters for b in taken for name in b):
        taken = taken[:1] if taken and not taken[0] else [{}]
    for binding in taken:
        keywords = {k: v for k, v in {**binding, "seed": seed}.items() if every or k in parameters}
        try:
            given = function(**keywords)
            found = list(given) if inspect.isgenerator(given) else [given]
        except Exception as error:
            raise InvalidArgumentError(f"{origin} failed: {type(error).__name__}: {error}") from error
        for index, entry in enumerate(found):
            if not isinstance(entry, Mapping):
                values = list(entry) if isinstance(entry, list | tuple) else [entry]
                if len(values) != len(names):
                    raise InvalidArgumentError(f"{origin} gives {len(values)} inputs, expected {len(names)}")
                entry = dict(zip(names, values))
            missing = [name for name in names if name not in entry]
            if missing:
                raise InvalidArgumentError(f"{origin} gives no input '{missing[0]}'")
            feeds = {name: _plain(entry[name]) for name in names}
            yield Case(f"{origin}[{index}]" if len(found) > 1 else origin, binding, feeds)


def _plain(value: Any) -> Any:
    """An array of what the user gave; sequences and optionals as they are."""
    if value is None or isinstance(value, list):
        return value
    if hasattr(value, "detach"):  # a tensor of torch that requires a gradient has no __array__
        value = value.detach().cpu()
    return np.asarray(value)
