"""What all tests share: the lit collector, and an environment that leaves no traces outside the test run."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import lit_collector
import pytest

_LIT_FOLDER = Path(__file__).parent / "lit"
_OURS = pytest.StashKey[str]()
_FORMS = pytest.StashKey[contextlib.ExitStack]()

# Examples are the same in every run: a failure that CI sees is one that everybody sees. Machines are slow and shared,
# so that no time limit says anything about the code.
hypothesis.settings.register_profile("sardonyx", deadline=None, derandomize=True, print_blob=True, database=None)
hypothesis.settings.load_profile("sardonyx")


def pytest_configure(config: pytest.Config) -> None:
    # Compiled objects go to a cache of the run's own; workers and child processes inherit it.
    if "SARDONYX_CACHE_DIR" not in os.environ:
        config.stash[_OURS] = os.environ["SARDONYX_CACHE_DIR"] = tempfile.mkdtemp(prefix="sardonyx-cache-")
    # Whatever a test does, what passes change is evaluated before and after (docs/checked-passes.md): one set of
    # inputs, and not for what is large. Child processes inherit it. SARDONYX_CHECK_PASSES=0 switches it off.
    os.environ.setdefault("SARDONYX_CHECK_PASSES", "1:20000")
    if forms := os.environ.get("SARDONYX_FORMS"):  # native code in the forms of another machine: support/other_forms.py
        from other_forms import other_forms

        config.stash[_FORMS] = stack = contextlib.ExitStack()
        stack.enter_context(other_forms(forms))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FORMS in config.stash:
        config.stash[_FORMS].close()
    if folder := config.stash.get(_OURS, None):
        del os.environ["SARDONYX_CACHE_DIR"]
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return lit_collector.collect(file_path, parent, _LIT_FOLDER)


@contextlib.contextmanager
def _registries_kept() -> Iterator[None]:
    """What is registered meanwhile is gone afterwards: passes, files that were loaded, targets."""
    from sardonyx.passes import registry
    from sardonyx.tools import opt_targets

    kept = [registry._registered, registry._loaded_files, opt_targets.TARGETS]
    before = [dict(entries) for entries in kept]
    yield
    for entries, old in zip(kept, before):
        entries.clear()
        entries.update(old)


@pytest.fixture(scope="module", autouse=True)
def _registries_as_they_were() -> Iterator[None]:
    """Files of tests do not see each other's passes and targets."""
    with _registries_kept():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Nor do lit files, which have no fixtures."""
    if isinstance(item, pytest.Function):
        return (yield)
    with _registries_kept():
        return (yield)
