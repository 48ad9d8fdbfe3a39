"""Fuzzing of graphs: random ones, drawn by hypothesis, run four ways, and every way has to give the same numbers.

The ways: the reference; the reference after the default passes; the exported ONNX file read back, and in onnxruntime;
native code. `python tests/fuzz/graphs.py --count 20000` draws that many; hypothesis reduces what fails and prints it.

Inputs are small whole numbers, and most ops keep them whole, so that ways may not differ at all; what is rounded
(`softmax`, `tanh`, means) may differ by a few units, and is never compared or counted (`argmax`, `greater`), where a
unit would decide.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from xdsl.ir import SSAValue

import sardonyx
from sardonyx.dialects.attributes import dims_of, rank_of, tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.frontend.graph import ModelGraph

RTOL, ATOL = 2e-5, 2e-5
LIMIT = 64.0
"""Whole numbers are kept below this, so that sums of products of them are exact in float32."""
SIZES = (0, 1, 2, 5)
"""What the dim `n` is in the runs."""


class Drawn:
    """A graph under construction; `whole` holds the values that are exact whole numbers."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.module, self.block = create_module(
            "g",
            [
                ("x", tensor_type(float32, ["n", 3, 4]), None),
                ("y", tensor_type(float32, [3, "n"]), None),
                ("z", tensor_type(float32, [4]), None),
            ],
        )
        self.values: list[SSAValue] = list(self.block.args)
        self.whole: set[SSAValue] = set(self.values)

    def op(self, name: str, *operands: Any, whole: bool = True, **props: Any) -> SSAValue:
        """Append an op; its (first) result is whole if the operands are and the op keeps that."""
        made = BY_NAME["sx." + name].make(*operands, **props)
        self.block.add_op(made)
        inputs = [v for o in operands for v in (o if isinstance(o, list) else [o]) if v is not None]
        if whole and all(v in self.whole for v in inputs):
            self.whole.update(made.results)
        return made.results[0]

    def constant(self, array: Any) -> SSAValue:
        made = ConstantOp.dense(np.asarray(array))
        self.block.add_op(made)
        self.whole.add(made.output)
        return made.output

    def ints(self, *values: int) -> SSAValue:
        return self.constant(np.array(values, np.int64))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, whole: bool = False) -> SSAValue:
        among = [v for v in self.values if not whole or v in self.whole]
        return among[self.integer(max(0, len(among) - 8), len(among) - 1)]

    def axis(self, value: SSAValue) -> int:
        rank = rank_of(value)
        return self.integer(-rank, rank - 1)

    def clip(self, value: SSAValue) -> SSAValue:
        bound = np.float32(LIMIT)
        return self.op("clip", value, self.constant(-bound), self.constant(bound))

    # ---- steps: each appends ops and returns a value, or None where it doesn't fit
    def unary(self) -> SSAValue:
        return self.op(self.draw(st.sampled_from(["relu", "neg", "abs", "sign", "floor", "identity"])), self.pick())

    def smooth(self) -> SSAValue:
        return self.op(self.draw(st.sampled_from(["tanh", "sigmoid", "erf", "softsign"])), self.pick(), whole=False)

    def binary(self) -> SSAValue | None:
        a, b = self.pick(), self.pick()
        try:
            made = self.op(self.draw(st.sampled_from(["add", "sub", "mul"])), a, b)
        except sardonyx.SardonyxError:
            return None
        return self.clip(made)

    def scaled(self) -> SSAValue:
        a = self.pick()
        last = dims_of(a)[-1].static_value if rank_of(a) else 1
        vector = np.arange(last or 1, dtype=np.float32) % 3 - 1
        return self.clip(self.op(self.draw(st.sampled_from(["add", "sub", "mul"])), a, self.constant(vector)))

    def choose(self) -> SSAValue:
        a = self.pick(whole=True)
        limit = self.constant(np.float32(self.integer(-2, 2)))
        condition = self.op("greater", a, limit)
        return self.op("where", condition, a, self.op("neg", a))

    def transpose(self) -> SSAValue:
        a = self.pick()
        return self.op("transpose", a, perm=self.draw(st.permutations(range(rank_of(a)))))

    def reshape(self) -> SSAValue | None:
        a = self.pick()
        dims = dims_of(a)
        if rank_of(a) < 2:
            return None
        kind = self.integer(0, 3)
        if kind == 0:
            return self.op("flatten", a, axis=self.integer(0, rank_of(a)))
        if kind == 1:
            at = self.integer(0, rank_of(a))
            return self.op("unsqueeze", a, self.ints(at)) if rank_of(a) < 5 else None
        if kind == 2:
            ones = [i for i, d in enumerate(dims) if d.static_value == 1]
            return self.op("squeeze", a, self.ints(ones[0])) if ones else None
        if any(d.static_value == 0 for d in dims):
            return None  # an entry of 0 would copy an extent
        shape = self.op("shape", a)  # computed: the last two extents become one
        head = self.op("slice", shape, self.ints(0), self.ints(rank_of(a) - 2))
        return self.op("reshape", a, self.op("concat", [head, self.rest(shape, rank_of(a))], axis=0))

    def rest(self, shape: SSAValue, rank: int) -> SSAValue:
        """The product of the last two elements of a shape, as a vector of one."""
        last = self.op("slice", shape, self.ints(rank - 2), self.ints(rank))
        return self.op("reduce_prod", last, self.ints(0), keepdims=True)

    def join(self) -> SSAValue | None:
        a = self.pick()
        if not rank_of(a):
            return None
        return self.op("concat", [a, self.op("neg", a), a], axis=self.axis(a)) if self.small(a) else None

    def part(self) -> SSAValue | None:
        a = self.pick()
        if not rank_of(a):
            return None
        start, end, step = self.integer(-5, 5), self.integer(-6, 6), self.draw(st.sampled_from([1, 1, 2, -1]))
        return self.op("slice", a, self.ints(start), self.ints(end), self.ints(self.axis(a)), self.ints(step))

    def pad(self) -> SSAValue | None:
        a = self.pick()
        rank = rank_of(a)
        if not self.small(a):
            return None
        pads = [self.integer(0, 1) for _ in range(2 * rank)]
        return self.op("pad", a, self.ints(*pads), self.constant(np.float32(2))) if rank else None

    def reduce(self) -> SSAValue | None:
        a = self.pick()
        if not rank_of(a):
            return None
        name = self.draw(st.sampled_from(["reduce_sum", "reduce_mean", "reduce_l1"]))
        kept, axis = self.draw(st.booleans()), self.axis(a)
        if name == "reduce_mean" and dims_of(a)[axis].static_value == 0:
            return None  # ONNX leaves it undefined, and onnxruntime gives 0 instead of NaN
        made = self.op(name, a, self.ints(axis), keepdims=kept, whole=name != "reduce_mean")
        return self.clip(made)

    def row(self) -> SSAValue | None:
        a = self.pick()
        if not rank_of(a):
            return None
        return self.op(self.draw(st.sampled_from(["softmax", "log_softmax"])), a, axis=self.axis(a), whole=False)

    def largest(self) -> SSAValue | None:
        a = self.pick(whole=True)
        positive = [i for i, d in enumerate(dims_of(a)) if (d.static_value or 0) > 0]
        if not positive:
            return None
        found = self.op("arg_max", a, axis=positive[self.integer(0, len(positive) - 1)], keepdims=True)
        return self.op("cast", found, to=float32)

    def product(self) -> SSAValue | None:
        a = self.pick()
        inner = dims_of(a)[-1].static_value if rank_of(a) else None
        if not inner or inner > 32:
            return None
        columns = self.integer(1, 9)
        weights = np.arange(inner * columns, dtype=np.float32).reshape(inner, columns) % 3 - 1
        return self.clip(self.op("matmul", a, self.constant(weights)))

    def square(self) -> SSAValue | None:
        a = self.pick()
        if rank_of(a) < 2 or not self.small(a):
            return None
        order = [*range(rank_of(a) - 2), rank_of(a) - 1, rank_of(a) - 2]
        return self.clip(self.op("matmul", a, self.op("transpose", a, perm=order)))

    def gather(self) -> SSAValue | None:
        a = self.pick()
        sized = [i for i, d in enumerate(dims_of(a)) if (d.static_value or 0) > 0]
        if not sized:
            return None
        axis = sized[self.integer(0, len(sized) - 1)]
        extent = dims_of(a)[axis].static_value or 1
        indices = [self.integer(-extent, extent - 1) for _ in range(self.integer(1, 4))]
        return self.op("gather", a, self.ints(*indices), axis=axis)

    def cumulate(self) -> SSAValue | None:
        a = self.pick()
        if not rank_of(a):
            return None
        axis = self.constant(np.array(self.axis(a), np.int64))
        return self.clip(
            self.op("cumsum", a, axis, exclusive=self.draw(st.booleans()), reverse=self.draw(st.booleans()))
        )

    def as_integers(self) -> SSAValue:
        return self.op("cast", self.op("cast", self.pick(whole=True), to=int64), to=float32)

    def expand(self) -> SSAValue | None:
        a = self.pick()
        if rank_of(a) > 4 or not self.small(a):
            return None
        shape = self.op("shape", a)
        return self.op("expand", a, self.op("concat", [self.ints(2), shape], axis=0))

    def small(self, value: SSAValue) -> bool:
        """Whether it is worth making larger."""
        dims = dims_of(value)
        return (
            sum(not d.is_static for d in dims) <= 2
            and (Dim.product([d for d in dims if d.is_static]).static_value or 0) < 400
        )

    def fits(self, value: SSAValue) -> bool:
        """Whether the value may be used on: of few elements, and of finite rank."""
        return rank_of(value) <= 6 and self.small(value)


