"""Dim expressions: canonical form, text, values, proofs, solving (sardonyx/dialects/dims.py)."""

from __future__ import annotations

import copy
import pickle
import time

import numpy as np
import pytest

from sardonyx.dialects.dims import (
    KEYWORDS,
    Call,
    Dim,
    Proof,
    Symbol,
    divides,
    equal,
    less_equal,
    parse_dim,
    solve,
)
from sardonyx.errors import InvalidArgumentError

A, B, C = Dim.of("a"), Dim.of("b"), Dim.of("c")

# Canonical form

CANONICAL = [
    ("batch", "batch"),
    ("0", "0"),
    ("1 + seq*2", "2*seq + 1"),
    ("b*a - a*b", "0"),
    ("b + a", "a + b"),
    ("a + a*a + 3", "a*a + a + 3"),
    ("(a + b)*(a - b)", "a*a - b*b"),
    ("-a*b + 2", "-a*b + 2"),
    ("--a", "a"),
    ("5 - 7", "-2"),
    # floordiv
    ("7 floordiv 2", "3"),
    ("(-7) floordiv 2", "-4"),
    ("-7 floordiv 2", "-4"),
    ("7 floordiv (-2)", "-4"),
    ("x floordiv 1", "x"),
    ("x floordiv (-1)", "-x"),
    ("(2*s) floordiv 2", "s"),
    ("(2*s + 1) floordiv 2", "s"),
    ("(h + 2) floordiv 2", "h floordiv 2 + 1"),
    ("(h + 3) floordiv 2", "(h + 1) floordiv 2 + 1"),
    ("(h + 2 - 3) floordiv 2 + 1", "(h + 1) floordiv 2"),
    ("(5*s) floordiv 2", "2*s + s floordiv 2"),
    ("(6*s + 5) floordiv 4", "s + s floordiv 2 + 1"),
    ("(2*s + 1) floordiv 4", "s floordiv 2"),
    ("((h + 1) floordiv 2 + 1) floordiv 2", "(h + 3) floordiv 4"),
    ("(s floordiv 2) floordiv 3", "s floordiv 6"),
    ("(s mod 4) floordiv 4", "0"),
    ("(4*b*c) floordiv (2*b)", "(2*b*c) floordiv b"),
    ("(a*b*c) floordiv (a*b)", "(a*b*c) floordiv (a*b)"),
    ("(a*b + b) floordiv (a + 1)", "b"),
    ("0 floordiv s", "0 floordiv s"),
    ("1 floordiv (s + 2)", "0"),
    ("a floordiv (-2)", "-a + a floordiv 2"),
    # ceildiv
    ("7 ceildiv 2", "4"),
    ("s ceildiv 2", "(s + 1) floordiv 2"),
    ("(2*s) ceildiv 2", "s"),
    ("a ceildiv b", "a ceildiv b"),
    ("(2*a) ceildiv (2*b)", "a ceildiv b"),
    # mod
    ("-7 mod 3", "2"),
    ("7 mod (-3)", "-2"),
    ("x mod 1", "0"),
    ("(3*s) mod 2", "s mod 2"),
    ("(4*s + 6) mod 8", "4*((s + 1) mod 2) + 2"),
    ("(s mod 4) mod 2", "s mod 2"),
    ("(s mod 2) mod 4", "s mod 2"),
    ("(a*b + b) mod (a + 1)", "0"),
    ("(2*a) mod (2*b)", "2*(a mod b)"),
    # min and max
    ("min(3, 2)", "2"),
    ("max(3, a, 2)", "max(3, a)"),
    ("min(b, min(a, c), a)", "min(a, b, c)"),
    ("max(b, a)", "max(a, b)"),
    ("max(0, a)", "a"),
    ("max(0, 2*a + b)", "2*a + b"),
    ("min(0, a)", "0"),
    ("max(a, a + 1)", "a + 1"),
    ("min(a + 1, a - 1, a)", "a - 1"),
    ("max(0, a - a floordiv 2)", "a - a floordiv 2"),
    ("min(max(a, b), a)", "a"),
    ("max(0, a - 1)", "max(0, a - 1)"),
    ("min(a)", "a"),
    # broadcast
    ("broadcast(a, a)", "a"),
    ("broadcast(1, b)", "b"),
    ("broadcast(1, 1)", "1"),
    ("broadcast(b, 5)", "5"),
    ("broadcast(0, b)", "0"),
    ("broadcast(b, broadcast(a, 1))", "broadcast(a, b)"),
    ("broadcast(c, broadcast(b, a))", "broadcast(a, b, c)"),
    ("broadcast(a + 2, b)", "a + 2"),
    ("broadcast(min(64, a), a)", "a"),
    ("broadcast(min(64, a, b + 1), b, a)", "broadcast(a, b)"),
    ("broadcast(min(a, b), a)", "broadcast(a, min(a, b))"),
    # nesting and operands
    ("2*(h floordiv s)", "2*(h floordiv s)"),
    ("-(h floordiv s)", "-(h floordiv s)"),
    ("(-h) floordiv s", "(-h) floordiv s"),
    ("a floordiv b floordiv c", "(a floordiv b) floordiv c"),
    ("a*b mod c", "(a*b) mod c"),
    ("a - b floordiv c", "a - b floordiv c"),
]


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_canonical_text(text: str, expected: str) -> None:
    assert str(Dim.parse(text)) == expected
    assert Dim.parse(expected) == Dim.parse(text)


