"""Forms that kernels have on other machines, run on this one: AVX-512's vectors, masks and tiles, VNNI's products, 128
bits without FMA, NEON's. `other_forms.py` says how; test_targets.py and test_aarch64.py have what it cannot show."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import warnings
from typing import Any

import numpy as np
import pytest
from families import FAMILIES, hold_weights
from guard import EDGES, run_guarded
from op_case import op
from other_forms import FORMS, INSTRUCTIONS, for_this_machine, forms_target, other_forms
from three_ways import Graph, build, case, compare, sample
from whole_graphs import GRAPHS, graph

import sardonyx as sx
from sardonyx.backends.llvm.codegen import nontemporal
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.runtime import jit, objects
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function

Array = np.ndarray[Any, Any]

# ---- instructions


def expected(name: str, total: Array, x: Array, y: Array) -> Array:
    """What an instruction does, as its manual says. Arrays are bytes."""
    if "pmadd.ub" in name or "pmaddubs" in name:
        products = x.view(np.uint8).astype(np.int64) * y.view(np.int8)
        return products.reshape(-1, 2).sum(1).clip(-(1 << 15), (1 << 15) - 1).astype(np.int16).view(np.uint8)
    if "vpdpbusd" in name:
        products = (x.view(np.uint8).astype(np.int64) * y.view(np.int8)).reshape(-1, 4)
    else:
        products = (x.view(np.int16).astype(np.int64) * y.view(np.int16)).reshape(-1, 2)
    sums = products.sum(1) + (total.view(np.int32) if "vpdp" in name else 0)
    return sums.astype(np.int32).view(np.uint8)


def caller(name: str) -> str:
    """LLVM IR of a function that calls an intrinsic with three vectors in memory and stores the result."""
    found = re.search(rf"define internal (<[^>]*>) @{re.escape(name)}\(([^)]*)\)", INSTRUCTIONS[name])
    assert found
    result, types = found[1], re.findall(r"<[^>]*>", found[2])
    loads = [f"  %{v} = load {ty}, ptr %p.{v}, align 1" for v, ty in zip("txy"[-len(types) :], types, strict=True)]
    given = ", ".join(f"{ty} %{v}" for v, ty in zip("txy"[-len(types) :], types, strict=True))
    return "\n".join([
        'target triple = "x86_64-unknown-linux-gnu"',
        "define void @call(ptr %out, ptr %p.t, ptr %p.x, ptr %p.y) {", *loads,
        f"  %r = call {result} @llvm.{name}({given})", f"  store {result} %r, ptr %out, align 1", "  ret void", "}",
        f"declare {result} @llvm.{name}({', '.join(types)})", "",
    ])  # fmt: skip


def here(name: str) -> bool:
    """Whether this machine has the instruction."""
    features = set(jit.native_target().features.split(","))
    needed = {"x86.sse2": "+sse2", "x86.ssse3": "+ssse3", "x86.avx2": "+avx2"}
    if "vpdp" in name:
        return {"+avx512vnni", "+avx512vl"} <= features
    return needed.get(name.rsplit(".pm", 1)[0], "+avx512bw") in features


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_stand_ins_do_what_instructions_do(name: str) -> None:
    text = for_this_machine(caller(name))
    assert "@llvm." not in text
    programs = [text, *([caller(name)] if here(name) else [])]
    lanes, bits = re.findall(r"internal <(\d+) x i(\d+)>", INSTRUCTIONS[name])[0]
    size, random = int(lanes) * int(bits) // 8, np.random.default_rng(0)
    for program in programs:
        library = jit.Library(jit.emit_object(jit.native_target(), program), ("call",))
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(library.addresses["call"])
        for low, high in ((0, 256), (127, 129), (255, 256), (128, 129)):
            total, x, y = (random.integers(low, high, 64).astype(np.uint8) for _ in range(3))
            out = np.zeros(64, np.uint8)
            call(*[a.ctypes.data for a in (out, total, x, y)])
            wanted = expected(name, total, x, y)[:size]
            assert out[:size].tolist() == wanted.tolist(), name
        assert not out[size:].any()


def test_a_vector_that_is_not_aligned_ends_the_run() -> None:
    text = "define void @call(ptr %p) {\n  store <16 x float> zeroinitializer, ptr %p, align 64\n  ret void\n}\n"
    library = jit.Library(jit.emit_object(jit.native_target(), for_this_machine(text)), ("call",))
    memory = np.ones(64, np.float32)
    aligned = -(-memory.ctypes.data // 64) * 64
    for shift, signal in ((0, 0), (32, 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            faulthandler.disable()  # its end is what is looked for
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.addresses["call"])(aligned + shift)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) == bool(signal)


# ---- kernels


@pytest.mark.parametrize("name", FORMS)
def test_the_forms_are_those_of_the_other_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    emit = objects.emit_object
    monkeypatch.setattr(objects, "emit_object", lambda *a: (seen.append(f"{a[0].cpu}\n{a[1]}"), emit(*a))[1])
    monkeypatch.setattr(objects, "_may_fork", lambda: False)  # so that all is seen here
    weights = np.random.default_rng(0).integers(-128, 128, (64, 90)).astype(np.int8)

    def net(x: Any, q: Any) -> Any:
        return sx.tanh(x @ sx.astype(weights, sx.float32)), sx.matmul_integer(q, weights)

    module = sx.trace(net, "x: f32[m, 64], q: u8[m, 64]").graph.module
    with other_forms(name) as target:
        compiled = compile_module(module)
        x, q = sample("float32", 37, 64), sample("uint8", 37, 64)
        first, second = compiled.run([x, q])
    np.testing.assert_array_equal(second, q.astype(np.int32) @ weights)
    np.testing.assert_allclose(first, np.tanh(x @ weights.astype(np.float32)), rtol=1e-4, atol=1e-4)
    text = "\n".join(seen)
    assert target == forms_target(name) and "forms of" not in text
    wide = {"avx512": 16, "avx512-vnni": 16, "avx2": 8, "avx2-vnni": 8}.get(name, 4)
    assert f"<{wide} x float>" in text and f"<{4 * wide} x float>" not in text
    assert ("@x86.avx512.vpdpbusd" in text) == name.endswith("vnni")
    assert ("@llvm.fma" in text) == (name != "baseline")


RUNS = [("avx512-vnni", family, "mixed") for family in FAMILIES]
RUNS += [("avx512-vnni", "products", "static")]
ROUND = int(os.environ.get("SARDONYX_CONFORMANCE_ROUND", "0"))
OTHERS = tuple(name for name in FORMS if name != "avx512-vnni")
PART = 32
"""Of the forms but AVX-512's, the tests run one case in so many; others with another `ROUND`."""


