"""Native data movement against the reference: bits agree, for every dtype, with static and dynamic dims."""

from __future__ import annotations

import numpy as np
import pytest
import three_ways
from three_ways import case, check_all, sample

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.dtypes import ALL
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.fill import ConstantOfShapeOp, RangeOp
from sardonyx.dialects.sx.gather import GatherElementsOp, GatherNDOp, GatherOp
from sardonyx.dialects.sx.pad import PadOp
from sardonyx.dialects.sx.reshape import ExpandOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.shape import ShapeOp, SizeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.space import DepthToSpaceOp, SpaceToDepthOp
from sardonyx.dialects.sx.tile import TileOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.sx.trilu import TriluOp
from sardonyx.errors import SardonyxError

KNOWN_RANK = ("static", "constant")
"""Ops whose rank follows from the length of an operand need that length."""


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("dtype", [d.name for d in ALL])
def test_every_dtype_moves(dtype: str) -> None:
    x = sample(dtype, 3, 5, 7)
    check_all(
        [
            case(TransposeOp, x, perm=(2, 0, 1)),
            case(ConcatOp, [x, sample(dtype, 3, 2, 7)], axis=-2),
            case(GatherOp, x, ints(2, -1, 0), axis=0),
            case(TriluOp, x),
        ],
        ("static", "dynamic"),
    )


