"""The documents, or parts of them, that are made from the code: `python3 tools/dev.py docs`.

What stands in two places drifts, so the capability table follows from the op classes and the lowerings, the bounds of
the vector math from the table that its tests hold it to, and the passes' document from their docstrings. With `--check`
nothing is written, and the exit status is 1 where a document is not current.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import NARROW, DType

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Made by `python3 tools/dev.py docs` from the code; edits here are lost. -->"

_GROUPS = (
    ("int", ("int8", "int16", "int32", "int64")),
    ("uint", ("uint8", "uint16", "uint32", "uint64")),
    ("float", ("float16", "bfloat16", "float32", "float64")),
    ("narrow", tuple(dtype.name for dtype in NARROW)),
)


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return "\n".join([_row(*head), "|" + "---|" * len(head), *(_row(*row) for row in rows)])


# ---- operators


def _dtypes(cls: type[SxOp]) -> str:
    """The dtypes of an op, whole families by their name."""
    stated: Sequence[DType] = getattr(cls, "DTYPES", ())
    names = [dtype.name for dtype in stated]
    if not names:
        return "any"
    parts = ["bool"] if "bool" in names else []
    for family, members in _GROUPS:
        present = [m for m in members if m in names]
        parts += [family] if len(present) == len(members) else present
    return ", ".join(parts)


def operators() -> str:
    """`docs/operators.md`."""
    from sardonyx.backends.llvm.lowering import graph
    from sardonyx.backends.llvm.registries import LOWERINGS, SCALARS
    from sardonyx.dialects.sx import OPS
    from sardonyx.dialects.sx.constant import ConstantOp

    graph.load_families()
    native = {*LOWERINGS, *SCALARS, ConstantOp}
    rows: list[tuple[str, ...]] = []
    counts = {"reference": 0, "native": 0, "onnx": 0}
    for cls in sorted(OPS, key=lambda c: c.name):
        form = cls.ONNX
        counts["reference"] += cls.evaluate is not SxOp.evaluate
        counts["native"] += cls in native
        counts["onnx"] += form is not None
        onnx = "-" if form is None else f"{form.domain + '.' if form.domain else ''}{form.name}, {form.since}"
        family = cls.__module__.rpartition(".")[2]
        source = f"[{family}](../dialects/sx/{family}.py)"
        rows.append((f"`{cls.name}`", _dtypes(cls), "yes" if cls in native else "-", onnx, source))
    table = _table(["op", "dtypes", "native", "ONNX, since opset", "family"], rows)
    return f"""\
{NOTE}

# Operators

{len(rows)} ops: {counts["reference"]} have reference semantics, {counts["native"]} a native form, {counts["onnx"]} an
ONNX form. (`sx.opaque` stands for an operator of somebody else's, which is kept and exported again.)

- *dtypes* are those of the op's main operand. `int` stands for int8 to int64, `uint` for uint8 to uint64, `float` for
  float16, bfloat16, float32 and float64, `narrow` for int2, int4, uint2, uint4, float4e2m1, float6e2m3, float6e3m2, the
  four float8 dtypes and float8e8m0.
- *native*: the LLVM backend compiles it. `finalize()` refuses a graph with an op that has no native form, and names the
  node; `finalize(fallback=True)` runs that op by the reference, and lists it.
- *ONNX, since opset*: the operator, and the lowest opset that has it with an equal meaning. Export to an older opset
  rewrites it, or refuses it by name; import adapts opsets 1 to 28.
- What an op means, and what it requires, is in the docstring of its class, in its family's file.

{table}
"""


# ---- vector math


def math_bounds() -> str:
    """The table of docs/native.md."""
    from sardonyx.backends.llvm.codegen.math import MATH, ULP_BOUNDS

    rows = [
        (f"`{name}`", *(f"{ULP_BOUNDS[name, scalar]:g}" for scalar in ("float", "double"))) for name in sorted(MATH)
    ]
    return _table(["function", "float32", "float64"], rows)


# ---- passes


def passes() -> str:
    """`docs/passes.md`."""
    from sardonyx.passes import registry
    from sardonyx.passes.pipeline import DEFAULT_PIPELINE, describe_options

    parts: list[str] = []
    for name, entry in sorted(registry.own_entries().items()):
        if entry.origin != "sardonyx":
            continue
        cls = entry.load()
        parts.append(f"## {name}\n\n{_reflowed(inspect.cleandoc(cls.__doc__ or entry.summary))}\n")
        parts.append(f"Options, with their defaults: `{describe_options(cls)}`.\n")
    default = DEFAULT_PIPELINE.replace(",", ", ")
    return f"""\
{NOTE}

# Passes

A pipeline is a text such as `fold-constants{{max-bytes=4096}},cse`; `optimize()` without one runs

    {default}

`exact` promises the same bits (except for the payload of NaNs); `reassociates(c)` an error of at most
c·n·eps·Σ|terms|. Upstream xDSL's passes can be named, too (`sardonyx-opt --list-passes=all`). Stock `xdsl-opt` sees
these under the prefix `sx-`.

{chr(10).join(parts)}"""


def _reflowed(doc: str) -> str:
    """A docstring as Markdown: its sections are paragraphs, its numbered cases a list."""
    lines: list[str] = []
    for line in doc.splitlines():
        if line.startswith("Cases:"):
            line = "Cases:\n"
        elif line.startswith(("Requires:", "Promise:", "Ensures:")) and lines and lines[-1].strip():
            line = "\n" + line
        lines.append(line)
    return "\n".join(lines)


# ---- documents

WHOLE: dict[str, Callable[[], str]] = {"docs/operators.md": operators, "docs/passes.md": passes}
PARTS: dict[tuple[str, str], Callable[[], str]] = {("docs/native.md", "math"): math_bounds}
"""(document, mark) → what stands between `<!-- begin mark -->` and `<!-- end mark -->`."""


def documents() -> dict[Path, str]:
    """The documents as they should be."""
    found = {ROOT / name: make() for name, make in WHOLE.items()}
    for (name, mark), make in PARTS.items():
        path = ROOT / name
        text = found.get(path) or path.read_text(encoding="utf-8")
        begin, end = f"<!-- begin {mark} -->\n", f"<!-- end {mark} -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        if not rest or not tail:
            raise SystemExit(f"{name} has no '{begin.strip()}' and '{end}'")
        found[path] = f"{head}{begin}{NOTE}\n\n{make()}\n\n{end}{tail}"
    return found


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sardonyx.tools.tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a document is not current")
    options = parser.parse_args(args)
    stale: list[str] = []
    for path, text in documents().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if not options.check:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} {'is not current' if options.check else 'written'}")
    return int(bool(stale) and options.check)


if __name__ == "__main__":
    sys.exit(main())