def test_equal_dims_have_one_hash_whatever_their_making() -> None:
    left = (A + 1) * (B + 2) - B
    right = A * B + 2 * A + 2
    assert left == right
    assert hash(left) == hash(right)
    assert left.terms() == right.terms()
    assert left != right + 1
    assert A != B


def test_constants_equal_integers() -> None:
    assert Dim.of(3) == 3
    assert hash(Dim.of(3)) == hash(3)
    assert Dim.of(3) == np.int64(3)
    assert Dim.of(3) != 4
    assert Dim.symbol("3") != 3
    assert A != "a"


def test_of_takes_integers_names_and_dims() -> None:
    assert Dim.of(A) is A
    assert Dim.of("a") is A
    assert Dim.of(np.int32(7)).static_value == 7  # pyright: ignore[reportArgumentType]
    assert Dim(7) == 7
    for wrong in (1.5, True, None, np.array([1, 2])):
        with pytest.raises(InvalidArgumentError, match="a dim is an integer"):
            Dim.of(wrong)  # pyright: ignore[reportArgumentType]


def test_operators_take_integers_on_both_sides() -> None:
    assert str(3 + A) == str(A + 3) == "a + 3"
    assert str(3 - A) == "-a + 3"
    assert str(3 * A) == str(A * 3) == "3*a"
    assert str(3 // A) == "3 floordiv a"
    assert str(3 % A) == "3 mod a"
    assert str(np.int64(3) * A) == "3*a"  # pyright: ignore[reportOperatorIssue]
    assert Dim.floordiv(7, 2) == 3
    assert Dim.floordiv("a", 1) == A
    assert (7 - Dim.of(2)) // 2 == 2
    with pytest.raises(TypeError):
        A + "b"  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]


