"""Generates the Python side of a call for one graph's inputs and outputs: no loop, no table look-up, one native call.

Two functions are made: `run(arrays)` allocates the outputs whose extents follow from the inputs', and `run_into(arrays,
out)` has native code write into the caller's arrays. Whatever is out of the ordinary goes to `run_carefully`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.backends.llvm.runtime.blocks import LARGE, take
from sardonyx.backends.llvm.runtime.shapes import Array

if TYPE_CHECKING:
    from sardonyx.backends.llvm.runtime.call import CompiledGraph


def generate_callers(
    graph: CompiledGraph, shapes: Sequence[str | None], entry: Callable[..., int], idle: list[int]
) -> Callable[..., list[Array]]:
    """`run(arrays, out=None)`.

    `shapes` are the outputs' as Python source over the inputs' shapes `s0, s1 …`, None where data decides; `entry` is
    `entry_py` on arrays (`enter_function`); `idle` holds the addresses of contexts that no run uses.
    """
    scope: dict[str, Any] = {
        "ndarray": np.ndarray, "empty": np.empty, "take": take, "careful": graph.run_carefully, "entry": entry,
        "new_context": graph._new_context, "pop": idle.pop, "push": idle.append, "adopt": graph.adopt_outputs,
        "failed": graph.failed, "overlap": np.may_share_memory,
        **{f"t{k}": port.dtype.numpy for k, port in enumerate(graph.outputs)},
    }  # fmt: skip
    lines = ["def run(arrays, out=None):", "    if out is not None: return run_into(arrays, out)"]
    lines += _body(graph, shapes, _allocations(graph, shapes), "None")
    if all(shape is not None for shape in shapes):
        lines += ["def run_into(arrays, out):"]
        lines += _body(graph, shapes, _given(graph, shapes), "out")
    else:
        scope["run_into"] = graph.run_carefully
    exec("\n".join(lines), scope)
    return scope["run"]


def _body(graph: CompiledGraph, shapes: Sequence[str | None], outputs: list[str], out: str) -> list[str]:
    inputs = [f"a{k}" for k in range(len(graph.inputs))]
    lines = ["    try:", f"        ({', '.join(inputs)}{',' if len(inputs) == 1 else ''}) = arrays"]
    for name in inputs:
        lines.append(f"        if type({name}) is not ndarray: {name} = {name}._array")
    for k in range(len(inputs)):
        if any(shape and f"s{k}[" in shape for shape in shapes):
            lines.append(f"        s{k} = a{k}.shape")
    lines += outputs
    lines += ["    except (AttributeError, ValueError, TypeError, IndexError, ZeroDivisionError, MemoryError):"]
    lines += [f"        return careful(arrays, {out})"]
    results = ["None" if shape is None else f"o{k}" for k, shape in enumerate(shapes)]
    lines += [
        "    try: context = pop()",
        "    except IndexError: context = new_context()",
        "    try:",
        f"        status = entry({', '.join(['context', *inputs, *results])})",
    ]
    native = [k for k, shape in enumerate(shapes) if shape is None]
    if native:
        lines.append("        blocks = adopt(context, status)")
    lines += [f"        if status: return failed(status, arrays, {out}, context)", "    finally: push(context)"]
    if out == "out":
        return [*lines, "    return list(out)"]
    for k in native:
        results[k] = f"blocks[{native.index(k)}]"
    return [*lines, f"    return [{', '.join(results)}]"]


def _allocations(graph: CompiledGraph, shapes: Sequence[str | None]) -> list[str]:
    """New outputs: NumPy's where they are small, else on blocks that come back."""
    lines: list[str] = []
    for k, (shape, port) in enumerate(zip(shapes, graph.outputs, strict=True)):
        if shape is None:
            continue
        item = port.dtype.numpy.itemsize
        if all(d.is_static for d in port.dims):
            size = item
            for d in port.dims:
                size *= d.static_value or 0
            text = f"empty({shape}, t{k})" if size < LARGE else f"take({shape}, t{k}, {size})"
            lines.append(f"        o{k} = {text}")
            continue
        factors = "*".join(f"h{k}[{axis}]" for axis in range(len(port.dims)))
        lines.append(f"        h{k} = {shape}; n{k} = {factors}*{item}")
        lines.append(f"        o{k} = empty(h{k}, t{k}) if n{k} < {LARGE} else take(h{k}, t{k}, n{k})")
    return lines


def _given(graph: CompiledGraph, shapes: Sequence[str | None]) -> list[str]:
    """The caller's arrays, where they have the result's dtype and shape and lie as native code writes."""
    names = [f"o{k}" for k in range(len(shapes))]
    lines = [f"        {', '.join(names)}{',' if len(names) == 1 else ''} = out"] if names else []
    for k, shape in enumerate(shapes):
        lines.append(f"        if type(o{k}) is not ndarray: o{k} = o{k}._array")
        lines.append(f"        f{k} = o{k}.flags")
        lines.append(
            f"        if o{k}.dtype is not t{k} or o{k}.shape != {shape} or not f{k}.c_contiguous or not f{k}.writeable"
            f" or not f{k}.aligned: return careful(arrays, out)"
        )
        for other in [*(f"a{i}" for i in range(len(graph.inputs))), *names[:k]]:
            lines.append(f"        if overlap(o{k}, {other}): return careful(arrays, out)")
    return lines
