"""Compiles one lane-wise function into a loop over arrays, runs it, and measures its error."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np

from sardonyx.backends.llvm.codegen.text import (
    FunctionBuilder,
    LType,
    ModuleText,
    Target,
    describe_target,
    host_target,
)

TRIPLE = llvm.get_process_triple()
HOST = host_target()
# What every CPU with SSE4.2 has: no FMA, no F16C.
BASELINE = describe_target(TRIPLE, "x86-64-v2", "+sse4.2")
AVX512 = describe_target(TRIPLE, "skylake-avx512", "+avx2,+fma,+f16c,+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx512cd")

NUMPY = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "half": np.float16,
    "bfloat": np.uint16,
    "float": np.float32,
    "double": np.float64,
}

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

# A body takes the builder, the lanes and the operands' names, and returns the results' names.
Body = Callable[[FunctionBuilder, int, list[str]], Sequence[str]]


def machine(target: Target) -> llvm.TargetMachine:
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=2)


def build(target: Target, body: Body, inputs: Sequence[str], outputs: Sequence[str], lanes: int) -> str:
    """The text of `void run(ptr in…, ptr out…, i64 n)`: n must be a multiple of the lanes."""
    module = ModuleText(target)
    arguments = [("ptr noalias", f"in{i}") for i in range(len(inputs))]
    arguments += [("ptr noalias", f"out{i}") for i in range(len(outputs))]
    b = FunctionBuilder(module, "run", [*arguments, ("i64", "n")])

    def step(index: str, _: list[str]) -> list[str]:
        operands = []
        for i, scalar in enumerate(inputs):
            operands.append(b.load(LType(scalar, lanes), b.gep(scalar, f"%in{i}", index)))
        for i, (scalar, result) in enumerate(zip(outputs, body(b, lanes, operands), strict=True)):
            b.store(LType(scalar, lanes), result, b.gep(scalar, f"%out{i}", index))
        return []

    b.loop("0", "%n", str(max(1, lanes)), step)
    b.emit("ret void")
    b.finish()
    return str(module)


def assembly(target: Target, text: str) -> str:
    module = llvm.parse_assembly(text)
    module.verify()
    return machine(target).emit_assembly(module)


def calls_in(listing: str) -> list[str]:
    """The lines that leave the function: calls, and jumps to another symbol."""
    lines = (line.split("#")[0].split() for line in listing.splitlines())
    found = [line for line in lines if line and (line[0].startswith("call") or line[0] in ("bl", "blr"))]
    return [" ".join(line) for line in found]


class Compiled:
    """A function over arrays; keeps its engine alive."""

    def __init__(self, target: Target, body: Body, inputs: Sequence[str], outputs: Sequence[str], lanes: int) -> None:
        self.inputs, self.outputs, self.lanes = list(inputs), list(outputs), max(1, lanes)
        module = llvm.parse_assembly(build(target, body, inputs, outputs, lanes))
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine(target))
        self.engine.finalize_object()
        kinds = [ctypes.c_void_p] * (len(inputs) + len(outputs)) + [ctypes.c_int64]
        self.run = ctypes.CFUNCTYPE(None, *kinds)(self.engine.get_function_address("run"))

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Run over one-dimensional arrays of one length; the tail that fills no vector is padded."""
        n = len(arrays[0])
        padded = -(-n // self.lanes) * self.lanes
        given = []
        for scalar, array in zip(self.inputs, arrays, strict=True):
            array = np.ascontiguousarray(array, NUMPY[scalar])
            given.append(array if padded == n else np.resize(array, padded))
        results = [np.empty(padded, NUMPY[scalar]) for scalar in self.outputs]
        self.run(*(a.ctypes.data for a in [*given, *results]), padded)
        return [result[:n] for result in results]


def ulp_errors(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in units in the last place of the result's type at the exact value, which is of a wider type.

    An infinite result counts as the first power of two beyond the type. NaN against NaN is 0, against a number inf.
    """
    dtype = result.dtype
    info = np.finfo(dtype)
    wide = exact.dtype
    limit = np.ldexp(wide.type(1), info.maxexp)
    with np.errstate(all="ignore"):
        magnitude = np.minimum(np.abs(exact), info.max.astype(wide))
        exponent = np.frexp(magnitude)[1]
        unit = np.ldexp(wide.type(1), np.maximum(exponent, info.minexp + 1) - 1 - info.nmant)
        clipped = np.clip(result.astype(wide), -limit, limit)
        errors = np.abs(clipped - np.clip(exact, -limit, limit)) / unit
    both = np.isnan(result) & np.isnan(exact)
    return np.where(both, 0, np.where(np.isnan(errors), np.inf, errors))
