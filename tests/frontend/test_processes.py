"""Finalized graphs in other processes: pickling, the object cache, and a Dask cluster."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx

ROOT = Path(__file__).parents[2]
W = np.random.default_rng(0).standard_normal((8, 8), np.float32)


def test_a_finalized_graph_is_finalized_after_pickling_and_one_that_is_not_is_not() -> None:
    graph = sx.trace(lambda x: sx.tanh(x @ W), "x: f32[n,8]").graph
    assert not pickle.loads(pickle.dumps(graph)).is_finalized
    graph.finalize()
    copy = pickle.loads(pickle.dumps(graph))
    x = np.ones((3, 8), np.float32)
    assert copy.is_finalized
    np.testing.assert_array_equal(np.asarray(copy.run([x])[0]), np.asarray(graph.run([x])[0]))


def test_a_worker_takes_the_code_from_the_object_cache(tmp_path: Path) -> None:
    cache = {**os.environ, "SARDONYX_CACHE_DIR": str(tmp_path / "cache")}
    make = (
        "import pickle, sys, numpy as np, sardonyx as sx\n"
        "w = np.ones((8, 8), np.float32)\n"
        "graph = sx.trace(lambda x: sx.tanh(x @ w), 'x: f32[n,8]').graph\n"
        "graph.finalize()\n"
        "pickle.dump(graph, open(sys.argv[1], 'wb'))\n"
    )
    use = (
        "import pickle, sys, numpy as np\n"
        "import sardonyx.backends.llvm.compile as compile_\n"
        "def refuse(*a, **k): raise SystemExit('it compiled')\n"
        "compile_._build = refuse\n"
        "graph = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(graph.is_finalized, float(np.asarray(graph.run([np.ones((2, 8), np.float32)])[0]).sum()))\n"
    )
    file = tmp_path / "graph.pickle"
    for code in (make, use):
        ran = subprocess.run([sys.executable, "-c", code, file], env=cache, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr + ran.stdout
    finalized, total = ran.stdout.split()
    assert finalized == "True" and float(total) == pytest.approx(16.0)


@pytest.mark.slow
def test_the_example_maps_a_model_over_partitions_with_dask() -> None:
    pytest.importorskip("dask.distributed")
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "partitions.py"], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "4 partitions, 1000 rows, the same as in one process\n"
