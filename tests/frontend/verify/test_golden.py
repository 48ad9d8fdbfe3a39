"""Golden files and certificates: what holds, what has drifted, and what was tampered with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_faults import small_net

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.verify.certificate import check_certificate, default_path, write_certificate
from sardonyx.frontend.verify.golden import Golden, freeze
from sardonyx.frontend.verify.verify import verify

ASKED = {"inputs": None, "dims": ["batch=1,2", "seq=3"], "providers": ["cpu"], "only": ["reference"], "seed": 0}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(small_net(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def frozen(model: Path) -> Path:
    golden = freeze(verify(None, model, dims=["batch=2", "seq=3,5"], only=["reference"]), model)
    path = model.with_suffix(".golden.npz")
    golden.save(path)
    return path


def test_golden_outputs_hold_for_the_same_model(model: Path) -> None:
    path = frozen(model)
    first = path.read_bytes()
    found = Golden.load(path).check(model)
    assert len(found) == 6 and all(d.ok for d in found)  # two cases in three executions
    assert frozen(model).read_bytes() == first  # the same bytes each time


@pytest.mark.parametrize(
    "fault, node", [("shifted weight", "project"), ("dropped output", "mean"), ("frozen dim", "freeze")]
)
def test_a_drift_names_the_outputs_and_the_node(fault: str, node: str, model: Path) -> None:
    golden = Golden.load(frozen(model))
    onnx.save(small_net(fault), model)
    bad = [d for d in golden.check(model, only=["reference"]) if not d.ok]
    assert bad and bad[0].culprit is not None and node in (bad[0].culprit.node, bad[0].culprit.missing)


def test_a_file_that_is_no_golden_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for content in (b"", b"PK\x03\x04", b"text"):
        path.write_bytes(content)
        with pytest.raises(InvalidArgumentError, match="is no golden file"):
            Golden.load(path)
    np.savez(path, x=np.ones(2))
    with pytest.raises(InvalidArgumentError, match="is no golden file"):
        Golden.load(path)


def test_what_is_not_verified_is_not_frozen(model: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="not verified is not frozen"):
        freeze(verify(lambda x: (x, x), model, only=["reference"]), model)


def certified(model: Path) -> Path:
    path = default_path(model)
    found = verify(str(model), model, **{**ASKED, "inputs": None})
    write_certificate(path, found, model, source=str(model), asked=ASKED)
    return path


def test_a_certificate_holds_and_is_the_same_text_each_time(model: Path) -> None:
    path = certified(model)
    text = path.read_text()
    again, wrong = check_certificate(path, lambda s: s, lambda s: s)
    assert again.ok and wrong == []
    assert certified(model).read_text() == text
    data = json.loads(text)
    assert data["verification"]["dims"] == ["batch", "seq"] and len(data["model"]["sha256"]) == 64


def test_an_edited_certificate_is_refused(model: Path) -> None:
    path = certified(model)
    data = json.loads(path.read_text())
    data["verification"]["results"][0]["outputs"][0]["max_abs"] = 0.5
    path.write_text(json.dumps(data))
    with pytest.raises(InvalidArgumentError, match="was edited"):
        check_certificate(path, lambda s: s, lambda s: s)


def test_figures_are_recomputed_even_if_the_seal_was_made_anew(model: Path) -> None:
    from sardonyx.frontend.verify.certificate import _seal

    path = certified(model)
    data = json.loads(path.read_text())
    del data["seal"]
    data["verification"]["results"][0]["outputs"][0]["max_abs"] = 0.5
    path.write_text(json.dumps({**data, "seal": _seal(data)}))
    _, wrong = check_certificate(path, lambda s: s, lambda s: s)
    assert wrong and "the error of 'y'" in wrong[0]


def test_an_edited_byte_of_the_model_is_seen(model: Path) -> None:
    path = certified(model)
    onnx.save(small_net("shifted weight"), model)
    _, wrong = check_certificate(path, lambda s: str(s), lambda s: s)
    assert any("the sha256 of" in w for w in wrong)
