"""How a test is executed: by native code with nothing in Python computing, by the reference, or by others once its
model was imported and exported again (`round_trip`).

`run_case` executes one test in one form and says what is wrong with the outputs. `EXECUTIONS` has the executions by
name; `denied.toml` lists what each of them does not pass, with the reason.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import round_trip
from guard import EDGES, run_guarded
from no_python import no_python
from onnx_cases import Case, difference, formed
from other_forms import FORMS, other_forms

from sardonyx import OnnxModel
from sardonyx.backends.llvm.open_ranks import open_ranks
from sardonyx.backends.llvm.ranks import RankedGraph
from sardonyx.dialects.module import main_function, output_values
from sardonyx.dialects.types import is_tensor

Execute = Callable[[onnx.ModelProto, list[Any]], list[Any]]


def native(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    """By native code. Where ranks are open, what the first run compiles is ready before the run that counts."""
    graph = OnnxModel.from_proto(model).compile()
    graph.finalize()
    if isinstance(graph.compiled, RankedGraph):
        graph.run(inputs)
    with no_python():
        found = graph.run(inputs)
    return [_plain(value) for value in found]


def with_strings(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    """By native code but for the ops on strings and maps, which run by the reference.

    Raises:
        AssertionError: Another op fell back.
    """
    graph = OnnxModel.from_proto(model).compile()
    graph.finalize(fallback=True)
    others = sorted({fallback.op for fallback in graph.fallbacks} - set(table()["fallback"]["ops"]))
    assert not others, f"ops fell back to the reference that are not listed: {', '.join(others)}"
    return [_plain(value) for value in graph.run(inputs)]


def reference(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    """By the reference evaluator."""
    return [_plain(value) for value in OnnxModel.from_proto(model).compile().evaluate(inputs)]


def guarded(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    """By native code with every buffer at the edge of memory that nobody may touch (`guard.py`), at either end; where
    lists are among inputs and outputs, or ranks are open, as `native`.

    Raises:
        GuardError: A kernel touched what is not its own.
    """
    graph = OnnxModel.from_proto(model).compile()
    lists = any(
        not is_tensor(v.type) for v in (*main_function(graph.module).body.block.args, *output_values(graph.module))
    )
    if lists or open_ranks(graph.module):
        return native(model, inputs)
    feeds = [np.asarray(value, order="C") for value in inputs]
    found = [run_guarded(graph.module, feeds, edge) for edge in EDGES]
    for number, (one, other) in enumerate(zip(*found, strict=True)):
        problem = difference(one, other, 0.0, 0.0, f"outputs[{number}] at the other edge")
        assert problem is None, problem
    return found[0]


def _in_forms(name: str, model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    """As `native`, in the forms that kernels have on another machine (`other_forms.py`)."""
    with other_forms(name):
        return native(model, inputs)


NATIVE = {"native": native, **{f"native-{name}": functools.partial(_in_forms, name) for name in FORMS}}
EXECUTIONS: dict[str, Execute] = {
    **NATIVE, "with-strings": with_strings, "guarded": guarded, "reference": reference,
}  # fmt: skip


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return np.asarray(value)


def run_case(case: Case, execution: str, form: str) -> str | None:
    """What is wrong with the outputs, or None. Errors are raised as they come."""
    if execution in round_trip.EXECUTIONS:
        return round_trip.run_case(case, round_trip.EXECUTIONS[execution], form)
    for inputs, expected in case.data:
        model, left = formed(case, form, inputs)
        problem = difference(list(expected), EXECUTIONS[execution](model, left), case.rtol, case.atol)
        if problem is not None:
            return problem
    return None


@functools.cache
def table() -> dict[str, Any]:
    """The contents of `denied.toml`."""
    return tomllib.loads(Path(__file__).with_name("denied.toml").read_text("utf-8"))


def denied(execution: str, form: str) -> dict[str, str]:
    """The tests that an execution does not pass in a form, with the reasons."""
    execution = "native" if execution in NATIVE else execution
    out: dict[str, str] = {}
    for group in table()["group"]:
        if execution in group["executions"] and form in group.get("forms", [form]):
            out.update(dict.fromkeys(group["tests"], group["reason"]))
    return out


def names(groups: Sequence[dict[str, Any]]) -> list[str]:
    """All names that the groups list."""
    return [name for group in groups for name in group["tests"]]
