"""`sardonyx.nn`: modules eagerly, natively, and exported in onnxruntime; names, files, states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx import nn
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import flatten

RNG = np.random.default_rng(0)


def check(module: nn.Module, signature: str, tmp_path: Path, *inputs: np.ndarray, native: bool = True) -> list[str]:
    """Compare the executions; returns the names of the exported weights."""
    graph = sx.trace(module, signature).graph
    assert not any(t.is_traced for _, t in module.named_tensors())
    want = [np.asarray(leaf) for _, leaf in flatten(module(*map(sx.asarray, inputs)))[0]]
    graph.export_onnx(tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"])
    theirs = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)})
    results = [graph.evaluate(list(inputs)), theirs]
    if native:
        graph.optimize()
        graph.finalize()
        results.append(graph.run(list(inputs)))
    for result in results:
        for a, b in zip(result, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    return [i.name for i in onnx.load(tmp_path / "m.onnx").graph.initializer]


def f32(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def test_a_convolutional_network(tmp_path: Path):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=4, bias=False), nn.GroupNorm(2, 8), nn.SiLU(),
        nn.ConvTranspose2d(8, 4, 2, stride=2), nn.AvgPool2d(2, padding=1), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(36, 5), nn.Softmax(),
    )  # fmt: skip
    model[1].running_mean.copy_(f32(8))
    names = check(model, "x: f32[n,3,8,8]", tmp_path, f32(2, 3, 8, 8), native=False)
    tensors = [n for n, _ in model.named_tensors()]
    assert [n for n in names if n in tensors] == tensors, "all are exported under their names"
    assert tensors[:4] == ["0.weight", "0.bias", "1.weight", "1.bias"] and "1.running_mean" in tensors
    assert "1.running_mean" not in [n for n, _ in model.named_parameters()]
    assert "(4): Conv2d([8, 2, 3, 3], stride=2, padding=1, groups=4)" in repr(model)
    assert model.num_parameters() == sum(int(p.size) for p in model.parameters())


def test_convolutions_of_other_ranks(tmp_path: Path):
    check(nn.Conv1d(3, 4, 3, dilation=2), "x: f32[n,3,l]", tmp_path, f32(2, 3, 9), native=False)
    check(nn.Conv3d(2, 3, 2), "x: f32[n,2,4,4,4]", tmp_path, f32(1, 2, 4, 4, 4), native=False)


class Encoder(nn.Module):
    """An embedding, attention, a norm and a gate."""

    def __init__(self) -> None:
        self.embed = nn.Embedding(11, 12)
        self.blocks = nn.ModuleList([nn.MultiheadAttention(12, 3, causal=True), nn.MultiheadAttention(12, 4, 2)])
        self.norms = nn.ModuleDict({"first": nn.LayerNorm(12), "last": nn.RMSNorm(12)})
        self.gate = nn.Sequential(nn.Linear(12, 12), nn.Sigmoid())
        self.tied = self.embed

    def forward(self, tokens: Any) -> dict[str, Any]:
        x = self.embed(tokens)
        x = x + self.blocks[0](self.norms["first"](x))
        y, (k, _) = self.blocks[1](x, mask=tokens[:, None, None] != 3, with_cache=True)
        return {"y": self.norms["last"](y) * self.gate(x), "k": k, "logits": sx.tanh(x) @ self.tied.weight.T}


def test_attention_and_names(tmp_path: Path):
    model = Encoder()
    names = check(model, "tokens: i64[b,n]", tmp_path, np.array([[1, 3, 5, 10], [0, 2, 3, 3]]))
    wanted = [n for n, _ in model.named_parameters()]
    assert set(wanted) <= set(names) and "blocks.1.k.weight" in wanted and "norms.first.bias" in wanted
    assert "tied.weight" not in wanted, "a tensor that is reached twice has its first name"
    assert "embed.weight" in wanted and len(dict(model.named_modules())) == len(list(model.named_modules()))
    fused = nn.scaled_dot_product_attention(*(sx.asarray(f32(2, 3, 4)) for _ in range(3)), causal=True, scale=1.0)
    assert fused.shape == (2, 3, 4)
    with pytest.raises(InvalidArgumentError, match="5 heads"):
        nn.MultiheadAttention(12, 5)


def test_steps_of_attention_equal_the_whole():
    attention = nn.MultiheadAttention(8, 2, causal=True)
    x = sx.asarray(f32(1, 5, 8))
    whole = attention(x)
    past = (sx.zeros((1, 2, 0, 4)), sx.zeros((1, 2, 0, 4)))
    for begin, end in ((0, 3), (3, 4), (4, 5)):
        part, past = attention(x[:, begin:end], past=past)
        np.testing.assert_allclose(part, whole[:, begin:end], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers(kind: type[nn.LSTM], tmp_path: Path):
    model = kind(4, 5, layers=2, bidirectional=True)
    check(model, "x: f32[b,n,4]", tmp_path, f32(2, 3, 4), native=False)
    y, states = kind(4, 5)(sx.asarray(f32(2, 3, 4)))
    assert y.shape == (2, 3, 5) and len(states) == (2 if kind is nn.LSTM else 1)
    again, _ = kind(4, 5, bias=False)(sx.asarray(f32(2, 3, 4)), states)
    assert again.shape == (2, 3, 5)


def test_files_and_state_dicts(tmp_path: Path):
    nn.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))
    nn.manual_seed(1)
    assert nn.Sequential(nn.Linear(4, 3))(sx.ones(1, 4)).tolist() == model[0](sx.ones(1, 4)).tolist()
    for name in ("m.safetensors", "m.npz"):
        model.save(tmp_path / name)
        other = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))
        other.load(tmp_path / name)
        for (a, x), (b, y) in zip(model.named_tensors(), other.named_tensors(), strict=True):
            assert a == b and x.tolist() == y.tolist()
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    before = model[0].weight.tolist()
    for wrong, message in (
        ({**state, "x": 1}, "unknown: x"),
        ({"0.weight": state["0.weight"]}, "missing: 0.bias, 1.weight, 1.bias"),
        ({**state, "0.bias": np.ones(4, np.float32)}, r"'0.bias' has shape \[4\], expected \[3\]"),
        ({**state, "0.bias": np.ones(3, np.int64)}, "'0.bias' is int64, expected float32"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            model.load_state_dict(wrong)
        assert model[0].weight.tolist() == before
    model.load_state_dict({"0.bias": np.ones(3), "other": 1}, strict=False)
    assert model[0].bias.tolist() == [1, 1, 1] and model[0].bias.dtype == sx.float32
    assert model.to(sx.float16)[0].weight.dtype == sx.float16
    assert model.to("cpu", sx.float32).to(device="cpu")[0].weight.dtype == sx.float32
    with pytest.raises(InvalidArgumentError, match="no dtype of floats"):
        model.to(sx.int32)
    (tmp_path / "bad.npz").write_bytes(b"text")
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        model.load(tmp_path / "bad.npz")


def test_a_graph_holds_a_snapshot_and_a_module_may_have_state():
    class Counter(nn.Module):
        def __init__(self) -> None:
            self.scale = nn.Parameter([2.0])
            self.count = sx.zeros(1)

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x * self.scale + self.count

    model = Counter()
    graph = sx.trace(model, "x: f32[1]").graph
    graph.finalize()
    model.scale.fill_(100)
    assert [graph.run([np.ones(1, np.float32)])[0].item() for _ in range(3)] == [3, 4, 5]
    assert model.count.tolist() == [3] and graph.output_names() == ["output_0", "state_out_0"]
    assert model(np.ones(1, np.float32)).item() == 104
    del model.count
    assert [n for n, _ in model.named_tensors()] == ["scale"]
    with pytest.raises(NotImplementedError, match="Module does not define forward"):
        nn.Module()(1)
    with pytest.raises(InvalidArgumentError, match="holds modules, not int"):
        nn.ModuleList([1])  # pyright: ignore[reportArgumentType]
