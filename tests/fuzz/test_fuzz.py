"""A short slice of the fuzzers; `files.py` and `graphs.py` beside this file run as many as one likes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import files
import graphs
import mutate


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
