"""A pytest plug-in: `.mlir` files with RUN lines are tests, and there is a fixture of the three executions.

    # conftest.py
    pytest_plugins = ["sardonyx.testing.plugin"]

Every `.mlir` file below the folder of the tests that has a RUN line and does not lie in a folder named `Inputs` is one
test. `three_executions(graph, inputs)` is the function of `sardonyx.testing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sardonyx.testing.lit import LitFailure, run_file


class LitFile(pytest.File):
    """A lit file."""

    def collect(self) -> Iterable[LitItem]:
        yield LitItem.from_parent(self, name="RUN")


class LitItem(pytest.Item):
    """The RUN lines of a file."""

    def runtest(self) -> None:
        run_file(self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> Any:
        if isinstance(excinfo.value, LitFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, os.path.relpath(self.path)


def collect(file_path: Path, parent: pytest.Collector, folder: Path) -> LitFile | None:
    """Takes the `.mlir` files below `folder`, but for those in a folder named `Inputs`."""
    if file_path.suffix != ".mlir" or not file_path.is_relative_to(folder) or "Inputs" in file_path.parts:
        return None
    return LitFile.from_parent(parent, path=file_path)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitFile | None:
    """The hook: files without RUN lines are no tests."""
    if file_path.suffix != ".mlir" or "RUN:" not in file_path.read_text(encoding="utf-8"):
        return None
    return collect(file_path, parent, parent.config.rootpath)


@pytest.fixture
def three_executions() -> Any:
    """The function `sardonyx.testing.three_executions`."""
    from sardonyx.testing.executions import three_executions

    return three_executions
