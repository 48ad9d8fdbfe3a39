"""`sardonyx blame`: where a value comes from, and which passes and patterns made it what it is."""

from __future__ import annotations

import argparse
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.diagnostics import EXIT_OK

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr, ModuleOp
    from xdsl.ir import Operation, SSAValue

    from sardonyx.passes.base import RewriteEvent
    from sardonyx.tools.modules import Loaded

EPILOG = """examples:
  sardonyx blame model.onnx logits -p optimize
  sardonyx blame net.py:forward %4 -p 'simplify,cse' --signature 'x: f32[n,3]'
  sardonyx blame graph.mlir sx.transpose --json

VALUE is a value of the result (%4, %name), the name of an output, of a node of the model, a line (net.py:12), or an op
(sx.transpose: all of them).
exit status: 0 found, 1 there is no such value or the input is wrong, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("input", metavar="FILE", help="FILE.onnx, FILE.mlir, FILE.py:FUNCTION, or - for MLIR text on standard input")
    add("value", metavar="VALUE", help="what to explain")
    add("-p", "--passes", dest="pipeline", default="", metavar="PIPELINE", help="run these passes first")
    add("--signature", metavar="TEXT", help="the inputs of a Python function, as 'x: f32[batch,37], y: i64[]'")
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes and dialects from a Python file")
    add("--json", action="store_true", help="print JSON")


@dataclass
class Step:
    """A rewrite that had a part in an op: its number, counted from 1, by whom, and what it matched."""

    number: int
    pass_name: str
    pattern: str
    matched: str
    origin: str | None


@dataclass
class Blame:
    """What is known of an op: its text, who made it (the newest first), and its origins."""

    op: str
    value: str | None
    type: str | None
    made_by: list[str]
    steps: list[Step]
    origins: list[str]
    sources: list[str] = field(default_factory=list[str])


@dataclass
class History:
    """A listener that keeps all rewrites."""

    events: list[RewriteEvent] = field(default_factory=list[Any])
    of_op: dict[Operation, list[int]] = field(default_factory=dict[Any, Any])

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        return True

    def on_rewrite(self, event: RewriteEvent) -> None:
        self.events.append(event)
        for op in event.inserted:
            self.of_op.setdefault(op, []).append(len(self.events))


def run(options: argparse.Namespace, stdout: TextIO) -> int:
    from sardonyx.passes.context import make_context
    from sardonyx.passes.pipeline import PassManager, parse
    from sardonyx.passes.registry import load_file
    from sardonyx.passes.value_names import printed_names

    for path in options.load:
        load_file(path)
    passes = parse(options.pipeline)
    ctx = make_context()
    loaded = load(options, ctx)
    history = History()
    PassManager(passes, listener=history).run(loaded.module, ctx)
    names = printed_names(loaded.module)
    found = [blame(op, names, history) for op in find(loaded.module, options.value, names)]
    gone = [] if found else removed(history, options.value)
    if not found and not gone:
        known = [f"%{name}" for name in names.values()]
        raise InvalidArgumentError(
            f"there is no '{options.value}' in the result", hint=f"values: {', '.join(known[:12])}, ..."
        )
    if options.json:
        from sardonyx.tools.console import print_json

        steps = [{**vars(step)} for step in gone]
        print_json({"ops": [{**vars(b), "steps": [vars(s) for s in b.steps]} for b in found], "removed": steps}, stdout)
    else:
        stdout.write("\n".join(text_of(b) for b in found))
        for step in gone:
            stdout.write(
                f"'{options.value}' is no longer there: {step.pass_name}:{step.pattern} "
                f"replaced {step.matched} (rewrite {step.number})\n"
            )
    return EXIT_OK


def load(options: argparse.Namespace, ctx: Any) -> Loaded:
    """The graph that the command line names."""
    from sardonyx.tools import modules
    from sardonyx.tools.text import Text, read_text

    kind = modules.kind_of(options.input)
    if kind == "onnx":
        return modules.load_onnx(options.input)
    if kind == "python":
        return modules.load_function(options.input, options.signature, sys.stderr)
    if kind == "frontend":
        return modules.load_other(options.input, sys.stderr)
    name = "<stdin>" if options.input == "-" else options.input
    return modules.load_text(ctx, Text(read_text(options.input, sys.stdin), name), options.input, None)


def find(module: ModuleOp, wanted: str, names: dict[SSAValue, str]) -> list[Operation]:
    """The ops that `wanted` names: by value, output, op, node or line."""
    from xdsl.ir import Operation

    from sardonyx.dialects import locations
    from sardonyx.dialects.module import main_function, output_names, output_values
    from sardonyx.errors import SardonyxError

    plain = wanted.removeprefix("%")
    values = [value for value, name in names.items() if name == plain]
    if not values and not wanted.startswith("%"):
        try:
            main_function(module)
            values = [v for v, n in zip(output_values(module), output_names(module), strict=True) if n == wanted]
        except SardonyxError:
            values = []
    found = [value.owner for value in values if isinstance(value.owner, Operation)]
    if values and not found:
        raise InvalidArgumentError(f"'{wanted}' is an input")
    if found:
        return list(dict.fromkeys(found))
    ops = [op for op in module.walk() if op is not module]
    by_name = [op for op in ops if op.name in (wanted, f"sx.{wanted}")]
    return by_name or [op for op in ops if wanted in set(places(op.location)) | set(locations.names(op.location))]


def places(location: LocationAttr) -> Iterator[str]:
    """The origins of a location for a person; a line also by the file's name alone."""
    from xdsl.dialects.builtin import FileLineColLoc

    from sardonyx.dialects import locations

    for leaf in locations.leaves(location):
        shown = locations.describe(leaf)
        if shown is not None:
            yield shown
        if isinstance(leaf, FileLineColLoc):
            yield f"{leaf.filename.data.rpartition('/')[2]}:{leaf.line.data}"


