"""`join-reshapes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import dims_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.reshape import ReshapeOp
from sardonyx.passes import provenance
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, is_ranked
from sardonyx.passes.simplify_shapes import RESHAPES, stated_entries


class JoinPattern(SxPattern[SxOp]):
    """Cases 1 and 2."""

    NAME: ClassVar = "join"
    OPS: ClassVar = RESHAPES

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.operands[0], RESHAPES)
        if inner is None:
            return
        source, result = inner.operands[0], op.results[0]
        if not is_ranked(source, result):
            return rewriter.decline("a rank is not known")
        if not op.operands[0].has_one_use():
            return rewriter.decline("the shape in between is read elsewhere too")
        shape = static_shape(result)
        entries = list(shape) if shape is not None else stated_entries(dims_of(source), dims_of(result))
        if entries is None:
            return rewriter.decline("no constant shape states the result")
        both = provenance.merge(op.location, inner.location)
        constant = rewriter.insert(ConstantOp.dense(np.array(entries, np.int64), both))
        allowzero = shape is not None and 0 in shape
        rewriter.replace(op, ReshapeOp.make(source, constant.output, allowzero=allowzero, location=both))


@dataclass(frozen=True)
class JoinReshapesPass(SxPass):
    """State two ops that only change the shape as one reshape.

    Cases:
    1. An unsqueeze of a squeeze, as `compose-transposes` puts them where an axis of extent 1 moves, is one reshape by a
       constant shape.
    2. So is any reshape, flatten, squeeze or unsqueeze of another one.
    3. Not: where what is in between is read elsewhere, or no constant shape states the result whatever the symbols are.

    Requires: nothing. It comes last: transposes move through squeeze and unsqueeze, and not through a reshape.
    Ensures: none of the cases is left.
    Promise: exact.
    """

    name = "join-reshapes"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([JoinPattern()], run).rewrite(module)
