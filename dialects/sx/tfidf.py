"""Counts of n-grams: `sx.tfidf_vectorizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import DType, float32, int32, int64, string
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_allocation, check_run_allocation, refuse, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked

MODES = ("TF", "IDF", "TFIDF")


@irdl_op_definition
class TfIdfVectorizerOp(SxOp):
    """How often each n-gram of a pool occurs in a sequence [C], or in each row of [B, C].

    `pool_int64s` (for strings `pool_strings`) holds the n-grams one after the other, sorted by length; those of length
    n start at `ngram_counts[n - 1]`. N-gram i is counted in column `ngram_indexes[i]` if its length is in
    [min_gram_length, max_gram_length]. Its elements may lie up to `max_skip_count + 1` apart, evenly; each distance
    is counted, single elements once. `mode` TF gives the counts, IDF the column's weight where there is one, TFIDF
    weight times count (weights are 1 without `weights`).

    (C1) The operand is int32 or int64 and there is `pool_int64s`, or it is of strings and there is `pool_strings`. (C2)
    Its rank is 1 or 2. (C3) `mode` is one of `MODES`. (C4) `ngram_counts` are ascending positions of the pool, with
    whole n-grams between them; `max_gram_length` is no longer than the list. (C5) There is an index, none negative,
    for each n-gram of the pool; a weight for each column. (C6) 1 <= `min_gram_length` <= `max_gram_length`, and
    `max_skip_count` is not negative.
    """

    name = "sx.tfidf_vectorizer"
    x = operand_def()
    max_gram_length = prop_def(IntegerAttr)
    max_skip_count = prop_def(IntegerAttr)
    min_gram_length = prop_def(IntegerAttr)
    mode = prop_def(StringAttr)
    ngram_counts = prop_def(DenseArrayBase)
    ngram_indexes = prop_def(DenseArrayBase)
    pool_int64s = opt_prop_def(DenseArrayBase)
    pool_strings = opt_prop_def(ArrayAttr)
    weights = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("TfIdfVectorizer", since=9)
    DTYPES: ClassVar[Sequence[DType]] = (int32, int64, string)

    @property
    def columns(self) -> int:
        return max(self.attr("ngram_indexes"), default=-1) + 1

    def grams(self) -> dict[tuple[object, ...], int]:
        """The column of each n-gram that is counted; the first of equal ones counts.

        Raises:
            InferenceError: The pool breaks (C4) or (C5).
        """
        starts, columns = self.attr("ngram_counts"), self.attr("ngram_indexes")
        pools = self.attr("pool_int64s"), self.attr("pool_strings")
        strings = dtype_of(self.x) == string
        pool, other = pools[::-1] if strings else pools
        if pool is None or other is not None:
            raise self.fail(f"(C1) n-grams of {dtype_of(self.x)} are in {'pool_strings' if strings else 'pool_int64s'}")
        low, high = self.attr("min_gram_length"), self.attr("max_gram_length")
        if high > len(starts):
            raise self.fail(f"(C4) max_gram_length is {high}, ngram_counts has {len(starts)} entries")
        bounds = [*starts, len(pool)]
        if any(a > b for a, b in zip(bounds, bounds[1:])) or min(bounds) < 0:
            raise self.fail(f"(C4) ngram_counts {list(starts)} are not ascending positions of a pool of {len(pool)}")
        out: dict[tuple[object, ...], int] = {}
        number = 0
        for length, (start, end) in enumerate(zip(bounds, bounds[1:]), 1):
            if (end - start) % length:
                raise self.fail(f"(C4) the pool's {end - start} entries from {start} on are no {length}-grams")
            for at in range(start, end, length):
                if number >= len(columns) or columns[number] < 0:
                    raise self.fail(f"(C5) n-gram {number} of the pool has no index")
                if low <= length <= high:
                    out.setdefault(tuple(pool[at : at + length]), columns[number])
                number += 1
        weights = self.attr("weights")
        if weights is not None and len(weights) != self.columns:
            raise self.fail(f"(C5) {len(weights)} weights for {self.columns} columns")
        return out

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        if self.attr("mode") not in MODES:
            raise self.fail(f"(C3) mode '{self.attr('mode')}' is none of {', '.join(MODES)}")
        if not 1 <= self.attr("min_gram_length") <= self.attr("max_gram_length") or self.attr("max_skip_count") < 0:
            raise self.fail(
                f"(C6) lengths from {self.attr('min_gram_length')} to {self.attr('max_gram_length')}, skips up to "
                f"{self.attr('max_skip_count')}"
            )
        self.grams()
        if is_unranked(self.x):
            return [unranked_type(float32)]
        dims = dims_of(self.x)
        if len(dims) not in (1, 2):
            raise self.fail(f"(C2) the operand has rank {len(dims)}, not 1 or 2")
        check_allocation(self, float32, [*dims[:-1], self.columns], "(C5)")
        return [tensor_type(float32, [*dims[:-1], self.columns])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim not in (1, 2):
            raise refuse(self, f"the operand has rank {x.ndim}, not 1 or 2")
        check_run_allocation(self, np.dtype(np.float32), [*x.shape[:-1], self.columns])
        grams = self.grams()
        rows = [self._counts(row, grams) for row in np.atleast_2d(x).tolist()]
        counts = np.array(rows, np.float64).reshape(*x.shape[:-1], self.columns)
        weights = self.attr("weights")
        if self.attr("mode") == "IDF":
            counts = (counts > 0).astype(np.float64)
        if self.attr("mode") != "TF" and weights is not None:
            counts = counts * np.array(weights, np.float64).astype(np.float32)
        return [counts.astype(np.float32)]

    def _counts(self, row: list[object], grams: dict[tuple[object, ...], int]) -> list[int]:
        counts = [0] * self.columns
        lengths = {len(gram) for gram in grams}
        for distance in range(1, min(self.attr("max_skip_count") + 1, max(len(row), 1)) + 1):
            for length in lengths:
                if length == 1 and distance > 1:
                    continue  # single elements are the same at every distance
                for start in range(len(row) - distance * (length - 1)):
                    column = grams.get(tuple(row[start : start + distance * (length - 1) + 1 : distance]))
                    if column is not None:
                        counts[column] += 1
        return counts