def test_properties() -> None:
    seven = Dim.of(7)
    assert (seven.is_static, seven.static_value, seven.is_symbol) == (True, 7, False)
    assert (A.is_static, A.static_value, A.is_symbol, A.symbol_name) == (False, None, True, "a")
    assert not (A * 2).is_symbol
    assert not (A * A).is_symbol
    assert not (A // B).is_symbol
    assert Dim.min(A, B // C).symbols() == {"a", "b", "c"}
    assert seven.symbols() == frozenset()


def test_terms_give_an_emitter_all_it_needs() -> None:
    dim = A * A * 2 + Dim.min(A, B) - 3
    assert dim.terms() == (
        (2, (Symbol("a"), Symbol("a"))),
        (1, (Call("min", (A, B)),)),
        (-3, ()),
    )
    assert Dim.of(0).terms() == ()


def test_sum_and_product() -> None:
    assert Dim.sum([]) == 0
    assert Dim.product([]) == 1
    assert Dim.sum(["a", 2, A]) == 2 * A + 2
    assert Dim.product(["a", 2, B]) == 2 * A * B


def test_values_are_immutable_through_copies_and_pickles() -> None:
    dim = Dim.parse('max(a floordiv b, "x y") + 3*a')
    assert copy.copy(dim) is dim
    assert copy.deepcopy(dim) is dim
    assert pickle.loads(pickle.dumps(dim)) == dim
    symbol, call = Symbol("a"), Call("min", (A, B))
    assert pickle.loads(pickle.dumps((symbol, call))) == (symbol, call)


# Evaluation and substitution


def test_evaluation_names_what_is_missing() -> None:
    with pytest.raises(InvalidArgumentError, match=r"dim 'a \+ b': no value for symbol b"):
        (A + B).evaluate({"a": 1})


@pytest.mark.parametrize("fn", ["floordiv", "ceildiv", "mod"])
def test_division_by_zero(fn: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"'a {fn} b': division by zero"):
        Dim.parse(f"a {fn} b").evaluate({"a": 1, "b": 0})
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        Dim.parse(f"a {fn} 0")
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        Dim.parse(f"a {fn} b").substitute({"b": 0})


def test_a_divisor_that_may_be_zero_is_not_cancelled() -> None:
    quotient = (A * B) // A
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        quotient.evaluate({"a": 0, "b": 3})
    assert (A * B).exact_quotient(A) == B
    assert (A * B + B).exact_quotient(A + 1) == B
    assert (A * B + 1).exact_quotient(A) is None
    assert (3 * A).exact_quotient(2) is None
    assert A.exact_quotient(0) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 1, 1), 1),
        ((1, 5, 1), 5),
        ((5, 5, 1), 5),
        ((0, 1, 1), 0),
        ((0, 1, 0), 0),
        ((2, 3, 1), None),
        ((0, 2, 1), None),
    ],
)
def test_broadcast_values(values: tuple[int, int, int], expected: int | None) -> None:
    dim = Dim.broadcast(A, Dim.broadcast(B, C))
    bindings = dict(zip("abc", values, strict=True))
    if expected is not None:
        assert dim.evaluate(bindings) == expected
        return
    with pytest.raises(InvalidArgumentError, match=r"extents \d and \d don't broadcast"):
        dim.evaluate(bindings)


def test_broadcast_of_constants_that_disagree() -> None:
    with pytest.raises(InvalidArgumentError, match="extents 3 and 4 don't broadcast"):
        Dim.broadcast(3, 4)
    with pytest.raises(InvalidArgumentError, match="extents 3 and 4 don't broadcast"):
        Dim.broadcast("a", "b").substitute({"a": 3, "b": 4})


def test_broadcast_of_a_negative_extent() -> None:
    with pytest.raises(InvalidArgumentError, match="extent -1 doesn't broadcast"):
        Dim.broadcast("a", -1)
    with pytest.raises(InvalidArgumentError, match="extent -1 doesn't broadcast"):
        Dim.broadcast("a", A - 2).evaluate({"a": 1})


