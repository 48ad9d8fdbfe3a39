"""Modules from text, and what the passes' tests share: running pipelines, evaluating before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.passes.context import make_context
from sardonyx.passes.pipeline import PassManager, PipelineReport

Array = np.ndarray[Any, Any]


def parse_module(text: str) -> ModuleOp:
    """The verified module of a text."""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


def run_passes(module: ModuleOp | str, pipeline: str, **options: Any) -> tuple[ModuleOp, PipelineReport]:
    """Run a pipeline on a module or a text; the module is verified after each rewrite."""
    if isinstance(module, str):
        module = parse_module(module)
    report = PassManager(pipeline, verify_each=True, verify_rewrites=True, keep_declines=True, **options).run(module)
    module.verify()
    return module, report


def evaluate(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    return evaluate_function(main_function(module), inputs)
