"""Recurrent layers in native code against the reference: directions, layouts, lengths, activations, odd sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from three_ways import Case, case, check_all

from sardonyx.dialects.sx.recurrent import ACTIVATIONS, RecurrentOp
from sardonyx.dialects.sx.recurrent_layers import GruOp, LstmOp, RnnOp

GENERATOR = np.random.default_rng(7)


def layer(
    op: type[RecurrentOp],
    shape: tuple[int, int, int, int],
    direction: str = "forward",
    *,
    layout: int = 0,
    given: str = "bias state",
    dtype: Any = np.float32,
    **more: Any,
) -> Case:
    """A layer over `shape` = (seq, batch, input, hidden); `given` names optional operands."""
    seq, batch, width, hidden = shape
    dirs = 2 if direction == "bidirectional" else 1

    def random(*sizes: int) -> Any:
        return (0.5 * GENERATOR.standard_normal(sizes)).astype(dtype)

    def laid(array: Any) -> Any:
        return np.ascontiguousarray(array.swapaxes(0, 1)) if layout else array

    state = laid(random(dirs, batch, hidden)) if "state" in given else None
    lens = GENERATOR.integers(0, seq + 1, batch).astype(np.int32) if "lens" in given else None
    rows = op.GATES * hidden
    bias = random(dirs, 2 * rows) if "bias" in given else None
    slots = [laid(random(seq, batch, width)), random(dirs, rows, width), random(dirs, rows, hidden), bias, lens, state]
    if op is LstmOp:
        slots += [state, random(dirs, 3 * hidden) if "peep" in given else None]
    return case(op, *slots, direction=direction, layout=layout, **more)


def test_extents_that_only_the_run_knows_and_weights_that_it_brings():
    cases = [
        layer(RnnOp, (4, 2, 3, 5), "reverse", given="state lens"),
        layer(GruOp, (3, 2, 3, 20), "bidirectional", layout=1, given="bias state lens"),
        layer(LstmOp, (3, 2, 3, 7), given="bias state peep"),
    ]
    check_all(cases, modes=("shared", "constant"))


def test_directions_lengths_and_sizes_of_0():
    cases = [
        layer(RnnOp, (0, 2, 3, 5)),
        layer(GruOp, (3, 0, 3, 5), given="bias"),
        layer(GruOp, (5, 3, 4, 7), "reverse", given="bias lens", clip=0.3, linear_before_reset=True),
        layer(GruOp, (3, 2, 3, 7), layout=1, given="", linear_before_reset=True),
        layer(LstmOp, (4, 3, 4, 7), "bidirectional", given="bias lens peep", input_forget=True, clip=0.2),
        layer(LstmOp, (5, 1, 3, 33), "reverse", given=""),
    ]
    check_all(cases, modes=("static",))


def test_other_dtypes():
    check_all([layer(GruOp, (3, 2, 3, 5), dtype=np.float64), layer(LstmOp, (3, 2, 3, 5), dtype=np.float16)],
              modes=("static",))  # fmt: skip


def test_all_activations():
    check_all(
        [layer(RnnOp, (3, 2, 3, 9), activations=(name,)) for name in ACTIVATIONS]
        + [
            layer(RnnOp, (3, 2, 3, 9), activations=("ScaledTanh",), activation_alpha=(0.7,), activation_beta=(1.3,)),
            layer(LstmOp, (3, 2, 3, 9), "bidirectional", activation_alpha=(0.3, 0.2, 2.0), activation_beta=(0.4,),
                  activations=("HardSigmoid", "Softsign", "LeakyRelu", "Sigmoid", "Elu", "Tanh")),
        ],
        modes=("static",),
    )  # fmt: skip
