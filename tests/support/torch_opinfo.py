"""The op-level harness: torch's own samples for its core operators, translated and run in three ways.

`python tests/support/torch_opinfo.py --json out.json` runs all of them (minutes); the tests run a share.
Needs torch and expecttest, which torch.testing imports.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from sardonyx.errors import SardonyxError
from sardonyx.frontend.torch.arrays import array_of
from sardonyx.frontend.torch.capture import capture, decompose
from sardonyx.frontend.torch.translate import Translator

ALIASES = {
    "_adaptive_avg_pool2d": "nn.functional.adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward": "",
    "_adaptive_avg_pool3d": "nn.functional.adaptive_avg_pool3d",
    "_cdist_forward": "cdist", "_embedding_bag": "nn.functional.embedding_bag", "_fft_c2r": "fft.irfft",
    "_fft_r2c": "fft.rfft", "_local_scalar_dense": "item", "_log_softmax": "log_softmax",
    "_native_batch_norm_legit": "nn.functional.batch_norm",
    "_native_batch_norm_legit_no_training": "nn.functional.batch_norm", "_pdist_forward": "nn.functional.pdist",
    "_softmax": "softmax", "_to_copy": "to", "adaptive_avg_pool1d": "nn.functional.adaptive_avg_pool1d",
    "alias": "alias_copy", "avg_pool1d": "nn.functional.avg_pool1d", "avg_pool2d": "nn.functional.avg_pool2d",
    "avg_pool3d": "nn.functional.avg_pool3d", "col2im": "nn.functional.fold", "constant_pad_nd": "constant_pad_nd",
    "convolution": "nn.functional.conv1d,nn.functional.conv2d,nn.functional.conv3d,nn.functional.conv_transpose2d",
    "copy": "copysign", "elu": "nn.functional.elu", "embedding": "nn.functional.embedding",
    "gelu": "nn.functional.gelu", "grid_sampler_2d": "nn.functional.grid_sample", "hardtanh": "nn.functional.hardtanh",
    "index": "__getitem__", "leaky_relu": "nn.functional.leaky_relu",
    "max_pool2d_with_indices": "nn.functional.max_pool2d",
    "max_pool3d_with_indices": "nn.functional.max_pool3d", "native_dropout": "nn.functional.dropout",
    "native_group_norm": "nn.functional.group_norm", "native_layer_norm": "nn.functional.layer_norm",
    "reflection_pad1d": "nn.functional.pad", "relu": "nn.functional.relu",
    "upsample_bilinear2d": "nn.functional.interpolate",
    "upsample_nearest2d": "nn.functional.interpolate", "view": "view", "where": "where",
    "scalar_tensor": "scalar_tensor",
    "sym_numel": "", "sym_size": "", "sym_storage_offset": "", "sym_stride": "", "max": "max", "min": "min",
    "max_pool2d_with_indices_backward": "", "native_group_norm_backward": "", "native_layer_norm_backward": "",
    "avg_pool2d_backward": "", "convolution_backward": "", "embedding_dense_backward": "", "rand": "", "randperm": "",
    "squeeze": "squeeze", "empty": "empty", "linear": "nn.functional.linear",
    "scaled_dot_product_attention": "nn.functional.scaled_dot_product_attention",
}  # fmt: skip
"""Names of torch's samples for operators that have none under their own; '' for none at all."""

RANDOM = frozenset({"randn", "rand", "randperm", "empty", "empty_strided", "empty_like", "nn.functional.dropout"})
"""Whose values are not defined: shapes and dtypes are compared."""


def core_names() -> list[str]:
    """The names of torch's core operators, without overloads."""
    found = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            if torch.Tag.core in getattr(packet, overload).tags:
                found.add(name)
    return sorted(found)


