"""Runs ONNX's backend tests: `python tests/conformance/run.py --execution native --forms static dynamic constants`.

Each test runs in a forked worker; one that crashes or hangs is one failed test. The exit status is 0 when what fails is
what `denied.toml` lists, and nothing that it lists passes.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing as mp
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import executions  # noqa: E402
import onnx_cases  # noqa: E402
import round_trip  # noqa: E402

EXECUTIONS = (*executions.EXECUTIONS, *round_trip.EXECUTIONS)
Job = tuple[onnx_cases.Case, str, str]


def attempt(job: Job) -> str | None:
    """What is wrong with a test, errors included."""
    case, execution, form = job
    try:
        return executions.run_case(case, execution, form)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this test's result
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {' '.join(lines)[:300]}"


def _work(jobs: Sequence[Job], pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    while True:
        number = pipe.recv()
        if number is None:
            return
        pipe.send((number, attempt(jobs[number])))


class _Worker:
    def __init__(self, jobs: Sequence[Job]) -> None:
        self.pipe, theirs = mp.get_context("fork").Pipe()
        self.process = mp.get_context("fork").Process(target=_work, args=(jobs, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.number: int | None = None
        self.since = time.monotonic()

    def give(self, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def results(jobs: Sequence[Job], workers: int, timeout: float) -> Iterator[tuple[int, str | None]]:
    """What is wrong with each job, in the order in which they end."""
    waiting = collections.deque(range(len(jobs)))
    pool = [_Worker(jobs) for _ in range(min(workers, len(jobs)))]
    try:
        while waiting or any(w.number is not None for w in pool):
            for worker in pool:
                if worker.number is None and waiting:
                    worker.give(waiting.popleft())
            busy = {w.pipe: w for w in pool if w.number is not None}
            for pipe in wait(list(busy), timeout=1.0):
                worker = busy[pipe]  # pyright: ignore[reportArgumentType]
                try:
                    yield worker.pipe.recv()
                    worker.number = None
                except EOFError:
                    worker.process.join()
                    yield worker.number or 0, f"the process ended with status {worker.process.exitcode}"
                    pool[pool.index(worker)] = _Worker(jobs)
            for worker in pool:
                if worker.number is not None and time.monotonic() - worker.since > timeout:
                    yield worker.number, f"no result in {timeout:g} s"
                    worker.end()
                    pool[pool.index(worker)] = _Worker(jobs)
    finally:
        for worker in pool:
            worker.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--execution", nargs="+", default=["native"], choices=EXECUTIONS)
    parser.add_argument("--forms", nargs="+", default=["static"], choices=onnx_cases.FORMS)
    parser.add_argument("--filter", default="", metavar="REGEX", help="tests whose names match")
    parser.add_argument("--names", type=Path, help="a file of names, one a line: these tests only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one test")
    parser.add_argument("--json", type=Path, help="where the failures go, by execution and form")
    options = parser.parse_args()
    os.environ.setdefault("SARDONYX_CACHE", "0")
    wanted = set(options.names.read_text("utf-8").split()) if options.names else None
    cases = [
        case
        for case in onnx_cases.all_cases()
        if re.search(options.filter, case.name) and (wanted is None or case.name in wanted)
    ]
    status = unknown_names({case.name for case in cases}) if not options.filter and wanted is None else 0
    failures: dict[str, dict[str, str]] = {}
    for execution in options.execution:
        for form in options.forms:
            before = time.monotonic()
            found = _whole(cases, execution, form, options)
            failures[f"{execution} {form}"] = {name: text for name, text in found.items() if text is not None}
            status |= report(execution, form, found, time.monotonic() - before)
    if options.json:
        options.json.write_text(json.dumps(failures, indent=1), "utf-8")
    return status


def unknown_names(known: set[str]) -> int:
    """Print what `denied.toml` lists though onnx has no such test; 1 if there is any, else 0."""
    unknown = sorted(set(executions.names(executions.table()["group"])) - known)
    if unknown:
        print(f"denied.toml lists tests that onnx does not have: {', '.join(unknown)}")
    return int(bool(unknown))


def _whole(cases: Sequence[onnx_cases.Case], execution: str, form: str, options: Any) -> dict[str, str | None]:
    jobs = [(case, execution, form) for case in cases]
    return {jobs[number][0].name: text for number, text in results(jobs, options.jobs, options.timeout)}


def report(execution: str, form: str, found: dict[str, str | None], seconds: float) -> int:
    """Print what is other than the list of denied tests says; 1 if there is any, else 0."""
    listed = executions.denied(execution, form)
    surprises = {name: text for name, text in found.items() if (text is None) == (name in listed)}
    for name, text in sorted(surprises.items()):
        print(f"{execution}, {form}: {name}: {text or 'passes, but denied.toml lists it'}")
    passed = sum(text is None for text in found.values())
    as_listed = len(found) - passed - sum(text is not None for text in surprises.values())
    counts = f"{passed} of {len(found)} passed, {as_listed} failed as listed, {len(surprises)} other than listed"
    print(f"{execution}, {form}: {counts}, {seconds:.0f} s", flush=True)
    return int(bool(surprises))


if __name__ == "__main__":
    sys.exit(main())
