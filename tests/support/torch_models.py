"""Small models with seeded weights, written here or built from transformers by configuration, to try exports on.

Each entry makes a module, its example inputs, its dynamic shapes, and inputs of other sizes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Case:
    """A model and how it is exported."""

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    """As `dynamic_shapes`; None: the model is exported with static shapes only."""
    others: list[Inputs] = field(default_factory=list)
    """Inputs of other sizes, for the dynamic export."""


CASES: dict[str, Callable[[], Case]] = {}


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    def made() -> Case:
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function()
        found.module.eval()
        return found

    CASES[function.__name__] = made
    return made


def _images(*sizes: tuple[int, int, int]) -> list[torch.Tensor]:
    return [torch.randn(batch, 3, high, wide) for batch, high, wide in sizes]


def _tokens(batch: int, length: int, count: int = 99) -> torch.Tensor:
    return torch.randint(0, count, (batch, length))


# ---- written here


@case
def mlp() -> Case:
    module = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5), nn.Softmax(-1))
    return Case(module, (torch.randn(3, 16),), {}, ({0: "batch"},), [((torch.randn(7, 16),), {})])


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = self._block(3, 8), self._block(8, 16)
        self.middle = self._block(16, 16)
        self.up = nn.ConvTranspose2d(16, 16, 2, 2)
        self.join = self._block(32, 8)
        self.last = nn.Conv2d(16, 2, 1)

    @staticmethod
    def _block(a: int, b: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        low = self.middle(F.max_pool2d(second, 2))
        high = self.join(torch.cat([self.up(low), second], 1))
        high = F.interpolate(high, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(torch.cat([high, first], 1))


@case
def unet() -> Case:
    x, y = _images((2, 32, 32), (3, 32, 32))
    return Case(UNet(), (x,), {}, ({0: "batch"},), [((y,), {})])


class Tagger(nn.Module):
    def __init__(self, kind: str = "lstm") -> None:
        super().__init__()
        self.embed = nn.Embedding(99, 16)
        layer = nn.LSTM if kind == "lstm" else nn.GRU
        self.body = layer(16, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 7)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.head(self.body(self.embed(tokens))[0]), -1)


@case
def lstm_tagger() -> Case:
    return Case(Tagger(), (_tokens(2, 9),), {}, ({0: "batch", 1: "seq"},), [((_tokens(3, 5),), {})])


@case
def gru_tagger() -> Case:
    return Case(Tagger("gru"), (_tokens(2, 9),), {}, ({0: "batch", 1: "seq"},), [((_tokens(3, 5),), {})])


class Detector(nn.Module):
    """A head of anchors: class scores and boxes of all cells, decoded, and the best of them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU())
        self.scores, self.boxes = nn.Conv2d(16, 4, 1), nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.body(x)
        high, wide = y.shape[-2:]
        rows, columns = torch.meshgrid(torch.arange(high), torch.arange(wide), indexing="ij")
        centres = torch.stack([columns, rows], 0).reshape(1, 2, -1).to(y.dtype) + 0.5
        scores = self.scores(y).flatten(2).transpose(1, 2).sigmoid()
        raw = self.boxes(y).flatten(2)
        middle, size = centres + raw[:, :2].tanh(), raw[:, 2:].exp()
        boxes = torch.cat([middle - size / 2, middle + size / 2], 1).transpose(1, 2)
        best, kind = scores.max(-1)
        top, where = best.topk(5, 1)
        return torch.gather(boxes, 1, where[..., None].expand(-1, -1, 4)), torch.stack([top, kind.gather(1, where)], -1)


@case
def detector_head() -> Case:
    x, y = _images((2, 32, 48), (3, 32, 48))
    return Case(Detector(), (x,), {}, ({0: "batch"},), [((y,), {})])


class ConvMixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 4, 4)
        self.depth = nn.ModuleList(nn.Conv2d(16, 16, 5, groups=16, padding="same") for _ in range(2))
        self.point = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(4, 16) for _ in range(2))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.stem(x))
        for depth, point, norm in zip(self.depth, self.point, self.norms):
            x = x + F.gelu(norm(depth(x)))
            x = F.hardswish(point(x))
        return self.head(x.mean((2, 3)))


