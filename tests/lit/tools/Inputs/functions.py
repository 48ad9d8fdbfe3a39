"""Functions that the lit tests trace."""

import numpy as np

import sardonyx as sx

WEIGHT = np.linspace(-1, 1, 37 * 16, dtype=np.float32).reshape(37, 16)


@sx.signature("x: f32[batch,37]")
def dense(x):
    return sx.relu(sx.matmul(x, sx.asarray(WEIGHT)))


def twice(x, y):
    return x + x * y
