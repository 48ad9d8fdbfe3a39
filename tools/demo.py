"""`sardonyx demo`: the whole way on a real model, the classifier of handwritten digits in `examples/digits`.

It traces the model, shows its IR before and after the passes, runs it natively, exports it to ONNX, reads the file
back, and compares all executions: reference, native, the file read back, and the file in onnxruntime where installed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from sardonyx.errors import InvalidArgumentError, UnsupportedError
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK

if TYPE_CHECKING:
    from sardonyx.passes.pipeline import PassReport

Array = np.ndarray[Any, Any]
TOLERANCES = {"logits": (1e-4, 1e-4), "probabilities": (1e-4, 1e-5)}
"""(relative, absolute) limits of an output's error against the reference, float32; logits reach 20."""
WIDTH = 78
_LARGE = re.compile(r'dense<("0x[0-9A-Fa-f]{32,}"|\[[^:>]{60,}\])>')


@dataclass(frozen=True)
class Execution:
    """One way of running the model: its name, its outputs, and a call that runs it on images."""

    name: str
    outputs: list[Array]
    call: Callable[[Array], Any]


EPILOG = """examples:
  sardonyx demo
  sardonyx demo --quiet --output digits        keep the ONNX files, leave out the IR

exit status: 0 all executions agree, 6 they differ, 1 a file cannot be written, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--output", metavar="DIR", help="keep the exported files in this folder")
    parser.add_argument("--quiet", action="store_true", help="leave out the IR")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Run the demo; 6 where the executions differ by more than their tolerances, or a prediction flips."""
    with _folder(options.output) as folder:
        return _Demo(out, folder, options.quiet).run()


@contextlib.contextmanager
def _folder(kept: str | None) -> Iterator[Path]:
    if kept is not None:
        path = Path(kept)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgumentError(f"cannot make the folder '{path}': {error.strerror}") from error
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="sardonyx-demo-") as folder:
        yield Path(folder)


