"""Exports a synthetic model whose weights are mapped from a file, and says how much memory and time that took.

    python tests/support/large_export.py --gib 3 --folder /tmp/large [--run] [--copy]

The model is a chain of matrix products with one weight of 64 MiB each (smaller for less than 1 GiB). Memory is what the
process holds beside mapped files, sampled while it opens, imports and exports; `flush_s` is how long the disk then
takes to have it all. `--copy` copies the weights with nothing else around it, for comparison; `--run` lets onnxruntime
open and run the result, and the model that it came from. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper


def make_model(folder: Path, size: int) -> Path:
    """A model of about `size` bytes of weights, which lie in a file beside it."""
    side = 4096 if size >= 1 << 30 else 256
    layers = max(2, size // (4 * side * side))
    block = (np.random.default_rng(1).normal(size=(side, side)) / np.sqrt(side)).astype("f4")
    folder.mkdir(parents=True, exist_ok=True)
    tensors: list[onnx.TensorProto] = []
    with open(folder / "weights.bin", "wb") as file:
        for layer in range(layers):
            tensor = onnx.TensorProto(name=f"w{layer}", data_type=onnx.TensorProto.FLOAT, dims=[side, side])
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", file.tell()), ("length", block.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
            file.write(np.roll(block, layer).data)
    names = ["x", *(f"h{layer}" for layer in range(1, layers)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", side]) for n in "xy")
    graph = helper.make_graph(nodes, "large", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / "source.onnx"
    path.write_bytes(model.SerializeToString())
    return path


class Memory(threading.Thread):
    """Samples the anonymous memory of this process; `peak` is in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.start_value = self.peak = anonymous()
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.005):
            self.peak = max(self.peak, anonymous())


def anonymous() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise OSError("the kernel does not say how much anonymous memory there is")


def export(source: Path, target: Path) -> dict[str, Any]:
    """Open, import and export; seconds and bytes."""
    from sardonyx import OnnxModel

    memory = Memory()
    memory.start()
    start = time.perf_counter()
    graph = OnnxModel.open(source).compile()
    imported = time.perf_counter()
    graph.export_onnx(target)
    done = time.perf_counter()
    memory.done.set()
    memory.join()
    beside = target.with_name(f"{target.stem}_data")
    flush = flushed(*(path for path in (target, beside) if path.exists()))
    return {
        "import_s": round(imported - start, 3),
        "export_s": round(done - imported, 3),
        "flush_s": flush,
        "weights": source.with_name("weights.bin").stat().st_size,
        "beside": beside.stat().st_size if beside.exists() else 0,
        "peak_anonymous": memory.peak - memory.start_value,
    }


def flushed(*paths: Path) -> float:
    """Seconds until the disk has what was written to these files."""
    start = time.perf_counter()
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    return round(time.perf_counter() - start, 3)


def copied(source: Path, target: Path) -> dict[str, float]:
    """The same bytes copied by the system, and nothing else."""
    start = time.perf_counter()
    shutil.copyfile(source, target)
    seconds = round(time.perf_counter() - start, 3)
    out = {"copy_s": seconds, "copy_flush_s": flushed(target)}
    target.unlink()
    return out


def run(path: Path) -> Any:
    """What onnxruntime computes for a fixed input."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    side = session.get_inputs()[0].shape[1]
    return session.run(None, {"x": np.linspace(-1, 1, side, dtype="f4")[None]})[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--copy", action="store_true")
    options = parser.parse_args()
    try:
        source = make_model(options.folder, int(options.gib * (1 << 30)))
        flushed(options.folder / "weights.bin")
        report = export(source, options.folder / "target.onnx")
        if options.copy:
            report |= copied(options.folder / "weights.bin", options.folder / "copy.bin")
        if options.run:
            start = time.perf_counter()
            found = run(options.folder / "target.onnx")
            report["onnxruntime_s"] = round(time.perf_counter() - start, 3)
            report["same"] = bool((run(source) == found).all())
        print(json.dumps(report))
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
