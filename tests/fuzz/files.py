"""Fuzzing of files: mutated ONNX models go the whole way, and only ordinary errors may come of it.

`python tests/fuzz/files.py --count 100000 --jobs 2` runs that many seeds; each finding is printed with its seed, and
`--seed N --count 1` runs one again. A file is opened, imported, optimised, exported, and every tenth evaluated and
compiled. What is wrong: an exception that is no `SardonyxError`, a crash, more than `SECONDS` of processor time (what
the machine does beside it doesn't count), more than `MEMORY`, a file that was left behind.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import queue
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from mutate import corpus, mutant

SECONDS = 10
PATIENCE = 12
"""After so many times `SECONDS / 2` without a word from any process, those that still run are said to hang."""
MEMORY = 6 << 30
DEEP = 10
"""Every so many files are evaluated and compiled too."""


class TooSlow(Exception):
    """A file took longer than `SECONDS`."""


def _alarm(*_: object) -> None:
    raise TooSlow(f"more than {SECONDS} s")


def try_file(path: Path, out: Path, deep: bool) -> str:
    """Take a file the whole way; returns 'done' or the kind of the error that refused it.

    Raises:
        Exception: Whatever should not have been raised.
    """
    import sardonyx
    from sardonyx.errors import SardonyxError

    stage = "opened"
    try:
        graph = sardonyx.OnnxModel.open(path).compile()
        stage = "imported"
        graph.optimize()
        stage = "optimised"
        sardonyx.OnnxModel.from_graph(graph).save(out)
        stage = "exported"
        if deep:
            inputs = [_input(dtype, dims) for _, dtype, dims in graph.inputs()]
            if all(x is not None for x in inputs):
                graph.evaluate(inputs)
                graph.finalize()
                graph.run(inputs)
                stage = "run"
    except SardonyxError as error:
        return f"{stage}, then {type(error).__name__}"
    return stage


def _input(dtype: Any, dims: tuple[int, ...] | None) -> Any:
    """Zeros and ones of the declared shape; None where it is too large to try."""
    shape = [3 if d < 0 else d for d in dims or ()]
    if dtype.is_string if hasattr(dtype, "is_string") else False:
        return None
    if any(d > 1000 for d in shape) or int(np.prod(shape, dtype=np.float64)) > 1_000_000:
        return None
    return (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype.numpy)


def try_seed(seed: int, folder: Path) -> tuple[str, str | None]:
    """(outcome, the finding if there is one)."""
    name, content = mutant(seed)
    path, out = folder / "model.onnx", folder / "out.onnx"
    path.write_bytes(content)
    out.unlink(missing_ok=True)
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        outcome = try_file(path, out, deep=seed % DEEP == 0)
    except BaseException as error:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # it must not strike again in here
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "site-packages" not in f.filename and "/fuzz/" not in f.filename]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        return "finding", f"seed {seed} ({name}): {type(error).__name__}: {str(error)[:150]} at {where}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    left = {p.name for p in folder.iterdir()} - {"model.onnx", "out.onnx", "out_data", "seed"}
    if left or (out.exists() and not outcome.startswith(("exported", "run"))):
        return "finding", f"seed {seed} ({name}): files were left: {sorted(left) or ['out.onnx']} ({outcome})"
    return outcome, None


def _work(first: int, last: int, step: int, results: Any) -> None:
    warnings.simplefilter("ignore")
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="sardonyx-fuzz-") as text:
        folder = Path(text)
        for seed in range(first, last, step):
            results.put(("at", os.getpid(), seed))
            outcome, finding = try_seed(seed, folder)
            outcomes[outcome] += 1
            if finding:
                results.put(("finding", os.getpid(), finding))
    results.put(("done", os.getpid(), outcomes))


def fuzz(first: int, count: int, jobs: int) -> tuple[Counter[str], list[str]]:
    """Run seeds in child processes; returns how often each outcome came, and the findings."""
    corpus()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    at: dict[int, int] = {}
    running: dict[int, tuple[Any, int]] = {}

    def start(begin: int, lane: int) -> None:
        process = context.Process(target=_work, args=(begin, first + count, jobs, results))
        process.start()
        running[process.pid or 0] = (process, lane)

    for lane in range(min(jobs, count)):
        start(first + lane, lane)
    try:
        _watch(first, count, jobs, results, running, at, outcomes, findings, start)
    except KeyboardInterrupt:
        for process, _ in running.values():
            process.kill()
        print(f"stopped: all seeds from {first} to below {min((at.get(p, first) for p in running), default=first)}")
    return outcomes, findings


def _watch(
    first: int,
    count: int,
    jobs: int,
    results: Any,
    running: dict[int, tuple[Any, int]],
    at: dict[int, int],
    outcomes: Counter[str],
    findings: list[str],
    start: Callable[[int, int], None],
) -> None:
    """Take what the processes say until all are done; one that died or hangs is a finding, and another goes on."""
    silent = 0
    while running:
        try:
            kind, pid, value = results.get(timeout=SECONDS / 2)
            silent = 0
        except queue.Empty:  # nobody has said anything for long: somebody hangs in native code, or died
            silent += 1
            stuck = silent >= PATIENCE
            for pid, (process, lane) in list(running.items()):
                if process.is_alive() and not stuck:
                    continue
                silent = 0
                seed = at.get(pid, first + lane)
                what = f"died with exit code {process.exitcode}" if not process.is_alive() else "hangs"
                process.kill()
                process.join()
                findings.append(f"seed {seed}: the process {what}")
                print(findings[-1], flush=True)
                outcomes["finding"] += 1
                del running[pid]
                if seed + jobs < first + count:
                    start(seed + jobs, lane)
            continue
        if kind == "at":
            at[pid] = value
        elif kind == "finding":
            findings.append(value)
            print(value, flush=True)
        else:
            outcomes.update(value)
            running.pop(pid)[0].join()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was done is told then, too
    outcomes, findings = fuzz(options.seed, options.count, options.jobs)
    for outcome, number in outcomes.most_common():
        print(f"{number:8} {outcome}")
    print(f"{options.count} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
