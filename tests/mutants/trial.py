"""One trial: a mutant's file is loaded in place of the real one in a forked child, and its passes run over the corpus.

The corpus is every function of the passes' lit files, and random graphs. The checker sees each run as it always does
(`PassManager(check=…)`). An oracle that shares no code with it, neither inputs nor comparison, judges the same runs:
what changes a value for the oracle and not for the checker is a miss.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import single_changes
from ir_text import parse_module, random_arguments
from random_graph import RandomGraph
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.errors import SardonyxError

ROOT = Path(__file__).parents[2]
LIT = ROOT / "tests" / "lit" / "passes"
SECONDS = 25
MAX_FAILURES = 30
"""In how many cases a mutant may raise before the trial ends."""
CHECKED_INPUTS = 3
"""What the checker runs with here."""
ORACLE_BINDINGS: tuple[dict[str, int], ...] = (
    {},
    {"n": 1, "t": 2},
    {"n": 4, "t": 4},
    {"n": 0, "t": 1},
    {"n": 2, "t": 5},
)

PASSES_OF = {
    "simplify": ("simplify",),
    "simplify_arith": ("simplify",),
    "simplify_moves": ("simplify",),
    "simplify_regions": ("simplify",),
    "simplify_sequences": ("simplify",),
    "simplify_shapes": ("simplify",),
    "fold_constants": ("fold-constants",),
    "cse": ("cse",),
    "compose_transposes": ("compose-transposes",),
    "layout": ("compose-transposes",),
    "layout_apply": ("compose-transposes",),
    "layout_parts": ("compose-transposes",),
    "layout_rule": ("compose-transposes",),
    "layout_rules": ("compose-transposes",),
    "layout_quantized": ("compose-transposes",),
    "permutations": ("compose-transposes", "simplify"),
    "channels_last": ("channels-last",),
    "fold_affine": ("fold-affine",),
    "decompose_batch_norm": ("decompose-batch-norm",),
    "join_slices": ("join-slices",),
    "recognize_gelu": ("recognize-gelu",),
    "recognize_norms": ("recognize-norms",),
    "recognize_groups": ("recognize-norms",),
    "recognize_rotary": ("recognize-rotary",),
    "recognize_parts": ("recognize-norms", "recognize-attention"),
    "recognize_attention": ("recognize-attention",),
    "finite": ("recognize-attention",),
    "remove_dead_nodes": ("remove-dead-nodes",),
    "matching": ("simplify", "fold-affine"),
    "constants": ("fold-constants", "cse", "fold-constants,cse", "compose-transposes"),
    "effects": ("cse", "fold-constants", "remove-dead-nodes"),
}
"""The files that are mutated, and the passes, or pipelines, that show it."""
NEAR = ("channels", "constants", "control-flow", "more", "recognize")
"""Files of cases that are no pass's lit file."""


@dataclass
class Result:
    """What came of one mutant.

    `checked` and `oracle` are the cases in which the checker, or the oracle, saw other values; `failed` those in which
    the pass raised or left invalid IR; `differs` those in which the pass made other IR than the real one.
    """

    checked: list[str] = field(default_factory=list[str])
    oracle: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    differs: list[str] = field(default_factory=list[str])
    timeout: bool = False
    message: str = ""

    @property
    def verdict(self) -> str:
        if self.checked:
            return "caught"
        if self.oracle:
            return "missed"
        if self.failed or self.timeout:
            return "failed"
        return "harmless" if self.differs else "same"


@dataclass
class Case:
    name: str
    module: ModuleOp
    runs: list[tuple[list[Any], list[Any]]]


def corpus(files: Sequence[str] | None = None) -> list[Case]:
    """The functions of the lit files, and random graphs of transposes; with `files`, those of these lit files alone."""
    cases: list[Case] = []
    for path in [*sorted(LIT.glob("*.mlir")), *sorted((Path(__file__).parent / "cases").glob("*.mlir"))]:
        if files is not None and path.stem not in files:
            continue
        text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("//"))
        for name, rest in re.findall(r"^func\.func @(\w+)(.*?)^}", text, re.MULTILINE | re.DOTALL):
            whole = f"func.func @{name}{rest}}}"
            with contextlib.suppress(Exception):  # what only parses among its neighbours
                cases.append(_case(f"{path.stem}:{name}", parse_module(whole)))
            if path.stem in SQUARED and squared(whole) != whole:
                with contextlib.suppress(Exception):  # constants hold extents
                    cases.append(_case(f"{path.stem}:{name}, squared", parse_module(squared(whole))))
    if files is not None:
        return cases
    cases += [_case(f"random:{seed}", RandomGraph(seed, 10).module) for seed in range(10)]
    return cases


SQUARED = ("compose-transposes", "channels-last")
"""Files whose functions are taken with equal extents, too: a mistaken axis then leaves the types as they are."""


