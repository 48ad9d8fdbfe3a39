"""Long lists of attributes, encoded by NumPy, against Protobuf's own encoding."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from sardonyx.backends.onnx.wire import LONG, put_choices, put_floats, put_ints, varint, varints

EDGES = [0, 1, -1, 2**63 - 1, -(2**63), *(2 ** (7 * k) + d for k in range(1, 9) for d in (-1, 0, 1))]


@pytest.mark.parametrize("copies", [1, 1 + LONG // len(EDGES)])
def test_integers(copies: int) -> None:
    values = np.array(EDGES * copies, np.int64)
    proto = onnx.AttributeProto()
    put_ints(proto, values.reshape(1, -1)[:, ::-1])
    assert list(proto.ints) == list(reversed(EDGES)) * copies


def test_integers_one_by_one() -> None:
    for value in EDGES:
        if value >= 0:
            assert varints(np.array([value])) == varint(value)
    assert varints(np.array([], np.int64)) == b""
    assert varints(np.array([3, 200], np.uint8)) == b"\x03\xc8\x01"


@pytest.mark.parametrize("count", [0, 3, LONG, LONG + 5])
def test_floats_and_names(count: int) -> None:
    values = np.linspace(-3, 1e30, count, dtype=np.float32)
    values[:2] = [np.inf, -0.0][:count]
    proto = onnx.AttributeProto()
    put_floats(proto, values)
    np.testing.assert_array_equal(np.array(proto.floats, np.float32), values)
    put_choices(proto, [b"LEAF", b"", "ünï".encode()], (np.arange(count) % 3).astype(np.uint8))
    assert list(proto.strings) == [[b"LEAF", b"", "ünï".encode()][k % 3] for k in range(count)]
