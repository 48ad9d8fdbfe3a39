"""Branches and loops that a trace decided: `if`, `while`, `for` and their short forms over what a function is given.

What depends on contents is refused while tracing, and so is what depends on dynamic dims. What is left was decided by
fixed dims, dtypes and Python's values: the graph has the branch that was taken alone, and loops are unrolled in it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

SHOWN = 60
"""How much of a condition is shown."""


def traced_branches(function: Callable[..., Any]) -> list[str]:
    """The branches and loops of a function, and of those of its file that it calls, over its parameters."""
    found: dict[str, None] = {}
    waiting, seen = [inspect.unwrap(function)], set[object]()
    while waiting:
        at = waiting.pop()
        if not isinstance(at, FunctionType) or at in seen:
            continue
        seen.add(at)
        try:
            lines, first = inspect.getsourcelines(at)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            continue  # made by `exec`, or a lambda within a larger expression
        where = Path(at.__code__.co_filename).name
        for line, text in _decided(tree):
            found[f"{where}:{first + line - 1}: {text}"] = None
        called = (n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
        others = (at.__globals__.get(name) for name in called)
        waiting += [o for o in others if isinstance(o, FunctionType) and o.__module__ == at.__module__]
    return list(found)


def _decided(tree: ast.AST) -> Iterator[tuple[int, str]]:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    given = {a.arg for f in functions[:1] for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)}
    depends = _depending(tree, given)
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While) and _tells(node.test, depends):
            kind = "while" if isinstance(node, ast.While) else "if"
            yield (
                node.lineno,
                f"'{kind} {_cut(node.test)}' was decided while tracing: the graph has one of the ways alone",
            )
        elif isinstance(node, ast.For) and _tells(node.iter, depends):
            words = f"for {_cut(node.target)} in {_cut(node.iter)}"
            yield node.lineno, f"'{words}' was unrolled while tracing; sardonyx.fori_loop or scan stays a loop"


def _depending(tree: ast.AST, names: set[str]) -> set[str]:
    """The names whose values come from these, by assignments."""
    found = set(names)
    while True:
        more = set(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For) and _names(_value(node)) & more:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                more |= {n for target in targets for n in _names(target)}
        if more == found:
            return found
        found = more


def _value(node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For) -> ast.AST | None:
    return node.iter if isinstance(node, ast.For) else node.value


def _names(node: ast.AST | None) -> set[str]:
    return set() if node is None else {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _tells(test: ast.AST, depends: set[str]) -> bool:
    """Whether a condition looks into what was given; whether an argument is there at all (`is None`) is no branch."""
    if isinstance(test, ast.Compare) and all(isinstance(o, ast.Is | ast.IsNot) for o in test.ops):
        return False
    return bool(_names(test) & depends)


def _cut(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
