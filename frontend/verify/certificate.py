"""Certificates: what was exported and verified, so that anybody can recompute it.

A certificate is JSON beside the model. It has the hashes of source, weights and model, how the model was made, the
dims that stayed symbolic, and the error of every output at every binding in every execution. It is sealed with a hash
of its own text: `check` refuses an edited one, and then recomputes every figure, so that an edited text that was sealed
again is found out as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dialects.files import write_whole
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.load import load_file
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.verify.certificate_text import FORMAT, read_certificate, sealed
from sardonyx.frontend.verify.golden import versions
from sardonyx.frontend.verify.sources import file_digest
from sardonyx.frontend.verify.tolerance import Limits
from sardonyx.frontend.verify.verify import UNTESTED, Verification, verify

SUFFIX = ".certificate.json"
SAME = 1e-6
"""How far a figure may be off where nothing but the clock has changed, as a share of itself."""
WORDS = frozenset(("error", "culprit", "reason"))
"""What a result says in words: it is sealed, and not held against the new one, which may be in another folder."""
FIGURES = frozenset(("max_abs", "max_rel", "use", "worst", "argmax_flips", "metrics"))
"""What may differ within the limits where other versions compute it."""


def default_path(model: str | os.PathLike[str]) -> Path:
    """Where the certificate of a model is: beside it."""
    return Path(model).with_suffix(SUFFIX)


def write_certificate(
    path: str | os.PathLike[str],
    verification: Verification,
    model: str | os.PathLike[str],
    *,
    source: str | None,
    asked: Mapping[str, Any],
    made: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the certificate of a model.

    Args:
        path: The file.
        verification: What was found.
        model: The model's file.
        source: The source as the command line names it; None where it is no file.
        asked: What the verification was asked for: inputs, dims, providers, seed, as `verify` takes them.
        made: How the model was made: pipeline, opset, what was refused or rewritten.

    Returns:
        The certificate.
    """
    called = source or verification.source
    text = {
        "format": FORMAT,
        "model": {"file": Path(model).name, **_model_digests(Path(model))},
        "source": {"name": called, "sha256": _source_digest(source)},
        "made": dict(made or {}),
        "asked": _normal(asked),
        "versions": versions(),
        "verification": _figures(verification, called),
    }
    inputs = asked.get("inputs")
    if inputs is not None:
        text["inputs"] = {"name": inputs, "sha256": _source_digest(inputs)}
    write_whole(Path(path), sealed(text))
    return text


def check_certificate(
    path: str | os.PathLike[str],
    load_source: Callable[[str], Any],
    load_inputs: Callable[[str], Any],
    progress: Callable[[str], None] | None = None,
) -> tuple[Verification, list[str]]:
    """Recompute what a certificate states.

    Args:
        path: The certificate; model and relative paths are looked up beside it, then in the current folder.
        load_source, load_inputs: Turn the names in it into what `verify` takes.
        progress: As `verify`.

    Returns:
        The new verification, and what does not agree: nothing if the certificate holds.

    Raises:
        InvalidArgumentError: It was edited, or a file that it names is not there.
    """
    text = read_certificate(path)
    folder = Path(path).parent
    wrong: list[str] = []
    model = _found(folder, text["model"]["file"])
    wrong += _other_digests(model, text["model"], _model_digests(model))
    source = text["source"]
    for what, entry in (("source", source), ("inputs", text.get("inputs"))):
        if entry is not None and _source_digest(entry["name"], folder) != entry["sha256"]:
            wrong.append(f"the {what} '{entry['name']}' is not the one that was certified")
    asked = text["asked"]
    if asked["inputs"] != text.get("inputs", {"name": None})["name"]:
        wrong.append(f"the inputs '{asked['inputs']}' are asked for, and others are certified")
    given = None if source["sha256"] is None else load_source(_located(folder, source["name"]))
    inputs = asked["inputs"]
    again = verify(
        given,
        model,
        inputs=None if inputs is None else load_inputs(_located(folder, inputs)),
        dims=asked["dims"],
        providers=asked["providers"],
        limits=Limits.from_json(text["verification"]),
        seed=asked["seed"],
        only=asked["only"],
        locate_culprit=False,
        progress=progress,
    )
    wrong += _other_interface(model, text["made"])
    same_versions = versions() == text["versions"]
    figures = _figures(again, source["name"])
    wrong += _disagreements(text["verification"], figures, same_versions)
    return again, wrong


