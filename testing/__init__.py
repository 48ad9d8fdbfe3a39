"""A test kit for passes, also those of others: values, promises, idempotence, confluence, lit files.

    from sardonyx.testing import check_pass

    def test_values():
        check_pass("my-pass", TEXT, changes=True)

`docs/tutorial-passes.md` uses all of it. The pytest plug-in is `sardonyx.testing.plugin`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sardonyx.testing.executions import Executions as Executions, three_executions as three_executions
    from sardonyx.testing.inputs import inputs_of as inputs_of, random_module as random_module
    from sardonyx.testing.lit import (
        LitFailure as LitFailure,
        check_lines as check_lines,
        run_file as run_file,
        update as update,
    )
    from sardonyx.testing.passes import (
        Checked as Checked,
        check_confluence as check_confluence,
        check_pass as check_pass,
    )

# Lazy, since the plug-in for lit files needs little of it.
_NAMES = {
    "Executions": "executions",
    "three_executions": "executions",
    "inputs_of": "inputs",
    "random_module": "inputs",
    "LitFailure": "lit",
    "check_lines": "lit",
    "run_file": "lit",
    "update": "lit",
    "Checked": "passes",
    "check_confluence": "passes",
    "check_pass": "passes",
}

__all__ = [
    "Checked",
    "Executions",
    "LitFailure",
    "check_confluence",
    "check_lines",
    "check_pass",
    "inputs_of",
    "random_module",
    "run_file",
    "three_executions",
    "update",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sardonyx.testing' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sardonyx.testing.{_NAMES[name]}"), name)
