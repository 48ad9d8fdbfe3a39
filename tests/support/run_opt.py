"""Runs `sardonyx-opt` in this process, on streams like real ones."""

from __future__ import annotations

import io
from typing import NamedTuple

from sardonyx.tools import opt


class Ran(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str
    raw: bytes


class Stream(io.TextIOWrapper):
    """A text stream in memory."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", newline="", write_through=True)

    @property
    def content(self) -> bytes:
        self.flush()
        return self.buffer.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def run_opt(*args: object, stdin: str | bytes = b"") -> Ran:
    """Run `sardonyx-opt` with these arguments and this standard input."""
    out, err = Stream(), Stream()
    given = Stream(stdin.encode() if isinstance(stdin, str) else stdin)
    status = opt.run([str(a) for a in args], given, out, err)
    return Ran(status, out.content.decode(errors="replace"), err.content.decode(), out.content)


# --- what the tests of the tools work on

T = "tensor<2x3xf32>"
GRAPH = f"""\
func.func @main(%x: {T} {{sx.name = "x"}}) -> ({T} {{sx.name = "y"}}) {{
  %0 = sx.exp %x : ({T}) -> {T}
  %1 = sx.tanh %x : ({T}) -> {T}
  func.return %0 : {T}
}}
"""

MODEL = """\
import numpy as np

import neighbour
import sardonyx as sx

print("hello from the file")
BIG = np.arange(600, dtype=np.float32).reshape(20, 30)


@sx.signature("x: f32[batch,20]")
def forward(x):
    print("hello from the trace")
    return neighbour.twice(sx.matmul(x, sx.asarray(BIG)))


def bare(x):
    return sx.exp(x)


def fails(x):
    return x + [][0]


def leaves(x):
    raise SystemExit("enough")


NUMBER = 3
"""

PLUGIN = '''\
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, f32
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class CrashPass(ModulePass):
    """Crashes."""

    name = "test-crash"
    how: str = "loudly"

    def apply(self, ctx, op):
        raise KeyError(self.how)


@dataclass(frozen=True)
class WreckPass(ModulePass):
    name = "test-wreck"

    def apply(self, ctx, op):
        for inner in op.walk():
            if inner.name == "sx.exp":
                inner.results[0]._type = TensorType(f32, [9])
'''
