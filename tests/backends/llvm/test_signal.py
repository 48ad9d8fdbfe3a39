"""Native Fourier transforms and filter banks against the reference: lengths of all kinds, both directions, any axis."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import both_refuse, case, check_all, sample

from sardonyx.backends.llvm.lowering.fft_tables import factors_of
from sardonyx.dialects.dtypes import float64, int32
from sardonyx.dialects.sx.dft import DFTOp, MelWeightMatrixOp, STFTOp


def one(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def test_factors() -> None:
    assert [factors_of(n) for n in (1, 2, 8, 10, 64, 60, 61, 67, 134)] == [
        [], [2], [2, 4], [2, 5], [4, 4, 4], [4, 3, 5], [61], [], [],
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["constant", "dynamic"])
def test_lengths(mode: str) -> None:
    cases = []
    for n, dtype in ((1, "float32"), (14, "float64"), (60, "float32"), (67, "float32"), (128, "float64")):
        cases.append(case(DFTOp, sample(dtype, 2, n, 3, 2), None, one(1), inverse=n % 3 == 0))
    x = sample("float32", 3, 10, 1)
    cases += [
        case(DFTOp, x, one(7), None, onesided=True),
        case(DFTOp, x, np.array(32, np.int32), one(0)),
        case(DFTOp, sample("float32", 3, 6, 2), None, None, onesided=True, inverse=True),
        case(DFTOp, sample("float64", 3, 6, 2), one(9), None, onesided=True, inverse=True),
        case(DFTOp, sample("float16", 3, 6, 2), one(16), None, inverse=True),
        case(DFTOp, x[:0], None, None),
    ]
    check_all(cases if mode == "constant" else [cases[2], cases[3], cases[5]], (mode,))


def test_frames() -> None:
    x, window = sample("float32", 2, 50, 1), sample("float32", 16)
    cases = [
        case(STFTOp, x, one(5), window, None),
        case(STFTOp, x, one(7), None, one(12), onesided=False),
        case(STFTOp, sample("float64", 2, 50, 2), one(7), sample("float64", 13), one(13), onesided=False),
        case(STFTOp, x[:0], one(5), window, None),
    ]
    check_all(cases, ("constant",))
    check_all(cases[:1], ("dynamic",))
    both_refuse(STFTOp, x, one(0), window, None, modes=("static",))
    both_refuse(DFTOp, x, None, one(2), modes=("static",))


def test_mel_banks() -> None:
    def bank(*numbers: float) -> list[np.ndarray]:
        return [*(np.array(int(v), np.int32) for v in numbers[:3]), *(np.array(v, np.float32) for v in numbers[3:])]

    cases = [
        case(MelWeightMatrixOp, *bank(8, 16, 8192, 0, 4096)),
        case(MelWeightMatrixOp, *bank(13, 257, 16000, 100, 7000), output_datatype=float64),
        case(MelWeightMatrixOp, *bank(5, 31, 8000, 0, 3000), output_datatype=int32),
        case(MelWeightMatrixOp, *bank(0, 16, 8192, 0, 4096)),
    ]
    check_all(cases, ("static", "dynamic"))
    both_refuse(MelWeightMatrixOp, *bank(8, 16, 8192, 0, 40960))
