"""Draws graphs as SVG, and as an HTML page on which one can move, zoom, search and look at an op.

Constants stand inside the ops that read them, functions below each other. Nothing is fetched from anywhere.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.traits import ConstantLike

from sardonyx.backends.onnx.names import node_name
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.files import write_whole
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import describe_type
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes import provenance
from sardonyx.tools import graph_layout

MAX_OPS = 5000
"""Larger graphs are refused: nobody could look at them."""

CHARACTER = 6.7
LINE = 16.0
SHOWN = 44
"""The most characters of a line in a box; what is longer is in the tooltip."""


@dataclass
class Box:
    """An op, an input or an output, as it is drawn.

    Attributes:
        title: The op's name, or that of the input or output.
        lines: What stands below: types, constants.
        name: What it is called in the model, if it is named there.
        kind: For the colour: `heavy`, `elementwise`, `move`, `reduce`, `region`, `input`, `output`, `other`.
        facts: All there is to say of it, for the tooltip and the page's panel.
    """

    title: str
    lines: tuple[str, ...] = ()
    name: str = ""
    kind: str = "other"
    facts: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Drawing:
    """A graph to draw: boxes, and who leads to whom (source, target, what flows)."""

    title: str
    boxes: list[Box] = field(default_factory=list[Box])
    edges: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])


_HIDDEN = ("sx.node_metadata", "operandSegmentSizes", "resultSegmentSizes")
"""Attributes that say nothing to whoever looks at the picture."""
_HEAVY = {"matmul", "conv", "matmul_integer", "quantize_product", "recurrent_layers", "einsum", "deform_conv"}
_MOVES = {
    "reshape",
    "transpose",
    "slice",
    "concat",
    "pad",
    "tile",
    "gather",
    "scatter",
    "space",
    "shape",
    "cast",
    "fill",
}
_REDUCES = {"reduce", "argreduce", "norm", "softmax", "layer_norm", "pool", "lp_pool", "cumsum", "topk"}


def kind_of(op: Operation) -> str:
    """The family of an op, for its colour."""
    if op.regions:
        return "region"
    family = type(op).__module__.rpartition(".")[2] if isinstance(op, SxOp) else ""
    if family in _HEAVY or op.name == "kernel.launch":
        return "heavy"
    if family in _MOVES:
        return "move"
    if family in _REDUCES:
        return "reduce"
    return "elementwise" if getattr(op, "ELEMENTWISE", False) else "other"


def drawings_of(module: ModuleOp) -> list[Drawing]:
    """The graphs of a module's functions.

    Raises:
        InvalidArgumentError: There are more than `MAX_OPS` ops.
    """
    count = sum(1 for _ in module.walk())
    if count > MAX_OPS:
        raise InvalidArgumentError(f"the graph has {count} ops, and more than {MAX_OPS} are not drawn")
    found = [
        _draw(op.sym_name.data, op.body.block.args, list(op.body.block.ops))
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp) and op.body.blocks
    ]
    rest = [op for op in module.body.block.ops if not isinstance(op, func.FuncOp)]
    for op in rest:
        if len(op.regions) == 1 and op.regions[0].blocks and "sym_name" in op.properties:
            block = op.regions[0].blocks[0]
            found.append(_draw(f"{op.name} {op.properties['sym_name']}", block.args, list(block.ops)))
    return found


def _draw(title: str, arguments: Sequence[BlockArgument], ops: Sequence[Operation]) -> Drawing:
    drawing = Drawing(title)
    at: dict[SSAValue, int] = {}
    for number, argument in enumerate(arguments):
        name = argument.name_hint or f"arg{number}"
        at[argument] = len(drawing.boxes)
        drawing.boxes.append(
            Box(name, (_type(argument.type),), name, "input", {"input": name, "type": _type(argument.type)})
        )
    for op in ops:
        if _is_constant(op):
            continue
        box = _box(op)
        number = len(drawing.boxes)
        drawing.boxes.append(box)
        at.update((result, number) for result in op.results)
        sources: dict[int, str] = {}
        for value in _read(op):
            if value in at:
                sources.setdefault(at[value], _type(value.type))
        drawing.edges += [(source, number, text) for source, text in sources.items()]
    return drawing


def _read(op: Operation) -> Iterable[SSAValue]:
    """What an op reads, from outside of its regions."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def _is_constant(op: Operation) -> bool:
    return isinstance(op, ConstantOp) or (op.has_trait(ConstantLike) and not op.operands)


