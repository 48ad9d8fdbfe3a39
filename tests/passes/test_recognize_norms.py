"""`recognize-norms`: by value, natively and in onnxruntime, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.passes import pipeline
from sardonyx.passes.pipeline import PassManager
from sardonyx.testing import check_pass, three_executions

RNG = np.random.default_rng(5)
G, B = (RNG.uniform(0.5, 1.5, 6).astype(np.float32) for _ in range(2))
C = RNG.uniform(0.5, 1.5, (3, 1, 1)).astype(np.float32)
EPS = np.float32(1e-5)
PREPARE = "fold-constants,simplify,cse"
HALF = sx.float16


def mean(x: Any, axis: Any = -1) -> Any:
    return sx.mean(x, axis=axis, keepdims=True)


def variance(x: Any, axis: Any = -1) -> Any:
    y = x - mean(x, axis)
    return mean(y * y, axis)


def centred(x: Any, axis: Any = -1) -> Any:
    return x - mean(x, axis)


def spread_out(x: Any) -> Any:
    g = (1 / sx.sqrt(variance(x) + EPS)) * G
    return x * g + (B - mean(x) * g)


def halved(x: Any) -> Any:
    wide = sx.astype(x, sx.float32)
    return G.astype(np.float16) * sx.astype(wide * sx.rsqrt(mean(wide * wide) + EPS), HALF)


LAYER: dict[str, Callable[[Any], Any]] = {
    "div": lambda x: centred(x) / sx.sqrt(mean(centred(x) ** 2.0) + EPS) * G + B,
    "rsqrt": lambda x: B + G * (centred(x) * sx.rsqrt(variance(x) + EPS)),
    "scale-first": lambda x: (G * centred(x)) / sx.sqrt(EPS + variance(x)) + B,
    "scaled-root": lambda x: centred(x) * (sx.rsqrt(variance(x) + EPS) * G) + B,
    "power": lambda x: centred(x) * (variance(x) + EPS) ** -0.5 * G + B,
    "power-below": lambda x: centred(x) / (variance(x) + EPS) ** 0.5 * G + B,
    "sums": lambda x: (lambda y: y / sx.sqrt(sx.sum(y * y, axis=-1, keepdims=True) * (1 / 6) + EPS) * G)(
        x - sx.sum(x, axis=-1, keepdims=True) / 6
    ),
    "no-bias": lambda x: centred(x) / sx.sqrt(variance(x) + EPS) * G,
    "bare": lambda x: centred(x) / sx.sqrt(variance(x) + EPS),
    "bias-only": lambda x: centred(x) / sx.sqrt(variance(x) + EPS) + B,
    "rows": lambda x: centred(x) / sx.sqrt(variance(x) + EPS) * G[None] + B[None],
    "spread-out": spread_out,
}
RMS: dict[str, Callable[[Any], Any]] = {
    "rsqrt": lambda x: G * (x * sx.rsqrt(mean(x**2.0) + EPS)),
    "div": lambda x: x / sx.sqrt(mean(x * x) + EPS) * G,
    "scaled-root": lambda x: x * (G * sx.rsqrt(mean(x * x) + EPS)),
    "bare": lambda x: x / sx.sqrt(mean(x * x) + EPS),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "epsilon-outside": lambda x: centred(x) / (sx.sqrt(variance(x)) + EPS),
    "no-epsilon": lambda x: centred(x) / sx.sqrt(variance(x)),
    "other-axis": lambda x: centred(x, 0) / sx.sqrt(variance(x, 0) + EPS),
    "two-axes": lambda x: centred(x, -1) / sx.sqrt(variance(x, 0) + EPS),
    "root-above": lambda x: centred(x) * sx.sqrt(variance(x) + EPS),
    "cube": lambda x: x / sx.sqrt(mean(x**3.0) + EPS),
    "other-centre": lambda x: (x - mean(x + 1)) / sx.sqrt(variance(x) + EPS),
    "not-the-mean": lambda x: centred(x) / sx.sqrt(sx.sum(centred(x) ** 2.0, axis=-1, keepdims=True) / 5 + EPS),
    "square-root-of-less": lambda x: centred(x) / sx.sqrt(variance(x) - EPS),
    "twice-below": lambda x: x * x / (sx.sqrt(mean(x * x) + EPS) * sx.abs(x)),
    "fast-variance": lambda x: centred(x) / sx.sqrt(mean(x * x) - mean(x) * mean(x) + EPS),
    "twice-the-mean": lambda x: (x - mean(x) * 2) / sx.sqrt(variance(x) + EPS),
}
STATIC, DYNAMIC, SYMBOLS = "x: f32[5, 6]", "x: f32[2, n, 6]", "x: f32[n, 6]"


def ops_of(module: Any) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("sx.") and op.name != "sx.constant"]


def module_of(function: Callable[..., Any], signature: str = SYMBOLS) -> Any:
    return sx.trace(function, signature).graph.module


def recognized(function: Callable[..., Any], signature: str = SYMBOLS, inputs: int = 3) -> Any:
    return check_pass(f"{PREPARE},recognize-norms,fold-constants", module_of(function, signature), inputs=inputs).module


@pytest.mark.parametrize("name", LAYER)
def test_layer_norms(name: str):
    module = recognized(LAYER[name], (STATIC, DYNAMIC, SYMBOLS)[len(name) % 3])
    assert ops_of(module) == ["sx.layer_norm"]


@pytest.mark.parametrize("name", RMS)
def test_rms_norms(name: str):
    assert ops_of(recognized(RMS[name], (STATIC, DYNAMIC, SYMBOLS)[len(name) % 3])) == ["sx.rms_norm"]


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_like_one(name: str):
    module = module_of(OTHERS[name])
    pipeline.run(module, PREPARE)
    before = ops_of(module)
    report = pipeline.run(module, "recognize-norms")
    assert not report.changed and ops_of(module) == before


def test_the_axes_may_be_several_and_dynamic_where_the_scale_has_their_shape():
    def several(x: Any, g: Any) -> Any:
        y = x - mean(x, (-2, -1))
        return y / sx.sqrt(mean(y * y, (1, 2)) + EPS) * g

    assert ops_of(recognized(several, "x: f32[b, n, m], g: f32[n, m]")) == ["sx.layer_norm"]
    assert "axis = -2" in str(recognized(several, "x: f32[b, 3, m], g: f32[3, m]"))
    other = module_of(several, "x: f32[b, n, m], g: f32[n, 1]")
    assert not pipeline.run(other, f"{PREPARE},recognize-norms").passes[-1].changed


def test_a_scale_that_varies_with_the_rows_stays_outside():
    def modulated(x: Any, g: Any) -> Any:
        return centred(x) / sx.sqrt(variance(x) + EPS) * g + 1

    assert ops_of(recognized(modulated, "x: f32[n, 6], g: f32[n, 6]")) == ["sx.layer_norm", "sx.mul", "sx.add"]


def test_two_norms_of_one_value_share_its_statistics():
    def two(x: Any) -> Any:
        y = centred(x) / sx.sqrt(variance(x) + EPS)
        return y * G, y * B

    assert ops_of(recognized(two)) == ["sx.layer_norm", "sx.mul", "sx.mul"]


def test_what_lies_between_is_an_output():
    for function in (lambda x: (LAYER["div"](x), mean(x)), lambda x: (LAYER["div"](x), centred(x))):
        module = module_of(function)
        report = PassManager(f"{PREPARE},recognize-norms", keep_declines=True).run(module)
        assert not report.passes[-1].changed
        assert any("is read elsewhere, too" in d.reason for d in report.passes[-1].declines)


def test_instance_norms():
    def instance(x: Any) -> Any:
        y = x - mean(x, (2, 3))
        return y / sx.sqrt(mean(y * y, (2, 3)) + EPS) * C + 2 * C[None]

    assert ops_of(recognized(instance, "x: f32[n, 3, h, w]")) == ["sx.instance_norm"]
    bare = recognized(lambda x: centred(x, (2, 3)) * sx.rsqrt(variance(x, (2, 3)) + EPS), "x: f32[n, 3, h, w]")
    assert ops_of(bare) == ["sx.instance_norm"]
    unknown = module_of(lambda x: centred(x, (2, 3)) * sx.rsqrt(variance(x, (2, 3)) + EPS), "x: f32[n, c, h, w]")
    assert not pipeline.run(unknown, f"{PREPARE},recognize-norms").passes[-1].changed


def test_16_bits_between_casts():
    assert ops_of(recognized(halved, "x: f16[n, 6]")) == ["sx.rms_norm"]

    def layer(x: Any) -> Any:
        wide = sx.astype(x, sx.float32)
        return sx.astype(centred(wide) * sx.rsqrt(variance(wide) + EPS), HALF) * G.astype(np.float16)

    assert ops_of(recognized(layer, "x: f16[n, 6]")) == ["sx.layer_norm"]
    for dtype in ("f16", "f64"):
        module = module_of(lambda x: x * sx.rsqrt(mean(x * x) + 1), f"x: {dtype}[n, 6]")
        assert not pipeline.run(module, f"{PREPARE},recognize-norms").passes[-1].changed


@pytest.mark.parametrize("operator", ["LayerNormalization", "RMSNormalization"])
def test_what_decomposing_makes_is_recognized(operator: str):
    functions: dict[str, Any] = {
        "LayerNormalization": lambda x: sx.layer_norm(x, G, B, epsilon=1e-5),
        "RMSNormalization": lambda x: sx.rms_norm(x, G, epsilon=1e-5),
    }
    module = module_of(functions[operator])
    whole = ops_of(module)
    report = pipeline.run(module, f"decompose-operators{{names={operator}}}")
    assert report.changed and len(ops_of(module)) > 5
    check_pass("recognize-norms", module, changes=True)
    pipeline.run(module, "recognize-norms")
    assert ops_of(module) == whole


def test_three_executions_of_what_it_makes():
    def several(x: Any, y: Any) -> Any:
        return (
            LAYER["div"](x),
            RMS["rsqrt"](x),
            LAYER["bare"](x),
            centred(y, (2, 3)) * sx.rsqrt(variance(y, (2, 3)) + EPS),
        )

    module = recognized(several, "x: f32[n, 6], y: f32[n, 3, h, w]")
    x, y = (RNG.normal(size=s).astype(np.float32) for s in ((5, 6), (5, 3, 7, 4)))
    three_executions(module, [x, y])


# ---- groups

W6, B6 = (RNG.uniform(0.5, 1.5, (6, 1, 1)).astype(np.float32) for _ in range(2))


def by_parts(x: Any) -> Any:
    return centred(x) / sx.sqrt(variance(x) + EPS)


def by_instances(x: Any) -> Any:
    groups = x.shape[1]
    return sx.instance_norm(x, np.ones(groups, np.float32), np.zeros(groups, np.float32), epsilon=1e-5)


def grouped(norm: Callable[[Any], Any], groups: int = 3) -> Callable[[Any], Any]:
    return lambda x: sx.reshape(norm(sx.reshape(x, [x.shape[0], groups, -1])), x.shape)


GROUPS: dict[str, Callable[[Any], Any]] = {
    "parts": lambda x: grouped(by_parts)(x) * W6 + B6,
    "instances": lambda x: B6 + W6 * grouped(by_instances)(x),
    "no-bias": lambda x: grouped(by_instances)(x) * W6,
    "bias-only": lambda x: grouped(by_parts)(x) + B6[None],
    "bare": grouped(by_instances),
    "bare-parts": grouped(by_parts, 1),
    "each": grouped(by_instances, 6),
    "four-axes": lambda x: sx.reshape(
        (lambda y: (y - mean(y, (2, 3))) * sx.rsqrt(mean((y - mean(y, (2, 3))) ** 2.0, (2, 3)) + EPS))(
            sx.reshape(x, [x.shape[0], 2, 3, -1])
        ),
        x.shape,
    ),
}
NO_GROUPS: dict[str, Callable[[Any], Any]] = {
    "scaled-inside": lambda x: grouped(lambda y: sx.instance_norm(y, G[:3], np.zeros(3, np.float32), epsilon=1e-5))(x),
    "moved-inside": lambda x: grouped(lambda y: sx.instance_norm(y, np.ones(3, np.float32), B[:3], epsilon=1e-5))(x),
    "across-items": lambda x: sx.reshape(by_parts(sx.reshape(x, [1, 6, -1])), x.shape),
    "no-divisor": lambda x: sx.reshape(by_instances(sx.reshape(x, [x.shape[0], 4, -1])), x.shape),
    "another-shape": lambda x: sx.reshape(by_instances(sx.reshape(x, [x.shape[0], 3, -1])), [x.shape[0], -1]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_group_norms(name: str):
    signature = ("x: f32[2, 6, 4, 5]", "x: f32[n, 6, h, w]")[len(name) % 2]
    module = recognized(GROUPS[name], signature)
    assert [op for op in ops_of(module) if op not in ("sx.shape", "sx.gather", "sx.concat")] == ["sx.group_norm"]
    three_executions(module, [RNG.standard_normal((2, 6, 4, 5)).astype(np.float32)])


@pytest.mark.parametrize("name", NO_GROUPS)
def test_what_is_no_group_norm(name: str):
    module = recognized(NO_GROUPS[name], "x: f32[2, 6, 4, 5]")
    assert "sx.group_norm" not in ops_of(module)


def test_why_it_is_no_group_norm():
    module = module_of(NO_GROUPS["no-divisor"], "x: f32[2, 6, 4, 5]")
    report = PassManager(f"{PREPARE},recognize-norms", keep_declines=True).run(module)
    assert "4 groups are not proved to divide 6 channels of each item" in [d.reason for d in report.passes[-1].declines]


def test_what_is_read_before_the_scale_stays():
    def read(x: Any) -> Any:
        y = grouped(by_instances)(x)
        return y * W6 + B6, y

    assert ops_of(recognized(read, "x: f32[2, 6, 4, 5]")).count("sx.group_norm") == 1  # without scale and bias