def test_substitution_is_simultaneous_and_simplifies() -> None:
    assert (A + 2 * B).substitute({"a": B, "b": A}) == B + 2 * A
    assert str((A // B + C).substitute({"a": 4 * C, "b": 2})) == "3*c"
    assert A.substitute({"b": 1}) is A


# Proofs


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a + b", "b + a", Proof.PROVED),
        ("a", "b", Proof.UNKNOWN),
        ("a", "a + 1", Proof.REFUTED),
        ("0", "a + b + 1", Proof.REFUTED),
        ("0", "a", Proof.UNKNOWN),
        ("2*a", "2*b + 1", Proof.REFUTED),
        ("2*(a floordiv 2) + a mod 2", "a", Proof.PROVED),
        ("a ceildiv 2", "(a + 1) floordiv 2", Proof.PROVED),
        ("a floordiv 2 + 1", "(a + 2) floordiv 2", Proof.PROVED),
        ("min(a, b) + max(a, b)", "a + b", Proof.PROVED),
        ("broadcast(a, b)", "a", Proof.UNKNOWN),
        ("a mod 4", "4", Proof.REFUTED),
    ],
)
def test_equal(left: str, right: str, expected: Proof) -> None:
    assert equal(Dim.parse(left), Dim.parse(right)) is expected
    assert equal(Dim.parse(right), Dim.parse(left)) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a", "a + b", Proof.PROVED),
        ("a + b + 1", "a", Proof.REFUTED),
        ("a", "b", Proof.UNKNOWN),
        ("min(a, b)", "a", Proof.PROVED),
        ("a", "max(a, b)", Proof.PROVED),
        ("min(a, b)", "max(a, c)", Proof.PROVED),
        ("max(a, b)", "a + b", Proof.PROVED),
        ("2*(a floordiv 2)", "a", Proof.PROVED),
        ("a", "2*(a floordiv 2) + 1", Proof.PROVED),
        ("a mod b", "a", Proof.PROVED),
        ("a mod 8", "7", Proof.PROVED),
        ("8", "a mod 8", Proof.REFUTED),
    ],
)
def test_less_equal(left: str, right: str, expected: Proof) -> None:
    assert less_equal(Dim.parse(left), Dim.parse(right)) is expected


@pytest.mark.parametrize(
    ("divisor", "dividend", "expected"),
    [
        ("2", "4*a + 6", Proof.PROVED),
        ("2", "4*a + 1", Proof.REFUTED),
        ("2", "a", Proof.UNKNOWN),
        ("a", "a*b", Proof.PROVED),
        ("a + 1", "a*b + b", Proof.PROVED),
        ("a", "b", Proof.UNKNOWN),
        ("0", "0", Proof.PROVED),
        ("0", "a + 1", Proof.REFUTED),
        ("a + 4", "3", Proof.REFUTED),
        ("4", "2*a + 1", Proof.REFUTED),
    ],
)
def test_divides(divisor: str, dividend: str, expected: Proof) -> None:
    assert divides(Dim.parse(divisor), Dim.parse(dividend)) is expected


# Solving


