"""Regular expressions: held against RE2 as onnxruntime has it, and bounded in what they take."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from onnx import TensorProto
from onnx_models import info, model, node, run_ort

import sardonyx as sx
from sardonyx.dialects.regex import Pattern, PatternError

TEXTS = [
    "", "a", "b", "ab", "aab", "abab", "aB", "A", "a\nb", "\n", "a b", "x_1", "42", "٣", "é", "É", "Ω", "a{1}", "]",
    "-", "^", "a-b", "\t", "a.b", "axb", "..", "k", "K", "\u212a", "ß", "aaaa", "(a)", "hello world", "\x0b",
]  # fmt: skip
PATTERNS = [
    "", "a", "a*", "a+b?", "(ab)*", "(?:a|b)+", "(?P<n>a)b", "(?<n>a)b", "a{1}", "a{2,}b?", "a{,3}", "a{1", "a{2,4}",
    ".", ".*", "(?s).*", "(?s:.)", "^a$", "(?m)^a$\n^b$", "a$\nb", r"\Aa\z", r"\bab\b", r"a\b b", r"\Bb", r"a\Bb",
    r"\d+", r"\D", r"\w+", r"\W", r"\s", r"\S+", r"[\d_x]+", r"[^\w]", r"[^a]", "[]]", "[^]]", "[a-]", "[-a]", "[a^]",
    "[[:alpha:]]+", "[[:^alpha:]]", "[^[:digit:]]", r"\pL+", r"\p{L}", r"\p{Lu}", r"\P{L}", r"\p{^L}", r"[\pN]",
    r"[^\pL]",
    "(?i)ab", "(?i)k", "(?i)[k]", "(?i)É", "(?i:a)b", "(?i-i:a)", "(?-s).", r"\x41", r"\x{3a9}", r"\141", r"\Q(a)\E",
    r"\Qa.b", r"a\.b", r"a\{1\}", "(a|ab)(c|bab)", "(a*)*", "(a|a)*", "(|a)b", "a||b", "()", "(a?){3}", "(?U)a*",
    "a*?b",
    "[a-b]{2}", "((a)(b))+", r"\t", r"\v", r"[\n]", "(?i)ß", r"[[:space:]]", r"\p{Any}", "x*|b", "a(?i)b", "(a(?i)b)|A",
    # what RE2 refuses
    "(", ")", "[", "[b-a]", "a**", "*", "a{1001}", "a{2,1}", r"\1", r"(a)\1", "(?=a)", "(?!a)", "(?<=a)", "(?>a)",
    "a++",
    r"\Z", r"\h", r"\p{Nope}", "[[:nope:]]", "(?z)", "\\", r"\x{110000}", "(?P<>a)", "[a", r"[\1]", "+a",
    "(a{1000}){1000}",
]  # fmt: skip


def by_re2(patterns: list[str]) -> list[list[bool] | None]:
    """What RE2 says of all texts; None where it refuses the pattern."""
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail

    out: list[list[bool] | None] = []
    value = info("x", [None], TensorProto.STRING)
    for pattern in patterns:
        proto = model(
            [node("RegexFullMatch", "x", "y", pattern=pattern)], [value], [info("y", [None], TensorProto.BOOL)]
        )
        try:
            out.append(run_ort(proto, {"x": np.array(TEXTS, object)})[0].tolist())
        except Fail as error:
            assert "regex" in str(error).lower(), error
            out.append(None)
    return out


def ours(pattern: str) -> list[bool] | None:
    try:
        compiled = Pattern(pattern)
    except PatternError:
        return None
    return [compiled.matches(text) for text in TEXTS]


def test_what_re2_says():
    for pattern, wanted in zip(PATTERNS, by_re2(PATTERNS), strict=True):
        found = ours(pattern)
        assert (found is None) == (wanted is None), (pattern, wanted)
        differing = [t for t, a, b in zip(TEXTS, found or [], wanted or []) if a != b]
        assert not differing, (pattern, differing)


def test_random_patterns():
    rng = random.Random(5)
    pieces = [
        "a",
        "b",
        ".",
        "(",
        ")",
        "|",
        "*",
        "+",
        "?",
        "[ab]",
        "[^a]",
        "{2}",
        "{1,2}",
        r"\b",
        "^",
        "$",
        "(?:",
        "ab",
        r"\w",
    ]
    patterns = ["".join(rng.choices(pieces, k=rng.randint(1, 8))) for _ in range(250)]
    wanted = by_re2(patterns)
    assert sum(w is not None for w in wanted) > 60
    for pattern, answer in zip(patterns, wanted, strict=True):
        assert ours(pattern) == answer, pattern


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*a){12}b", "(a?){200}a{200}b"])
def test_patterns_that_make_others_backtrack_for_ever(pattern: str):
    start = time.process_time()
    assert not Pattern(pattern).matches("a" * 2000)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "pattern", ["((a{100}){100}){100}", "(" * 5000, "(?:a?){1000}" * 50, "[" * 10000, "\\Q" + "a" * 30000]
)
def test_large_patterns_are_refused_at_once(pattern: str):
    start = time.process_time()
    proto = model([node("RegexFullMatch", "x", "y", pattern=pattern)], [info("x", [1], TensorProto.STRING)],
                  [info("y", [1], TensorProto.BOOL)])  # fmt: skip
    with pytest.raises(sx.SardonyxError, match=r"node 'y' .*the pattern .* cannot be read") as found:
        sx.OnnxModel.from_proto(proto).compile()
    assert len(str(found.value)) < 300
    assert time.process_time() - start < 2
