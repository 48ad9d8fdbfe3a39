"""The thread pool: results do not depend on it, runs share it, and it survives a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.backends.llvm.runtime.pool import thread_count
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.locations import name_location
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.errors import ExecutionError, InvalidArgumentError


def graph() -> CompiledGraph:
    """exp(x) transposed, and x gathered by i."""
    types = [("x", tensor_type(float32, ["n", "m"]), None), ("i", tensor_type(int64, ["k"]), None)]
    module, block = create_module("g", types)
    x, i = block.args
    exp = BY_NAME["sx.exp"].make(x)
    turned = BY_NAME["sx.transpose"].make(exp.results[0], perm=(1, 0))
    picked = BY_NAME["sx.gather"].make(x, i, location=name_location("pick"))
    block.add_ops([exp, turned, picked])
    set_outputs(module, [turned.results[0], picked.results[0]], ["y", "z"])
    return compile_native(module)


def feed(n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal((n, m)).astype(np.float32), rng.integers(-n, n, 2 * n)]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    compiled = graph()
    compiled.use_threads(1)
    shapes = [(1, 1), (1, 100_000), (100_000, 1), (313, 517), (1000, 1000)]
    alone = [compiled.run(feed(*s)) for s in shapes]
    compiled.use_threads(threads)
    for shape, want in zip(shapes, alone, strict=True):
        for got, expected in zip(compiled.run(feed(*shape)), want, strict=True):
            assert got.tobytes() == expected.tobytes()


def test_a_failure_in_a_chunk_names_its_node_and_the_pool_goes_on() -> None:
    compiled = graph()
    compiled.use_threads(4)
    x, i = feed(1000, 300)
    good = compiled.run([x, i])
    for place in (0, 777, len(i) - 1):
        bad = i.copy()
        bad[place] = 1000
        with pytest.raises(ExecutionError, match="pick.*1000"):
            compiled.run([x, bad])
    assert all(np.array_equal(a, b) for a, b in zip(compiled.run([x, i]), good, strict=True))


def test_many_runs_at_once_share_one_pool() -> None:
    compiled = graph()
    compiled.use_threads(4)
    feeds = [feed(100 + 50 * k, 200) for k in range(6)]
    want = [compiled.run(f) for f in feeds]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(40):
            if any(not np.array_equal(a, b) for a, b in zip(compiled.run(feeds[k]), want[k], strict=True)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import os, sys
sys.path.insert(0, {tests!r})
import numpy as np
from test_pool import feed, graph
compiled = graph()
compiled.use_threads(3)
x = feed(800, 500)
want = compiled.run(x)
pid = os.fork()
same = all(np.array_equal(a, b) for a, b in zip(compiled.run(x), want))
if pid == 0:
    os._exit(0 if same else 3)
_, status = os.waitpid(pid, 0)
print("parent", same, "child", os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_has_a_pool_of_its_own() -> None:
    code = FORK.format(tests=os.path.dirname(__file__))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout.strip() == "parent True child 0"


def test_the_number_of_threads_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    monkeypatch.delenv("SARDONYX_NUM_THREADS", raising=False)
    assert thread_count() == 5
    monkeypatch.setenv("SARDONYX_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.setenv("SARDONYX_NUM_THREADS", "many")
    with pytest.raises(InvalidArgumentError, match="SARDONYX_NUM_THREADS"):
        thread_count()


def test_no_threads_is_refused() -> None:
    compiled: Any = graph()
    with pytest.raises(InvalidArgumentError):
        compiled.use_threads(0)


FORK_DURING_RUNS = """
import os, sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from test_pool import feed, graph
compiled = graph()
compiled.use_threads(3)
x = feed(600, 400)
want = compiled.run(x)
stop = threading.Event()

def work():
    while not stop.is_set():
        compiled.run(x)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        same = all(np.array_equal(a, b) for _ in range(3) for a, b in zip(compiled.run(x), want))
        os._exit(0 if same else 3)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(codes, all(np.array_equal(a, b) for a, b in zip(compiled.run(x), want)))
"""


def test_forks_while_other_threads_run() -> None:
    code = FORK_DURING_RUNS.format(tests=os.path.dirname(__file__))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout.strip() == f"{[0] * 8} True"


def test_many_more_threads_than_cores() -> None:
    compiled = graph()
    compiled.use_threads(1)
    x = feed(700, 300)
    want = compiled.run(x)
    compiled.use_threads(12)
    for _ in range(50):
        assert all(np.array_equal(a, b) for a, b in zip(compiled.run(x), want, strict=True))
