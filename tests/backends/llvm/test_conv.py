"""Native convolutions and pools in all layouts, with constant weights and epilogues; Winograd's filtering; transposes.

What is compared with onnxruntime, and the operators' attributes in general, is in `test_contraction.py` and in
`tests/dialects/sx`; here it is the forms that kernels have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tolerances
from guard import run_guarded
from ort_oracle import run_node
from three_ways import compare, sample

from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.passes.constants import make_constant
from sardonyx.passes.pipeline import snapshot

Array = np.ndarray[Any, Any]
LAYOUTS = ("NCHW", "NHWC", "NCHW->NHWC", "NHWC->NCHW")


def last(array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def put(block: Any, name: str, *operands: Any, **attributes: Any) -> Any:
    op = BY_NAME[f"sx.{name}"].make(*operands, **attributes)
    block.add_op(op)
    return op.results[0]


def graph_of(cases: Sequence[dict[str, Any]], dtype: str = "float32", dynamic: bool = False) -> tuple[Any, list[Array]]:
    """A graph with one convolution a case: `x` and `w` are shapes with channels second, `after` says what follows it
    (`relu`; `residual`, another input; `scale`, per channel; `square`, its own product), `held` that weights are
    constants. The rest are attributes."""
    rng = np.random.default_rng(7)
    element = DType.of(dtype)

    def data(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(element.numpy)

    types: list[Any] = []
    feeds: list[Array] = []

    def enter(array: Array, name: str) -> int:
        dims = [f"{name}{k}" for k in range(array.ndim)] if dynamic else list(array.shape)
        types.append((name, tensor_type(element, dims), None))
        feeds.append(array)
        return len(feeds) - 1

    plans = []
    for number, one in enumerate(cases):
        layout = one.get("layout", "NCHW")
        x, w = data(*one["x"]), data(*one["w"])
        here = enter(last(x) if layout.startswith("NHWC") else x, f"x{number}_")
        weights = w if one.get("held", True) else enter(w, f"w{number}_")
        plans.append((one, here, weights, data(w.shape[0])))
    extra: list[tuple[int, int]] = []
    for number, (one, *_rest) in enumerate(plans):
        if one.get("after") == "residual":
            extra.append((number, enter(data(*one["shape"]), f"r{number}_")))
    module, block = create_module("convolutions", types)
    outputs = []
    residuals = dict(extra)
    names = ("group", "strides", "dilations", "pads", "auto_pad", "layout")
    for number, (one, here, weights, bias) in enumerate(plans):
        if isinstance(weights, int):
            w = block.args[weights]
        else:
            constant = make_constant(weights)
            block.add_op(constant)
            w = constant.output
        b = make_constant(bias)
        block.add_op(b)
        value = put(block, "conv", block.args[here], w, b.output, **{k: one[k] for k in names if k in one})
        after = one.get("after")
        if after == "relu":
            value = put(block, "relu", value)
        elif after == "square":
            value = put(block, "mul", value, value)
        elif after == "residual":
            value = put(block, "add", value, block.args[residuals[number]])
        elif after == "scale":
            is_last = one.get("layout", "NCHW").endswith("NHWC")
            shape = (-1,) if is_last else (-1, *[1] * (len(one["x"]) - 2))
            scale = make_constant(data(one["w"][0]).reshape(shape))
            block.add_op(scale)
            value = put(block, "sigmoid", put(block, "mul", value, scale.output))
        outputs.append(value)
    set_outputs(module, outputs, [f"y{k}" for k in range(len(outputs))])
    module.verify()
    return module, feeds


def check(module: Any, feeds: Sequence[Array], got: Sequence[Array], limit: tolerances.Tolerance | None = None) -> None:
    expected = evaluate_function(main_function(module), list(feeds))
    problems = [compare("conv", a, np.asarray(b), limit) for a, b in zip(got, expected, strict=True)]
    assert not any(problems), problems


DIRECT: list[dict[str, Any]] = [
    # Tiles run over the ends of rows, and blocks over those of an image; channels fill no panel.
    {"x": (2, 3, 13, 11), "w": (17, 3, 3, 3), "pads": (1, 1, 1, 1), "after": "relu"},
    {"x": (1, 5, 9, 30), "w": (33, 5, 5, 3), "pads": (2, 0, 1, 1), "strides": (2, 1), "after": "scale"},
    # Two levels of segments: dilated along the width, and groups.
    {"x": (1, 4, 9, 12), "w": (6, 4, 2, 3), "dilations": (1, 2)},
    {"x": (1, 6, 8, 9), "w": (8, 3, 3, 2), "group": 2, "strides": (1, 2), "auto_pad": "SAME_LOWER", "after": "square"},
    # Rows of windows, and whole windows, that lie in the padding; every other row of a window.
    {"x": (1, 5, 3, 7), "w": (19, 5, 3, 3), "pads": (5, 1, 4, 1), "after": "relu"},
    {"x": (2, 6, 9, 7), "w": (10, 3, 3, 2), "pads": (4, 1, 5, 0), "dilations": (3, 1), "strides": (2, 1), "group": 2},
    # One element: all images are one matrix; with a stride they aren't.
    {"x": (3, 7, 5, 5), "w": (19, 7, 1, 1), "after": "relu"},
    {"x": (2, 7, 5, 5), "w": (9, 7, 1, 1), "strides": (2, 2)},
    {"x": (2, 8, 6, 5), "w": (6, 4, 1, 1), "group": 2},
    # Panels of pixels that lie apart are copied, and the next one fetched meanwhile; many channels are put last.
    {"x": (2, 9, 17, 19), "w": (26, 9, 1, 1), "after": "relu"},
    {"x": (1, 5, 6, 7), "w": (150, 5, 1, 1), "after": "scale"},
    # One axis and three.
    {"x": (2, 3, 21), "w": (5, 3, 4), "pads": (2, 1), "strides": (3,), "after": "relu"},
    {"x": (2, 2, 4, 5, 6), "w": (3, 2, 2, 3, 2), "pads": (1, 0, 1, 0, 1, 0), "strides": (1, 2, 1)},
    # Weights that only the run knows.
    {"x": (1, 3, 7, 8), "w": (10, 3, 3, 3), "pads": (1, 1, 1, 1), "held": False, "after": "relu"},
    {"x": (1, 4, 7, 8), "w": (6, 2, 2, 2), "group": 2, "held": False},
    # Nothing at all.
    {"x": (0, 3, 7, 8), "w": (4, 3, 3, 3)},
    {"x": (1, 3, 2, 8), "w": (4, 3, 3, 3)},
    {"x": (1, 0, 4, 4), "w": (4, 0, 1, 1)},
]

RESIDUAL = [
    {"x": (2, 3, 6, 7), "w": (5, 3, 3, 3), "pads": (1, 1, 1, 1), "after": "residual", "layout": layout, "shape": shape}
    for layout, shape in zip(LAYOUTS, [(2, 5, 6, 7), (2, 6, 7, 5), (2, 6, 7, 5), (2, 5, 6, 7)], strict=True)
]

DEPTHWISE: list[dict[str, Any]] = [
    {"x": (1, 20, 9, 33), "w": (20, 1, 3, 3), "group": 20, "pads": (1, 1, 1, 1), "after": "relu"},
    {"x": (2, 9, 12, 21), "w": (9, 1, 5, 3), "group": 9, "pads": (2, 1, 2, 1), "after": "scale"},
    {"x": (1, 16, 7, 7), "w": (16, 1, 3, 3), "group": 16, "pads": (1, 1, 1, 1), "strides": (2, 2)},
    {"x": (1, 8, 11, 30), "w": (8, 1, 3, 4), "group": 8, "dilations": (2, 3), "pads": (0, 2, 1, 5)},
    {"x": (1, 130, 3, 4), "w": (130, 1, 2, 2), "group": 130, "after": "square"},
    {"x": (2, 5, 40), "w": (5, 1, 3), "group": 5, "pads": (1, 1), "held": False},
    {"x": (1, 3, 4, 5, 6), "w": (3, 1, 2, 2, 3), "group": 3, "pads": (0, 1, 1, 1, 0, 1)},
    {"x": (0, 4, 9, 33), "w": (4, 1, 3, 3), "group": 4},
]


def in_layout(cases: Sequence[dict[str, Any]], layout: str) -> list[dict[str, Any]]:
    return [{**one, "layout": layout} for one in cases]


@pytest.mark.parametrize(("layout", "edge"), [*zip(LAYOUTS, ["end", "start", "end", "start"], strict=True)])
def test_all_layouts_touch_nothing_past_the_ends_of_buffers(layout: str, edge: str) -> None:
    chosen = {"NHWC": DIRECT + DEPTHWISE, "NCHW": DIRECT + DEPTHWISE[:4]}
    cases = chosen.get(layout, [*DIRECT[:6], DIRECT[12], DEPTHWISE[2]])
    module, feeds = graph_of(in_layout([one for one in cases if one["x"][2] != 2], layout))
    check(module, feeds, run_guarded(module, feeds, edge, threads=3 if edge == "start" else 1))


@pytest.mark.parametrize(("layout", "edge"), [("NHWC", "end"), ("NHWC->NCHW", "start")])
def test_extents_that_only_the_run_knows(layout: str, edge: str) -> None:
    direct, depthwise = (DIRECT[:3] + DIRECT[13:14], DEPTHWISE[:1]) if edge == "end" else (DIRECT[4:9], DEPTHWISE[3:4])
    module, feeds = graph_of(in_layout(direct + depthwise, layout), dynamic=True)
    check(module, feeds, run_guarded(module, feeds, edge, threads=3 if edge == "start" else 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype: str) -> None:
    cases = in_layout([DIRECT[0], DIRECT[13], DEPTHWISE[1]], "NHWC") + [DEPTHWISE[0], DIRECT[4]]
    module, feeds = graph_of(cases, dtype)
    limit = tolerances.Tolerance(ulps=2.0, of_largest=2.0, signed=False)  # epilogues round once more
    check(module, feeds, compile_native(module).run(feeds), None if dtype == "float64" else limit)


def test_residuals_are_read_where_they_lie() -> None:
    module, feeds = graph_of(RESIDUAL)
    check(module, feeds, run_guarded(module, feeds, "end"))


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    module, feeds = graph_of(in_layout([DIRECT[0], DEPTHWISE[0]], "NHWC") + [DIRECT[1], DEPTHWISE[1]])
    compiled = compile_native(module)
    runs = []
    for threads in (1, 2, 5):
        compiled.use_threads(threads)
        runs.append([array.tobytes() for array in compiled.run(feeds)])
    assert runs[0] == runs[1] == runs[2]


def test_against_onnxruntime() -> None:
    for x, w, attributes in [
        ((2, 3, 12, 13), (18, 3, 3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
        ((1, 24, 14, 14), (24, 1, 3, 3), {"pads": (1, 1, 1, 1), "group": 24}),
        ((1, 6, 9, 10), (4, 3, 2, 3), {"dilations": (2, 1), "group": 2}),
    ]:
        module, feeds = graph_of([{"x": x, "w": w, "held": False, **attributes}])
        bias = next(op for op in main_function(module).body.block.ops if op.name == "sx.constant")
        (got,) = compile_native(module).run(feeds)
        (want,) = run_node("Conv", [*feeds, bias.array()], **attributes)  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_transposed_convolutions_with_constant_weights() -> None:
    cases: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ((2, 5, 4, 7), (5, 18, 3, 3), {"strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 1)}),
        ((1, 4, 5, 4), (4, 3, 2, 4), {"strides": (3, 1), "group": 2, "dilations": (1, 2)}),
        ((2, 3, 9), (3, 2, 4), {"strides": (4,), "dilations": (2,), "output_shape": (40,)}),
    ]
    types, feeds = [], []
    for number, (x, _, _) in enumerate(cases):
        feeds.append(sample("float32", *x, seed=number))
        types.append((f"x{number}", tensor_type(DType.of("float32"), list(x)), None))
    module, block = create_module("transposed", types)
    outputs = []
    for number, (_, w, attributes) in enumerate(cases):
        weights = make_constant(sample("float32", *w, seed=9))
        bias = make_constant(sample("float32", w[1] * attributes.get("group", 1), seed=5))
        block.add_ops([weights, bias])
        outputs.append(put(block, "conv_transpose", block.args[number], weights.output, bias.output, **attributes))
    set_outputs(module, outputs, ["y0", "y1", "y2"])
    check(module, feeds, run_guarded(module, feeds, "end"))


# ---- pools

POOLS: list[dict[str, Any]] = [
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (2, 3), "dilations": (2, 1), "pads": (0, 1, 1, 2)},
    {"kernel_shape": (2, 2), "strides": (3, 2), "ceil_mode": True, "pads": (0, 0, 1, 1)},
    {"kernel_shape": (4, 3), "auto_pad": "SAME_UPPER", "strides": (2, 1)},
]


@pytest.mark.parametrize(("dynamic", "edge"), [(False, "end"), (True, "start")])
def test_pools_with_channels_last(dynamic: bool, edge: str) -> None:
    x = last(sample("float32", 2, 19, 9, 11))
    x[0, 3, 4, 5] = np.nan
    dims = [f"d{k}" for k in range(4)] if dynamic else list(x.shape)
    module, block = create_module("pools", [("x", tensor_type(DType.of("float32"), dims), None)])
    outputs: list[Any] = []
    for number, one in enumerate(POOLS):
        outputs.append(put(block, "max_pool", block.args[0], layout="NHWC", **one))
        counted = number % 2 == dynamic
        outputs.append(put(block, "average_pool", block.args[0], layout="NHWC", count_include_pad=counted, **one))
        if number == 1:
            positions = BY_NAME["sx.max_pool"].make(block.args[0], layout="NHWC", storage_order=1, **one)
            block.add_op(positions)
            outputs += positions.results
    set_outputs(module, outputs, [f"y{k}" for k in range(len(outputs))])
    expected = evaluate_function(main_function(module), [x])
    for a, b in zip(run_guarded(module, [x], edge, threads=3 if dynamic else 1), expected, strict=True):
        assert compare("average_pool", a, np.asarray(b)) is None
    (want,) = run_node("MaxPool", [np.moveaxis(x, -1, 1)[1:]], opset=22, **POOLS[0])[:1]
    np.testing.assert_array_equal(np.moveaxis(np.asarray(expected[0]), -1, 1)[1:], want)


# ---- Winograd's filtering

FAST: list[dict[str, Any]] = [
    {"x": (1, 16, 16, 16), "w": (16, 16, 3, 3), "pads": (1, 1, 1, 1), "after": "relu"},
    {"x": (2, 19, 15, 9), "w": (41, 19, 3, 3), "pads": (0, 1, 2, 1), "after": "scale"},
    {"x": (2, 17, 35, 32), "w": (24, 17, 3, 3)},
]


def launched(module: Any) -> str:
    from sardonyx.backends.llvm.lowering.graph import lower_graph

    return " ".join(op.sym_name.data for op in lower_graph(prepare(module, fast_conv=True)).module.body.block.ops)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("layout", "dynamic", "edge"), [("NHWC", False, "end"), ("NCHW", True, "start")])
def test_fast_convolutions_lose_a_digit_at_most(layout: str, dynamic: bool, edge: str) -> None:
    module, feeds = graph_of(in_layout(FAST, layout), dynamic=dynamic)
    assert len(re.findall(r"winograd_\d", launched(module))) == len(FAST)
    assert "winograd_inputs" in launched(module) or dynamic
    expected = evaluate_function(main_function(module), feeds)
    allowed = prepare(module, fast_conv=True)
    for a, b in zip(run_guarded(allowed, feeds, edge, threads=3 if dynamic else 1), expected, strict=True):
        assert 1e-7 * np.abs(b).max() < np.abs(a - b).max() <= 1.2e-5 * np.abs(b).max()


def test_large_weights_take_the_smaller_tiles_which_are_no_less_exact() -> None:
    module, feeds = graph_of([{"x": (1, 280, 7, 8), "w": (280, 280, 3, 3), "pads": (1, 1, 1, 1), "layout": "NHWC"}])
    (expected,) = evaluate_function(main_function(module), feeds)
    (fast,) = compile_native(module, fast_conv=True).run(feeds)
    (plain,) = compile_native(module).run(feeds)
    assert 0 < np.abs(fast - expected).max() <= 2 * np.abs(plain - expected).max()


def test_nothing_is_less_exact_unless_it_is_allowed_and_fits() -> None:
    module, feeds = graph_of(FAST[:1])
    check(module, feeds, compile_native(module).run(feeds))
    others = [
        {**FAST[0], "strides": (2, 2)}, {**FAST[0], "dilations": (2, 2)}, {**FAST[0], "held": False},
        {"x": (1, 32, 9, 9), "w": (32, 16, 3, 3), "group": 2}, {"x": (1, 16, 9, 9), "w": (16, 16, 5, 5)},
        {"x": (1, 8, 9, 9), "w": (16, 8, 3, 3)},
    ]  # fmt: skip
    assert "winograd" not in launched(graph_of(others)[0])
    assert "winograd" not in launched(graph_of(FAST, "float64")[0])


# ---- the passes of native compilation


def test_compilation_leaves_the_graph_alone_and_keeps_locations() -> None:
    module, feeds = graph_of([{**DIRECT[0], "after": "scale"}, DEPTHWISE[0]])
    before = snapshot(module)
    compiled = compile_native(module)
    assert snapshot(module) == before
    check(module, feeds, compiled.run(feeds))