def squared(text: str) -> str:
    """The function with 3 for each extent above 1, but for its constants."""
    lines = text.splitlines()
    return "\n".join(
        line if "sx.constant" in line else re.sub(r"(?<=[<x])(?:[2-9]|1[0-9])(?=x)", "3", line) for line in lines
    )


def _case(name: str, module: ModuleOp) -> Case:
    runs: list[tuple[list[Any], list[Any]]] = []
    function = function_of(module)
    for seed, bindings in enumerate(ORACLE_BINDINGS):
        try:
            arguments: list[Any] = [plain(a, seed) for a in random_arguments(function, bindings, seed)]
            runs.append((arguments, evaluate_function(function, arguments)))
        except (SardonyxError, ValueError):
            continue
    return Case(name, module, runs)


def plain(array: Any, seed: int) -> Any:
    """Without special values in every second run: they hide others."""
    if seed % 2 or array.dtype.kind != "f":
        return array
    return np.where(np.isfinite(array), array, array.dtype.type(0.5))


def function_of(module: ModuleOp) -> func.FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))


# ---- the child


class _Loader(importlib.machinery.SourceFileLoader):
    tree: Any

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the mutated file under the real one's name."""

    def __init__(self, fullname: str, path: Path, tree: Any) -> None:
        self.fullname, self.path, self.tree = fullname, path, tree

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        if fullname != self.fullname:
            return None
        loader = _Loader(fullname, str(self.path))
        loader.tree = self.tree
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


def loaded_too_early() -> list[str]:
    """Modules that the parent has imported and that children want to import themselves."""
    return [f"sardonyx.passes.{name}" for name in PASSES_OF if f"sardonyx.passes.{name}" in sys.modules]


def try_mutant(
    stem: str, number: int | None, cases: Sequence[Case], real: dict[str, str] | None
) -> tuple[Result, dict[str, str]]:
    """Run one mutant (None: the real file) in a forked child; returns the result and the text of what was made.

    The first case that the checker catches ends the trial, and so do many that fail.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of CPU: the machine may be busy
            found = _in_child(stem, number, cases, real)
            with os.fdopen(writer, "w") as out:
                json.dump(found, out)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as source:
        content = source.read()
    os.waitpid(child, 0)
    if not content:
        return Result(timeout=True), {}
    found = json.loads(content)
    return Result(**found["result"]), found["made"]


def _in_child(stem: str, number: int | None, cases: Sequence[Case], real: dict[str, str] | None) -> dict[str, Any]:
    result, made = Result(), dict[str, str]()
    if number is not None:
        path = ROOT / "passes" / f"{stem}.py"
        tree = single_changes.mutated(path, f"{stem}.py", number)
        sys.meta_path.insert(0, _Finder(f"sardonyx.passes.{stem}", path, tree))
    sys.stderr = open(os.devnull, "w")
    own = tuple(f"{name}:" for name in PASSES_OF[stem])
    for case in sorted(cases, key=lambda c: not c.name.startswith(own)):
        for name in PASSES_OF[stem]:
            key = f"{name} {case.name}"
            try:
                made[key] = _one(name, key, case, real, result)
            except Exception as error:  # noqa: BLE001 -- a mutant may raise anything
                result.failed.append(key)
                result.message = result.message or f"{type(error).__name__}: {error}"[:200]
            if result.checked or len(result.failed) > MAX_FAILURES:
                return {"result": vars(result), "made": {}}
    return {"result": vars(result), "made": made if real is None else {}}


def _one(name: str, key: str, case: Case, real: dict[str, str] | None, result: Result) -> str:
    """Run one pass on one case; what it made is judged by the checker and, where it is not what it should be, by the
    oracle."""
    from sardonyx.passes.checked import CheckOptions, MismatchError
    from sardonyx.passes.pipeline import PassManager

    module = case.module.clone()
    try:
        PassManager(name, check=CheckOptions(CHECKED_INPUTS, reduce=False)).run(module)
    except MismatchError as error:
        result.checked.append(key)
        result.message = result.message or error.message[:200]
    text = str(module)
    if real is None or text == real.get(key):
        return text
    result.differs.append(key)
    module.verify()
    changed = [run for run in case.runs if changes(run[1], function_of(module), run[0])]
    if changed and key in real:
        # Where roundings decide, the real pass does so, too, within its promise: a row of scores that all are -1e9.
        intended = function_of(parse_module(real[key]))
        changed = [run for run in changed if not changes(run[1], intended, run[0])]
    if changed:
        result.oracle.append(key)
    return text


def changes(want: Sequence[Any], function: func.FuncOp, arguments: Sequence[Any]) -> bool:
    """The oracle: whether outputs differ by more than roundings do, or are refused."""
    try:
        got = evaluate_function(function, list(arguments))
    except SardonyxError:
        return True
    return not all(alike(a, b) for a, b in zip(want, got, strict=True))


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    digits = 4 * float(np.finfo(a.dtype).eps)
    rtol, atol = max(1e-4, digits), max(1e-5, digits / 10)
    return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True))