@case
def conv_mixer() -> Case:
    x, y = _images((2, 32, 32), (5, 32, 32))
    return Case(ConvMixer(), (x,), {}, ({0: "batch"},), [((y,), {})])


@case
def transformer_encoder() -> Case:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation="gelu")
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x, y = torch.randn(2, 7, 16), torch.randn(3, 4, 16)
    return Case(module, (x,), {}, ({0: "batch", 1: "seq"},), [((y,), {})])


class Branching(nn.Module):
    """torch.cond on data."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: self.large(y).relu(), lambda y: self.small(y).sin(), (x,))


@case
def branching() -> Case:
    x = torch.randn(3, 8)
    return Case(Branching(), (x,), {}, ({0: "batch"},), [((torch.randn(5, 8),), {}), ((torch.rand(2, 8),), {})])


class Masked(nn.Module):
    """Losses and masks: boolean indexing, scatter, cumulative sums, one-hot."""

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        loss = F.cross_entropy(x, target, reduction="none")
        counts = torch.zeros(5).scatter_add(0, target, torch.ones_like(target, dtype=torch.float32))
        kept = torch.where(loss > 1, loss, torch.zeros_like(loss)).cumsum(0)
        return loss, counts, kept, F.one_hot(target, 5).float() @ torch.ones(5, 2)


@case
def losses() -> Case:
    x, y = torch.randn(6, 5), torch.randint(0, 5, (6,))
    return Case(
        Masked(), (x, y), {}, ({0: "batch"}, {0: "batch"}), [((torch.randn(4, 5), torch.randint(0, 5, (4,))), {})]
    )


# ---- of transformers


def _vision(name: str, **settings: Any) -> Callable[[], Case]:
    def function() -> Case:
        import transformers

        config = getattr(transformers, f"{name}Config")(**settings)
        module = getattr(transformers, f"{name}ForImageClassification")(config)
        size = settings.get("image_size", 32)
        x, y = _images((2, size, size), (3, size, size))
        return Case(module, (), {"pixel_values": x}, {"pixel_values": {0: "batch"}}, [((), {"pixel_values": y})])

    function.__name__ = name.lower()
    return case(function)


_HEAD = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}

_vision("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="bottleneck", num_labels=5)
_vision("MobileNetV1", depth_multiplier=0.25, image_size=32, num_labels=5)
_vision("MobileNetV2", depth_multiplier=0.25, image_size=32, num_labels=5)
_vision("ConvNext", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=5)
_vision("ConvNextV2", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=5)
_vision("ViT", **_HEAD, image_size=32, patch_size=8, num_labels=5)
_vision("DeiT", **_HEAD, image_size=32, patch_size=8, num_labels=5)
_vision("Swin", image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=5)
_vision("RegNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], groups_width=4, num_labels=5)


@case
def bert() -> Case:
    from transformers import BertConfig, BertModel

    module = BertModel(BertConfig(vocab_size=99, max_position_embeddings=32, **_HEAD))
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    small = torch.ones(3, 5, dtype=torch.long)
    small[0, 3:] = 0
    axes = {0: "batch", 1: "seq"}
    return Case(
        module, (), {"input_ids": _tokens(2, 7), "attention_mask": mask},
        {"input_ids": axes, "attention_mask": axes}, [((), {"input_ids": _tokens(3, 5), "attention_mask": small})],
    )  # fmt: skip


class Logits(nn.Module):
    """A language model's logits, without its cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False).logits


def _decoder(name: str, kind: str, **settings: Any) -> None:
    def function() -> Case:
        import transformers

        config = getattr(transformers, f"{kind}Config")(vocab_size=99, **settings)
        module = Logits(getattr(transformers, f"{kind}ForCausalLM" if kind != "GPT2" else "GPT2LMHeadModel")(config))
        return Case(module, (_tokens(2, 7),), {}, ({0: "batch", 1: "seq"},), [((_tokens(3, 5),), {})])

    function.__name__ = name
    case(function)


