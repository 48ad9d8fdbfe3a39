"""The backend tests that come with onnx: models, inputs, expected outputs; in the forms in which they are executed.

onnx makes most of them ("node" tests) when the modules of `onnx.backend.test.case.node` are imported, each in a few
milliseconds; three modules (`SLOW`) compute pools in Python loops and take 8 seconds. The others are files.
"""

from __future__ import annotations

import copy
import functools
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

SLOW = frozenset({"averagepool", "lppool", "maxpool"})
FILES = ("simple", "pytorch-converted", "pytorch-operator")
FORMS = ("static", "dynamic", "parameters", "constants")
"""How a test's model is executed. static: as it is. dynamic: every extent of every input is a symbol of its own, and
nothing is stated of other values. parameters: all inputs but the first are constants, as weights, axes and shapes are
in real models. constants: all inputs are."""


@dataclass(frozen=True)
class Case:
    """One test: some sets of inputs and expected outputs."""

    name: str
    model: onnx.ModelProto
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


def node_modules() -> list[str]:
    """The modules that make node tests, by their names below `onnx.backend.test.case.node`."""
    from onnx.backend.test.case import node

    prefix = f"{node.__name__}."
    found = pkgutil.walk_packages(node.__path__, prefix)
    return sorted(m.name.removeprefix(prefix) for m in found if not m.ispkg)


@functools.cache
def node_cases(module: str) -> tuple[Case, ...]:
    """The tests of one such module."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        before = len(node._NodeTestCases)
        if sys.modules.pop(f"{node.__name__}.{module}", None) is not None:  # others have loaded it: made anew
            node._existing_names.clear()
        importlib.import_module(f"{node.__name__}.{module}")
    made = node._NodeTestCases[before:]
    return tuple(
        Case(t.name, t.model, [(list(map(_array, i)), list(map(_array, o))) for i, o in t.data_sets], t.rtol, t.atol)
        for t in made
    )


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def file_names() -> list[tuple[str, Path]]:
    """Name and folder of the tests that are files."""
    root = Path(onnx.__file__).parent / "backend" / "test" / "data"
    return sorted((folder.name, folder) for kind in FILES for folder in (root / kind).iterdir() if folder.is_dir())


def file_case(name: str, folder: Path) -> Case:
    """One of them."""
    model = onnx.load(folder / "model.onnx")
    data: list[tuple[list[Any], list[Any]]] = []
    for number in range(len(list(folder.glob("test_data_set_*")))):
        place = folder / f"test_data_set_{number}"
        data.append((
            [_load(place / f"input_{k}.pb", v) for k, v in enumerate(model.graph.input) if _has(place, "input", k)],
            [_load(place / f"output_{k}.pb", v) for k, v in enumerate(model.graph.output)],
        ))  # fmt: skip
    return Case(name, model, data, 1e-3, 1e-7)


def _has(place: Path, what: str, number: int) -> bool:
    return (place / f"{what}_{number}.pb").exists()


def _load(path: Path, value: onnx.ValueInfoProto) -> Any:
    readers = {
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
        "map_type": (onnx.MapProto, numpy_helper.to_dict),
    }
    kind, read = readers.get(str(value.type.WhichOneof("value")), (onnx.TensorProto, numpy_helper.to_array))
    stored = kind()
    stored.ParseFromString(path.read_bytes())
    return read(stored)


def light_cases() -> Iterator[Case]:
    """Nine networks without their weights (constants are made by nodes), with the inputs of onnx's own runner."""
    from onnx.backend.test.loader import load_model_tests
    from onnx.backend.test.runner import Runner

    root = Path(onnx.__file__).parents[1]
    for test in load_model_tests(kind="real"):
        path = root / (test.url or "")
        if not path.is_file():
            continue
        model = onnx.load(path)
        stored = [path.with_name(f"{path.stem}_output_{k}.pb") for k in range(len(model.graph.output))]
        inputs = [Runner.generate_dummy_data(v, seed=0, name=test.name) for v in live_inputs(model)]
        outputs = [_load(p, v) for p, v in zip(stored, model.graph.output, strict=True)]
        yield Case(test.name, model, [(inputs, outputs)], test.rtol, test.atol)


