"""Lowerings of the support vector machines: kernel functions of samples and vectors, then each sample's scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.scores import Score, logistic, two_columns, write_transformed
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, float64, int64
from sardonyx.dialects.sx.linear_ml import SvmClassifierOp, SvmOp, SvmRegressorOp

MOST_TURNS = 100
"""libsvm's limit on the refinements of coupled probabilities."""


def _samples(op: SvmOp) -> tuple[Dim, Dim]:
    dims = dims_of(op.operands[0])
    return (Dim.of(1), dims[0]) if len(dims) == 1 else (dims[0], dims[1])


def _kernels(plan: Plan, op: SvmOp, vectors: np.ndarray, kind: str) -> SSAValue:
    """The buffer [samples, vectors] of the kernel function's values, float64."""
    samples, features = _samples(op)
    message = "(C4) the samples have {0} features, the vectors {1}"
    plan.require_equal(features, Dim.of(vectors.shape[1]), message)
    made = plan.workspace(float64, [plan.dim(samples), len(vectors)])
    kernel = plan.kernel("svm_kernel")
    dtype = dtype_of(op.operands[0])
    read, write = kernel.read(op.operands[0]), kernel.write_buffer(made)
    # The vectors' features lie side by side, so that lanes are vectors.
    table = kernel.read_buffer(_constant(plan, vectors.T))
    params = op.floats("kernel_params")
    gamma, coef0, degree = params.tolist() if params.size else (0.0, 0.0, 0.0)
    count, width = len(vectors), vectors.shape[1]

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        row = Number.index(b, i) * width

        def vector(v: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            own = Number.index(v, j)

            def feature(c: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                at = Number.index(c, k)
                x = Number.load(c, read, row + at, dtype, float32 if dtype.is_integer else float64).to(float64)
                y, total = Number.load(c, table, at * count + own, float64), Number(c, carried[0], float64)
                apart = x - y
                return [(total + (apart * apart if kind == "RBF" else x * y)).value]

            (found,) = v.loop(width, feature, [("serial", kernel.const(float64, 0))])
            value = Number(v, found, float64)
            if kind == "RBF":
                value = (value * -gamma).fn("exp")
            elif kind != "LINEAR":
                value = value * gamma + coef0
                value = value.fn("pow", degree) if kind == "POLY" else value.fn("tanh")
            value.store(write, Number.index(b, i) * count + own, float64, v)

        b.loop(count, vector, vector=True)

    kernel.loop(kernel.extent(samples), sample, parallel=True)
    kernel.launch()
    return made


def _constant(plan: Plan, array: np.ndarray, dtype: DType = float64) -> SSAValue:
    flat = np.ascontiguousarray(array, dtype.numpy).reshape(-1)
    return plan.constant_array(flat if flat.size else np.zeros(1, dtype.numpy), dtype)


@lowers(SvmRegressorOp)
def _regressor(plan: Plan, op: SvmRegressorOp) -> None:
    count, coefficients = op.attr("n_supports"), op.floats("coefficients")
    if count:
        vectors, kind = op.floats("support_vectors").reshape(count, -1), op.attr("kernel_type")
        factors = coefficients[:count]
    else:
        vectors, kind, factors = coefficients[None], "LINEAR", np.ones(1)
    made = _kernels(plan, op, vectors, kind)
    kernel = plan.kernel("svm_regression")
    read, write = kernel.read_buffer(made), kernel.write(op.output)
    table, number = kernel.read_buffer(_constant(plan, factors)), len(factors)
    rho = float(op.floats("rho")[0])

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        total = _weighted(b, kernel, read, Number.index(b, i) * number, table, 0, number) + rho
        if op.attr("one_class"):
            total = total.gt(0.0).where(Number.const(b, 1.0), -1.0)
        total.store(write, i, float32, b)

    kernel.loop(kernel.extent(_samples(op)[0]), sample, parallel=True)
    kernel.launch()


def _weighted(b: Body, kernel: Kernel, read: SSAValue, at: Number, table: SSAValue, first: int, count: int) -> Number:
    """The sum of `count` values times their coefficients."""

    def add(inner: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        own = Number.index(inner, k)
        product = Number.load(inner, read, at + own, float64) * Number.load(inner, table, own + first, float64)
        return [(Number(inner, carried[0], float64) + product).value]

    return Number(b, b.loop(count, add, [("serial", kernel.const(float64, 0))])[0], float64)


@lowers(SvmClassifierOp)
def _classifier(plan: Plan, op: SvmClassifierOp) -> None:
    labels = np.ascontiguousarray(op.labels, np.int64)
    classes, per_class = len(labels), list(op.attr("vectors_per_class") or ())
    pairs, total = classes * (classes - 1) // 2, sum(per_class)
    proba = bool(op.floats("prob_a").size)
    transform, coefficients = op.attr("post_transform"), op.floats("coefficients")
    samples = _samples(op)[0]
    width = pairs if total else classes
    scores = plan.workspace(float64, [plan.dim(samples), max(1, width)])
    votes = plan.workspace(int64, [plan.dim(samples), classes]) if total else None
    if votes is not None:
        _pairs(plan, op, (scores, votes), per_class)
        if proba:
            decisions, width = scores, classes
            scores = plan.workspace(float64, [plan.dim(samples), classes])
            _couple(plan, op, decisions, scores, classes)
    else:
        matrix = coefficients.reshape(classes, -1)
        made = _kernels(plan, op, matrix, "LINEAR")
        _add(plan, made, scores, samples, classes, float(op.floats("rho")[0]))
    kernel = plan.kernel("svm_classes")
    read, write, label = kernel.read_buffer(scores), kernel.write(op.output), kernel.write(op.label)
    voted = None if votes is None else kernel.read_buffer(votes)
    names = kernel.read_buffer(_constant(plan, labels if classes > 1 else np.array([0, 1]), int64))
    columns = dims_of(op.output)[-1].static_value or 0
    positive = bool((coefficients >= 0).all())

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        at = Number.index(b, i)
        row, target = at * width, at * columns

        def score(inner: Body, k: Number) -> Number:
            return Number.load(inner, read, row + k, float64)

        def vote(inner: Body, k: Number) -> Number:
            if voted is None:
                return score(inner, k)
            return Number.load(inner, voted, at * classes + k, int64).to(float64)

        best, most = _best(b, vote, classes)
        if pairs == 1 and not proba:
            weight = Number.const(b, 0.0) if voted is not None else most
            second = weight.ge(0.5) if positive else weight.gt(0.0)
            best = second.where(Number.index(b, 1), best)
        if classes == 1:
            best = score(b, Number.index(b, 0)).gt(0.0).to(int64).to_index()
            if voted is not None and not proba:  # no pair, so no score
                best = Number.index(b, 0)
        Number.load(b, names, best, int64).store(label, at, int64, b)
        if voted is not None and not proba and classes == 2:
            value = score(b, Number.index(b, 0))
            if transform == "PROBIT":
                halves: Score = lambda inner, k: k.eq(0).where(1.0 - value, value)  # noqa: E731
                write_transformed(b, 2, transform, halves, write, target, float32)
            else:
                both = (-value, value) if transform == "NONE" else two_columns(value, transform, True)
                for k, one in enumerate(both):
                    one.store(write, target + k, float32, b)
        else:
            write_transformed(b, columns, "NONE" if classes == 1 else transform, score, write, target, float32)

    kernel.loop(kernel.extent(samples), sample, parallel=True)
    kernel.launch()


def _best(b: Body, value: Callable[[Body, Number], Number], count: int) -> tuple[Number, Number]:
    """The first of the greatest values: its place, and what it is."""

    def better(inner: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        own = Number.index(inner, k)
        best, place = Number(inner, carried[0], float64), Number(inner, carried[1], None)
        one = value(inner, own)
        wins = one.gt(best) | own.eq(0)
        return [wins.where(one, best).value, wins.where(own, place).value]

    found = b.loop(count, better, [("serial", b.const(float64, float("-inf"))), ("serial", b.index(0))])
    return Number(b, found[1], None), Number(b, found[0], float64)


def _add(plan: Plan, made: SSAValue, scores: SSAValue, samples: Dim, classes: int, rho: float) -> None:
    kernel = plan.kernel("svm_scores")
    read, write = kernel.read_buffer(made), kernel.write_buffer(scores)

    def one(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        (Number.load(b, read, i, float64) + rho).store(write, i, float64, b)

    kernel.loop(kernel.outer(plan.product(plan.dim(samples), classes)), one, vector=True)
    kernel.launch()


def _pairs(plan: Plan, op: SvmClassifierOp, made: tuple[SSAValue, SSAValue], per_class: Sequence[int]) -> None:
    """The decision of each pair of classes, and each class's votes, in libsvm's layout of coefficients."""
    classes, total = len(per_class), sum(per_class)
    vectors = op.floats("support_vectors").reshape(total, -1)
    values = _kernels(plan, op, vectors, op.attr("kernel_type"))
    kernel = plan.kernel("svm_pairs")
    read = kernel.read_buffer(values)
    decisions, votes = (kernel.write_buffer(m) for m in made)
    table = kernel.read_buffer(_constant(plan, op.floats("coefficients")[: (classes - 1) * total]))
    rho, pairs = op.floats("rho"), classes * (classes - 1) // 2
    ends = np.cumsum(per_class).tolist()
    starts = [end - size for end, size in zip(ends, per_class, strict=True)]

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        row, at = Number.index(b, i) * total, Number.index(b, i)
        won = [Number.const(b, 0, int64) for _ in range(classes)]
        number = 0
        for i_ in range(classes):
            for j in range(i_ + 1, classes):
                first = _weighted(b, kernel, read, row + starts[i_], table, (j - 1) * total + starts[i_], per_class[i_])
                second = _weighted(b, kernel, read, row + starts[j], table, i_ * total + starts[j], per_class[j])
                decision = first + second + float(rho[number])
                decision.store(decisions, at * max(1, pairs) + number, float64, b)
                wins = decision.gt(0.0).to(int64)
                won[i_], won[j] = won[i_] + wins, won[j] + decision.le(0.0).to(int64)
                number += 1
        for k, count in enumerate(won):
            count.store(votes, at * classes + k, int64, b)

    kernel.loop(kernel.extent(_samples(op)[0]), sample, parallel=True)
    kernel.launch()


def _couple(plan: Plan, op: SvmClassifierOp, decisions: SSAValue, scores: SSAValue, classes: int) -> None:
    """`SvmClassifierOp._coupled`: the matrix of pairs and the iteration on it, in workspace of each sample."""
    samples = _samples(op)[0]
    held = plan.workspace(float64, [plan.dim(samples), classes * (2 * classes + 1)])
    kernel = plan.kernel("svm_couple")
    read, p = kernel.read_buffer(decisions), kernel.write_buffer(scores)
    work = kernel.write_buffer(held)
    a, c = op.floats("prob_a"), op.floats("prob_b")
    k_, pairs = classes, classes * (classes - 1) // 2

    def sample(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        at = Number.index(b, i)
        r, q = at * (k_ * (2 * k_ + 1)), at * (k_ * (2 * k_ + 1)) + k_ * k_
        qp, out = q + k_ * k_, at * k_
        number = 0
        for m in range(k_):
            b.store(b.const(float64, 0), work, (r + m * (k_ + 1)).value)
            for n in range(m + 1, k_):
                value = Number.load(b, read, at * max(1, pairs) + number, float64) * float(a[number]) + float(c[number])
                part = (1.0 - logistic(value)).clip(1e-7, 1 - 1e-7)
                part.store(work, r + (m * k_ + n), float64, b)
                (1.0 - part).store(work, r + (n * k_ + m), float64, b)
                number += 1
        _refine(b, kernel, work, p, (r, q, qp, out), k_)

    kernel.loop(kernel.extent(samples), sample, parallel=True)
    kernel.launch()


def _refine(
    b: Body, kernel: Kernel, work: SSAValue, p: SSAValue, at: tuple[Number, Number, Number, Number], k: int
) -> None:
    """`_multiclass_probability` on the matrix at r: q, qp and the result p lie at the other places."""
    r, q, qp, out = at
    zero = kernel.const(float64, 0)

    def total(outer: Body, term: Callable[[Body, Number], Number]) -> Number:
        def add(inner: Body, j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            return [(Number(inner, carried[0], float64) + term(inner, Number.index(inner, j))).value]

        return Number(outer, outer.loop(k, add, [("serial", zero)])[0], float64)

    def held(inner: Body, place: Number) -> Number:
        return Number.load(inner, work, place, float64)

    def matrix(outer: Body, m: SSAValue, _: Sequence[SSAValue]) -> None:
        own = Number.index(outer, m)

        def entry(inner: Body, n: SSAValue, _: Sequence[SSAValue]) -> None:
            other = Number.index(inner, n)
            value = -held(inner, r + other * k + own) * held(inner, r + own * k + other)
            value.store(work, q + own * k + other, float64, inner)

        outer.loop(k, entry)

        def square(inner: Body, n: Number) -> Number:
            value = held(inner, r + n * k + own)
            return value * value

        total(outer, square).store(work, q + own * (k + 1), float64, outer)
        Number.const(outer, 1.0 / k).store(p, out + own, float64, outer)

    b.loop(k, matrix)

    def turn(outer: Body, _: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        def work_on(w: Body) -> list[SSAValue]:
            def product(inner: Body, m: SSAValue, _: Sequence[SSAValue]) -> None:
                own = Number.index(inner, m)
                line = total(inner, lambda c, n: held(c, q + own * k + n) * Number.load(c, p, out + n, float64))
                line.store(work, qp + own, float64, inner)

            w.loop(k, product)
            pqp = total(w, lambda c, n: Number.load(c, p, out + n, float64) * held(c, qp + n))

            def worst(inner: Body, n: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                apart = (held(inner, qp + Number.index(inner, n)) - pqp).abs()
                return [Number(inner, values[0], float64).max(apart).value]

            most = Number(w, w.loop(k, worst, [("serial", zero)])[0], float64)
            done = most.lt(0.005 / k)

            def improve(v: Body) -> None:
                def each(inner: Body, t: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                    own, now = Number.index(inner, t), Number(inner, values[0], float64)
                    pivot, line = held(inner, q + own * (k + 1)), held(inner, qp + own)
                    step = (now - line) / pivot
                    (Number.load(inner, p, out + own, float64) + step).store(p, out + own, float64, inner)
                    scale = step + 1.0
                    following = (now + step * (step * pivot + line * 2.0)) / (scale * scale)

                    def spread(c: Body, n: SSAValue, _: Sequence[SSAValue]) -> None:
                        other = Number.index(c, n)
                        value = (held(c, qp + other) + step * held(c, q + own * k + other)) / scale
                        value.store(work, qp + other, float64, c)
                        (Number.load(c, p, out + other, float64) / scale).store(p, out + other, float64, c)

                    inner.loop(k, spread)
                    return [following.value]

                v.loop(k, each, [("serial", pqp.value)])

            w.when((~done).value, improve)
            return [done.to(int64).value]

        ended = Number(outer, carried[0], int64)
        return list(outer.when(ended.eq(0).value, work_on, lambda _: [ended.value]))

    b.loop(MOST_TURNS, turn, [("serial", kernel.const(int64, 0))])
