"""The generator of random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

It is a function of a key and a counter: element i of a tensor needs nothing of the others, so results depend neither on
the order nor on the number of threads, and are the same on every machine. Block i of four words has the counter
(i, 0, 0). The numbers are those of no other library.
"""

from __future__ import annotations

import secrets
import struct

import numpy as np

from sardonyx.dialects.evaluate import Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
ROUNDS = 10


def key_of(seed: float | int | None) -> int:
    """The 64-bit key of a seed: the bits of a float32, an integer modulo 2**64, or a new random key without a seed."""
    if seed is None:
        return secrets.randbits(64)
    if isinstance(seed, float):
        return struct.unpack("I", struct.pack("f", seed))[0]
    return seed % (1 << 64)


def words(key: int, blocks: int) -> Array:
    """`blocks` blocks of four 32-bit words, [blocks, 4]."""
    count = np.arange(blocks, dtype=np.uint64)
    zero = np.zeros(blocks, np.uint64)
    a, b, c, d = count & _LOW, count >> _SHIFT, zero, zero
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (
            (right >> _SHIFT) ^ b ^ np.uint64(k0),
            right & _LOW,
            (left >> _SHIFT) ^ d ^ np.uint64(k1),
            left & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1)


def uniform(key: int, count: int) -> Array:
    """`count` numbers in [0, 1) with 53 bits each: two words make one."""
    pairs = words(key, -(-count // 2)).reshape(-1, 2)[:count]
    high, low = pairs[:, 0] >> np.uint64(5), pairs[:, 1] >> np.uint64(6)
    return (high.astype(np.float64) * 2.0**26 + low.astype(np.float64)) * 2.0**-53


def normal(key: int, count: int) -> Array:
    """`count` numbers of the standard normal distribution, by Box and Muller: a block makes two."""
    pairs = uniform(key, 2 * -(-count // 2)).reshape(-1, 2)
    radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))
    angle = 2.0 * np.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:count]
