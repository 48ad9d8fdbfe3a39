"""Whole models, static and dynamic: those that cover most patterns; `benchmarks/torch_export.py` has all of them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import onnx  # noqa: E402
from torch_models import CASES  # noqa: E402
from torch_three import check  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

CHOSEN = ["detector_head", "resnet", "bert", "llama_with_cache"]


def test_there_are_enough():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", CHOSEN)
def test_dynamic(name):
    case = CASES[name]()
    program = check(case.module, case.args, case.kwargs, case.others, dynamic_shapes=case.dynamic)
    onnx.checker.check_model(program.model_proto, full_check=True)


@pytest.mark.parametrize("name", ["losses"])
def test_static(name):
    case = CASES[name]()
    check(case.module, case.args, case.kwargs)