def _box(op: Operation) -> Box:
    if isinstance(op, func.ReturnOp):
        return Box("outputs", tuple(_type(v.type) for v in op.operands)[:6], "", "output", {"op": op.name})
    lines = [_type(result.type) for result in op.results[:4]]
    constants = [f"{value.name_hint or 'const'}: {_type(value.type)}" for value in op.operands if _constant(value)]
    attributes = {**op.properties, **op.attributes}
    facts = {"op": op.name}
    facts |= {f"result {i}": _type(r.type) for i, r in enumerate(op.results)}
    facts |= {f"operand {i}": _operand(v) for i, v in enumerate(op.operands)}
    texts = {name: attribute_text(value) for name, value in attributes.items() if name not in _HIDDEN}
    facts |= {name: _cut(text, 300) for name, text in texts.items()}
    notes = attributes.get("sx.node_metadata")
    if isinstance(notes, DictionaryAttr):
        facts |= {k.rpartition(".")[2]: v.data for k, v in notes.data.items() if isinstance(v, StringAttr)}
    where = locations.describe(op.location)
    if where:
        facts["from"] = where
    made_by, _ = provenance.peel(op.location)
    if made_by:
        facts["made by"] = ", ".join(made_by)
    if op.regions:
        facts["inside"] = f"{sum(1 for region in op.regions for _ in region.walk())} ops"
        lines.append(facts["inside"])
    shown = [f"{name}={text}" for name, text in texts.items() if len(text) <= 24]
    name = node_name(op.location) or ""
    return Box(op.name.removeprefix("sx."), (*lines, *constants[:3], *shown[:2]), name, kind_of(op), facts)


def _constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and _is_constant(value.owner)


def _operand(value: SSAValue) -> str:
    name = f"%{value.name_hint}: " if value.name_hint else ""
    return f"{'constant ' if _constant(value) else ''}{name}{_type(value.type)}"


def attribute_text(value: Attribute) -> str:
    """As one would write it: `[0, 2, 1]` for `array<i64: 0, 2, 1>`, `3` for `3 : i64`."""
    text = str(value)
    if isinstance(value, DenseArrayBase):
        return f"[{', '.join(map(str, value.get_values()))}]"
    return text.rpartition(" : ")[0] if isinstance(value, IntegerAttr | FloatAttr) and " : " in text else text


def _type(ty: Attribute) -> str:
    """As `float32[batch, 37]`."""
    if isinstance(ty, TensorType):
        return f"{_dtype(ty)}[{', '.join(map(str, type_dims(ty)))}]"
    return f"{_dtype(ty)}[...]" if isinstance(ty, UnrankedTensorType) else _dtype(ty)


def _dtype(ty: Attribute) -> str:
    try:
        found = describe_type(ty)
    except SardonyxError:
        return str(ty)
    return str(ty) if found == "unknown" else found


