"""Exports models with Sardonyx and with torch's own exporter, and makes the table of docs/torch.md.

    python benchmarks/torch_export.py [--models bert,gpt2] [--mode dynamic|static] [--json figures.json] [--write]

`--json` adds what is measured to the figures that the file has, so that the rows can be measured one by one.

Each export runs in a process of its own (forked, so that imports are not measured): time, peak memory beyond what the
process began with, nodes, bytes of the file with its weights, and the greatest difference from torch in onnxruntime
(and natively) over the example inputs and inputs of other sizes. Needs Linux, torch, transformers and onnxscript.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch_models import CASES, Case  # noqa: E402

import sardonyx as sx  # noqa: E402

BEGIN, END = "<!-- begin table -->", "<!-- end table -->"


def leaves(value: Any) -> list[torch.Tensor]:
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def export(exporter: str, case: Case, dynamic: Any) -> Any:
    if exporter == "sardonyx":
        return sx.export(case.module, case.args, kwargs=case.kwargs, dynamic_shapes=dynamic)
    return torch.onnx.export(
        case.module, case.args, kwargs=case.kwargs, dynamic_shapes=dynamic, dynamo=True, verbose=False
    )


def measure(exporter: str, name: str, mode: str) -> dict[str, Any]:
    """One export, in this process."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    case = CASES[name]()
    dynamic = case.dynamic if mode == "dynamic" else None
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before, start = memory("VmRSS"), time.perf_counter()
    program = export(exporter, case, dynamic)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        program.save(path)
        found: dict[str, Any] = {"seconds": time.perf_counter() - start, "memory": memory("VmHWM") - before}
        found["bytes"] = sum(p.stat().st_size for p in Path(folder).iterdir())
        onnx.checker.check_model(path, full_check=True)
        proto = onnx.load(path, load_external_data=False)
        found["nodes"] = len(proto.graph.node) + sum(len(f.node) for f in proto.functions)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst, native = 0.0, 0.0
    for args, kwargs in [(case.args, case.kwargs), *(case.others if dynamic is not None else [])]:
        with torch.no_grad():
            wanted = leaves(case.module(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
        given = [v.numpy() for v in leaves((args, kwargs))]
        inputs = [i.name for i in session.get_inputs()]
        worst = max(worst, difference(wanted, list(session.run(None, dict(zip(inputs, given))))))
        if exporter == "sardonyx":
            native = max(native, difference(wanted, [t.numpy() for t in program(*args, **kwargs)]))
    return {**found, "error": worst, "native": native}


def difference(wanted: list[torch.Tensor], found: list[Any]) -> float:
    if len(wanted) != len(found):
        raise ValueError(f"{len(found)} results for {len(wanted)}")
    worst = 0.0
    for want, got in zip(wanted, found):
        if tuple(want.shape) != np.shape(got):
            raise ValueError(f"a result has shape {np.shape(got)}, not {tuple(want.shape)}")
        if want.numel():
            worst = max(worst, float(np.abs(want.numpy().astype(np.float64) - np.asarray(got, np.float64)).max()))
    return worst


def in_a_child(exporter: str, name: str, mode: str) -> dict[str, Any]:
    """`measure` in a forked process; what goes wrong there is the result's `failure`."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nothing:
                warnings.simplefilter("ignore")
                os.dup2(nothing.fileno(), 1)
                os.dup2(nothing.fileno(), 2)
                result = measure(exporter, name, mode)
        except Exception as error:  # noqa: BLE001 - whatever an exporter raises is the finding
            text = str(error).strip().splitlines()
            result = {"failure": f"{type(error).__name__}: {text[0] if text else ''}"[:200]}
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else {"failure": "the process died"}


def table(figures: dict[str, dict[str, Any]]) -> str:
    head = (
        "| model | exporter | max error | native | nodes | KiB | seconds | peak MiB |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    rows = [head]
    for name in sorted(figures, key=list(CASES).index):
        for exporter, found in sorted(figures[name].items()):
            if "failure" in found:
                said = re.sub("\x1b\\[[0-9;]*m", "", found["failure"]).partition(" This is step")[0].replace("|", "/")
                rows.append(f"| {name} | {exporter} | **fails**: {said} | | | | | |")
                continue
            native = f"{found['native']:.1e}" if exporter == "sardonyx" else ""
            rows.append(
                f"| {name} | {exporter} | {found['error']:.1e} | {native} | {found['nodes']} | "
                f"{found['bytes'] / 1024:.0f} | {found['seconds']:.1f} | {found['memory'] / 2**20:.0f} |"
            )
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="names, separated by commas; by default all, none for an empty text")
    parser.add_argument("--mode", choices=("dynamic", "static"), default="dynamic")
    parser.add_argument("--exporters", default="sardonyx,torch")
    parser.add_argument("--json", help="add the figures to those of this file; the table is of all")
    parser.add_argument("--write", action="store_true", help="put the table into docs/torch.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = list(CASES) if options.models is None else [n for n in options.models.split(",") if n]
    exporters = options.exporters.split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for exporter in exporters:  # so that imports and first calls are nobody's
            export(exporter, CASES["mlp"](), None)
    figures: dict[str, dict[str, Any]] = {}
    if options.json and Path(options.json).exists():
        figures = json.loads(Path(options.json).read_text(encoding="utf-8"))
    for name in names:
        for exporter in exporters:
            figures.setdefault(name, {})[exporter] = found = in_a_child(exporter, name, options.mode)
            print(name, exporter, json.dumps(found), file=sys.stderr, flush=True)
            if options.json:
                Path(options.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")
    made = table(figures)
    print(made)
    if options.write:
        path = ROOT / "docs" / "torch.md"
        text = path.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