STEPS = (
    "unary unary smooth binary binary binary scaled choose transpose transpose transpose reshape reshape join part pad "
    "reduce reduce row largest product square gather cumulate as_integers expand"
).split()


@st.composite
def graphs(draw: Any) -> ModelGraph:
    """A graph of up to 14 steps with one to three outputs."""
    made = Drawn(draw)
    for _ in range(draw(st.integers(1, 14))):
        value = getattr(made, draw(st.sampled_from(STEPS)))()
        if value is not None and made.fits(value):
            made.values.append(value)
    new = made.values[3:] or [made.op("neg", made.values[0])]
    outputs = list(dict.fromkeys([new[-1], *(made.pick() for _ in range(draw(st.integers(0, 2))))]))
    outputs = [made.op("identity", v) if v in made.block.args else v for v in outputs]
    set_outputs(made.module, outputs, [f"out{k}" for k in range(len(outputs))])
    return ModelGraph(made.module)


def feeds(n: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(n)
    shapes = {"x": (n, 3, 4), "y": (3, n), "z": (4,)}
    return {name: rng.integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}


def compare(way: str, want: list[Any], got: list[Any], n: int) -> None:
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(f"{way}, n={n}, output {k}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}")
        np.testing.assert_allclose(b, a, rtol=RTOL, atol=ATOL, err_msg=f"{way}, n={n}, output {k}")


def check(graph: ModelGraph, native: bool = True) -> None:
    """Run a graph every way and compare. What no output reads is dropped first: what it would refuse, nobody misses.

    Raises:
        AssertionError: Two ways differ.
    """
    graph.optimize("remove-dead-nodes")
    runs: list[tuple[int, list[Any] | None, str]] = []
    for n in SIZES:
        try:
            runs.append((n, [np.asarray(t) for t in graph.evaluate(feeds(n))], ""))
        except sardonyx.SardonyxError as error:  # dims that don't fit one another at this size, a maximum of nothing
            runs.append((n, None, error.message))
    before = graph.clone()
    graph.optimize()
    model = sardonyx.OnnxModel.from_graph(before, optimize=False)
    ways: list[tuple[str, Any]] = [
        ("passes", graph.evaluate),
        ("ONNX read back", model.compile().evaluate),
    ]
    if native:
        before.finalize()
        ways.append(("native", before.run))
    for n, want, refusal in runs:
        for way, run in ways:
            if want is not None:
                compare(way, want, run(feeds(n)), n)
            elif way == "native":
                try:
                    run(feeds(n))
                except sardonyx.SardonyxError:
                    continue
                raise AssertionError(f"native, n={n}: the reference refuses: {refusal}")
    check_onnxruntime(model, runs)


def check_onnxruntime(model: sardonyx.OnnxModel, runs: list[tuple[int, list[Any] | None, str]]) -> None:
    """onnxruntime on the exported file; sizes of 0 are left out, where it refuses much that is defined."""
    from onnx_models import run_ort

    proto = model.to_proto()
    for n, want, _ in runs:
        if want is not None and n > 0:
            compare("onnxruntime", want, run_ort(proto, feeds(n)), n)


def fuzz(count: int, seed: int | None = None, native: int = 10) -> None:
    """Draw `count` graphs; one in `native` runs natively too."""

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=seed is None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        phases=[Phase.generate, Phase.shrink],
    )
    @given(graphs())
    def run(graph: ModelGraph) -> None:
        text = str(graph.module)
        try:
            check(graph, native=zlib.crc32(text.encode()) % native == 0)  # the same graph again: the same ways
        except Exception:
            print(text)
            raise

    if seed is not None:
        from hypothesis import seed as seeded

        run = seeded(seed)(run)
    run()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500, help="how many graphs")
    parser.add_argument("--native", type=int, default=10, help="every so many run natively")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    fuzz(options.count, options.seed, options.native)
    print(f"{options.count} graphs, no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