def _cut(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# ---- SVG

STYLE = """\
.node rect{stroke-width:1.2;rx:6}
.node text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}
.node .title{font-weight:600}
.node .line{fill:#57606a;font-size:11px}
.edge{fill:none;stroke:#8c959f;stroke-width:1.3}
.edge-head{fill:#8c959f}
.function{font:600 13px ui-sans-serif,system-ui,sans-serif;fill:#57606a}
.heavy rect{fill:#fde8d7;stroke:#d9832f}.elementwise rect{fill:#e3f1e4;stroke:#5a9e62}
.move rect{fill:#e6edf9;stroke:#6b8fd0}.reduce rect{fill:#f3e6f8;stroke:#a870bf}
.region rect{fill:#fff6cf;stroke:#bf9b2c}.input rect,.output rect{fill:#eceff2;stroke:#8c959f}
.other rect{fill:#ffffff;stroke:#8c959f}.node.found rect{stroke:#cf222e;stroke-width:3}
.node.chosen rect{stroke:#0969da;stroke-width:3}.choosing .node:not(.near),.choosing .edge:not(.near){opacity:.38}
.edge.near{stroke:#0969da;stroke-width:2.2}.far .line{display:none}
@media(prefers-color-scheme:dark){
.node text{fill:#e6edf3}.node .line,.function{fill:#9da7b1}.edge{stroke:#6e7681}.edge-head{fill:#6e7681}
.heavy rect{fill:#4a2f18}.elementwise rect{fill:#1e3a23}.move rect{fill:#1d2c49}.reduce rect{fill:#38234a}
.node.chosen rect,.edge.near{stroke:#58a6ff}
.region rect{fill:#41370f}.input rect,.output rect{fill:#2a3037}.other rect{fill:#1c2128}}
"""


def svg(drawings: Sequence[Drawing], standalone: bool = True) -> str:
    """The drawings below each other as one SVG; `standalone` gives it its style and its background."""
    parts: list[str] = []
    width, y, first = 0.0, 0.0, 0
    for drawing in drawings:
        content, wide, high = _svg_of(drawing, first, y + 26)
        first += len(drawing.boxes)
        parts.append(
            f'<text class="function" x="0" y="{y + 12:.0f}">{html.escape("@" + drawing.title)}</text>{content}'
        )
        width = max(width, wide)
        y += high + 66
    wide, high = width + 32, max(y - 24, 16) + 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -8 {wide:.0f} {high:.0f}"'
    size = f' width="{wide:.0f}" height="{high:.0f}"' if standalone else ' class="graph"'
    style = f"<style>svg{{background:Canvas}}{STYLE}</style>" if standalone else ""
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="edge-head" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return f"{head}{size}>{style}{marker}{''.join(parts)}</svg>\n"


def _svg_of(drawing: Drawing, first: int, top: float) -> tuple[str, float, float]:
    nodes = [_size(box) for box in drawing.boxes]
    edges = [graph_layout.Edge(source, target) for source, target, _ in drawing.edges]
    width, height = graph_layout.place(nodes, edges)
    out: list[str] = []
    for edge, (source, target, text) in zip(edges, drawing.edges):
        ends = f'data-from="{first + source}" data-to="{first + target}"'
        out.append(
            f'<path class="edge" {ends} marker-end="url(#head)" d="{_curve(edge.path, top)}">'
            f"<title>{html.escape(text)}</title></path>"
        )
    for number, (node, box) in enumerate(zip(nodes, drawing.boxes), first):
        out.append(_svg_box(node, box, number, top))
    return "".join(out), width, height


def _size(box: Box) -> graph_layout.Node:
    longest = max(len(_cut(line)) for line in (box.title + " ", *box.lines))
    return graph_layout.Node(longest * CHARACTER + 20, LINE * (1 + len(box.lines)) + 12)


def _curve(path: Sequence[tuple[float, float]], top: float) -> str:
    x, y = path[0]
    words = [f"M{x:.0f} {y + top:.0f}"]
    for a, b in path[1:]:
        bend = (b - y) / 2
        words.append(f"C{x:.0f} {y + bend + top:.0f} {a:.0f} {b - bend + top:.0f} {a:.0f} {b + top:.0f}")
        x, y = a, b
    return "".join(words)


def _svg_box(node: graph_layout.Node, box: Box, number: int, top: float) -> str:
    x, y = node.x, node.y + top
    lines = [f'<text class="title" x="{x + 10:.0f}" y="{y + 18:.0f}">{html.escape(_cut(box.title))}</text>']
    for row, line in enumerate(box.lines, 1):
        at = y + 18 + LINE * row
        lines.append(f'<text class="line" x="{x + 10:.0f}" y="{at:.0f}">{html.escape(_cut(line))}</text>')
    facts = "\n".join(f"{name}: {value}" for name, value in box.facts.items())
    data = f'data-n="{number}" data-name="{html.escape(box.name)}" data-facts="{html.escape(json.dumps(box.facts))}"'
    return (
        f'<g class="node {box.kind}" {data}><title>{html.escape(facts)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{node.width:.0f}" height="{node.height:.0f}"/>{"".join(lines)}</g>'
    )


# ---- HTML

PAGES = Path(__file__).parent


def page(drawings: Sequence[Drawing], title: str) -> str:
    """A page with the drawings."""
    count = sum(len(drawing.boxes) for drawing in drawings)
    values = {
        "title": html.escape(title),
        "count": f"{count} boxes",
        "style": STYLE,
        "svg": svg(drawings, standalone=False),
        "script": (PAGES / "view.js").read_text("utf-8"),
    }
    text = (PAGES / "view.html").read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def write_view(module: ModuleOp, path: Path, title: str) -> int:
    """Write the graph as `.svg` or `.html`, by the file's name; returns how many boxes there are.

    Raises:
        InvalidArgumentError: It is too large, or cannot be written.
    """
    drawings = drawings_of(module)
    content = svg(drawings) if path.suffix == ".svg" else page(drawings, title)
    write_whole(path, content.encode())
    return sum(len(drawing.boxes) for drawing in drawings)
