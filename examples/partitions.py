"""A compiled model over the partitions of a table, in the processes of a Dask cluster.

Run it as `python examples/partitions.py`. The engine is Dask's. A finalized graph pickles; each process unpickles it
once, and takes its code from the object cache instead of compiling it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sardonyx as sx

FEATURES, CLASSES = 16, 4


def make_model() -> sx.ModelGraph:
    """A small classifier, compiled once for all batch sizes."""
    random = np.random.default_rng(0)
    hidden = random.standard_normal((FEATURES, 32), np.float32)
    head = random.standard_normal((32, CLASSES), np.float32)
    graph = sx.trace(lambda x: sx.softmax(sx.relu(x @ hidden) @ head, axis=-1), f"x: f32[batch,{FEATURES}]").graph
    graph.finalize()
    return graph


def score(rows: np.ndarray, model: sx.ModelGraph) -> np.ndarray:
    """The classes' probabilities of one partition."""
    (found,) = model.run([np.ascontiguousarray(rows)])
    return found.numpy()


def main() -> None:
    """Score a table of four partitions with two processes, and compare with one process."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    table = np.random.default_rng(1).standard_normal((1000, FEATURES), np.float32)
    model = make_model()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        shared = client.scatter(model, broadcast=True)
        chunks: Any = (250, FEATURES)
        parts = da.from_array(table, chunks=chunks).to_delayed().ravel()
        scores: Any = client.gather([client.submit(score, client.compute(part), shared) for part in parts])
        found = np.concatenate(scores)
    np.testing.assert_array_equal(found, score(table, model))
    print(f"{len(parts)} partitions, {len(found)} rows, the same as in one process")


if __name__ == "__main__":
    main()
