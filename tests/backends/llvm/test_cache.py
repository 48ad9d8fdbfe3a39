"""The caches, compilation in several processes, and the report of times."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_text import parse_module
from plans import Builder
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.codegen import emit
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, ModuleText
from sardonyx.backends.llvm.compile import compile_module, compile_native
from sardonyx.backends.llvm.fallback import HybridGraph
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.runtime import cache, jit, objects
from sardonyx.backends.llvm.runtime.objects import split, to_objects
from sardonyx.backends.llvm.runtime.phases import CompileProgress, Phase, phase, time_report
from sardonyx.backends.llvm.runtime.program_key import program_key
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.kernel.ops import StoreOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.graph import ModelGraph


def layers(scale: float = 1.0) -> ModuleOp:
    """softmax(x @ w) @ w over x [n, 64], and the sum of its rows; w is a weight of a store."""
    g = Builder(("x", float32, ["n", 64]))
    array = (np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 11 - 5) * np.float32(scale / 8)
    weight = ConstantOp.of_weight(WeightStore().add(array))
    g.block.add_op(weight)
    hidden = g.op("softmax", g.op("matmul", g.inputs[0], weight.output), axis=-1)
    y = g.op("matmul", hidden, weight.output)
    return g.outputs(y, g.op("reduce_sum", y, g.constant([0], np.int64)))


def fresh(monkeypatch: pytest.MonkeyPatch, folder: Path) -> cache.CacheStatistics:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(folder))
    monkeypatch.setenv("SARDONYX_NUM_THREADS", "1")  # the pool is a library of its own, compiled once a process
    statistics = cache.CacheStatistics()
    for name in ("cache", "objects", "program_cache"):
        module = __import__(f"sardonyx.backends.llvm.runtime.{name}", fromlist=["STATISTICS"])
        monkeypatch.setattr(module, "STATISTICS", statistics)
    monkeypatch.setattr("sardonyx.backends.llvm.runtime.objects.PIECE", 1 << 20)  # one object a graph
    return statistics


def test_a_program_is_loaded_without_lowering_or_packing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statistics = fresh(monkeypatch, tmp_path)
    first = compile_native(layers())
    assert (statistics.compiled, statistics.loaded) == (1, 0)

    def refuse(*_: object) -> None:
        raise AssertionError("a graph that is in the cache was lowered")

    monkeypatch.setattr("sardonyx.backends.llvm.build.lower_graph", refuse)
    second = compile_native(layers())
    assert (statistics.compiled, statistics.loaded) == (1, 1)
    assert not isinstance(compile_module(layers(), fallback=True), HybridGraph)
    for n in (0, 1, 7, 40):
        x = np.random.default_rng(n).standard_normal((n, 64)).astype(np.float32)
        for a, b in zip(first.run([x]), second.run([x]), strict=True):
            assert a.tobytes() == b.tobytes()
    packed = [a for a in second.constants if a.size and not a.flags.writeable and isinstance(a.base, np.memmap)]
    assert all(a.ctypes.data % 64 == 0 for a in packed)
    assert sum(a.nbytes for a in first.constants) <= 2 * 64 * 64 * 4 + 8  # packed for each product, not as it was given
    assert (first.inputs, first.outputs, first.failures, first.sizes) == (
        second.inputs, second.outputs, second.failures, second.sizes,
    )  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="'x'.*axis 1"):
        second.run([np.ones((2, 63), np.float32)])


def test_extents_that_nobody_named_have_other_numbers_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def found(swapped: bool = False) -> ModuleOp:
        g = Builder(("x", float32, ["n"]), ("y", float32, ["n"]))
        places = [g.op("non_zero", x) for x in g.inputs]
        return g.outputs(*(g.op("add", one, one) for one in (reversed(places) if swapped else places)))

    statistics = fresh(monkeypatch, tmp_path)
    first, second, other = (compile_native(found(swapped)) for swapped in (False, False, True))
    assert str(found()) != str(found()) and statistics.loaded == 1 and len(list(tmp_path.glob("*.program"))) == 2
    feeds = [np.array(x, np.float32) for x in ([0, 1, 2, 0], [0, 0, 0, 4])]
    for program, wanted in ((first, [[[2, 4]], [[6]]]), (second, [[[2, 4]], [[6]]]), (other, [[[6]], [[2, 4]]])):
        assert [y.tolist() for y in program.run(feeds)] == wanted


HIT = """
import pickle, sys
import numpy as np