def blame(op: Operation, names: dict[SSAValue, str], history: History) -> Blame:
    """What is known of an op."""
    from sardonyx.passes import provenance

    made_by, origins = provenance.peel(op.location)
    value = op.results[0] if op.results else None
    steps = [step_of(n, history.events[n - 1]) for n in history.of_op.get(op, ())]
    return Blame(
        op.name,
        None if value is None else names.get(value),
        None if value is None else str(value.type),
        made_by,
        steps,
        list(dict.fromkeys(described(origin) for origin in origins)),
        [line for origin in origins if (line := source_line(origin)) is not None],
    )


def described(location: LocationAttr) -> str:
    from sardonyx.dialects import locations

    names = list(locations.names(location))
    where = locations.describe(location) or "an unknown place"
    node = f"node '{names[0]}'" if names else None
    return where if node is None or node == where else f"{where} ({node})"


def source_line(location: LocationAttr) -> str | None:
    """The user's line, where the file is here."""
    from xdsl.dialects.builtin import FileLineColLoc

    from sardonyx.dialects import locations

    for leaf in locations.leaves(location):
        if isinstance(leaf, FileLineColLoc):
            line = linecache.getline(leaf.filename.data, leaf.line.data).strip()
            return line or None
    return None


def step_of(number: int, event: RewriteEvent) -> Step:
    from sardonyx.dialects import locations

    return Step(number, event.pass_name, event.pattern, event.op, locations.describe(event.location))


def removed(history: History, wanted: str) -> list[Step]:
    """The rewrites of an op that came from there, for what is no longer in the result."""
    from sardonyx.dialects import locations

    out: list[Step] = []
    for number, event in enumerate(history.events, 1):
        known = {*places(event.location), *locations.names(event.location), event.op, event.op.removeprefix("sx.")}
        if wanted in known:
            out.append(step_of(number, event))
    return out


def text_of(found: Blame) -> str:
    """The chain, from today's op to the user's line."""
    value = f"%{found.value} = " if found.value else ""
    lines = [f"{value}{found.op}" + (f" : {found.type}" if found.type else "")]
    steps = {f"{s.pass_name}:{s.pattern}": s for s in reversed(found.steps)}
    for name in found.made_by:
        step = steps.get(name)
        what = f", from {step.matched}, rewrite {step.number}" if step is not None else ""
        lines.append(f"  made by {name}{what}")
    for number, origin in enumerate(found.origins or ["an unknown place"]):
        lines.append(f"  from {origin}")
        if number < len(found.sources):
            lines.append(f"       {found.sources[number]}")
    return "\n".join(lines) + "\n"
