"""Mutants: copies of a source file with one small mistake, such as people make.

Each is made by one operator at one place of the syntax tree: a comparison that is off by one or turned round, a guard
that is dropped, swapped arguments, an axis off by one, `+` for `-`, `any` for `all`, a permutation that is not
inverted, a step left out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Change = Callable[[], None]


@dataclass(frozen=True)
class Mutant:
    """One mistake: where, by which operator, what the line became, and the number by which it is found again."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.operator}: `{self.before}` → `{self.after}`"


_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE,), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE,), ast.GtE: (ast.Gt,), ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_NAMES = {"all": "any", "any": "all", "min": "max", "max": "min"}
_IDENTITY = {"inverse", "sorted", "reversed", "identity", "padded", "compose"}
"""Functions that are replaced by (one of) their arguments."""
_ASIDE = {"decline", "merge", "count", "rewritten", "stamp", "fuse", "location", "remark", "fail", "format_dims"}
"""Calls that say something and compute nothing; what is inside them is left alone."""


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """All mutants of a file."""
    source = path.read_text(encoding="utf-8")
    return [mutant for mutant, _ in _all(source, name, None)]


def mutated(path: Path, name: str, number: int) -> ast.Module:
    """The syntax tree of one mutant."""
    source = path.read_text(encoding="utf-8")
    for mutant, tree in _all(source, name, number):
        if mutant.number == number:
            assert tree is not None
            return tree
    raise ValueError(f"{name} has no mutant {number}")


def _all(source: str, name: str, wanted: int | None) -> Iterator[tuple[Mutant, ast.Module | None]]:
    """The mutants in order, with the tree of the wanted one."""
    tree = ast.parse(source)
    number = 0
    for node, operator, apply, undo in _changes(tree):
        before = _line(node)
        apply()
        after = _line(node)
        mutant = Mutant(name, getattr(node, "lineno", 0), operator, before, after, number)
        made = copy.deepcopy(tree) if wanted == number else None
        undo()
        if before != after:
            if made is not None:
                ast.fix_missing_locations(made)
            yield mutant, made
        number += 1


def _line(node: ast.AST) -> str:
    text = ast.unparse(node)
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= 90 else first[:87] + "..."


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Change, Change]]:
    """Node to show, operator, and how to make and unmake the change."""
    for node in _reached(tree):
        yield from _of_node(node)


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes in the code of functions, but for docstrings, annotations, decorators, error messages and asserts."""
    stack: list[tuple[ast.AST, bool]] = [(node, False)]
    while stack:
        at, inside = stack.pop()
        if isinstance(at, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            continue
        if isinstance(at, ast.Call):
            called = at.func.attr if isinstance(at.func, ast.Attribute) else getattr(at.func, "id", "")
            if called in _ASIDE:
                continue
        if inside:
            yield at
        children: list[ast.AST]
        if isinstance(at, ast.FunctionDef):
            children = [s for s in at.body if not _is_text(s)]
            inside = True
        elif isinstance(at, ast.AnnAssign):
            children = [at.value] if at.value is not None else []
        elif isinstance(at, ast.ClassDef | ast.Module):
            children = list(at.body)
        else:
            children = list(ast.iter_child_nodes(at))
        stack.extend((child, inside) for child in reversed(children))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _attribute(node: ast.AST, name: str, value: object) -> tuple[Change, Change]:
    old = getattr(node, name)
    return lambda: setattr(node, name, value), lambda: setattr(node, name, old)


def _item(items: list[ast.AST], at: int, value: ast.AST) -> tuple[Change, Change]:
    old = items[at]
    return lambda: items.__setitem__(at, value), lambda: items.__setitem__(at, old)


def _of_node(node: ast.AST) -> Iterator[tuple[ast.AST, str, Change, Change]]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for other in _COMPARE.get(type(op), ()):
                yield node, "comparison", *_item(node.ops, at, other())  # pyright: ignore[reportArgumentType]
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        if not (isinstance(node.op, ast.Add) and _stringy(node)):
            yield node, "arithmetic", *_attribute(node, "op", _BINARY[type(node.op)]())
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, "flag", *_attribute(node, "value", not node.value)
        elif isinstance(node.value, int):
            yield node, "off by one", *_attribute(node, "value", node.value + 1)
            if node.value > 0:
                yield node, "off by one", *_attribute(node, "value", node.value - 1)
    elif isinstance(node, ast.BoolOp):
        neutral = ast.Constant(isinstance(node.op, ast.And))  # one condition alone is no valid tree
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            yield node, "dropped condition", *_attribute(node, "values", rest if len(rest) > 1 else [neutral, *rest])
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, "and for or", *_attribute(node, "op", other)
    elif isinstance(node, ast.If):
        if not node.orelse and isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break):
            yield node, "dropped guard", *_attribute(node, "test", ast.Constant(False))
        yield node, "turned condition", *_attribute(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.IfExp):
        yield node, "turned condition", *_attribute(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, "sign", *_attribute(node, "op", ast.UAdd())
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        if node.slice.lower is not None:
            yield node, "slice", *_attribute(node.slice, "lower", None)
        if node.slice.upper is not None:
            yield node, "slice", *_attribute(node.slice, "upper", None)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if not isinstance(called, ast.Attribute) or called.attr not in _ASIDE:
            yield node, "step left out", *_attribute(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        yield node, "swapped pair", *_attribute(node, "elts", node.elts[::-1])


def _of_call(node: ast.Call) -> Iterator[tuple[ast.AST, str, Change, Change]]:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name in _NAMES:
        yield node, f"{_NAMES[name]} for {name}", *_attribute(node.func, "id", _NAMES[name])
    if name in ("isinstance", "zip", "range", "getattr", "cast", "equal"):
        return
    plain = [i for i, a in enumerate(node.args) if not isinstance(a, ast.Starred | ast.Constant) and not _other_kind(a)]
    for first, second in zip(plain, plain[1:]):
        swapped = list(node.args)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        yield node, "swapped arguments", *_attribute(node, "args", swapped)
    if name in _IDENTITY:
        for at in range(min(len(node.args), 2)):
            kept = ast.Call(ast.Name("tuple", ast.Load()), [node.args[at]], [])
            if name == "identity":
                continue
            function, args, keywords = node.func, node.args, node.keywords

            def apply(kept: ast.Call = kept) -> None:
                node.func, node.args, node.keywords = kept.func, kept.args, []

            def undo(
                function: ast.expr = function, args: list[ast.expr] = args, keywords: list[ast.keyword] = keywords
            ) -> None:
                node.func, node.args, node.keywords = function, args, keywords

            yield node, f"{name} left out", apply, undo


def _other_kind(node: ast.expr) -> bool:
    """Whether an argument is of a kind of its own, so that swapped with another it fails at once."""
    return isinstance(node, ast.Lambda | ast.JoinedStr) or (
        isinstance(node, ast.Name) and node.id in ("op", "rewriter", "run", "module", "block", "self", "dtype")
    )


def _stringy(node: ast.BinOp) -> bool:
    return any(isinstance(n, ast.JoinedStr | ast.Constant) and isinstance(getattr(n, "value", None), str)
               for n in ast.walk(node))  # fmt: skip
