"""`join-reshapes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import dims_of, rank_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.matmul import MatMulOp
from sardonyx.dialects.sx.reshape import ReshapeOp, UnsqueezeOp
from sardonyx.passes import provenance
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.layout_rule import remake
from sardonyx.passes.matching import defined_by, is_ranked
from sardonyx.passes.simplify_shapes import RESHAPES, axes_of, stated_entries


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


class UnsqueezedOperandsPattern(SxPattern[SxOp]):
    """Case 4."""

    NAME: ClassVar = "unsqueezed-operands"
    OPS: ClassVar = (SxOp,)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if not op.ELEMENTWISE or op.regions or len(op.results) != 1 or len(op.operands) < 2:
            return
        found = [defined_by(value, UnsqueezeOp) for value in op.operands]
        inner = [u for u in found if u is not None]
        if len(set(inner)) < 2 or not is_ranked(op.results[0], *op.operands):
            return
        if {"axis", "block_size"} & {name for name, _ in op.get_irdl_definition().properties.items()}:
            return rewriter.decline("its attributes name an axis")
        rank, axes = rank_of(op.results[0]), axes_of(inner[0])
        if axes is None or any(axes_of(u) != axes or rank_of(u.output) != rank for u in inner):
            return rewriter.decline("the axes of its operands are not known, or not the same")
        if any(len({use.operation for use in u.output.uses}) > 1 for u in inner):
            return rewriter.decline("an operand is read elsewhere too")
        if any(u is None and rank_of(v) for u, v in zip(found, op.operands, strict=True)):
            return rewriter.decline("another operand has axes")
        values = [v if u is None else u.data for u, v in zip(found, op.operands, strict=True)]
        made = rewriter.insert(remake(op, values))
        rewriter.replace(op, UnsqueezeOp.make(made.results[0], inner[0].axes, location=op.location))


class ProductOfUnsqueezedPattern(SxPattern[SxOp]):
    """Case 5."""

    NAME: ClassVar = "product-of-unsqueezed"
    OPS: ClassVar = RESHAPES
    REACH: ClassVar = 2

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        product = defined_by(op.operands[0], MatMulOp)
        inner = None if product is None else defined_by(product.operands[0], UnsqueezeOp)
        if product is None or inner is None or not is_ranked(inner.data, *product.operands, product.results[0]):
            return
        axes, rank = axes_of(inner), rank_of(inner.output)
        if axes is None or rank - 1 in axes or rank_of(inner.data) < 2 or rank_of(product.operands[1]) != 2:
            return rewriter.decline("the product is not of rows and one matrix without the unsqueezed axes")
        if not product.results[0].has_one_use() or not inner.output.has_one_use():
            return rewriter.decline("what is in between is read elsewhere too")
        rows = remake(product, [inner.data, product.operands[1]])
        rows.location = product.location
        rewriter.insert(rows)
        wide = rewriter.insert(UnsqueezeOp.make(rows.results[0], inner.axes, location=inner.location))
        rewriter.replace(op, remake(op, [wide.output, *op.operands[1:]]))


@dataclass(frozen=True)
class JoinReshapesPass(SxPass):
    """State two ops that only change the shape as one reshape.

    Cases:
    1. An unsqueeze of a squeeze, as `compose-transposes` puts them where an axis of extent 1 moves, is one reshape by a
       constant shape.
    2. So is any reshape, flatten, squeeze or unsqueeze of another one.
    3. Not: where what is in between is read elsewhere, or no constant shape states the result whatever the symbols are.
    4. An elementwise op of several operands that are unsqueezed along the same axes, and of scalars, is the op of what
       they were, unsqueezed once. Not: where an operand has other axes, or is read elsewhere.
    5. A reshape, flatten, squeeze or unsqueeze of the product of unsqueezed rows and one matrix is one of the product
       of the rows as they were, unsqueezed, so that cases 1 and 2 join them. Not: where the rows' own axis is new.

    Requires: nothing. It comes last: transposes move through squeeze and unsqueeze, and not through a reshape.
    Ensures: none of the cases is left.
    Promise: exact.
    """

    name = "join-reshapes"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([UnsqueezedOperandsPattern(), ProductOfUnsqueezedPattern(), JoinPattern()], run).rewrite(module)