def other_versions(path: str | os.PathLike[str]) -> list[str]:
    """What computed a certificate's figures in another version than is here, in words."""
    then, now = read_certificate(path)["versions"], versions()
    return [
        f"{name} {then.get(name, 'none')}, here {now.get(name, 'none')}"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _other_digests(model: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Which files are others than those certified."""
    wrong = []
    if old["sha256"] != new["sha256"]:
        wrong.append(f"the sha256 of '{model}' is {_short(new['sha256'])}, certified is {_short(old['sha256'])}")
    if old["weights"] != new["weights"]:
        wrong.append(f"the weights of '{model}' are {_short(new['weights'])}, certified are {_short(old['weights'])}")
    for name in sorted({*old["files"], *new["files"]}):
        then, now = old["files"].get(name), new["files"].get(name)
        if then != now:
            wrong.append(f"the sha256 of '{name}' is {_short(now)}, certified is {_short(then)}")
    return wrong


def _other_interface(model: Path, made: Mapping[str, Any]) -> list[str]:
    """What the certificate says of the model that it is not."""
    opened = OnnxModel.open(model)
    summary = opened.inspect()
    now = {
        "opset": opened.opset,
        "nodes": summary.nodes,
        "inputs": list(summary.inputs),
        "outputs": list(summary.outputs),
    }
    return [
        f"'{key}' of '{model}' is {value}, certified is {made[key]}"
        for key, value in now.items()
        if key in made and made[key] != value
    ]


def _disagreements(old: Mapping[str, Any], new: Mapping[str, Any], same_versions: bool) -> list[str]:
    """What two verifications do not share. With other versions, figures may differ within the limits."""
    wrong = [f"'{k}' is now {new[k]}, certified is {old[k]}" for k in old if k != "results" and old[k] != new[k]]
    if len(old["results"]) != len(new["results"]):
        return [*wrong, f"there are now {len(new['results'])} results, certified are {len(old['results'])}"]
    for before, after in zip(old["results"], new["results"]):
        where = f"{before['execution']} at {before['dims']}"
        if UNTESTED in (before["status"], after["status"]) and not same_versions:
            continue  # what is installed differs
        outputs = [[o["output"] for o in r["outputs"]] for r in (before, after)]
        for key in ("execution", "dims", "inputs", "status", *(() if not same_versions else ("metrics",))):
            if not _same(before.get(key), after.get(key)):
                wrong.append(f"{where}: '{key}' is now {after.get(key)}, certified {before.get(key)}")
        if before["status"] != after["status"]:
            continue
        if outputs[0] != outputs[1]:
            wrong.append(f"{where}: the outputs are now {', '.join(outputs[1])}, certified {', '.join(outputs[0])}")
            continue
        for a, b in zip(before["outputs"], after["outputs"]):
            for key in sorted({*a, *b}):
                if key in WORDS or (key in FIGURES and not same_versions):
                    continue
                if not _same(a.get(key), b.get(key)):
                    what = "the error" if key == "max_abs" else f"'{key}'"
                    wrong.append(f"{where}: {what} of '{b['output']}' is {b.get(key)}, certified {a.get(key)}")
    return wrong


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal, floats up to what the machine's load may change."""
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=SAME, atol=0, equal_nan=True))
    return type(a) is type(b) and a == b


def _figures(verification: Verification, source: str) -> dict[str, Any]:
    """The verification without what differs from machine to machine; the source is called as in the certificate."""
    text = verification.to_json()
    for result in text["results"]:
        result["inputs"] = Path(result["inputs"]).name
    text["model"], text["source"] = Path(text["model"]).name, Path(source).name
    return _normal(text)


def _normal(data: Any) -> Any:
    return json.loads(json.dumps(data, default=_plain))


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    return str(value)


def _model_digests(path: Path) -> dict[str, Any]:
    """The hashes of a model's file, of its weights wherever they lie, and of each file with weights that it names."""
    loaded = load_file(path)
    files = sorted({content.path for content in loaded.files.values()}, key=str)
    weights = hashlib.sha256()
    for tensor in sorted(loaded.proto.graph.initializer, key=lambda t: t.name):
        weights.update(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}".encode())
        if tensor.name not in loaded.files:
            weights.update(tensor.SerializeToString(deterministic=True))
    digests = {file.name: file_digest(file) for file in files}
    weights.update("".join(sorted(digests.values())).encode())
    return {"sha256": file_digest(path), "weights": weights.hexdigest(), "files": digests}


def _source_digest(source: str | None, folder: Path | None = None) -> str | None:
    """The hash of the file that a source or an inputs argument names (`FILE` or `FILE.py:NAME`)."""
    if source is None:
        return None
    path = _file_of(_located(folder, source) if folder is not None else source)
    return file_digest(path) if path.is_file() else None


def _file_of(source: str) -> Path:
    path, separator, name = source.rpartition(":")
    return Path(path) if separator and path.endswith(".py") and name.isidentifier() else Path(source)


def _located(folder: Path, source: str) -> str:
    """The name with the path from here: beside the certificate, else as it stands."""
    path = _file_of(source)
    if path.is_file():
        return source
    beside = next((p for p in (folder / path, folder / path.name) if p.is_file()), path)
    return source.replace(str(path), str(beside), 1)


def _found(folder: Path, name: str) -> Path:
    beside = folder / Path(name).name
    if not beside.is_file():
        raise InvalidArgumentError(f"the certified model '{name}' is not beside its certificate")
    return beside


def _short(digest: str | None) -> str:
    return "unknown" if digest is None else f"{digest[:12]}…"
