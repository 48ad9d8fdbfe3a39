"""Compiles a lane-wise function into a loop over arrays, runs it, and measures its error against a wider oracle."""

from __future__ import annotations

import ctypes
import functools
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
# What every x86-64 CPU since 2009 has: SSE4.2, but no FMA and no F16C.
BASELINE = describe_target(TRIPLE, "x86-64-v2", "+sse4.2")
AVX512 = describe_target(TRIPLE, "skylake-avx512", "+avx2,+fma,+f16c,+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx512cd")
AARCH64 = describe_target("aarch64-unknown-linux-gnu", "cortex-a76", "")
IS_X86 = TRIPLE.startswith("x86_64")
# The targets whose code runs on this machine.
RUNNABLE = {"host": HOST, **({"x86-64-v2": BASELINE} if IS_X86 else {})}

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

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

# A body takes the builder, the lanes and the operands' names, and returns the results' names.
Body = Callable[[FunctionBuilder, int, list[str]], Sequence[str]]


def machine(target: Target) -> llvm.TargetMachine:
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=target.cpu, features=target.features, opt=2)


def build(target: Target, body: Body, inputs: Sequence[str], outputs: Sequence[str], lanes: int) -> str:
    """The text of `void run(ptr in…, ptr out…, i64 n)`: n must be a multiple of the lanes."""
    module = ModuleText(target)
    pointers = [f"in{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
    arguments: list[tuple[LType | str, str]] = [("ptr noalias", name) for name in pointers]
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
    """The lines of assembly that leave the function: calls, and jumps to another symbol."""
    found = []
    for line in listing.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        jump = words[0] in ("jmp", "b") and len(words) > 1 and not words[1].startswith(".L")
        if words[0].startswith("call") or words[0] in ("bl", "blr", "br") or jump:
            found.append(" ".join(words))
    return found


class Compiled:
    """A function over arrays; keeps its engine alive."""

    def __init__(self, target: Target, body: Body, inputs: Sequence[str], outputs: Sequence[str], lanes: int) -> None:
        self.inputs, self.outputs, self.lanes = list(inputs), list(outputs), max(1, lanes)
        self.link(target, build(target, body, inputs, outputs, lanes))

    def link(self, target: Target, text: str) -> None:
        module = llvm.parse_assembly(text)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine(target))
        self.engine.finalize_object()
        kinds = [ctypes.c_void_p] * (len(self.inputs) + len(self.outputs)) + [ctypes.c_int64]
        self.run = ctypes.CFUNCTYPE(None, *kinds)(self.engine.get_function_address("run"))

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Run over one-dimensional arrays of one length; the tail that fills no vector is padded."""
        n = len(arrays[0])
        padded = -(-n // self.lanes) * self.lanes
        given = []
        for scalar, array in zip(self.inputs, arrays, strict=True):
            array = np.ascontiguousarray(array).view(NUMPY[scalar])
            given.append(array if padded == n else np.resize(array, padded))
        results = [np.empty(padded, NUMPY[scalar]) for scalar in self.outputs]
        self.run(*(a.ctypes.data for a in [*given, *results]), padded)
        return [result[:n] for result in results]


# ---- errors


# Stored bits of the significand, least and greatest binary exponent (of 1 <= m < 2) of finite numbers.
FORMATS = {"half": (10, -14, 15), "bfloat": (7, -126, 127), "float": (23, -126, 127), "double": (52, -1022, 1023)}


def ulp_errors(result: np.ndarray, exact: np.ndarray, scalar: str) -> np.ndarray:
    """Distances in units in the last place of the format at the exact value, which is of a wider dtype.

    Infinity counts as the power of two beyond the format. NaN against NaN is 0, against a number infinite. Signs of
    zeros do not count.
    """
    mantissa, least, greatest = FORMATS[scalar]
    wide = exact.dtype
    limit = np.ldexp(wide.type(1), greatest + 1)
    with np.errstate(all="ignore"):
        got = result.astype(wide)
        exact = np.clip(exact, -limit, limit)
        exponent = np.clip(np.frexp(exact)[1] - 1, least, greatest)
        errors = np.abs(np.clip(got, -limit, limit) - exact)
        errors = np.ldexp(errors, mantissa - exponent)
    both = np.isnan(got) & np.isnan(exact)
    errors[both] = 0
    errors[np.isnan(errors)] = np.inf
    return errors


# ---- oracles

LONG = np.longdouble
LONG_BITS = np.finfo(LONG).nmant
# LLVM's name of C's long double here, where it is wider than double.
LONG_LLVM = {63: "x86_fp80", 112: "fp128"}.get(LONG_BITS)


@functools.cache
def libm(name: str, scalar: str) -> Callable[[np.ndarray], np.ndarray]:
    """The C library's function of one argument, over arrays of that LLVM type."""
    text = f"""target triple = "{TRIPLE}"
define void @run(ptr %in, ptr %out, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %from = getelementptr {scalar}, ptr %in, i64 %i
  %to = getelementptr {scalar}, ptr %out, i64 %i
  %x = load {scalar}, ptr %from
  %y = call {scalar} @{name}({scalar} %x)
  store {scalar} %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}}
declare {scalar} @{name}({scalar})
"""
    module = llvm.parse_assembly(text)
    engine = llvm.create_mcjit_compiler(module, machine(HOST))
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("run"))

    def apply(x: np.ndarray) -> np.ndarray:
        assert engine is not None  # the code lives as long as this function
        x = np.ascontiguousarray(x)
        result = np.empty_like(x)
        run(x.ctypes.data, result.ctypes.data, len(x))
        return result

    return apply


def _erf(x: np.ndarray) -> np.ndarray:
    return libm("erf", "double")(x) if x.dtype == np.float64 else libm("erfl", LONG_LLVM or "")(x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# In the dtype of the argument; the error of each is a few of its own units in the last place.
ORACLES: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "erf": _erf,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "softplus": _softplus,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_half_even": np.rint,
    "fmod": np.fmod,
    "floormod": np.mod,
}
BINARY = {"pow", "fmod", "floormod"}


def exact(name: str, *arguments: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """The oracle's values for arguments widened to the dtype."""
    with np.errstate(all="ignore"):
        return ORACLES[name](*(a.astype(dtype) for a in arguments))
