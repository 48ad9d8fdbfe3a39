"""Graphs of several ops, written as functions of a maker, run by reference and natively, static and dynamic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from guard import run_guarded
from op_case import op
from three_ways import compare
from tolerances import Tolerance
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel.ops import KernelFuncOp
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp

Array = np.ndarray[Any, Any]
Net = Callable[..., Any]


class Maker:
    """Makes ops in a block: `make.add(x, y)`."""

    def __init__(self, block: Any) -> None:
        self.block = block

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def made(*operands: Any, **properties: Any) -> Any:
            one = op(name).make(*operands, **properties)
            self.block.add_op(one)
            return one.results[0]

        return made

    def ints(self, *numbers: int) -> Any:
        """A constant vector of int64."""
        return self.constant(np.array(numbers, np.int64))

    def constant(self, array: Array) -> Any:
        made = ConstantOp.dense(np.asarray(array))
        self.block.add_op(made)
        return made.output


def graph(net: Net, arrays: Sequence[Array], dynamic: bool) -> ModuleOp:
    """The module of `net(maker, *inputs)`; with `dynamic`, a symbol per size but 1."""
    shapes = [[f"n{d}" if d != 1 else 1 for d in a.shape] if dynamic else a.shape for a in arrays]
    types = [
        (f"x{i}", tensor_type(DType.of(a.dtype), s), None) for i, (a, s) in enumerate(zip(arrays, shapes, strict=True))
    ]
    module, block = create_module("net", types)
    values = net(Maker(block), *block.args)
    values = values if isinstance(values, tuple) else (values,)
    set_outputs(module, list(values), [f"y{i}" for i in range(len(values))])
    module.verify()
    return module


def kernel_names(module: ModuleOp) -> list[str]:
    """The names of the graph's kernels, without their numbers."""
    functions = (f for f in lower_graph(module).module.body.block.ops if isinstance(f, KernelFuncOp))
    return [f.sym_name.data.rsplit("_", 1)[0] for f in functions]


def check(
    net: Net,
    arrays: Sequence[Array],
    kernels: Sequence[str] | None,
    limit: Tolerance,
    modes: Sequence[bool] = (False, True),
    guarded: bool = True,
) -> None:
    """Native against the reference, static and (True among the modes) dynamic; static also between forbidden pages.

    `kernels` are the names of the kernels that there should be.
    """
    for dynamic in modes:
        module = graph(net, arrays, dynamic)
        if kernels is not None:
            assert kernel_names(module) == list(kernels), f"dynamic: {dynamic}"
        wants = evaluate_function(main_function(module), arrays)
        runs = [compile_module(module).run(arrays)]
        if guarded and not dynamic:
            runs += [run_guarded(module, arrays, edge) for edge in ("end", "start")]
        for got in runs:
            for a, b in zip(got, wants, strict=True):
                assert (problem := compare("net", a, np.asarray(b), limit)) is None, f"dynamic {dynamic}: {problem}"
