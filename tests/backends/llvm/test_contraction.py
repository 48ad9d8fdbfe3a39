"""Native matmul, gemm, convolutions and pools against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import three_ways
from three_ways import case, check_all, sample

from sardonyx.dialects.sx.conv import ConvOp, ConvTransposeOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp
from sardonyx.dialects.sx.pool import AveragePoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp, MaxPoolOp

STATIC_AND_DYNAMIC = ("static", "dynamic")
SHAPES = [
    ((3, 4), (4, 5)), ((7, 33), (33, 19)), ((1, 64), (64, 40)), ((2, 64), (64, 40)), ((3, 9), (9, 100)),
    ((4, 9), (9, 31)), ((5, 9), (9, 16)), ((6, 9), (9, 17)), ((13, 20), (20, 8)), ((5, 6), (6, 1)), ((1, 6), (6, 1)),
    ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3), (3, 0)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 6)),
    ((4,), (4,)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((1, 3, 4), (2, 4, 5)), ((0, 2, 3), (1, 3, 4)),
    ((40, 70), (70, 100)),
]  # fmt: skip


def test_matmul_shapes() -> None:
    check_all([case(MatMulOp, sample("float32", *a), sample("float32", *b, seed=1)) for a, b in SHAPES])


def test_several_blocks_of_rows_and_of_k() -> None:
    """Blocks of rows, the last of less than a whole tile; k in blocks, or, for few rows, as one; panels of an operand
    that is not packed, copied to the stack; rows of A that are 8 KiB apart, copied likewise."""
    shapes = [((4, 600), (600, 40)), ((2, 1030), (1030, 70)), ((147, 520), (520, 40)), ((290, 8), (8, 33)),
              ((2, 50, 70), (2, 70, 83)), ((55, 2048), (2048, 1030))]  # fmt: skip
    cases = [case(MatMulOp, sample("float32", *a), sample("float32", *b, seed=1)) for a, b in shapes]
    check_all([*cases, case(ConvOp, sample("float32", 1, 530, 17, 17), sample("float32", 25, 530, 1, 1, seed=1))])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64", "uint32", "uint64"])
def test_matmul_dtypes(dtype: str) -> None:
    shapes = [SHAPES[1], SHAPES[2], SHAPES[9], SHAPES[11], SHAPES[15]]
    check_all([case(MatMulOp, sample(dtype, *a), sample(dtype, *b, seed=1)) for a, b in shapes], STATIC_AND_DYNAMIC)


def test_matmul_refuses_sizes_that_disagree() -> None:
    for message in three_ways.both_refuse(MatMulOp, sample("float32", 2, 3), sample("float32", 4, 5)):
        assert "3" in message and "4" in message
    three_ways.both_refuse(MatMulOp, sample("float32", 2, 2, 3), sample("float32", 3, 3, 4))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_gemm(dtype: str) -> None:
    a, b = sample(dtype, 3, 4), sample(dtype, 4, 5, seed=1)
    at, bt = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    half = 2.0 if dtype == "int32" else 0.5
    cases = [
        case(GemmOp, a, b),
        case(GemmOp, a, b, sample(dtype, 5)),
        case(GemmOp, a, b, sample(dtype, 3, 1), alpha=half, beta=2.0),
        case(GemmOp, a, b, sample(dtype), beta=3.0),
        case(GemmOp, at, bt, sample(dtype, 3, 5), transA=True, transB=True),
        case(GemmOp, a, bt, sample(dtype, 1, 5), transB=True, alpha=half),
        case(GemmOp, sample(dtype, 1, 4), bt, sample(dtype, 5), transB=True),
        case(GemmOp, sample(dtype, 2, 0), sample(dtype, 0, 3), sample(dtype, 3), beta=2.0),
    ]
    check_all(cases, STATIC_AND_DYNAMIC)


CONVOLUTIONS = [
    ((2, 3, 8, 9), (4, 3, 3, 3), True, {"pads": (1, 1, 1, 1)}),
    ((2, 4, 8, 9), (6, 2, 3, 2), False, {"group": 2, "strides": (2, 1), "dilations": (1, 2)}),
    ((1, 4, 5, 5), (6, 4, 1, 1), True, {}),
    ((2, 4, 5, 5), (6, 2, 1, 1), True, {"group": 2}),
    ((1, 4, 5, 5), (6, 4, 1, 1), False, {"strides": (2, 2)}),
    ((2, 4, 11), (4, 1, 3), False, {"group": 4, "auto_pad": "SAME_UPPER", "strides": (2,)}),
    ((2, 4, 11), (4, 1, 4), True, {"group": 4, "auto_pad": "SAME_LOWER", "strides": (3,)}),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), True, {"pads": (1, 0, 1, 0, 1, 0)}),
    ((0, 2, 5, 5), (3, 2, 2, 2), True, {}),
    ((1, 1, 3, 3), (1, 1, 3, 3), False, {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_convolutions(dtype: str) -> None:
    cases = [
        case(
            ConvOp, sample(dtype, *x), sample(dtype, *w, seed=1), sample(dtype, w[0], seed=2) if bias else None, **props
        )
        for x, w, bias, props in CONVOLUTIONS
    ]
    check_all(cases, STATIC_AND_DYNAMIC if dtype == "float32" else ("dynamic",))


def test_a_window_that_does_not_fit_ends_the_run() -> None:
    for message in three_ways.both_refuse(ConvOp, sample("float32", 1, 1, 2, 9), sample("float32", 1, 1, 5, 3), None):
        assert "fit" in message
    three_ways.both_refuse(ConvOp, sample("float32", 1, 3, 4, 4), sample("float32", 1, 2, 2, 2), None)


TRANSPOSED = [
    ((2, 3, 4, 5), (3, 2, 3, 3), True, {"strides": (2, 2)}),
    ((1, 4, 4), (4, 2, 3), False, {"group": 2, "strides": (3,), "output_padding": (1,), "pads": (1, 0)}),
    ((1, 1, 3, 3), (1, 2, 3, 3), False, {"output_shape": (10, 8), "strides": (3, 2)}),
    ((1, 1, 3, 3), (1, 2, 2, 2), True, {"dilations": (2, 2)}),
    ((1, 1, 3, 3), (1, 2, 3, 3), True, {"auto_pad": "SAME_UPPER", "strides": (2, 2)}),
    ((1, 2, 2, 3, 2), (2, 1, 2, 2, 2), False, {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_transposed_convolutions(dtype: str) -> None:
    cases = []
    for x, w, bias, props in TRANSPOSED:
        channels = w[1] * props.get("group", 1)
        b = sample(dtype, channels, seed=2) if bias else None
        cases.append(case(ConvTransposeOp, sample(dtype, *x), sample(dtype, *w, seed=1), b, **props))
    check_all(cases, STATIC_AND_DYNAMIC if dtype == "float32" else ("dynamic",))


POOLS = [
    {"kernel_shape": (2, 2), "strides": (2, 2)},
    {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (3, 2), "strides": (2, 3), "ceil_mode": True, "pads": (1, 0, 1, 1)},
    {"kernel_shape": (2, 3), "dilations": (2, 3)},
    {"kernel_shape": (3, 3), "auto_pad": "SAME_LOWER", "strides": (2, 2)},
    {"kernel_shape": (9, 11)},
]


def test_max_pools() -> None:
    x = sample("float32", 2, 3, 9, 11)
    x[0, 0, 3, 3] = np.nan
    x[1, 1, 0, 0] = -np.inf
    cases = [case(MaxPoolOp, x, **props) for props in POOLS]
    cases += [case(MaxPoolOp, x, kernel_shape=(2, 2), storage_order=1, pads=(1, 1, 0, 0))]
    cases += [case(MaxPoolOp, sample(d, 1, 2, 13), kernel_shape=(4,)) for d in ("float16", "float64", "int8", "uint8")]
    cases += [case(MaxPoolOp, sample("float32", 1, 2, 5, 6, 7), kernel_shape=(2, 2, 2))]
    check_all(cases, STATIC_AND_DYNAMIC)


def test_max_pool_without_its_indices() -> None:
    """The plain kernel, used where nobody reads the indices."""
    from sardonyx.backends.llvm.compile import compile_module
    from sardonyx.dialects.evaluate import evaluate_function
    from sardonyx.dialects.module import main_function, set_outputs

    x = sample("float32", 2, 3, 9, 11)
    x[0, 0, 3, 3] = np.nan
    graph = three_ways.build([case(MaxPoolOp, x, **props) for props in POOLS], "dynamic")
    returned = main_function(graph.module).body.block.last_op
    assert returned is not None
    set_outputs(graph.module, list(returned.operands)[::2], [f"y{i}" for i in range(len(POOLS))])
    want = evaluate_function(main_function(graph.module), graph.feeds)
    for got, expected in zip(compile_module(graph.module).run(graph.feeds), want, strict=True):
        assert three_ways.compare("max_pool", got, np.asarray(expected)) is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_average_pools(dtype: str) -> None:
    x = sample(dtype, 2, 3, 9, 11)
    cases = [case(AveragePoolOp, x, count_include_pad=c, **props) for props in POOLS for c in (False, True)]
    line = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 9)
    cases += [
        case(AveragePoolOp, line, kernel_shape=(7,), strides=(3,), pads=(3, 3), ceil_mode=True, count_include_pad=c)
        for c in (False, True)
    ]
    cases += [case(GlobalAveragePoolOp, x), case(GlobalMaxPoolOp, x), case(GlobalMaxPoolOp, sample(dtype, 2, 3, 0))]
    check_all(cases, STATIC_AND_DYNAMIC if dtype == "float32" else ("dynamic",))