def run_and_compare(name: str, graph: Graph, threads: int) -> None:
    """Between forbidden pages, against the reference."""
    expected = evaluate_function(main_function(graph.module), graph.feeds)
    with other_forms(name) as target:
        got = run_guarded(graph.module, graph.feeds, EDGES[threads > 1], threads, target)
    for (one, number), a, b in zip(graph.outputs, got, expected, strict=True):
        problem = compare(one.op.name, a, np.asarray(b))
        assert problem is None, f"{one} result {number}: {problem}"


@pytest.mark.parametrize(("name", "family", "mode"), RUNS)
def test_every_kind_of_kernel_with_avx512(name: str, family: str, mode: str) -> None:
    graph = build(list(FAMILIES[family]()), mode)
    if mode == "static":
        hold_weights(graph)
    run_and_compare(name, graph, threads=3 if mode == "mixed" else 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_vectors_that_pass_by_the_caches_with_avx512(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nontemporal, "LARGE", 256)
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    cases = [
        case(op(name), sample("float32", *s)) for name in ("relu", "softmax") for s in ((5, 64), (4, 40), (1, 256))
    ]
    graph = build([*cases, case(op("cast"), sample("float32", 9, 32), to=sx.float16)], "mixed")
    run_and_compare("avx512", graph, threads)


@pytest.mark.parametrize("name", OTHERS)
def test_kinds_of_kernels_in_other_forms(name: str) -> None:
    host, target = jit.native_target(), forms_target(name)
    if "vnni" not in name and (host.vector_bits, host.has_fma) == (target.vector_bits, target.has_fma):
        pytest.skip("the other tests run code of this kind")
    cases = [one for family in FAMILIES.values() for one in family()]
    run_and_compare(name, build(cases[(OTHERS.index(name) + ROUND) % PART :: PART], "mixed"), threads=1)


@pytest.mark.parametrize("name", GRAPHS)
def test_whole_graphs_with_avx512(name: str) -> None:
    module, feeds = graph(name).module, GRAPHS[name][1]
    expected = evaluate_function(main_function(module), feeds)
    with other_forms("avx512-vnni") as target:
        got = run_guarded(module, feeds, "end", 3, target)
    for number, (a, b) in enumerate(zip(got, map(np.asarray, expected), strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, f"result {number}"
        wide = np.float64 if a.dtype.kind == "f" else a.dtype
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=1e-4, atol=1e-5, err_msg=f"{number}")
