"""What `sardonyx-opt` prints instead of a result (lists, help, completions), and what the passes counted."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
from collections.abc import Iterator
from typing import Any, TextIO

from xdsl.passes import ModulePass

from sardonyx.passes import registry
from sardonyx.passes.base import SxPass
from sardonyx.passes.pipeline import PIPELINES, PipelineReport, describe_options, parse
from sardonyx.passes.pipeline_text import format_spec


def instead(options: argparse.Namespace) -> str | None:
    """What is printed where something else than a result is asked for; None where a result is.

    Raises:
        UsageError: The pass, or what the pipeline names, is not there.
    """
    from sardonyx.tools.opt_driver import as_usage

    if options.version:
        from sardonyx import __version__

        return f"sardonyx-opt {__version__}\n"
    if options.list_passes == "json":
        return json.dumps([pass_as_json(entry) for entry in _own()], indent=1) + "\n"
    if options.list_passes:
        return pass_list(everything=options.list_passes == "all")
    if options.list_targets:
        from sardonyx.tools.opt_targets import targets

        return "".join(f"{name:13s} {entry.summary}\n" for name, entry in targets().items())
    if options.show_dialects:
        return dialect_list()
    with as_usage():
        if options.help_pass is not None:
            return pass_help(options.help_pass)
        if options.dump_pass_pipeline:
            return "".join(f"{format_spec(p.spec())}\n" for p in parse(options.pipeline))
    if options.complete is not None:
        from sardonyx.tools.opt_complete import script

        return script(options.complete)
    return None


# ---- what was counted


def print_statistics(report: PipelineReport, stream: TextIO, form: str = "text") -> None:
    """What each pass counted."""
    if form == "json":
        found = [{"pass": p.spec, "changed": p.changed, "statistics": dict(sorted(p.statistics.items()))}
                 for p in report.passes]  # fmt: skip
        stream.write(json.dumps(found, indent=1) + "\n")
        return
    stream.write("===--- Pass statistics report ---===\n")
    for entry in report.passes:
        stream.write(f"{entry.name}{'' if entry.changed else ' (no change)'}\n")
        for name, value in sorted(entry.statistics.items()):
            stream.write(f"  {value:8d}  {name}\n")


# ---- passes


def _own() -> Iterator[registry.PassEntry]:
    for name, entry in sorted(registry.own_entries().items()):
        if name == entry.name:
            yield entry


def _summary(entry: registry.PassEntry, cls: type[ModulePass]) -> str:
    return entry.summary or (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def pass_list(everything: bool = False) -> str:
    """The passes by name: what each does, its options, and its numeric promise; with `everything`, xDSL's too."""
    lines: list[str] = []
    for name, entry in sorted(registry.entries().items()):
        if entry.origin == "xdsl":
            if everything:
                lines.append(f"{name}\n    of xDSL")
            continue
        cls = entry.load()
        lines.append(name)
        summary = _summary(entry, cls)
        if summary:
            lines.append(f"    {summary}")
        if entry.origin != "sardonyx":
            lines.append(f"    from: {entry.origin}")
        options = describe_options(cls)
        if options != "none":
            lines.append(f"    options: {options}")
        if issubclass(cls, SxPass):
            lines.append(f"    promise: {cls.PROMISE}")
    return "\n".join(lines) + "\n"


def options_of(cls: type[ModulePass]) -> Iterator[tuple[str, str, str | None, str]]:
    """Name, type, default (None where one has to be given) and help of each option of a pass.

    The help is a field's `metadata={"help": ...}`.
    """
    for option in dataclasses.fields(cls):
        if option.init:
            ty = option.type if isinstance(option.type, str) else getattr(option.type, "__name__", str(option.type))
            default = None if option.default is dataclasses.MISSING else _as_written(option.default)
            yield option.name.replace("_", "-"), ty, default, option.metadata.get("help", "")


def _as_written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def pass_as_json(entry: registry.PassEntry) -> dict[str, Any]:
    """A pass for programs."""
    cls = entry.load()
    options = [{"name": n, "type": t, "default": d, "help": h} for n, t, d, h in options_of(cls)]
    promise = str(cls.PROMISE) if issubclass(cls, SxPass) else None
    summary = _summary(entry, cls)
    return {"name": entry.name, "summary": summary, "origin": entry.origin, "promise": promise, "options": options}


def pass_help(name: str) -> str:
    """All there is to say of a pass, or of a named pipeline.

    Raises:
        InvalidArgumentError: There is none of that name; the hint names the nearest.
    """
    if name in PIPELINES:
        return f"{name} is a pipeline:\n" + "".join(f"  {one}\n" for one in PIPELINES[name].split(","))
    cls = registry.get(name)
    entry = registry.own_entries().get(name) or registry.PassEntry(name, "xdsl", "", cls)
    lines = [f"{name} (from: {entry.origin})", "", inspect.cleandoc(cls.__doc__ or "It has no documentation."), ""]
    if issubclass(cls, SxPass):
        lines.append(f"numeric promise: {cls.PROMISE}")
    options = list(options_of(cls))
    lines.append("options:" if options else "options: none")
    for option, ty, default, text in options:
        lines.append(f"  {option}: {ty}" + (", to be given" if default is None else f" = {default}"))
        if text:
            lines.append(f"      {text}")
    if options:
        given = " ".join(f"{option}={'...' if default is None else default}" for option, _, default, _ in options)
        lines.append(f"for example: -p '{name}{{{given}}}'")
    return "\n".join(lines) + "\n"


# ---- dialects


def dialect_list() -> str:
    """The dialects that text can use: ours, those of installed packages and loaded files, and xDSL's."""
    from sardonyx.passes.context import make_context

    files = {d.name: str(file.path) for file in registry.loaded_files() for d in file.dialects}
    installed = registry.installed_dialects()
    context = make_context()
    lines: list[str] = []
    for name in sorted(context.registered_dialect_names):
        if name in ("sx", "kernel") and name not in files:
            dialect = context.get_optional_dialect(name)
            count = f", {len(list(dialect.operations))} ops" if dialect is not None else ""
            origin = f"sardonyx{count}"
        else:
            origin = files.get(name) or ("an installed package" if name in installed else "xdsl")
        lines.append(f"{name:20s} {origin}\n")
    return "".join(lines)
