"""`recognize-gelu`: by value, natively and in onnxruntime, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.passes.pipeline import PassManager
from sardonyx.testing import check_pass, three_executions

FORMS: dict[str, Callable[[Any], Any]] = {
    "erf": lambda x: x * 0.5 * (1 + sx.erf(x / 2**0.5)),
    "erf-inside": lambda x: x * (0.5 * (sx.erf(x * 0.5**0.5) + 1)),
    "tanh": lambda x: 0.5 * x * (1 + sx.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x)))),
    "tanh-cube": lambda x: 0.5 * x * (1 + sx.tanh(0.7978845608028654 * (x + 0.044715 * x**3))),
    "tanh-square": lambda x: 0.5 * x * (1 + sx.tanh(0.7978845608028654 * (x + x * x**2 * 0.044715))),
    "tanh-outside": lambda x: 0.5 * x * (1 + sx.tanh(x * 0.7978845608028654 * (1 + 0.044715 * x * x))),
    "tanh-outside-power": lambda x: x * 0.5 * (sx.tanh(0.7978845608028654 * (x * (0.044715 * x**2 + 1))) + 1),
    "tanh-factored": lambda x: 0.5 * (x * (sx.tanh((x + x * x * 0.044715 * x) * 0.7978845608028654) + 1)),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "half-missing": lambda x: x * (1 + sx.erf(x / 2**0.5)),
    "another-number": lambda x: x * 0.5 * (1 + sx.erf(x / 1.5)),
    "square": lambda x: 0.5 * x * (1 + sx.tanh(0.79788456 * (x + 0.044715 * (x * x)))),
    "fourth-power": lambda x: 0.5 * x * (1 + sx.tanh(0.7978845608028654 * (x + 0.044715 * x**4))),
    "cube-outside": lambda x: 0.5 * x * (1 + sx.tanh(x * 0.7978845608028654 * (1 + 0.044715 * x**3))),
    "no-x-outside": lambda x: 0.5 * x * (1 + sx.tanh(2.0 * 0.7978845608028654 * (1 + 0.044715 * x**2))),
    "few-digits": lambda x: 0.5 * x * (1 + sx.tanh(0.7979 * (x + 0.044715 * (x * x * x)))),
    "two": lambda x: x * 0.5 * (2 + sx.erf(x / 2**0.5)),
    "difference": lambda x: x * 0.5 * (1 - sx.erf(x / 2**0.5)),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("signature", ["x: f32[n, 3]", "x: f64[7]"])
def test_forms(name: str, signature: str):
    module = sx.trace(FORMS[name], signature).graph.module
    found = check_pass("fold-constants,recognize-gelu,remove-dead-nodes", module, changes=True)
    assert [op.name for op in found.module.walk() if op.name.startswith("sx.")] == ["sx.gelu"]
    assert ("tanh" in found.text) == name.startswith("tanh")


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_one(name: str):
    check_pass("recognize-gelu", sx.trace(OTHERS[name], "x: f32[n, 3]").graph.module, changes=False)


def test_three_executions_of_what_it_makes():
    module = sx.trace(FORMS["erf"], "x: f32[n, 3]").graph.module
    after = check_pass("recognize-gelu,remove-dead-nodes", module).module
    three_executions(after, [np.linspace(-6, 6, 30, dtype=np.float32).reshape(10, 3)])


@pytest.mark.parametrize("name", ["few-digits", "another-number", "fourth-power"])
def test_why_it_is_none(name: str):
    manager = PassManager("fold-constants,recognize-gelu", keep_declines=True)
    report = manager.run(sx.trace(OTHERS[name], "x: f32[n, 3]").graph.module)
    assert [d.reason for d in report.passes[-1].declines] == [
        "what the erf or tanh is of is another function of x, or has other constants"
    ]
