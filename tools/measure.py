"""How long a model takes: compiling, and running natively and in onnxruntime, side by side."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from sardonyx.errors import SardonyxError
from sardonyx.frontend.verify.inputs import Feeds


@dataclass(frozen=True)
class Timing:
    """One way to run a model, in seconds.

    Attributes:
        execution: 'native' or 'onnxruntime'.
        ready: From the model to the first run; None where it was not measured.
        runs: Each round's time of one run.
        error: Why it was not measured.
    """

    execution: str
    ready: float | None
    runs: tuple[float, ...]
    error: str = ""

    @property
    def typical(self) -> float:
        """The median of the rounds."""
        return median(self.runs) if self.runs else float("nan")

    def to_json(self) -> dict[str, Any]:
        found = {"execution": self.execution, "ready_seconds": self.ready, "run_seconds": list(self.runs)}
        return found | ({"error": self.error} if self.error else {})


def measure(path: str, feeds: Feeds, seconds: float = 1.0, rounds: int = 5, threads: int | None = None) -> list[Timing]:
    """Time a model natively and in onnxruntime, in turns, so that both see the same machine.

    Args:
        path: The ONNX model.
        feeds: Inputs by name.
        seconds: How long each is run in all.
        rounds: In how many turns.
        threads: How many threads each may use, native code for the rest of the process; None: what each takes.
    """
    makers: Mapping[str, Callable[[], Callable[[], object]]] = {
        "native": lambda: _native(path, feeds, threads),
        "onnxruntime": lambda: _onnxruntime(path, feeds, threads),
    }
    ready: dict[str, float] = {}
    runners: dict[str, Callable[[], object]] = {}
    errors: dict[str, str] = {}
    for name, make in makers.items():
        start = time.perf_counter()
        try:
            runners[name] = make()
            runners[name]()
        except SardonyxError as error:
            runners.pop(name, None)
            errors[name] = str(error)
            continue
        ready[name] = time.perf_counter() - start
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            times[name].append(_one_round(runner, seconds / rounds))
    return [Timing(name, ready.get(name), tuple(times.get(name, ())), errors.get(name, "")) for name in makers]


def _one_round(runner: Callable[[], object], seconds: float) -> float:
    """The time of one run, from as many as fit into the time."""
    count, start = 0, time.perf_counter()
    while True:
        runner()
        count += 1
        spent = time.perf_counter() - start
        if spent >= seconds:
            return spent / count


def _native(path: str, feeds: Feeds, threads: int | None) -> Callable[[], object]:
    from sardonyx.frontend.onnx.model import OnnxModel

    if threads is not None:
        os.environ["SARDONYX_NUM_THREADS"] = str(threads)
    graph = OnnxModel.open(path).compile()
    graph.finalize()
    arrays = [feeds[name] for name in graph.input_names()]
    return lambda: graph.run(arrays)


def _onnxruntime(path: str, feeds: Feeds, threads: int | None) -> Callable[[], object]:
    from sardonyx.backends.onnx.parity import ort_session

    session = ort_session(path, threads=threads)
    return lambda: session(feeds)
