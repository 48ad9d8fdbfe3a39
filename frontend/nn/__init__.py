"""Modules that networks are made of: `from sardonyx import nn`."""

from __future__ import annotations

from sardonyx.frontend.nn.attention import MultiheadAttention, scaled_dot_product_attention
from sardonyx.frontend.nn.containers import ModuleDict, ModuleList, Sequential
from sardonyx.frontend.nn.layers import (
    GELU,
    AvgPool2d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose2d,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    Lambda,
    Linear,
    MaxPool2d,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from sardonyx.frontend.nn.module import Module, Parameter, filled, manual_seed, normal, uniform
from sardonyx.frontend.nn.norm import BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, RMSNorm
from sardonyx.frontend.nn.recurrent import GRU, LSTM

__all__ = [
    "GELU", "GRU", "LSTM", "AvgPool2d", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose2d", "Dropout", "Embedding", "Flatten", "GroupNorm", "Identity", "Lambda", "LayerNorm",
    "Linear", "MaxPool2d", "Module", "ModuleDict", "ModuleList", "MultiheadAttention", "Parameter", "RMSNorm", "ReLU",
    "Sequential", "SiLU", "Sigmoid", "Softmax", "Tanh", "filled", "manual_seed", "normal",
    "scaled_dot_product_attention", "uniform",
]  # fmt: skip
