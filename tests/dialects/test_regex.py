"""Regular expressions: RE2's, in bounded time, and refused clearly."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx_models import info, model, node, run_ort

import sardonyx as sx

TEXTS = ["", "a", "ab", "aab", "A", "a\nb", "x_1", "42", "٣", "É", "a.b", "axb", "\u212a", "aaaa"]


def matching(pattern: str) -> ModelProto:
    x, y = info("x", [None], TensorProto.STRING), info("y", [None], TensorProto.BOOL)
    return model([node("RegexFullMatch", "x", "y", pattern=pattern)], [x], [y])


@pytest.mark.parametrize(
    "pattern", ["", "a*", "(?:a|b)+", r"\d+", r"\w+", "(?i)ab", "(?i)k", r"\p{Lu}", "(?s).*", ".*", "a.b", r"a\.b"]
)
def test_what_onnxruntime_says(pattern: str) -> None:
    texts = np.array(TEXTS, object)
    (got,) = sx.OnnxModel.from_proto(matching(pattern)).compile().evaluate([texts])
    np.testing.assert_array_equal(np.asarray(got), run_ort(matching(pattern), {"x": texts})[0])


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*a){12}b", "(a?){200}a{200}b"])
def test_patterns_that_make_others_backtrack_for_ever(pattern: str) -> None:
    start = time.process_time()
    (got,) = sx.OnnxModel.from_proto(matching(pattern)).compile().evaluate([np.array(["a" * 2000], object)])
    assert not np.asarray(got).any()
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "pattern", ["(", "a**", r"(a)\1", "(?=a)", "a{1001}", "((a{100}){100}){100}", "(" * 5000, "[" * 10000]
)
def test_patterns_that_are_refused(pattern: str) -> None:
    with pytest.raises(sx.SardonyxError, match=r"node 'y' .*the pattern .* cannot be read") as found:
        sx.OnnxModel.from_proto(matching(pattern)).compile()
    assert len(str(found.value)) < 300
