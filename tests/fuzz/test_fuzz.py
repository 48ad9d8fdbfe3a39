"""A short slice of the fuzzers; `files.py` and `graphs.py` beside this file run as many as one likes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import files
import graphs
import mutate

from sardonyx.dialects.module import set_outputs
from sardonyx.frontend.graph import ModelGraph


@pytest.mark.slow
def test_mutated_files_are_refused_or_fine():
    outcomes, findings = files.fuzz(first=0, count=250, jobs=1)
    assert not findings
    assert sum(outcomes.values()) == 250
    assert any(outcome.startswith("opened, then") for outcome in outcomes), "no file was refused: are they mutated?"


@pytest.mark.slow
def test_random_graphs_give_the_same_numbers_every_way():
    graphs.fuzz(count=40, native=5)


def test_a_wrong_number_is_found(monkeypatch):
    """The graph fuzzer fails where a pass changes a value."""
    monkeypatch.setattr(graphs, "RTOL", 0.0)
    monkeypatch.setattr(graphs, "feeds", _other_feeds(graphs.feeds))
    with pytest.raises(AssertionError, match="passes, n="):
        graphs.fuzz(count=20, native=1000)


def _other_feeds(real):
    """Inputs that differ from call to call, as a wrong rewrite would make the results differ."""
    calls = 0

    def feeds(n):
        nonlocal calls
        calls += 1
        return {name: array + calls for name, array in real(n).items()}

    return feeds


def test_a_seed_is_a_file():
    assert mutate.mutant(17) == mutate.mutant(17)
    assert len({mutate.mutant(seed)[1] for seed in range(20)}) > 15


def test_what_nobody_reads_is_missed_by_nobody() -> None:
    """A sum that no output reads, of extents that don't fit at n = 0: the reference refuses it, and native code, from
    which it is gone, has no reason to."""
    made = graphs.Drawn(None)
    x = made.values[0]
    made.op("add", x, made.op("transpose", x, perm=(1, 0, 2)))
    set_outputs(made.module, [made.op("neg", x)], ["out0"])
    graphs.check(ModelGraph(made.module))
