"""Where a graph's time goes: per kernel and per node, with bytes and operations beside the machine's ceilings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dtype_of, type_dims
from sardonyx.dialects.dims import solve
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import InvalidArgumentError


@dataclass(frozen=True)
class KernelTime:
    """A kernel launch.

    Attributes:
        kernel: Its name at the kernel level.
        node: The node that it bears the name of; of fused nodes the last.
        seconds: The median of its times.
    """

    kernel: str
    node: str
    seconds: float


@dataclass(frozen=True)
class NodeTime:
    """A node of the graph (or a line of the user's), with all kernels launched for it.

    Attributes:
        node: Its name, or the line.
        operators: The operators that stand there.
        seconds: The time of its kernels.
        bytes: What its operators read and write, if each were run by itself; None where an extent is not known.
        flops: The operations of its operators, a multiply-add counting as two; None likewise.
    """

    node: str
    operators: tuple[str, ...]
    seconds: float
    bytes: int | None
    flops: int | None


@dataclass(frozen=True)
class GraphProfile:
    """What a profile found.

    Attributes:
        seconds: The median time of a run.
        threads: How many threads ran it.
        kernels: The launches in order.
        nodes: The nodes, the slowest first.
        peak_flops, peak_bytes: The machine's measured ceilings for that many threads, a second.
    """

    seconds: float
    threads: int
    kernels: tuple[KernelTime, ...]
    nodes: tuple[NodeTime, ...]
    peak_flops: float
    peak_bytes: float

    def table(self, most: int = 30) -> str:
        """The slowest nodes as text."""
        whole = sum(k.seconds for k in self.kernels) or 1.0
        lines = [
            f"{self.seconds * 1e3:.3f} ms a run with {self.threads} thread{'s' * (self.threads != 1)}, "
            f"{whole * 1e3:.3f} ms in {len(self.kernels)} kernels; ceilings {self.peak_flops / 1e9:.0f} GFLOP/s, "
            f"{self.peak_bytes / 1e9:.1f} GB/s"
        ]
        for node in self.nodes[:most]:
            speed = f"{rate(node.flops, node.seconds):>7} GFLOP/s {rate(node.bytes, node.seconds):>7} GB/s"
            share = f"{node.seconds * 1e6:10.1f} us {100 * node.seconds / whole:5.1f} %"
            lines.append(f"{share}  {speed}  {', '.join(node.operators)} {node.node}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "threads": self.threads,
            "peak_flops": self.peak_flops,
            "peak_bytes": self.peak_bytes,
            "nodes": [vars(n) | {"operators": list(n.operators)} for n in self.nodes],
            "kernels": [vars(k) for k in self.kernels],
        }

    def chrome_trace(self) -> str:
        """One run in the trace event format that chrome://tracing and Perfetto read: kernels one after the other."""
        events, at = [], 0.0
        for kernel in self.kernels:
            span = kernel.seconds * 1e6
            entry = {"name": kernel.node or kernel.kernel, "ph": "X", "ts": at, "dur": span, "pid": 1, "tid": 1}
            events.append(entry | {"args": {"kernel": kernel.kernel}})
            at += span
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def rate(amount: int | None, seconds: float) -> str:
    """Billions a second; nothing where the amount is not known or nothing."""
    return f"{amount / seconds / 1e9:.3g}" if amount and seconds else ""


def profile_module(module: ModuleOp, arrays: Sequence[Any], runs: int, threads: int | None) -> GraphProfile:
    """Compile a graph with counters, run it, and say where the time went.

    Raises:
        UnsupportedError: An op has no native form.
    """
    from sardonyx.backends.llvm.ceilings import ceilings
    from sardonyx.backends.llvm.profile import profile
    from sardonyx.backends.llvm.runtime.pool import thread_count

    count = threads or thread_count()
    found = profile(module, arrays, runs, count)
    kernels = tuple(KernelTime(e.kernel, e.node, e.seconds) for e in found.launches)
    limits = ceilings(count)
    nodes = _nodes(module, kernels, _bound(module, arrays))
    return GraphProfile(found.seconds, count, kernels, tuple(nodes), limits.flops, limits.bytes)


def _bound(module: ModuleOp, arrays: Sequence[Any]) -> dict[str, int]:
    """The sizes of the dims that the inputs state."""
    sizes: dict[str, int] = {}
    for argument, array in zip(main_function(module).body.block.args, arrays):
        if isinstance(argument.type, TensorType):
            for dim, extent in zip(type_dims(argument.type), getattr(array, "shape", ())):
                if not dim.is_static:
                    sizes.update(solve(dim, extent, sizes) or {})
    return sizes


def _nodes(module: ModuleOp, kernels: Sequence[KernelTime], sizes: Mapping[str, int]) -> list[NodeTime]:
    seconds: dict[str, float] = {}
    for kernel in kernels:
        seconds[kernel.node] = seconds.get(kernel.node, 0.0) + kernel.seconds
    at: dict[str, list[Operation]] = {}
    for op in main_function(module).body.block.walk():
        if not isinstance(op, ConstantOp | func.FuncOp | func.ReturnOp):
            at.setdefault(locations.describe(op.location) or op.name, []).append(op)
    found = []
    for node, spent in seconds.items():
        ops = at.get(node, [])
        names = tuple(dict.fromkeys(op.name.removeprefix("sx.") for op in ops))
        found.append(NodeTime(node, names, spent, _sum(ops, _bytes, sizes), _sum(ops, _flops, sizes)))
    return sorted(found, key=lambda n: -n.seconds)


def _sum(ops: Sequence[Operation], of: Any, sizes: Mapping[str, int]) -> int | None:
    try:
        return sum(of(op, sizes) for op in ops) if ops else None
    except (KeyError, InvalidArgumentError):
        return None


def _extents(value: SSAValue, sizes: Mapping[str, int]) -> list[int]:
    if not isinstance(value.type, TensorType):
        raise InvalidArgumentError("its extents are not known")
    return [d.evaluate(sizes) for d in type_dims(value.type)]


def _size(value: SSAValue, sizes: Mapping[str, int]) -> int:
    count = 1
    for extent in _extents(value, sizes):
        count *= extent
    return count


def _bytes(op: Operation, sizes: Mapping[str, int]) -> int:
    values = [v for v in (*op.operands, *op.results) if is_tensor(v.type)]
    return sum(_size(v, sizes) * dtype_of(v).bits // 8 for v in values)


_FREE = {
    "reshape",
    "transpose",
    "slice",
    "concat",
    "split",
    "expand",
    "squeeze",
    "unsqueeze",
    "identity",
    "gather",
    "cast",
}


def _flops(op: Operation, sizes: Mapping[str, int]) -> int:
    name = op.name.removeprefix("sx.")
    if name in _FREE:
        return 0
    if name in ("matmul", "gemm", "matmul_integer"):
        inner = _extents(op.operands[0], sizes)[0 if name == "gemm" and bool(getattr(op, "transA", None)) else -1]
        return 2 * inner * _size(op.results[0], sizes)
    if name in ("conv", "conv_integer"):
        weights = _extents(op.operands[1], sizes)
        taps = 1
        for extent in weights[1:]:
            taps *= extent
        return 2 * taps * _size(op.results[0], sizes)
    largest = max((_size(v, sizes) for v in (*op.operands, *op.results) if is_tensor(v.type)), default=0)
    return largest
