"""Golden files and certificates: what holds, what has drifted, and what was tampered with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from planted_faults import small_net

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.verify.certificate import check_certificate, default_path, write_certificate
from sardonyx.frontend.verify.certificate_text import read_certificate, sealed
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


def check_resealed(path: Path, data: Any) -> list[str]:
    """What is wrong with a certificate that was edited and sealed again; also where it is refused."""
    path.write_bytes(sealed(data))
    try:
        return check_certificate(path, lambda s: s, lambda s: s)[1]
    except SardonyxError as error:
        return [str(error)]


def leaves(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values of a certificate that are no objects or lists of more."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    yield from ((*at,),) if not isinstance(data, dict | list) else ()
    for key, value in entries:
        yield from leaves(value, (*at, key))


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool) or value is None:
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def test_every_value_is_recomputed_even_if_the_seal_was_made_anew(model: Path) -> None:
    path = default_path(model)
    write_certificate(
        path, verify(str(model), model, dims=["batch=2", "seq=3"], only=["reference"]), model, source=str(model),
        asked={**ASKED, "dims": ["batch=2", "seq=3"], "only": ["reference"]},
        made={"opset": OnnxModel.open(model).opset, "nodes": len(onnx.load(model).graph.node)},
    )  # fmt: skip
    text = read_certificate(path)
    found = list(leaves(text))
    assert len(found) > 60
    # What the machine is, providers that nothing asks, and tolerances of other dtypes say nothing of these figures.
    free = {("asked", "providers", 0)} | {("versions", name) for name in text["versions"]} | {
        place for place in found if "tolerances" in place and "float32" not in place
    } | {place for place in found if "tolerances" in place and place[-1] in ("steps", "mean")}  # fmt: skip
    for place in found:
        data = json.loads(json.dumps(text))
        parent = data
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = other(parent[place[-1]])
        wrong = check_resealed(path, data)
        assert bool(wrong) == (place not in free), (place, wrong)


def test_a_certificate_that_lacks_something_or_has_too_much_is_refused(model: Path) -> None:
    path = certified(model)
    text = read_certificate(path)
    result = text["verification"]["results"][0]
    parts = [text, text["model"], text["asked"], text["source"], text["verification"], result, result["outputs"][0]]
    for part in parts:
        optional = {"inputs", "argmax_flips", "rows", "worst", "reason"} if part is not text["asked"] else set[str]()
        for key in [k for k in part if k not in optional]:
            kept = part.pop(key)
            (wrong,) = check_resealed(path, text)
            assert f"has no '{key}'" in wrong or (key == "format" and "no format" in wrong)
            part[key] = kept
        part["more"] = 1
        (wrong,) = check_resealed(path, text)
        assert "has 'more', which no certificate has" in wrong
        del part["more"]
    for left_out in (text["verification"]["results"], result["outputs"]):
        kept = left_out.pop()
        assert check_resealed(path, text)
        left_out.append(kept)
    assert check_resealed(path, text) == []


def test_what_is_no_certificate_is_told(model: Path, tmp_path: Path) -> None:
    path = certified(model)
    content = path.read_bytes()
    for bad, words in (
        (b"{", "is no certificate"), (b"[]", "no format and no seal"), (b"\xff\x00", "is no certificate"),
        (content.replace(b'"format": 2', b'"format": 3'), "has format 3"),
        (content.replace(b"\n", b"\r\n", 1), "its bytes are not"),
        (content.replace(b'"seed": 0', b'"seed": 0,\n  "seed": 0'), "its bytes are not"),
        (content.replace(b'"seal": "', b'"seal": "0'), "its seal does not fit"),
    ):  # fmt: skip
        path.write_bytes(bad)
        with pytest.raises(InvalidArgumentError, match=words):
            read_certificate(path)


def test_an_edited_byte_of_the_model_is_seen(model: Path) -> None:
    path = certified(model)
    onnx.save(small_net("shifted weight"), model)
    _, wrong = check_certificate(path, lambda s: str(s), lambda s: s)
    assert any("the sha256 of" in w for w in wrong)