with open(sys.argv[1], "rb") as file:
    graph = pickle.load(file)
graph.finalize()
made = "sardonyx.backends.llvm.build" in sys.modules
room = "sardonyx.backends.llvm."
heavy = [m for m in sys.modules if m.startswith((room + "lowering.", room + "codegen.emit", room + "prepare"))]
print(made, len(heavy) > 0, np.asarray(graph.run([np.ones((3, 64), np.float32)])[1]).tobytes().hex())
"""


def test_a_process_that_finds_a_program_loads_nothing_that_makes_programs(tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(pickle.dumps(ModelGraph(layers(), WeightStore())))
    environment = {**os.environ, "SARDONYX_CACHE_DIR": str(tmp_path / "cache"), "SARDONYX_CACHE": "1"}
    command = [sys.executable, "-c", HIT, str(tmp_path / "net")]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    first, second = [run.stdout.split() for run in runs]
    assert first[:2] == ["True", "True"] and second[:2] == ["False", "False"]
    assert first[2] == second[2]


def changed(text: str, before: str, after: str) -> ModuleOp:
    assert before in text
    return parse_module(text.replace(before, after, 1))


STATED = """
func.func @main(%x: tensor<?x4xf32, #sx.dims<"n", _>>) -> tensor<?x4xf32, #sx.dims<"n", _>> {
  %c = sx.constant {value = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %a = sx.add %x, %c : (TYPE, tensor<4xf32>) -> TYPE loc("there")
  %b = sx.celu %a {alpha = 0.0 : f32} : (TYPE) -> TYPE
  %y = sx.sub %b, %a : (TYPE, TYPE) -> TYPE
  func.return %y : TYPE
}
""".replace("TYPE", 'tensor<?x4xf32, #sx.dims<"n", _>>')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dense<[0.0,", "dense<[-0.0,"), ("alpha = 0.0 ", "alpha = -0.0 "), ('"there"', '"here"'),
        ("sx.sub %b, %a", "sx.sub %a, %b"), ("sx.sub", "sx.mul"), ("%y :", "%a :"),
    ],
)  # fmt: skip
def test_other_graphs_have_other_keys(before: str, after: str) -> None:
    module = parse_module(STATED)
    assert program_key(module, "") == program_key(parse_module(STATED), "") != program_key(module, "else")
    assert program_key(changed(STATED, before, after), "") != program_key(module, "")


def test_what_decides_the_code_decides_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statistics = fresh(monkeypatch, tmp_path)
    x = np.ones((2, 64), np.float32)
    one, other = compile_native(layers()).run([x])[0], compile_native(layers(2.0)).run([x])[0]
    assert not np.array_equal(one, other)
    assert statistics.compiled == 1 and len(list(tmp_path.glob("*.program"))) == 2  # the same code, other weights
    with monkeypatch.context() as patch:
        patch.setitem(emit.EMITTERS, StoreOp, lambda e, op: None)  # code that is not this package's
        assert not np.array_equal(compile_native(layers()).run([np.full((2, 64), 2, np.float32)])[0], one)
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    assert compile_native(layers()).run([x])[0].tobytes() == one.tobytes()


def test_a_damaged_program_is_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    statistics = fresh(monkeypatch, tmp_path)
    x = np.ones((2, 64), np.float32)
    want = compile_native(layers()).run([x])[0].tobytes()
    (path,) = tmp_path.glob("*.program")
    content = path.read_bytes()
    places = [0, 25, 60, content.index(b'"objects"'), len(content) // 2, len(content) - 200, len(content) - 3]
    damages = [content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :] for at in places]
    damages += [content[:100], b"", content[:-64], content + b"x" * 64]
    for k, damaged in enumerate(damages):
        path.write_bytes(damaged)
        assert compile_native(layers()).run([x])[0].tobytes() == want
        assert statistics.damaged == k + 1, k
        assert path.read_bytes() != damaged


def test_the_oldest_files_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("SARDONYX_CACHE_BYTES", "2500")
    (tmp_path / "other.txt").write_bytes(b"x" * 5000)
    for k in range(4):
        monkeypatch.setattr(cache, "_until_sweep", 0)
        cache.store_file(f"{k}.program", [bytes(500), bytes(500)])
        os.utime(tmp_path / f"{k}.program", (time.time() - 100 + k, time.time() - 100 + k))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2.program", "3.program", "other.txt"]
    monkeypatch.setenv("SARDONYX_CACHE_BYTES", "many")
    with pytest.raises(InvalidArgumentError, match="SARDONYX_CACHE_BYTES"):
        cache.limit()


def test_a_folder_that_cannot_be_written_to_costs_time_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    statistics = fresh(monkeypatch, tmp_path / "file" / "below")
    compile_native(layers())
    assert statistics.written == 0


# ---- parts


def numbers(module: ModuleText, count: int) -> list[str]:
    """Kernels that give their number, each through a helper of its own and one that all share."""
    b = FunctionBuilder(module, "shared", [(I64, "x")], I64, linkage="internal")
    b.emit(f"ret i64 {b.binary('mul', I64, '%x', '10')}")
    b.finish()
    names = [f"kernel{k}" for k in range(count)]
    for k, name in enumerate(names):
        b = FunctionBuilder(module, name, [("ptr", "a"), (I64, "t"), (I64, "n")], I64, linkage="internal")
        table = module.constant(I64, [k, k + 1])
        loaded = b.load(I64, b.gep(I64, table, "0"), 8)
        b.emit(f"ret i64 {b.call('shared', I64, [(I64, loaded)])}")
        b.finish()
    b = FunctionBuilder(module, "entry", [(I64, "unused")], I64)
    total = "0"
    for name in names:
        total = b.binary("add", I64, total, b.call(name, I64, [("ptr", "null"), (I64, "0"), (I64, "1")]))
    b.emit(f"ret i64 {total}")
    b.finish()
    return names


@pytest.mark.parametrize("dies", [False, True])
def test_parts_are_compiled_by_children_and_linked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dies: bool) -> None:
    statistics = fresh(monkeypatch, tmp_path)
    module = ModuleText(jit.native_target())
    kernels = numbers(module, 9)
    parts = split(module, kernels, 3)
    texts = [part.text for part in parts]
    assert sum(part.kernels for part in parts) == 9
    assert all(sum(f"define i64 @{k}(" in part for part in texts) == 1 for k in kernels)
    assert sum("@entry(" in part for part in texts) == 1
    monkeypatch.setattr(objects, "WORTH_A_CHILD", 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    forked: list[int] = []
    fork, parent = os.fork, os.getpid()

    def counted() -> int:
        child = fork()
        if child:
            forked.append(child)
        return child

    monkeypatch.setattr(os, "fork", counted)
    if dies:
        compile_here = objects.emit_object

        def killed(target: Any, text: str, level: int) -> bytes:
            if os.getpid() != parent:
                os.kill(os.getpid(), 9)
            return compile_here(target, text, level)

        monkeypatch.setattr(objects, "emit_object", killed)
    made = to_objects(module, kernels)
    assert len(made) == 3 and len(forked) == 2 and statistics.compiled == 3
    library = jit.Library(made, ("entry",))
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.addresses["entry"])
    assert entry(0) == 10 * sum(range(9))
    to_objects(module, kernels)
    assert len(forked) == 2 and statistics.compiled == 3


@pytest.mark.parametrize("count", [1, 2])
def test_the_entry_of_a_large_graph_is_compiled_alone(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    monkeypatch.setattr(objects, "LONG_ENTRY", 1000)
    monkeypatch.setattr(objects, "WORTH_A_CHILD", 1 if count > 1 else 1 << 30)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))
    monkeypatch.setattr(objects, "_may_fork", lambda: True)
    levels: list[int] = []
    emit = objects.emit_object

    def counted(target: Any, text: str, level: int = 2) -> bytes:
        if "define i64 @pool_run(" not in text:
            levels.append(level)
            assert (level == 0) == ("define i64 @entry(" in text)
        return emit(target, text, level)

    monkeypatch.setattr(objects, "emit_object", counted)
    g = Builder(("x", float32, ["n", 64]), ("y", float32, [64, 33]))
    x, y = g.inputs
    compiled = compile_native(g.outputs(g.op("softmax", g.op("matmul", x, y), axis=-1)))
    assert sorted(levels) == ([0, 2] if count == 1 else [2])  # the child has the others, each at its level
    assert len(compiled.library.addresses) == 2
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 64)).astype(np.float32), rng.standard_normal((64, 33)).astype(np.float32)
    want = np.exp(a @ b) / np.exp(a @ b).sum(-1, keepdims=True)
    np.testing.assert_allclose(compiled.run([a, b])[0], want, rtol=1e-4)


def test_equal_kernels_are_one_function() -> None:
    g = Builder(("x", float32, ["n", 64]), ("y", float32, ["m", 64]))
    values = [g.op("softmax", g.op("softmax", v, axis=-1), axis=-1) for v in g.inputs]
    text, sizes = emit_module(lower_graph(g.outputs(*values)))
    assert len(sizes.launches) >= 2 and len(sizes.functions) == 1
    assert sum("define" in line and "softmax" in line for line in str(text).splitlines()) == 1


# ---- times


def test_a_report_adds_up_phases_by_name() -> None:
    with phase("nobody asked"):
        pass
    with time_report("all") as report:
        for _ in range(3):
            with phase("outer"), phase("inner"):
                pass
        with pytest.raises(ValueError, match="^$"), phase("other"):
            raise ValueError
    assert list(report.inner) == ["outer", "other"] and report.inner["outer"].inner["inner"].count == 3
    assert report.seconds >= report.inner["outer"].seconds >= report.inner["outer"].inner["inner"].seconds
    assert str(Phase("a", 0.5, 1, {"b": Phase("b", 0.25, 2)})) == "    500.0 ms  a\n    250.0 ms    b ×2"


def test_finalize_reports_where_the_time_went(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    ModelGraph(layers()).finalize()
    assert capsys.readouterr().err == ""
    ModelGraph(layers()).finalize(time_report=True)
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("finalize 'g'", "lowering", "text", "LLVM", "link"))
    monkeypatch.setenv("SARDONYX_TIME_REPORT", "1")
    ModelGraph(layers()).finalize()
    assert "lowering" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 2])
def test_finalize_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    monkeypatch.setattr(objects, "PIECE", 1000)
    monkeypatch.setattr(objects, "WORTH_A_CHILD", 1 if count > 1 else 1 << 30)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))
    monkeypatch.setattr(objects, "_may_fork", lambda: True)
    told: list[CompileProgress] = []
    graph = ModelGraph(layers())
    graph.finalize(progress=told.append)
    stages = list(dict.fromkeys(at.stage for at in told))
    llvm = "LLVM in 2 processes" if count == 2 else "LLVM"
    assert [s for s in stages if s in ("lowering", "text", llvm, "link")] == ["lowering", "text", llvm, "link"]
    for stage in ("lowering", "text", llvm):
        done = [at.done for at in told if at.stage == stage and at.total]
        assert done == sorted(done) and len(set(done)) >= 2, stage
    last = [at for at in told if at.stage == llvm][-1]
    assert last.done == last.total >= 2 and str(last) == f"{llvm}: {last.total} of {last.total}"
    graph.run([np.ones((2, 64), np.float32)])


def test_a_listener_that_raises_ends_the_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    for name, value in (("PIECE", 1000), ("WORTH_A_CHILD", 1), ("_may_fork", lambda: True)):
        monkeypatch.setattr(objects, name, value)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    children: list[int] = []
    fork, waitpid = os.fork, os.waitpid
    monkeypatch.setattr(os, "fork", lambda: _noted(children, fork()))
    monkeypatch.setattr(os, "waitpid", lambda child, how: (children.remove(child), waitpid(child, how))[1])
    reached: list[str] = []

    def stop(at: CompileProgress) -> None:
        if at.stage.startswith("LLVM") and at.done:
            reached.append(at.stage)
            raise KeyboardInterrupt

    graph = ModelGraph(layers())
    with pytest.raises(KeyboardInterrupt):
        graph.finalize(progress=stop)
    assert reached and not children and not graph.is_finalized
    graph.finalize(progress=lambda at: None)
    assert graph.is_finalized


def _noted(children: list[int], child: int) -> int:
    children += [child] if child else []
    return child


def test_fallbacks_are_found_though_the_cache_is_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh(monkeypatch, tmp_path)
    assert not isinstance(compile_module(layers(), fallback=True), HybridGraph)
