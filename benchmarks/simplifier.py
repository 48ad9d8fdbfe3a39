"""Simplifies models with Sardonyx, OnnxSlim and onnxruntime, and makes the table of docs/simplifier.md.

    python benchmarks/simplifier.py MODELS [--only NAME ...] [--peers sardonyx basic ...]
                                           [--json figures.json [--missing]] [--write]

MODELS is a folder of .onnx files. What is counted are the nodes that are left, those in the bodies of control flow
among them and constants not, the transposes among them, and the bytes of the file with its weights. `--json` adds what
is measured to the figures that the file has, so that each peer may run in an environment of its own (`--missing`: what
the file has is not measured again); OnnxSlim and onnxruntime are needed for their columns only. `--write` puts the
table of all figures into the document.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "simplifier.md"
BEGIN, END = "<!-- begin table -->", "<!-- end table -->"


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the graphs in their attributes, but for constants."""
    for node in graph.node:
        if node.op_type != "Constant":
            yield node
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else []), *attribute.graphs):
                yield from all_nodes(inner)


def counts(path: Path) -> dict[str, int]:
    """Of a model file: nodes, transposes, and its bytes with the weights beside it."""
    proto = onnx.load(str(path), load_external_data=False)
    nodes = [node.op_type for node in all_nodes(proto.graph)]
    beside = {
        entry.value for t in proto.graph.initializer for entry in t.external_data if entry.key == "location"
    }  # fmt: skip
    size = path.stat().st_size + sum((path.parent / name).stat().st_size for name in beside)
    return {"nodes": len(nodes), "transposes": nodes.count("Transpose"), "bytes": size}


def sardonyx(source: Path, target: Path) -> None:
    from sardonyx import OnnxModel

    model = OnnxModel.open(source)
    model.optimize()
    model.save(target)


def onnxslim(source: Path, target: Path) -> None:
    import onnxslim as peer  # pyright: ignore[reportMissingImports]

    peer.slim(str(source), str(target))


def _onnxruntime(level: str) -> Callable[[Path, Path], None]:
    def run(source: Path, target: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(target)
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return run


PEERS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "basic": ("ORT basic", _onnxruntime("BASIC")),
    "extended": ("ORT extended", _onnxruntime("EXTENDED")),
    "onnxslim": ("OnnxSlim", onnxslim),
    "sardonyx": ("Sardonyx", sardonyx),
}


def measure(source: Path, peers: list[str]) -> dict[str, Any]:
    """What is left of a model, by peer; the text of the error where one fails."""
    out: dict[str, Any] = {"original": counts(source)}
    for peer in peers:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model.onnx"
            try:
                PEERS[peer][1](source, target)
                out[peer] = counts(target)
            except Exception as error:  # a peer's errors are of any kind; the table says that it failed
                if isinstance(error, ImportError):
                    raise
                out[peer] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return out


def cell(found: Any) -> str:
    if found is None:
        return ""
    return "fails" if isinstance(found, str) else f"{found['nodes']} / {found['transposes']}"


def table(figures: dict[str, dict[str, Any]]) -> str:
    heads = ["model", "nodes / transposes", *(title for title, _ in PEERS.values())]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for name, found in sorted(figures.items()):
        cells = [cell(found.get(column)) for column in ("original", *PEERS)]
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines)


def summary(figures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Sardonyx beside each peer: in how many models it leaves fewer, as many and more."""
    for peer in PEERS:
        pairs = [(n, f[peer], f["sardonyx"]) for n, f in sorted(figures.items()) if peer in f and "sardonyx" in f]
        pairs = [(n, a, b) for n, a, b in pairs if isinstance(a, dict) and isinstance(b, dict)]
        if peer == "sardonyx" or not pairs:
            continue
        for what in ("nodes", "transposes"):
            fewer, more = ([n for n, a, b in pairs if sign * (b[what] - a[what]) > 0] for sign in (-1, 1))
            total = f"{sum(a[what] for _, a, _ in pairs)} against {sum(b[what] for _, _, b in pairs)}"
            same = len(pairs) - len(fewer) - len(more)
            yield (
                f"{what} than {PEERS[peer][0]}: fewer in {len(fewer)}, as many in {same}, more in {len(more)} "
                f"({', '.join(more) or 'none'}); in all {total}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", type=Path, help="a folder of .onnx files")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--json", type=Path, help="figures that are added to")
    parser.add_argument("--missing", action="store_true", help="measure only what the figures lack")
    parser.add_argument("--write", action="store_true", help="put the table into docs/simplifier.md")
    options = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    if options.json and options.json.exists():
        figures = json.loads(options.json.read_text("utf-8"))
    for source in sorted(options.models.glob("*.onnx")):
        if options.only and source.stem not in options.only:
            continue
        known = figures.get(source.stem, {}) if options.missing else {}
        wanted = [peer for peer in options.peers if peer not in known]
        if not wanted:
            continue
        found = measure(source, wanted)
        figures.setdefault(source.stem, {}).update(found)
        print(source.stem, {peer: cell(found[peer]) for peer in wanted}, flush=True)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    print("\n".join(summary(figures)))
    if options.write:
        text = DOCUMENT.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table(figures)}\n\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