_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32}
_decoder("gpt2", "GPT2", n_embd=16, n_layer=2, n_head=4, n_positions=32)
_decoder("llama_gqa", "Llama", **_SMALL, intermediate_size=32, num_key_value_heads=2)
_decoder("mistral", "Mistral", **_SMALL, intermediate_size=32, num_key_value_heads=2, sliding_window=4)
_decoder("qwen2", "Qwen2", **_SMALL, intermediate_size=32, num_key_value_heads=2)
_decoder("gpt_neox", "GPTNeoX", **_SMALL, intermediate_size=32)
_decoder("opt", "OPT", **_SMALL, ffn_dim=32, word_embed_proj_dim=16)


class Cached(nn.Module):
    """One step with a cache: the past's keys and values as inputs, the present's as outputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, past: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (key, value) in enumerate(past):
            cache.update(key, value, layer)
        made = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return made.logits, [(layer.keys, layer.values) for layer in made.past_key_values.layers]


def _past(batch: int, heads: int, length: int, width: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(batch, heads, length, width), torch.randn(batch, heads, length, width)) for _ in range(2)]


@case
def gpt2_with_cache() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    module = Cached(GPT2LMHeadModel(GPT2Config(vocab_size=99, n_embd=16, n_layer=2, n_head=4, n_positions=32)))
    past = {0: "batch", 2: "past"}
    return Case(
        module, (_tokens(2, 3), _past(2, 4, 5)), {}, ({0: "batch", 1: "seq"}, [(past, past), (past, past)]),
        [((_tokens(3, 2), _past(3, 4, 7)), {})],
    )  # fmt: skip


@case
def llama_with_cache() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=99, **_SMALL, intermediate_size=32, num_key_value_heads=2)
    past = {0: "batch", 2: "past"}
    return Case(
        Cached(LlamaForCausalLM(config)), (_tokens(2, 3), _past(2, 2, 5)), {},
        ({0: "batch", 1: "seq"}, [(past, past), (past, past)]), [((_tokens(3, 2), _past(3, 2, 7)), {})],
    )  # fmt: skip


class Step(nn.Module):
    """An encoder-decoder's step: both sides' tokens to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits


@case
def t5_step() -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=99, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4)
    axes = ({0: "batch", 1: "source"}, {0: "batch", 1: "target"})
    module = Step(T5ForConditionalGeneration(config))
    return Case(module, (_tokens(2, 7), _tokens(2, 4)), {}, axes, [((_tokens(3, 5), _tokens(3, 6)), {})])


@case
def whisper_encoder() -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=16,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=32,
        num_mel_bins=8,
        max_source_positions=20,
    )
    x = torch.randn(2, 8, 40)
    return Case(
        WhisperEncoder(config), (), {"input_features": x}, {"input_features": {0: "batch"}},
        [((), {"input_features": torch.randn(3, 8, 40)})],
    )  # fmt: skip


@case
def wav2vec2() -> Case:
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        **_HEAD, conv_dim=[8, 8], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, vocab_size=32,
    )  # fmt: skip
    return Case(Wav2Vec2Model(config), (), {"input_values": torch.randn(2, 400)}, {"input_values": {0: "batch"}},
                [((), {"input_values": torch.randn(3, 400)})])  # fmt: skip


@case
def clip() -> Case:
    from transformers import CLIPConfig, CLIPModel

    text = {**_HEAD, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98, "bos_token_id": 97}
    vision = {**_HEAD, "image_size": 32, "patch_size": 8}
    module = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))

    def inputs(texts: int, images: int, length: int) -> dict[str, Any]:
        return {"input_ids": _tokens(texts, length), "pixel_values": _images((images, 32, 32))[0],
                "attention_mask": torch.ones(texts, length, dtype=torch.long)}  # fmt: skip

    axes = {0: "texts", 1: "seq"}
    dynamic = {"input_ids": axes, "pixel_values": {0: "images"}, "attention_mask": axes}
    return Case(module, (), inputs(2, 3, 7), dynamic, [((), inputs(4, 2, 5))])


@case
def segformer() -> Case:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=3,
    )  # fmt: skip
    x, y = _images((2, 32, 32), (3, 32, 32))
    return Case(SegformerForSemanticSegmentation(config), (), {"pixel_values": x}, {"pixel_values": {0: "batch"}},
                [((), {"pixel_values": y})])  # fmt: skip
