"""Other machines: code for each is emitted and looked at. test_other_forms.py runs it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from assembly import innermost_loops
from families import FAMILIES, hold_weights
from op_case import op
from three_ways import Case, build, case, sample

from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.codegen.targets import NAMED, resolve_target
from sardonyx.backends.llvm.codegen.text import Target, host_target
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.runtime.jit import to_assembly
from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.opt import run as run_opt

AVX2, AVX512 = "x86-64-v3", "x86-64-v4"


# ---- naming


def test_targets_by_name_features_and_triple() -> None:
    assert resolve_target() == resolve_target("host") == host_target()
    described = {name: (t.vector_bits, t.registers, t.has_fma) for name in NAMED if (t := resolve_target(name))}
    assert described == {
        "x86-64-v2": (128, 16, False), AVX2: (256, 16, True), AVX512: (512, 32, True), "aarch64": (128, 32, True),
    }  # fmt: skip
    assert resolve_target(AVX512, "-avx512vl,+avx512vnni").vector_bits == 256
    assert "+avx512vnni" in resolve_target(AVX512, "+avx512vnni").features
    mac = resolve_target("apple-m1", triple="arm64-apple-macosx11.0.0")
    assert (mac.cpu, mac.vector_bits) == ("apple-m1", 128)
    with pytest.raises(InvalidArgumentError, match="'avx2' is no feature"):
        resolve_target(AVX2, "avx2")
    for cpu, words in (("nope", "it knows none of that name"), ("athlon", "64-bit code requested")):
        with pytest.raises(InvalidArgumentError, match=f"the CPU '{cpu}' of .*{words}"):
            resolve_target(cpu, triple="x86_64-unknown-linux-gnu")
    with pytest.raises(InvalidArgumentError, match="no target 'pdp11'"):
        resolve_target(triple="pdp11")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target-cpu=x86-64-v2"], ["mulps", "xmm"]),
        (["--target-cpu=x86-64-v4"], ["zmm"]),
        (["--target-triple=aarch64-unknown-linux-gnu"], ["fadd\tv", ".4s"]),
    ],
)
def test_the_tool_writes_assembly_for_another_machine(options: list[str], words: list[str]) -> None:
    text = "func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {\n"
    text += "  %0 = sx.add %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n"
    text += "  %1 = sx.mul %0, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n"
    text += "  func.return %1 : tensor<64xf32>\n}\n"
    out, err = io.StringIO(), io.StringIO()
    assert run_opt(["-", "-t", "asm", *options], io.StringIO(text), out, err) == 0, err.getvalue()
    assert all(word in out.getvalue() for word in words), out.getvalue()


# ---- what hot loops hold

HOT: dict[str, Callable[[], list[Case]]] = {
    "contraction": lambda: [case(op("matmul"), sample("float32", 96, 64), sample("float32", 64, 96))],
    "convolution": lambda: [
        case(op("conv"), sample("float32", 1, 16, 14, 14), sample("float32", 32, 16, 3, 3), None, pads=(1, 1, 1, 1))
    ],
    "exp": lambda: [case(op("exp"), sample("float32", 1000))],
    "softmax": lambda: [case(op("softmax"), sample("float32", 50, 200), axis=-1)],
    "layer_norm": lambda: [
        case(op("layer_norm"), sample("float32", 50, 200), sample("float32", 200), sample("float32", 200), axis=-1)
    ],
}


@cache
def assembly(kind: str, name: str, features: str | None = None) -> str:
    graph = build(HOT[kind](), "mixed")
    hold_weights(graph)
    target: Target = resolve_target(name, features)
    return to_assembly(emit_module(lower_graph(graph.module, target), target)[0])


@pytest.mark.parametrize("name", [AVX2, AVX512])
@pytest.mark.parametrize("kind", HOT)
def test_hot_loops_hold_no_calls_spills_or_stack_accesses(kind: str, name: str) -> None:
    loops = [loop for loop in innermost_loops(assembly(kind, name)) if not loop.function.startswith(("sx.", "entry"))]
    most = max(loop.fmas for loop in loops)
    assert most or kind == "layer_norm", f"no loop of {kind} has a fused multiply-add"
    for loop in loops:
        text = f"{loop.function}:\n" + "\n".join(loop.lines)
        assert not loop.calls, text
        if loop.fmas == most > 0:
            # A scalar that waits on the stack is broadcast from there, as a constant is from its table.
            assert not [line for line in loop.stack_accesses if "vbroadcastss" not in line], text
        if loop.fmas or kind not in ("contraction", "convolution"):
            # The loops over remainders may keep addresses on the stack, and one constant; no accumulator.
            assert len(loop.vector_stack_accesses) <= 1, text


def test_the_contractions_loop_is_the_tile_that_the_target_allows() -> None:
    for name, register in ((AVX2, "ymm"), (AVX512, "zmm")):
        loops = innermost_loops(assembly("contraction", name))
        largest = max(loops, key=lambda loop: loop.fmas)
        others = len(largest.lines) - largest.fmas
        assert largest.fmas >= (12 if name == AVX2 else 24), largest.lines
        assert all(register in line for line in largest.lines if "vfmadd" in line)
        assert others <= largest.fmas, "\n".join(largest.lines)  # loads, broadcasts and the loop's own


def test_a_machine_without_fma_gets_no_calls_of_libm() -> None:
    for kind in ("contraction", "softmax"):
        text = assembly(kind, "x86-64-v2")
        assert not re.search(r"\bcallq?\s+\"?(fmaf?|expf?|memset_pattern)\b", text)
        assert "mulps" in text and "vfmadd" not in text and "ymm" not in text


def test_every_family_is_emitted_for_every_machine() -> None:
    for name in ("x86-64-v2", AVX512, "aarch64"):
        target = resolve_target(name)
        for family in ("movements", "windows", "conversions"):
            cases: list[Any] = list(FAMILIES[family]())[:: 6 if family != "windows" else 5]
            text = to_assembly(emit_module(lower_graph(build(cases, "mixed").module, target), target)[0])
            calls = set(re.findall(r"^\s+(?:callq?|bl)\s+\"?([\w.]+)", text, re.MULTILINE))
            ours = re.compile(r"sx\.|entry|aligned_alloc|free|madvise|mem(cpy|set|move)|[a-z_]+_\d+$")
            assert all(ours.match(c) for c in calls), (name, family, calls)
