"""Exports of torch models held against torch in three ways: the reference, native code, onnxruntime."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import onnxruntime
import torch

import sardonyx as sx
from sardonyx.frontend.torch.arrays import array_of

onnxruntime.set_default_logger_severity(4)
torch.set_num_threads(1)


def tensors(value: Any) -> list[torch.Tensor]:
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def close(want: torch.Tensor, got: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """torch's result and another one: shape, dtype and values."""
    expected = array_of(want)
    found = array_of(got) if isinstance(got, torch.Tensor) else np.asarray(got)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True
    )


def ort_session(program: Any) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])


def check(
    model: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    others: Any = (),
    native: bool = True,
    **options: Any,
) -> Any:
    """Export, and run on the example inputs and on others."""
    kwargs = kwargs or {}
    program = sx.export(model, args, kwargs=kwargs, **options)
    session = ort_session(program)
    for more, named in [(args, kwargs), *others]:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = tensors(model(*copy.deepcopy(more), **copy.deepcopy(named)))
        runs = [program.call_reference(*more, **named)]
        if native:
            runs.append(program(*more, **named))
        feeds = dict(zip(program.graph.input_names(), program._flat(more, named)))
        names = {i.name for i in session.get_inputs()}
        runs.append(tuple(session.run(None, {k: v for k, v in feeds.items() if k in names})))
        for found in runs:
            assert len(found) == len(wanted)
            for want, got in zip(wanted, found):
                close(want, got)
    return program