def test_solve() -> None:
    assert solve(2 * A, 8, {}) == {"a": 4}
    assert solve(2 * A + B, 8, {"b": 2}) == {"a": 3}
    assert solve(A * B, 12, {"b": 4}) == {"a": 3}
    assert solve(A, 0, {}) == {"a": 0}
    assert solve(10 - A, 7, {}) == {"a": 3}
    assert solve(A + B, 8, {}) is None
    assert solve(A * A, 4, {}) is None
    assert solve(A // 2, 4, {}) is None
    assert solve(A // 2, 4, {"a": 9}) == {}
    assert solve(Dim.of(4), 4, {}) == {}


@pytest.mark.parametrize(
    ("text", "value", "bindings", "message"),
    [
        ("2*seq", 7, {}, r"dim '2\*seq' cannot be 7: no integer seq >= 0 gives that"),
        ("seq + 3", 1, {}, r"dim 'seq \+ 3' cannot be 1"),
        ("b*seq", 7, {"b": 2}, r"dim 'b\*seq' cannot be 7 \(where b = 2\)"),
        ("2*seq", 8, {"seq": 3}, r"dim '2\*seq' is 6, not 8 \(where seq = 3\)"),
    ],
)
def test_solve_without_a_solution(text: str, value: int, bindings: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        solve(Dim.parse(text), value, bindings)


# Text


@pytest.mark.parametrize("name", sorted(KEYWORDS) + ["", "1a", "a b", "a.b", "é", "a-b"])
def test_names_that_need_quotes(name: str) -> None:
    assert str(Dim.symbol(name)) == f'"{name}"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a symbol, an integer, '\\(' or a function, found the end"),
        ("a + ", "column 5: expected a symbol"),
        ("a b", "column 3: expected an operator or the end, found 'b'"),
        ("(a", "column 3: expected '\\)', found the end"),
        ("min a", "column 5: expected '\\(', found 'a'"),
        ("min()", "column 5: expected a symbol"),
        ("min(a,, b)", "column 7: expected a symbol"),
        ("a / b", "column 3: expected an operator"),
        ("_", "column 1: expected a symbol"),
        ("floordiv", "column 1: expected a symbol"),
        ('a + "b', "column 5: the string has no end"),
        (r'"\q"', "column 2: unknown escape"),
        (r'"\FF"', "column 1: the string is no valid UTF-8"),
        ("(" * 5000 + "a", "nested more than 100 deep"),
        ("-" * 5000 + "a", "nested more than 100 deep"),
        ("1" * 5000, "no decimal integer"),
    ],
)
def test_syntax_errors_say_the_column(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Dim.parse(text)


class XdslTokens:
    """A token stream fed by xDSL's lexer, as the attribute parser has it: no columns, foreign tokens as 'punct'."""

    def __init__(self, text: str) -> None:
        from xdsl.utils.lexer import Input
        from xdsl.utils.mlir_lexer import MLIRLexer

        self._lexer = MLIRLexer(Input(text, "test"))
        self._token = self._lexer.lex()

    def peek(self) -> tuple[str, str]:
        from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

        kinds = {MLIRTokenKind.BARE_IDENT: "id", MLIRTokenKind.INTEGER_LIT: "int", MLIRTokenKind.EOF: "end"}
        if self._token.kind in (MLIRTokenKind.STRING_LIT, MLIRTokenKind.BYTES_LIT):
            return "string", StringLiteral.from_span(self._token.span).string_contents
        return kinds.get(self._token.kind, "punct"), self._token.span.text

    def next(self) -> tuple[str, str]:
        token = self.peek()
        self._token = self._lexer.lex()
        return token


@pytest.mark.parametrize("text", [expected for _, expected in CANONICAL] + [str(Dim.symbol('q"\\\n\t\r\x0b\x00é'))])
def test_the_grammar_reads_other_streams_and_stops_where_it_ends(text: str) -> None:
    tokens = XdslTokens(f"{text}, 7>")
    assert parse_dim(tokens) == Dim.parse(text)
    assert tokens.next() == ("punct", ",")
    assert parse_dim(tokens) == 7
    assert tokens.peek() == ("punct", ">")


def test_a_stream_without_columns_still_gets_a_message() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^dim expression: expected a symbol.*found '>'"):
        parse_dim(XdslTokens(">"))


# Size and speed. The limits are some twenty times what a slow machine takes: they catch a change of complexity.


def test_long_sums() -> None:
    dim = Dim.sum(f"s{index}" for index in range(5000))
    started = time.perf_counter()
    assert Dim.parse(str(dim)) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim
    assert len(dim.symbols()) == 5000
    assert dim.evaluate({f"s{index}": 1 for index in range(5000)}) == 5000
    assert str(dim.substitute({f"s{index}": 2 * A for index in range(5000)})) == "10000*a"
    assert (2 * dim) // 2 == dim
    assert (dim * A).exact_quotient(A) == dim
    assert equal(dim, dim + 1) is Proof.REFUTED
    assert time.perf_counter() - started < 5


def test_adding_one_symbol_at_a_time() -> None:
    started = time.perf_counter()
    total = Dim.of(0)
    for index in range(2000):
        total = total + Dim.symbol(f"s{index}")
    assert time.perf_counter() - started < 1
    assert len(total.terms()) == 2000


def test_values_beyond_64_bits() -> None:
    big = 10**400
    assert (A * big + big).evaluate({"a": big}) == big * big + big
    assert (A * big) // big == A
    assert (A + big).bounds == (big, None)


def test_nested_calls() -> None:
    dim = A
    for index in range(60):
        dim = (dim + 1) // Dim.symbol(f"d{index % 3}")
    assert Dim.parse(str(dim)) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim
    assert dim.evaluate({"a": 0, "d0": 1, "d1": 1, "d2": 1}) == 60
    assert dim.substitute({"d0": 1, "d1": 1, "d2": 1}) == A + 60
