"""The parser's own ways are xDSL's results: the same tokens, and the same IR, as xDSL's lexer and parser find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.context import make_context
from sardonyx.passes.text import Text, parse_text, split_text
from sardonyx.passes.text_parser import FastLexer

LIT = Path(__file__).parent.parent / "lit"
FILES = sorted(p for p in LIT.rglob("*.mlir") if b"\xff" not in p.read_bytes())

AWKWARD = [
    "", " \t\r\n", "// only a comment", "//", "a//b\nc", "/ /", "a.b$c_1 _x é éa aé", "%0#1 %a-b %-", "#0 #a #-} #-a",
    "{-# {- { #-}", "-> - -1 ->>", "...", "..", "..a", "!sx.seq<!x>", "^bb0 ^0", "0x1F 0xg 0x 00x1 1.5 1. 1e5 1.e5",
    "1.5e-3x", '"a\\"b" "\\00\\FF" "é"', '"open', "@a @\"b c\" @", "²", "1²", "?x3xf32", "a\fb\vc\x85d\u2028e",
    "=:,()[]<>+*|}{", "`", "1.5.2",
]  # fmt: skip


def tokens(lexer: MLIRLexer) -> Iterator[tuple[MLIRTokenKind, int, int] | str]:
    while True:
        try:
            token = lexer.lex()
        except ParseError as error:
            yield str(error)
            return
        yield token.kind, token.span.start, token.span.end
        if token.kind is MLIRTokenKind.EOF:
            return


def same_tokens(text: str) -> None:
    ours, theirs = FastLexer(Input(text, "x")), MLIRLexer(Input(text, "x"))
    assert list(tokens(ours)) == list(tokens(theirs))


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_tokens(text: str):
    same_tokens(text)
    same_tokens(f"a {text} b")


def test_tokens_of_all_lit_files():
    assert len(FILES) > 50
    for path in FILES:
        same_tokens(path.read_text())


def test_modules_of_all_lit_files():
    """Parsed by ours and by xDSL's parser; what xDSL's refuses, ours refuses with the same words."""
    ctx = make_context(True)
    count = 0
    for path in FILES:
        for part in split_text(Text(path.read_text(), "x")):
            try:
                theirs = str(Parser(ctx, part.content).parse_module())
            except ParseError as error:
                with pytest.raises(InvalidArgumentError) as ours:
                    parse_text(ctx, part, verify=False)
                said = ours.value.message
                assert said == error.msg.strip().splitlines()[0].strip() or said.startswith("there is nothing in it")
            else:
                assert str(parse_text(ctx, part, verify=False)) == theirs, path
                count += 1
    assert count > 80


TYPES = """
!t = tensor<2xf32>
func.func @main(%a: tensor<2xf32>, %b: !t) -> tensor<2xf32> {
  %0 = sx.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = sx.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("here":1:1)
  %2 = sx.add %0, %b : (tensor<2xf32>, // twice
    tensor<2xf32>) -> !t
  %3 = "sx.add"(%2, %1) : (tensor< 2xf32 >, !t) -> tensor<2xf32>
  func.return %3 : tensor<2xf32>
}
"""


def test_a_type_is_parsed_once_whatever_stands_behind_it():
    module = parse_text(make_context(), Text(TYPES, "x"))
    adds = [op for op in module.walk() if op.name == "sx.add"]
    assert len(adds) == 4 and len({op.results[0].type for op in adds}) == 1
    assert str(module) == str(Parser(make_context(), TYPES).parse_module())


def test_many_ops_of_one_type(monkeypatch: pytest.MonkeyPatch):
    """What is parsed does not grow with the number of ops, but with the number of types."""
    parsed: list[int] = []
    original = Parser._parse_tensor_attrs
    monkeypatch.setattr(Parser, "_parse_tensor_attrs", lambda self: parsed.append(self.pos) or original(self))
    ty = "tensor<?x2xf32, #sx.dims<n, _>>"
    chain = "".join(f"  %{i + 1} = sx.exp %{i} : ({ty}) -> {ty}\n" for i in range(100))
    text = f"func.func @main(%0: {ty}) -> {ty} {{\n{chain}  func.return %100 : {ty}\n}}"
    parse_text(make_context(), Text(text, "x"))
    assert len(parsed) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("(tensor<2xf32>) -> tensor<2xf32", "x:4"),
        ("(tensor<2xf32>) -> tensor<2xf33>", "x:3"),
        ("(tensor<2xf32>) -> ", "x:4"),
        ("(tensor<2xf32>, ) -> tensor<2xf32>", "x:3"),
    ],
)
def test_mistakes_are_told_as_before(text: str, place: str):
    good = "%0 = sx.exp %x : (tensor<2xf32>) -> tensor<2xf32>"
    whole = f"func.func @main(%x: tensor<2xf32>) {{\n  {good}\n  %1 = sx.exp %0 : {text}\n}}\n"
    with pytest.raises(InvalidArgumentError) as ours:
        parse_text(make_context(), Text(whole, "x"))
    with pytest.raises(ParseError) as theirs:
        Parser(make_context(), whole).parse_module()
    assert ours.value.message == theirs.value.msg
    assert ours.value.location is not None and ours.value.location.startswith(place)
