"""The default pipeline takes time in proportion to the number of ops."""

from __future__ import annotations

import time

import pytest
from ir_text import parse_module

from sardonyx.passes.pipeline import DEFAULT_PIPELINE, PassManager

T, U = "tensor<2x3xf32>", "tensor<3x2xf32>"


def chain(groups: int) -> str:
    """Groups of five ops, two of which are transposes that go."""
    lines, last = [f"func.func @main(%x: {T}) -> {T} {{"], "%x"
    for i in range(groups):
        lines += [
            f"  %a{i} = sx.transpose {last} {{perm = array<i64: 1, 0>}} : ({T}) -> {U}",
            f"  %b{i} = sx.exp %a{i} : ({U}) -> {U}",
            f"  %c{i} = sx.transpose %b{i} {{perm = array<i64: 1, 0>}} : ({U}) -> {T}",
            f"  %d{i} = sx.tanh %c{i} : ({T}) -> {T}",
            f"  %e{i} = sx.add %c{i}, %d{i} : ({T}, {T}) -> {T}",
        ]
        last = f"%e{i}"
    return "\n".join([*lines, f"  func.return {last} : {T}", "}"])


def seconds(groups: int) -> tuple[float, int]:
    """Processor time of the passes, and how many rewrites they did."""
    module = parse_module(chain(groups))
    begin = time.process_time()
    report = PassManager(DEFAULT_PIPELINE, check=0).run(module)
    taken = time.process_time() - begin
    assert sum(1 for op in module.walk() if op.name == "sx.transpose") == 0
    return taken, sum(p.statistics["visits"] for p in report.passes)


@pytest.mark.slow
def test_time_grows_as_the_module_does():
    small, few = seconds(60)
    large, many = seconds(480)
    assert many < 9 * few, "visits, which no other load disturbs"
    assert large < 24 * small, (small, large)
