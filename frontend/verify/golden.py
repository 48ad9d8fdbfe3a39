"""Golden tests: inputs and verified outputs in one small file, against which every later export is held.

The file is an `.npz`: `inputs/<case>/<name>`, `outputs/<case>/<name>`, and `golden` (JSON): hashes, versions,
tolerances, and for the first case a fingerprint of every node's result, so that a drift is traced to its node.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.verify.executions import executions
from sardonyx.frontend.verify.inputs import Case, read_arrays, write_arrays
from sardonyx.frontend.verify.locate import Culprit, locate, maker_of
from sardonyx.frontend.verify.observe import Fingerprint, Plan, Step, Trace, observe
from sardonyx.frontend.verify.sources import feeds_for, file_digest
from sardonyx.frontend.verify.tolerance import Difference, Limits, compare_outputs
from sardonyx.frontend.verify.verify import Verification

FORMAT = 2


def versions() -> dict[str, str]:
    """What computed something: Sardonyx, Python, the libraries, the kind of CPU, on which rounding depends."""
    from sardonyx.backends.llvm.codegen.text import host_target

    cpu = f"{platform.machine()} {host_target().cpu}"
    found = {"python": platform.python_version(), "machine": cpu}
    for name in ("sardonyx", "numpy", "onnx", "onnxruntime", "torch", "llvmlite"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class Drift:
    """How a model departs from its golden outputs.

    Attributes:
        execution, case: What ran on which inputs.
        differences: One for each output.
        error: What went wrong.
        culprit: The node.
    """

    execution: str
    case: str
    differences: tuple[Difference, ...]
    error: str = ""
    culprit: Culprit | None = None

    @property
    def ok(self) -> bool:
        return not self.error and all(d.ok for d in self.differences)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "execution": self.execution,
            "case": self.case,
            "ok": self.ok,
            "outputs": [d.to_json() for d in self.differences],
        }
        if self.error:
            found["error"] = self.error
        if self.culprit is not None:
            found["culprit"] = self.culprit.to_json()
        return found


@dataclass(frozen=True)
class Golden:
    """Verified inputs and outputs.

    Attributes:
        cases: Inputs by name.
        outputs: The verified outputs of each case, by name.
        trace: What each node computed in the first case.
        limits: The tolerances.
        about: Hashes, versions, what was verified.
    """

    cases: tuple[Case, ...]
    outputs: tuple[Mapping[str, Any], ...]
    trace: Trace
    limits: Limits
    about: Mapping[str, Any]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        arrays: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for number, (case, outputs) in enumerate(zip(self.cases, self.outputs)):
            for group, values in (("inputs", case.feeds), ("outputs", outputs)):
                for name, value in values.items():
                    key = f"{group}/{number}/{name}"
                    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
                        arrays[key] = value
                    else:
                        others[key] = _encoded(value)
        sizes = [dict(c.binding) for c in self.cases]
        dtypes = {k: a.dtype.name for k, a in arrays.items() if a.dtype.kind == "V"}
        text = {
            "format": FORMAT,
            "dims": sizes,
            "origins": [c.origin for c in self.cases],
            "dtypes": dtypes,
            "others": others,
            **self.limits.to_json(),
            "trace": _trace_to_json(self.trace),
            "about": dict(self.about),
        }
        stored = {k: a.view(f"V{a.dtype.itemsize}") if k in dtypes else a for k, a in arrays.items()}
        stored["golden"] = np.frombuffer(json.dumps(text).encode(), np.uint8)
        write_arrays(path, stored)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Golden:
        """Read the file.

        Raises:
            InvalidArgumentError: It cannot be read, or is no golden file.
        """
        try:
            arrays = read_arrays(Path(path))
            if not isinstance(arrays, dict):
                raise ValueError("it holds one array")
            if "golden" not in arrays:
                raise ValueError("it holds arrays alone")
            text = json.loads(arrays.pop("golden").tobytes())
            if text["format"] != FORMAT:
                raise ValueError(f"it has format {text['format']}, this Sardonyx reads {FORMAT}")
            for key, name in text["dtypes"].items():
                arrays[key] = arrays[key].view(_dtype(name))
            arrays |= {key: _decoded(value) for key, value in text["others"].items()}
            cases: list[Case] = []
            outputs: list[dict[str, Any]] = []
            for number, (binding, origin) in enumerate(zip(text["dims"], text["origins"])):
                cases.append(Case(origin, binding, _group(arrays, f"inputs/{number}/")))
                outputs.append(_group(arrays, f"outputs/{number}/"))
            limits, trace = Limits.from_json(text), _trace_from_json(text["trace"])
            return Golden(tuple(cases), tuple(outputs), trace, limits, text["about"])
        except (InvalidArgumentError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(f"'{path}' is no golden file: {error or type(error).__name__}") from error

    def check(
        self, model: str | os.PathLike[str], providers: Sequence[str] = ("cpu",), only: Sequence[str] | None = None
    ) -> list[Drift]:
        """Hold a model against the golden outputs, in every execution that can be tried.

        Raises:
            SardonyxError: The model cannot be read.
        """
        graph = OnnxModel.open(model).compile()
        found: list[Drift] = []
        for execution in executions(graph, model, providers, only):
            if execution.run is None:
                continue
            for number, (case, expected) in enumerate(zip(self.cases, self.outputs)):
                name = case.origin if len(self.cases) == 1 else f"case {number}"
                try:
                    actual = execution.run(case.feeds)
                except SardonyxError as error:
                    found.append(Drift(execution.name, name, (), str(error), self._culprit(graph, (), case)))
                    continue
                differences = compare_outputs(expected, actual, self.limits)
                bad = [d.name for d in differences if not d.ok]
                culprit = self._culprit(graph, bad, self.cases[0]) if bad else None
                found.append(Drift(execution.name, name, tuple(differences), "", culprit))
        return found

    def _culprit(self, graph: ModelGraph, bad: Sequence[str], case: Case) -> Culprit | None:
        try:
            arrays = graph.bind_inputs("check", feeds_for(graph, case.feeds))
        except SardonyxError:
            return None
        now = observe(Plan.of(graph.module, graph.output_names()), arrays)
        dropped = [] if now.failed else [n for n in bad if n not in now.outputs]
        if dropped and dropped[0] in self.trace.outputs:
            maker = maker_of(self.trace, dropped[0], "made")
            if maker is not None:
                return maker
        return locate(self.trace, now, bad or graph.output_names(), self.limits.precision)


def freeze(verification: Verification, model: str | os.PathLike[str]) -> Golden:
    """A golden test of a model: the inputs that it was verified on, with the outputs of its source.

    Raises:
        InvalidArgumentError: The verification failed.
    """
    if not verification.ok or not verification.records:
        raise InvalidArgumentError("what is not verified is not frozen", hint="see what `sardonyx verify` says")
    graph = OnnxModel.open(model).compile()
    cases = tuple(case for case, _ in verification.records)
    arrays = graph.bind_inputs("freeze", feeds_for(graph, cases[0].feeds))
    trace = observe(Plan.of(graph.module, graph.output_names()), arrays)
    about = {
        "model": Path(model).name,
        "model_sha256": file_digest(model),
        "source": verification.source,
        "versions": versions(),
    }
    return Golden(cases, tuple(outputs for _, outputs in verification.records), trace, verification.limits, about)


def _encoded(value: Any) -> Any:
    """Sequences, maps, strings and empty optionals as JSON."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return {"dtype": "str" if array.dtype.kind in "OSU" else array.dtype.name, "array": array.tolist()}
    if isinstance(value, Mapping):
        return {"map": [[_encoded(np.asarray(k)), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {"sequence": [_encoded(v) for v in value]}
    return None if value is None else _encoded(np.asarray(value))


def _decoded(data: Any) -> Any:
    if data is None:
        return None
    if "map" in data:
        return {_decoded(k).item(): _decoded(v) for k, v in data["map"]}
    if "sequence" in data:
        return [_decoded(v) for v in data["sequence"]]
    name = data["dtype"]
    if name == "str":
        return np.asarray(data["array"], object)
    return np.asarray(data["array"], _dtype(name) if not hasattr(np, name) else name)


def _group(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _dtype(name: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def _trace_to_json(trace: Trace) -> dict[str, Any]:
    return {
        "steps": [
            [s.name, s.operator, s.location, s.reads, s.makes, s.digest, s.attributes, s.constants, s.computed]
            for s in trace.steps
        ],
        "prints": [None if p is None else p.to_json() for p in trace.prints],
        "names": list(trace.names),
        "inputs": list(trace.inputs),
        "outputs": trace.outputs,
    }


def _trace_from_json(data: Mapping[str, Any]) -> Trace:
    steps = [
        Step(name, op, where, tuple(reads), tuple(makes), digest, *map(tuple, rest))
        for name, op, where, reads, makes, digest, *rest in data["steps"]
    ]
    prints = [None if p is None else Fingerprint.from_json(p) for p in data["prints"]]
    return Trace(tuple(steps), tuple(prints), tuple(data["names"]), tuple(data["inputs"]), dict(data["outputs"]))
