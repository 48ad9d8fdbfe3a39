"""Ops on strings: concat, normalizer, split, full match of a regular expression. They run in the reference only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.dtypes import bool_, int64, string
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.numeric import broadcast, given
from sardonyx.dialects.sx.strings import string_array
from sardonyx.dialects.sx.support import broadcast_type, is_unranked
from sardonyx.errors import ExecutionError

CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def check_strings(op: SxOp, *values: SSAValue) -> None:
    for value in values:
        if dtype_of(value) != string:
            raise op.fail(f"(C1) the operand has dtype {dtype_of(value)}, not string")


@irdl_op_definition
class StringConcatOp(SxOp):
    """Each text of `x` followed by that of `y`.

    (C1) The operands are strings. (C2) Their shapes broadcast.
    """

    name = "sx.string_concat"
    x = operand_def()
    y = operand_def()
    z = result_def()
    ELEMENTWISE: ClassVar = True
    ONNX: ClassVar = OnnxForm("StringConcat", since=20)

    def infer(self) -> Sequence[Attribute]:
        check_strings(self, self.x, self.y)
        return [broadcast_type(self, string, [self.x, self.y], "(C2)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, y = broadcast(self, arrays, "(C2)")
        return [np.asarray(x + y, object)]


@irdl_op_definition
class StringNormalizerOp(SxOp):
    """The texts without `stopwords`, in lower or upper case where `case_change_action` is LOWER or UPPER.

    Stopwords are compared whatever the case, unless `is_case_sensitive`. Where no text is left the result is one empty
    text. Cases are Unicode's; `locale` is kept, but does not matter.

    (C1) The operand is strings. (C2) It has shape [C] or [1, C]. (C3) `case_change_action` is NONE, LOWER or UPPER.
    """

    name = "sx.string_normalizer"
    x = operand_def()
    stopwords = opt_prop_def(ArrayAttr)
    locale = opt_prop_def(StringAttr)
    is_case_sensitive = opt_prop_def(IntegerAttr)
    case_change_action = opt_prop_def(StringAttr)
    y = result_def()
    DEFAULTS: ClassVar = {"stopwords": (), "is_case_sensitive": False, "case_change_action": "NONE"}
    ONNX: ClassVar = OnnxForm("StringNormalizer", since=10)

    def infer(self) -> Sequence[Attribute]:
        check_strings(self, self.x)
        if self.attr("case_change_action") not in CASES:
            raise self.fail(
                f"(C3) case_change_action '{self.attr('case_change_action')}' is none of {', '.join(CASES)}"
            )
        if is_unranked(self.x):
            return [unranked_type(string)]
        dims = dims_of(self.x)
        if len(dims) not in (1, 2) or (len(dims) == 2 and equal(dims[0], 1) is Proof.REFUTED):
            raise self.fail(f"(C2) the operand has type {self.x.type}, not [C] or [1, C]")
        return [tensor_type(string, [*([1] if len(dims) == 2 else []), fresh_dim()])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        if x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
            raise ExecutionError(f"(C2) the operand has shape {list(x.shape)}, not [C] or [1, C]", op=self.name)
        same = str if self.attr("is_case_sensitive") else str.lower
        stop = {same(word) for word in self.attr("stopwords")}
        change = CASES[self.attr("case_change_action")]
        kept = [change(text) for text in x.reshape(-1) if same(text) not in stop] or [""]
        return [string_array(kept, (len(kept),) if x.ndim == 1 else (1, len(kept)))]


@irdl_op_definition
class StringSplitOp(SxOp):
    """The parts of each text between `delimiter`s along a new last axis, filled up with empty texts; and their numbers.

    Without a delimiter, or with an empty one, parts are separated by white space of any length. After `maxsplit` splits
    the rest is one part.

    (C1) The operand is strings.
    """

    name = "sx.string_split"
    x = operand_def()
    delimiter = opt_prop_def(StringAttr)
    maxsplit = opt_prop_def(IntegerAttr)
    y = result_def()
    z = result_def()
    ONNX: ClassVar = OnnxForm("StringSplit", since=20)

    def infer(self) -> Sequence[Attribute]:
        check_strings(self, self.x)
        if is_unranked(self.x):
            return [unranked_type(string), unranked_type(int64)]
        dims = dims_of(self.x)
        return [tensor_type(string, [*dims, fresh_dim()]), tensor_type(int64, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Any]:
        (x,) = given(arrays)
        most = self.attr("maxsplit")
        limit = -1 if most is None else most
        parts = [text.split(self.attr("delimiter") or None, limit) for text in x.reshape(-1)]
        longest = max(map(len, parts), default=0)
        filled = [part for found in parts for part in (*found, *[""] * (longest - len(found)))]
        counts = np.array([len(found) for found in parts], np.int64).reshape(x.shape)
        return [string_array(filled, (*x.shape, longest)), counts]


@irdl_op_definition
class RegexFullMatchOp(SxOp):
    """Whether each text as a whole matches `pattern`, a bool.

    The pattern is of RE2's syntax (https://github.com/google/re2/wiki/Syntax), by which ONNX defines the operator; RE2
    matches in a time that is bounded by the sizes of pattern and text.

    (C1) The operand is strings. (C2) `pattern` is such a regular expression.
    """

    name = "sx.regex_full_match"
    x = operand_def()
    pattern = opt_prop_def(StringAttr)
    y = result_def()
    ELEMENTWISE: ClassVar = True
    DEFAULTS: ClassVar = {"pattern": ""}
    ONNX: ClassVar = OnnxForm("RegexFullMatch", since=20)

    def infer(self) -> Sequence[Attribute]:
        check_strings(self, self.x)
        self.compiled()
        return [broadcast_type(self, bool_, [self.x], "(C1)")]

    def compiled(self) -> Any:
        """The pattern, as RE2 has it."""
        import re2

        options = re2.Options()
        options.log_errors = False
        pattern = self.attr("pattern")
        try:
            return re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            why = error.args[0] if isinstance(error, re2.error) else error
            why = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
            raise self.fail(f"(C2) the pattern {_shown(pattern)!r} cannot be read: {_shown(why)}") from None

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        pattern = self.compiled()
        return [np.array([bool(pattern.fullmatch(text)) for text in x.reshape(-1)], np.bool_).reshape(x.shape)]


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