def test_transposes() -> None:
    x = sample("float32", 2, 3, 4, 5)
    perms = [(0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (2, 3, 0, 1)]
    cases = [case(TransposeOp, x, perm=p) for p in perms] + [case(TransposeOp, x)]
    cases += [case(TransposeOp, sample("float32", *s)) for s in [(), (5,), (0, 3), (3, 0), (1, 9), (9, 1), (33, 17)]]
    check_all(cases)


def test_reshapes_share_or_copy() -> None:
    x = sample("float32", 2, 3, 4)
    check_all(
        [
            case(ReshapeOp, x, ints(6, 4)),
            case(ReshapeOp, x, ints(0, -1)),
            case(ReshapeOp, x, ints(-1)),
            case(ReshapeOp, sample("float32", 0, 3), ints(3, 0), allowzero=True),
            case(UnsqueezeOp, x, ints(-1, 0)),
            case(SqueezeOp, sample("float32", 1, 3, 1), ints(0, -1)),
            case(ExpandOp, sample("float32", 3, 1), ints(2, 1, 4)),
            case(ExpandOp, sample("float32", 1, 4), ints(3, 1)),
            case(ExpandOp, np.float32(2), ints(2, 0)),
        ],
        KNOWN_RANK,
    )
    check_all([case(FlattenOp, x, axis=a) for a in (-3, -1, 0, 1, 3)] + [case(FlattenOp, np.float32(3), axis=0)])
    check_all([case(SqueezeOp, sample("float32", 1, 3, 1))], ("static",))


def test_squeezing_by_axes_of_the_run_checks_the_extents() -> None:
    three_ways.both_refuse(SqueezeOp, sample("float32", 1, 3, 1), ints(1), modes=("static",))
    three_ways.both_refuse(SqueezeOp, sample("float32", 1, 3, 1), ints(3), modes=("static",))
    three_ways.both_refuse(ReshapeOp, sample("float32", 2, 3), ints(4, 2), modes=("static",))
    three_ways.both_refuse(ReshapeOp, sample("float32", 2, 3), ints(4, -1), modes=("static",))


def test_concats_and_splits() -> None:
    parts = [sample("float32", 2, n, 3, seed=n) for n in (1, 4, 0, 2)]
    check_all(
        [
            case(ConcatOp, parts, axis=1),
            case(ConcatOp, [parts[0], parts[0]], axis=0),
            case(ConcatOp, [parts[0], parts[0]], axis=-1),
            case(ConcatOp, [parts[1]], axis=2),
            case(SplitOp, sample("float32", 2, 10), results=3, num_outputs=3, axis=-1),
            case(SplitOp, sample("float32", 2, 10), results=1, num_outputs=1, axis=1),
            case(SplitOp, sample("float32", 9, 2), ints(0, 7, 2), results=3),
        ],
        ("static", "dynamic", "constant"),
    )
    three_ways.both_refuse(SplitOp, sample("float32", 10), ints(4, 5), results=2, modes=("static", "dynamic"))
    three_ways.both_refuse(ConcatOp, [sample("float32", 2, 3), sample("float32", 3, 3)], axis=1)


SLICES = [
    (ints(1, -2), ints(8, -9), ints(0, 1), ints(2, -3)),
    (ints(1), ints(2**63 - 1), None, None),
    (ints(-3), ints(-1), ints(-1), None),
    (ints(5), ints(2), ints(0), None),
    (ints(9), ints(-(2**63)), ints(0), ints(-1)),
    (ints(20), ints(-20), ints(1), ints(-2)),
    (ints(-20, 3), ints(4, 20), ints(1, 0), ints(1, 4)),
]


def test_slices() -> None:
    x = sample("float32", 10, 9)
    cases = [case(SliceOp, x, *given) for given in SLICES]
    cases += [case(SliceOp, sample("float32", 0, 3), ints(0), ints(5), ints(0), ints(-1))]
    check_all(cases, KNOWN_RANK)
    three_ways.both_refuse(SliceOp, x, ints(0), ints(5), ints(0), ints(0), modes=("static",))
    three_ways.both_refuse(SliceOp, x, ints(0), ints(5), ints(2), None, modes=("static",))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(mode: str) -> None:
    x = sample("float32", 4, 5)
    cases = [
        case(PadOp, x, ints(1, 2, 0, 3), mode=mode),
        case(PadOp, x, ints(-1, 2, 1, -2), mode=mode),
        case(PadOp, x, ints(2, 1), None, ints(-1), mode=mode),
        case(PadOp, x, ints(9, 0, 0, 11), mode=mode),
        case(PadOp, sample("float32", 1, 5), ints(2, 0, 1, 0), mode=mode),
    ]
    if mode == "constant":
        cases += [
            case(PadOp, x, ints(1, 1), np.float32(7), ints(0)),
            case(PadOp, sample("float32", 0, 2), ints(1, 0, 1, 0)),
        ]
    check_all(cases, KNOWN_RANK)
    three_ways.both_refuse(PadOp, x, ints(-3, 0, -3, 0), mode=mode, modes=("static",))


def test_tiles_and_blocks() -> None:
    x = sample("float32", 2, 3)
    check_all([case(TileOp, x, ints(2, 3)), case(TileOp, x, ints(1, 0)), case(TileOp, x, ints(1, 1))])
    three_ways.both_refuse(TileOp, x, ints(-1, 1), modes=("static",))
    blocks = [case(DepthToSpaceOp, sample("float32", 1, 8, 2, 3), blocksize=2, mode=m) for m in ("DCR", "CRD")]
    blocks += [case(SpaceToDepthOp, sample("float32", 1, 2, 4, 6), blocksize=2, mode=m) for m in ("DCR", "CRD")]
    check_all(blocks, ("static", "dynamic"))
    three_ways.both_refuse(SpaceToDepthOp, sample("float32", 1, 2, 3, 6), blocksize=2)


def test_triangles() -> None:
    x = sample("float32", 2, 4, 5)
    offsets = [None, *(np.int64(k) for k in (-9, -1, 0, 2, 9, 2**63 - 1, -(2**63)))]
    check_all([case(TriluOp, x, k, upper=u) for k in offsets for u in (True, False)])
    check_all([case(TriluOp, sample("float32", 0, 3)), case(TriluOp, sample("float32", 3, 0))])


def test_gathers() -> None:
    x = sample("float32", 3, 4, 5)
    pairs = np.array([[0, -1], [2, 1]])
    check_all(
        [
            case(GatherOp, x, ints(-1, 0, 1, 1), axis=1),
            case(GatherOp, x, np.int64(-2), axis=2),
            case(GatherOp, x, np.array([[1, 2], [0, -3]], np.int32)),
            case(GatherOp, x, np.zeros((0, 2), np.int64), axis=-1),
            case(GatherOp, sample("float32", 5), np.array([[4, -5]])),
            case(GatherElementsOp, sample("float32", 3, 4), pairs, axis=0),
            case(GatherElementsOp, sample("float32", 3, 4), pairs, axis=-1),
        ]
    )
    check_all(
        [
            case(GatherNDOp, x, pairs),
            case(GatherNDOp, x, np.array([[[0, 1, -1]]])),
            case(GatherNDOp, sample("float32", 2, 4, 2), np.array([[[0]], [[-2]]]), batch_dims=1),
        ],
        ("static", "constant"),
    )


@pytest.mark.parametrize("bad", [5, -6, 2**62, -(2**63)])
def test_an_index_out_of_range_ends_the_run_and_is_named(bad: int) -> None:
    x = sample("float32", 5, 3)
    for op, indices in [
        (GatherOp, ints(0, bad)),
        (GatherElementsOp, np.array([[0, bad]])),
        (GatherNDOp, np.array([[bad]])),
    ]:
        modes = ("static",) if op is GatherNDOp else ("static", "dynamic")
        for message in three_ways.both_refuse(op, x, indices, modes=modes):
            assert str(bad) in message and "out of range" in message


def test_ranges_and_fills() -> None:
    i64 = np.int64
    check_all(
        [
            case(RangeOp, i64(-2), i64(9), i64(3)),
            case(RangeOp, i64(9), i64(-2), i64(-4)),
            case(RangeOp, i64(9), i64(-2), i64(4)),
            case(RangeOp, np.float32(1), np.float32(2), np.float32(0.3)),
            case(RangeOp, np.float64(0), np.float64(-3), np.float64(-0.5)),
            case(RangeOp, np.int32(0), np.int32(20), np.int32(1)),
            case(ShapeOp, sample("float32", 2, 3, 4)),
            case(ShapeOp, sample("float32", 2, 3, 4), start=-2, end=-1),
            case(ShapeOp, np.float32(1)),
            case(SizeOp, sample("float32", 2, 0, 4)),
        ],
        ("static", "dynamic"),
    )
    check_all([case(ConstantOfShapeOp, ints(2, 3)), case(ConstantOfShapeOp, ints(0, 3))], KNOWN_RANK)
    three_ways.both_refuse(RangeOp, i64(0), i64(5), i64(0), modes=("static",))
    three_ways.both_refuse(ConstantOfShapeOp, ints(-1), modes=("static",))


def test_absurd_sizes_are_refused_without_allocating() -> None:
    for op, operands in [
        (RangeOp, [np.int64(0), np.int64(2**60), np.int64(1)]),
        (TileOp, [sample("float32", 2), ints(2**62)]),
        (ConstantOfShapeOp, [ints(2**40, 2**40)]),
        (ExpandOp, [sample("float32", 1, 1), ints(2**33, 2**33)]),
    ]:
        three_ways.both_refuse(op, *operands, modes=("static",))


def test_one_compiled_graph_serves_every_size() -> None:
    graph = three_ways.build(
        [case(TransposeOp, sample("float32", 2, 3)), case(ConcatOp, [sample("float32", 2, 3)] * 2, axis=0)], "shared"
    )
    compiled = compile_module(graph.module)
    for rows in (0, 1, 7, 8, 1000):
        for columns in (0, 1, 5, 33):
            x = sample("float32", rows, columns, seed=1)
            feeds = [x] * 3
            try:
                got = compiled.run(feeds)
            except SardonyxError as error:  # pragma: no cover
                raise AssertionError(f"{rows} x {columns}: {error}") from error
            assert np.array_equal(got[0], x.T) and np.array_equal(got[1], np.concatenate([x, x]))
