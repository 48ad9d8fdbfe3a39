"""The in-place spellings of functions: `add_(x, y)` is `x.add_(y)`; see `frontend/inplace.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def _in_place(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise InvalidArgumentError(
                f"{name}() writes to a Tensor, not to {type(x).__name__}",
                location=user_line(),
                hint="make one first: x = sardonyx.asarray(array)",
            )
        return getattr(x, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`x.{name}(...)`: the function of that name without the underscore, in place; returns x."
    return function


abs_ = _in_place("abs_")
add_ = _in_place("add_")
bitwise_and_ = _in_place("bitwise_and_")
bitwise_or_ = _in_place("bitwise_or_")
bitwise_xor_ = _in_place("bitwise_xor_")
ceil_ = _in_place("ceil_")
clamp_ = _in_place("clamp_")
clip_ = _in_place("clip_")
copy_ = _in_place("copy_")
cos_ = _in_place("cos_")
div_ = _in_place("div_")
divide_ = _in_place("divide_")
exp_ = _in_place("exp_")
fill_ = _in_place("fill_")
floor_ = _in_place("floor_")
floor_divide_ = _in_place("floor_divide_")
gelu_ = _in_place("gelu_")
log_ = _in_place("log_")
logical_and_ = _in_place("logical_and_")
logical_not_ = _in_place("logical_not_")
logical_or_ = _in_place("logical_or_")
maximum_ = _in_place("maximum_")
minimum_ = _in_place("minimum_")
mul_ = _in_place("mul_")
multiply_ = _in_place("multiply_")
neg_ = _in_place("neg_")
negative_ = _in_place("negative_")
pow_ = _in_place("pow_")
reciprocal_ = _in_place("reciprocal_")
relu_ = _in_place("relu_")
remainder_ = _in_place("remainder_")
round_ = _in_place("round_")
rsqrt_ = _in_place("rsqrt_")
sigmoid_ = _in_place("sigmoid_")
sign_ = _in_place("sign_")
silu_ = _in_place("silu_")
sin_ = _in_place("sin_")
softplus_ = _in_place("softplus_")
sqrt_ = _in_place("sqrt_")
square_ = _in_place("square_")
sub_ = _in_place("sub_")
subtract_ = _in_place("subtract_")
tanh_ = _in_place("tanh_")
trunc_ = _in_place("trunc_")
zero_ = _in_place("zero_")