def all_cases() -> list[Case]:
    """Every test that onnx brings along; loading takes some 15 seconds."""
    out = [case for module in node_modules() for case in node_cases(module)]
    out += [file_case(*entry) for entry in file_names()]
    out += light_cases()
    return out


def live_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are not initializers."""
    given = {i.name for i in model.graph.initializer} | {i.values.name for i in model.graph.sparse_initializer}
    return [value for value in model.graph.input if value.name not in given]


# ---- forms


def formed(case: Case, form: str, inputs: Sequence[Any]) -> tuple[onnx.ModelProto, list[Any]]:
    """The model in one of `FORMS`, and the inputs that are left to it."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    kept = [_copied(value) for value in inputs]
    if form == "static":
        return model, kept
    if form == "dynamic":
        _loosen(model)
        return model, kept
    live = live_inputs(model)
    gone: set[str] = set()
    left: list[Any] = []
    for number, (value, array) in enumerate(zip(live, kept, strict=True)):
        constant = isinstance(array, np.ndarray | np.generic) and value.type.HasField("tensor_type")
        if not constant or (form == "parameters" and number == 0):
            left.append(array)
            continue
        gone.add(value.name)
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
    remaining = [value for value in model.graph.input if value.name not in gone]
    del model.graph.input[:]
    model.graph.input.extend(remaining)
    return model, left


def _copied(value: Any) -> Any:
    if isinstance(value, np.generic):
        return np.asarray(value)
    return copy.deepcopy(value)


def _loosen(model: onnx.ModelProto) -> None:
    del model.graph.value_info[:]
    given = {i.name for i in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in given:
            _symbols(value.type, value.name)
    for value in model.graph.output:
        _symbols(value.type, None)


def _symbols(kind: onnx.TypeProto, name: str | None) -> None:
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        _symbols(getattr(kind, which).elem_type, name)
    elif which == "tensor_type" and kind.tensor_type.HasField("shape"):
        for axis, dim in enumerate(kind.tensor_type.shape.dim):
            dim.Clear()
            if name is not None:
                dim.dim_param = f"{name}_{axis}"


# ---- comparing


def difference(expected: Any, got: Any, rtol: float, atol: float, where: str = "outputs") -> str | None:
    """How an output differs from what is expected, by onnx's own rule; None where it does not."""
    if expected is None or isinstance(expected, str):
        return None if got is None or got == expected else f"{where}: got {got!r}, expected {expected!r}"
    if isinstance(expected, dict):
        if not isinstance(got, dict) or set(got) != set(expected):
            return f"{where}: maps differ in their keys"
        pairs = [(f"{where}[{k!r}]", np.asarray(v), np.asarray(got[k])) for k, v in expected.items()]
    elif isinstance(expected, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return f"{where}: got {got!r:.80}, expected a list of {len(expected)}"
        pairs = [(f"{where}[{k}]", a, b) for k, (a, b) in enumerate(zip(expected, got, strict=True))]
    else:
        return _arrays(np.asarray(expected), np.asarray(got), rtol, atol, where)
    found = (difference(a, b, rtol, atol, place) for place, a, b in pairs)
    return next((text for text in found if text is not None), None)


def _arrays(
    expected: np.ndarray[Any, Any], got: np.ndarray[Any, Any], rtol: float, atol: float, where: str
) -> str | None:
    if got.shape != expected.shape:
        return f"{where}: shape {got.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS":
        same = np.array_equal(got.astype(object), expected.astype(object))
        return None if same else f"{where}: the strings differ"
    if got.dtype != expected.dtype:
        return f"{where}: dtype {got.dtype}, expected {expected.dtype}"
    if expected.dtype.type.__module__.startswith("ml_dtypes"):
        if expected.dtype.name == "bfloat16":  # as onnx's own runner does
            rtol = max(rtol, 2**-6)
        expected, got = expected.astype(np.float32), got.astype(np.float32)
    with np.errstate(all="ignore"):
        close = np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    count = int((~close).sum())
    return f"{where}: {count} of {close.size} elements differ, at {list(at)} got {got[at]!r}, expected {expected[at]!r}"
