"""torch's own samples for its core operators: a share of what `tests/support/torch_opinfo.py` runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from sardonyx.frontend.torch.registry import table  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SHARE = (
    "add atan2 clamp gather index_put log_softmax nn.functional.conv2d nn.functional.pad.reflect remainder "
    "scatter_reduce.mean sort var"
).split()


def test_every_core_operator_has_a_translation():
    known = table()
    missing = []
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            target = getattr(packet, overload)
            # Exported graphs are functional: operators that write (resize_) do not occur in them.
            if torch.Tag.core in target.tags and not target._schema.is_mutable and str(target) not in known:
                missing.append(str(target))
    assert not missing


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_samples(dtype):
    import torch_opinfo

    outcomes = torch_opinfo.run(SHARE, 1, True, True, (dtype,))
    assert len(outcomes) >= 8
    bad = [o for o in outcomes if o.status not in ("agrees", "uncaptured", "complex")]
    assert not bad
    assert all(o.ort == "agrees" for o in outcomes if o.status == "agrees" and not o.ort.startswith("onnxruntime:"))