def sample_sets() -> dict[str, Any]:
    """torch's sample generators for the core operators, by their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    wanted: set[str] = set()
    for name in [*core_names(), "linear", "scaled_dot_product_attention"]:
        wanted.update(ALIASES.get(name, name).split(","))
    return {
        op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db if op.name in wanted
    }


class Wrapped(torch.nn.Module):
    """A function on tensors as a module; everything else is baked in."""

    def __init__(self, function: Any, values: list[Any], spec: Any, places: list[int]) -> None:
        super().__init__()
        self.function, self.spec, self.places = function, spec, places
        self.rest = [None if i in places else v for i, v in enumerate(values)]

    def forward(self, *tensors: Any) -> Any:
        values = list(self.rest)
        for place, tensor in zip(self.places, tensors):
            values[place] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(values, self.spec)
        return self.function(*args, **kwargs)


@dataclass
class Outcome:
    """What became of one sample."""

    name: str
    dtype: str
    status: str
    """agrees, refused, differs, uncaptured (torch.export cannot), complex (no real form)."""
    message: str = ""
    native: str = ""
    ort: str = ""
    ops: list[str] = field(default_factory=list)


def run_sample(name: str, op: Any, sample: Any, dtype: str, native: bool = True, ort: bool = True) -> Outcome:
    """Export one sample and hold every execution against torch."""
    leaves, spec = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]
    tensors = tuple(leaves[i].detach() for i in places)
    if any(t.is_complex() for t in tensors):
        return Outcome(name, dtype, "complex")
    module = Wrapped(op.op, leaves, spec, places)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            want = module(*(t.clone() for t in tensors))
        except Exception as error:  # noqa: BLE001 - samples that torch itself refuses
            return Outcome(name, dtype, "uncaptured", f"torch: {error}")
        wanted = [w for w in torch.utils._pytree.tree_leaves(want) if isinstance(w, torch.Tensor)]
        if any(w.is_complex() for w in wanted):
            return Outcome(name, dtype, "complex")
        try:
            program = decompose(capture(module, tensors), {})
        except Exception as error:  # noqa: BLE001 - torch's own failures are counted apart
            return Outcome(name, dtype, "uncaptured", str(error)[:300])
    ops = sorted({str(n.target) for n in program.graph.nodes if n.op == "call_function"})
    try:
        made = Translator(program, "op").run([], lambda _: [f"out{i}" for i in range(len(wanted) + 8)])
        graph = made.graph
        arrays = [array_of(t) for t in tensors][: len(made.inputs)]
        got = [t.numpy() for t in graph.evaluate(arrays)]
    except SardonyxError as error:
        return Outcome(name, dtype, "refused", f"{type(error).__name__}: {error.message}"[:300], ops=ops)
    except Exception as error:  # noqa: BLE001 - a defect of ours is an outcome, too
        return Outcome(name, dtype, "differs", f"CRASH {type(error).__name__}: {error}"[:300], ops=ops)
    loose = name.split(".")[0] in RANDOM or name in RANDOM
    problem = compare(wanted, got, loose)
    outcome = Outcome(name, dtype, "differs" if problem else "agrees", problem, ops=ops)
    if not problem:
        feeds = dict(zip(graph.input_names(), arrays))
        if native:
            outcome.native = _native(graph, arrays, wanted, loose)
        if ort:
            outcome.ort = _ort(graph, feeds, wanted, loose)
    return outcome


def _native(graph: Any, arrays: list[Any], wanted: list[Any], loose: bool) -> str:
    compiled = graph.clone()
    try:
        compiled.finalize()
        return compare(wanted, [t.numpy() for t in compiled.run(arrays)], loose) or "agrees"
    except SardonyxError as error:
        return f"refused: {error.message}"[:200]


def _ort(graph: Any, feeds: dict[str, Any], wanted: list[Any], loose: bool) -> str:
    import onnxruntime

    from sardonyx.frontend.onnx.model import OnnxModel

    onnxruntime.set_default_logger_severity(4)
    try:
        proto = OnnxModel.from_graph(graph).to_proto().SerializeToString()
    except SardonyxError as error:
        return f"refused: {error.message}"[:200]
    try:
        session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
        names = {i.name for i in session.get_inputs()}
        return (
            compare(wanted, list(session.run(None, {k: v for k, v in feeds.items() if k in names})), loose) or "agrees"
        )
    except Exception as error:  # noqa: BLE001 - onnxruntime's own classes
        return f"onnxruntime: {error}"[:300]


def compare(wanted: list[Any], got: list[Any], loose: bool) -> str:
    """The first difference beyond torch's own tolerances; '' where there is none."""
    if len(wanted) != len(got):
        return f"{len(got)} results for {len(wanted)}"
    for index, (w, g) in enumerate(zip(wanted, got)):
        want = array_of(w)
        if want.shape != g.shape or want.dtype != g.dtype:
            return f"result {index}: {g.dtype}{list(g.shape)} for {want.dtype}{list(want.shape)}"
        if loose:
            continue
        if want.dtype.kind == "f":
            if not np.allclose(want, g, rtol=1e-4, atol=1e-5, equal_nan=True):
                with np.errstate(all="ignore"):
                    worst = np.nanmax(np.abs(want.astype(np.float64) - g)) if want.size else 0
                return f"result {index} differs by up to {worst}"
        elif not np.array_equal(want, g):
            return f"result {index} differs in {int((want != g).sum())} of {want.size} elements"
    return ""


def run(names: Sequence[str] | None, limit: int, native: bool, ort: bool, dtypes: tuple[str, ...]) -> list[Outcome]:
    found: list[Outcome] = []
    sets = sample_sets()
    for name, op in sets.items():
        if names and name not in names and op.name not in names:
            continue
        for dtype in dtypes:
            kind = getattr(torch, dtype)
            if kind not in op.supported_dtypes("cpu"):
                continue
            torch.manual_seed(0)
            samples = list(op.sample_inputs("cpu", kind, requires_grad=False))
            step = max(1, len(samples) // limit)
            for sample in samples[::step][:limit]:
                found.append(run_sample(name, op, sample, dtype, native, ort))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--json")
    parser.add_argument("--no-native", action="store_true")
    parser.add_argument("--no-ort", action="store_true")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    outcomes = run(options.names, options.limit, not options.no_native, not options.no_ort, ("float32", "int64"))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([o.__dict__ for o in outcomes], file, indent=1)
    counts = Counter(o.status for o in outcomes)
    print(dict(counts), "native", dict(Counter(o.native.split(":")[0][:8] for o in outcomes if o.native)),
          "ort", dict(Counter(o.ort.split(":")[0][:8] for o in outcomes if o.ort)))  # fmt: skip
    shown: Counter[str] = Counter()
    for o in outcomes:
        bad = o.status in ("refused", "differs") or (o.status == "uncaptured" and options.v)
        for what, text in (("", o.message if bad else ""), ("native ", o.native), ("ort ", o.ort)):
            if text and text != "agrees":
                line = f"{o.name} {o.dtype} {what}{o.status}: {text}"
                if not shown[o.name + what]:
                    print(line[:260])
                shown[o.name + what] += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