class _Demo:
    def __init__(self, out: TextIO, folder: Path, quiet: bool) -> None:
        self.out = out
        self.folder = folder
        self.quiet = quiet

    def say(self, text: str = "") -> None:
        self.out.write(text + "\n")

    def title(self, text: str) -> None:
        self.say(f"\n── {text} " + "─" * max(0, WIDTH - len(text) - 4))

    def run(self) -> int:
        import sardonyx as sx
        from sardonyx.examples.digits.model import classifier, load_data

        data = load_data()
        images, labels = data.held_out_images, data.held_out_labels
        self.say("Sardonyx demo: a convolutional classifier of handwritten digits (UCI, 8x8 pixels)")
        self.say(f"{len(data.train_images)} images trained it; {len(images)} were held out and are classified here")

        self.title("1. trace")
        spec = sx.TensorSpec("images", sx.float32, ["batch", 8, 8])
        graph = sx.trace(classifier, (spec,), name="digits", output_names=["logits", "probabilities"]).graph
        self.say(f"examples/digits/model.py:classifier became {_size(graph)}; batch stays a named dim")
        if not self.quiet:
            self.say(f"\n{_elided(graph.text())}")

        self.title("2. rewrite")
        optimized = graph.clone()
        report = optimized.optimize()
        for entry in report.passes:
            self.say(f"  {entry.name:20s} {entry.seconds * 1e3:7.1f} ms   {_done(entry)}")
        self.say(f"{_size(graph)} became {_size(optimized)}")
        if not self.quiet:
            self.say(f"\n{_elided(optimized.text())}")

        self.title("3. compile to native code")
        self._compile(optimized)
        self.title("4. export to ONNX, and read the file back")
        path = self.folder / "digits.onnx"
        optimized.export_onnx(path)
        model = sx.OnnxModel.open(str(path))
        self.say(
            f"{path.name}: {path.stat().st_size:,} bytes, opset {model.opset}, {model.num_initializers} initializers"
        )
        for kind, slots in (("input", model.inputs()), ("output", model.outputs())):
            for name, dtype, dims in slots:
                self.say(f"  {kind:6s} {name}: {dtype}{list(dims or ())}")
        back = model.compile()
        back.finalize()

        executions = self._executions(graph, optimized, back, path, images)
        agreed = self._compare(executions, labels)
        self._times(executions, images)
        self.title("result")
        self.say("all executions agree" if agreed else "the executions DIFFER by more than their tolerances")
        return EXIT_OK if agreed else EXIT_CHECK

    def _compile(self, graph: Any) -> None:
        import sardonyx.backends.llvm.compile  # noqa: F401 -- importing LLVM is not compiling

        with _empty_cache():
            cold, warm = (_seconds(g.finalize) for g in (graph, graph.clone()))
        self.say(f"  {'cold':20s} {cold * 1e3:7.0f} ms   lowered, and compiled by LLVM for this machine")
        self.say(f"  {'warm':20s} {warm * 1e3:7.0f} ms   lowered, and the object code found in the cache on disk")
        self.say("a run of the whole graph enters native code once")

    def _executions(self, graph: Any, optimized: Any, back: Any, path: Path, images: Array) -> list[Execution]:
        def outputs(call: Callable[[Array], Any]) -> list[Array]:
            return [np.asarray(o) for o in call(images)]

        ways: list[tuple[str, Callable[[Array], Any]]] = [
            ("reference", lambda x: graph.evaluate([x])),
            ("native", lambda x: optimized.run([x])),
            ("ONNX file, read back", lambda x: back.run([x])),
        ]
        ways.append(self._other_runtime(path))
        return [Execution(name, outputs(call), call) for name, call in ways]

    def _other_runtime(self, path: Path) -> tuple[str, Callable[[Array], Any]]:
        """onnxruntime on the exported file; where it is not installed, ONNX's reference evaluator."""
        from sardonyx.backends.onnx.parity import ort_session, reference_session

        try:
            session = ort_session(path)
        except UnsupportedError as error:
            self.say(f"{error} ({error.hint}): ONNX's reference evaluator checks the file instead")
            reference = reference_session(path)
            return "ONNX file, reference", lambda x: reference({"images": x})
        return "ONNX file, onnxruntime", lambda x: session({"images": x})

    def _compare(self, executions: list[Execution], labels: Array) -> bool:
        reference = executions[0]
        self.title("5. compare")
        self.say(f"  {'':24s} {'accuracy':>9s}  {'flips':>5s}  {'logits':>18s}  {'probabilities':>18s}")
        self.say(f"  {'':24s} {'':>9s}  {'':>5s}  {'max abs / max rel':>18s}  {'max abs / max rel':>18s}")
        agreed = True
        expected = reference.outputs[0].argmax(1)
        for one in executions:
            predicted = one.outputs[0].argmax(1)
            flips = int((predicted != expected).sum())
            cells: list[str] = []
            for (relative, absolute), got, want in zip(
                TOLERANCES.values(), one.outputs, reference.outputs, strict=True
            ):
                error = np.abs(got.astype(np.float64) - want.astype(np.float64))
                scale = np.maximum(np.abs(want.astype(np.float64)), 1e-6)
                cells.append(f"{error.max():.1e} / {(error / scale).max():.1e}")
                agreed &= bool((error <= absolute + relative * np.abs(want)).all())
            agreed &= flips == 0
            accuracy = float((predicted == labels).mean())
            self.say(f"  {one.name:24s} {accuracy:9.2%}  {flips:5d}  {cells[0]:>18s}  {cells[1]:>18s}")
        limits = "; ".join(f"{name} rtol {r:g} atol {a:g}" for name, (r, a) in TOLERANCES.items())
        self.say(f"errors are against the reference; limits: {limits}; no flip is allowed")
        return agreed

    def _times(self, executions: list[Execution], images: Array) -> None:
        self.title("6. times")
        batches = [images[:1], images]
        heads = "".join(f"{f'{len(b)} images' if len(b) > 1 else '1 image':>16s}" for b in batches)
        self.say(f"  {'median of several runs':24s} {heads}")
        native: list[float] = []
        for one in executions:
            found = [_median_time(one.call, batch) for batch in batches]
            native = found if one.name == "native" else native
            self.say(f"  {one.name:24s} " + "".join(f"{_shown(t):>16s}" for t in found))
            if one.name.endswith("onnxruntime"):
                ratios = [t / n for t, n in zip(found, native, strict=True)]
                cells = "".join(f"{f'{r:.2f}x' if r < 10 else f'{r:.0f}x':>16s}" for r in ratios)
                self.say(f"  {'native is':24s} {cells}  as fast as onnxruntime")


def _done(entry: PassReport) -> str:
    """What a pass did: its rewrites by pattern, or that there was nothing to do."""
    if not entry.changed:
        return "nothing to do"
    patterns = {k.partition(":")[2]: v for k, v in entry.statistics.items() if k.startswith("rewrites:")}
    counted = [f"{name} x{count}" if count > 1 else name for name, count in sorted(patterns.items())]
    return ", ".join(counted) or f"{entry.statistics['rewrites']} rewrites"


@contextlib.contextmanager
def _empty_cache() -> Iterator[None]:
    """The time in which object code goes to a new folder, so that the first compilation is a cold one."""
    names = ("SARDONYX_CACHE", "SARDONYX_CACHE_DIR")
    before = {name: os.environ.pop(name, None) for name in names}
    with tempfile.TemporaryDirectory(prefix="sardonyx-demo-cache-") as folder:
        os.environ["SARDONYX_CACHE_DIR"] = folder
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _elided(text: str) -> str:
    """The IR without the contents of its larger constants."""
    return _LARGE.sub("dense<...>", text).rstrip()


def _size(graph: Any) -> str:
    nodes = [n for n in graph.nodes() if not n.is_input and not n.is_constant]
    return f"{len(nodes)} ops"


def _median_time(call: Callable[[Array], Any], batch: Array) -> float:
    """Seconds of a run: the median over up to half a second."""
    call(batch)
    times: list[float] = []
    end = time.perf_counter() + 0.5
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 2000):
        times.append(_seconds(lambda: call(batch)))
    return median(times)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
