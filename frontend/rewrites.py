"""The rewrite that works, for a line of Python that depends on data: made of the user's own line."""

from __future__ import annotations

import ast
import linecache
import re

from sardonyx.frontend.source import user_frame

MODULES = ("np", "numpy", "sx", "sardonyx", "math", "torch")
"""How modules are called whose functions a condition may call."""


def rewrite_of_line() -> str | None:
    """What to write in the place of the line that the user's code is at; None where the line tells nothing."""
    frame = user_frame()
    if frame is None:
        return None
    return rewrite(linecache.getline(frame.f_code.co_filename, frame.f_lineno))


def rewrite(line: str) -> str | None:
    """What to write in the place of a line of Python that asks a traced tensor or a dynamic dim for its value."""
    tree = _parsed(line.strip())
    if tree is None:
        return None
    for node in ast.walk(tree):
        found = _rewritten(node)
        if found is not None:
            return found
    return None


def _parsed(line: str) -> ast.AST | None:
    """The line as a tree, though it may only begin a statement."""
    body = line[2:].strip() if line.startswith("elif") else line
    for text in (line, f"{line} pass", f"{body} pass", f"async def f():\n {line}", line.rstrip(",")):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return None


def _condition(test: ast.expr) -> str:
    """A condition as text; extents are taken as tensors, whose comparison the run makes."""
    return re.sub(r"\b(\w+)\.shape\[(-?\d+)\]", r"sardonyx.shape(\1)[\2]", ast.unparse(test))


def _first_value(test: ast.expr) -> str:
    """The first name in a condition that is no function's and no module's; `v` where there is none."""
    called = {
        id(n) for c in ast.walk(test) if isinstance(c, ast.Call) for n in ast.walk(c.func) if _is_module(c.func, n)
    }
    names = sorted((n for n in ast.walk(test) if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset))
    return next((n.id for n in names if id(n) not in called), "v")


def _is_module(function: ast.expr, node: ast.AST) -> bool:
    """Whether a node is the function's name (`abs`), or that of the module that it is of (`np`)."""
    return node is function or (
        isinstance(function, ast.Attribute) and node is function.value and getattr(node, "id", "") in MODULES
    )


def _rewritten(node: ast.AST) -> str | None:
    match node:
        case ast.If(test=test):
            text = _condition(test)
            return (
                f"write sardonyx.cond({text}, lambda: ..., lambda: ...) with what the two branches compute, or "
                f"sardonyx.where({text}, a, b) element by element"
            )
        case ast.IfExp(test=test, body=body, orelse=other):
            a, b = ast.unparse(body), ast.unparse(other)
            where = f"sardonyx.where({_condition(test)}, {a}, {b})"
            return f"write {where}, or sardonyx.cond where only one is to be computed"
        case ast.While(test=test):
            v = _first_value(test)
            loop = f"{v} = sardonyx.while_loop(lambda {v}: {_condition(test)}, lambda {v}: ..., {v})"
            return f"write {loop} with what changes as {v}"
        case ast.Assert(test=test):
            return f"leave it out, or return {ast.unparse(test)} and look at it after the run"
        case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range"), args=args)):
            ends = [ast.unparse(a) for a in args[:2]]
            first, last = ("0", ends[0]) if len(ends) == 1 else ends
            name = ast.unparse(target)
            loop = f"v = sardonyx.fori_loop({first}, {last}, lambda {name}, v: ..., v)"
            return f"write {loop} with what the loop changes as v"
        case ast.For(target=target, iter=over):
            name = ast.unparse(target)
            loop = f"v, rows = sardonyx.scan(lambda v, {name}: (..., ...), v, {ast.unparse(over)})"
            return f"write {loop} with what the loop changes as v and what it collects as rows"
        case ast.BoolOp(op=op, values=[first, second, *_]):
            sign = "&" if isinstance(op, ast.And) else "|"
            return f"write ({ast.unparse(first)}) {sign} ({ast.unparse(second)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"write ~({ast.unparse(operand)})"
        case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist")):
            return f"use {ast.unparse(value)} itself: functions take it where they take a number"
        case ast.Call(func=ast.Name(id="int" | "float" as kind), args=[argument]):
            dtype = {"int": "int64", "float": "float32"}[kind]
            return f"write ({ast.unparse(argument)}).astype(sardonyx.{dtype})"
        case ast.Subscript(value=value, slice=ast.Compare() as mask):
            x, m = ast.unparse(value), ast.unparse(mask)
            same = any(ast.unparse(n) == x for n in ast.walk(mask))  # then it is of the same rank, whatever that is
            taken = (
                f"sardonyx.compress(sardonyx.reshape({m}, (-1,)), {x})"
                if same
                else f"sardonyx.compress({m}, {x}, axis=0)"
            )
            return f"write sardonyx.where({m}, {x}, 0), which keeps the shape, or {taken}, whose extent the run decides"
        case ast.comprehension(target=target, iter=over):
            return f"write sardonyx.scan(lambda v, {ast.unparse(target)}: (v, ...), 0, {ast.unparse(over)})[1]"
        case _:
            return None
