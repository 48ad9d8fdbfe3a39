"""Certificates: what was exported and verified, so that anybody can recompute it.

A certificate is JSON beside the model. It has the hashes of source, weights and model, how the model was made, the
dims that stayed symbolic, and the error of every output at every binding in every execution. It is sealed with a hash
of its own text: `check` refuses an edited one, and then recomputes every figure.
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
from sardonyx.frontend.verify.golden import versions
from sardonyx.frontend.verify.sources import file_digest
from sardonyx.frontend.verify.tolerance import Limits
from sardonyx.frontend.verify.verify import UNTESTED, Verification, verify

FORMAT = 1
SUFFIX = ".certificate.json"
SAME = 1e-6
"""How far a figure may be off where nothing but the clock has changed, as a share of itself."""


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
    text = {
        "format": FORMAT,
        "model": {"file": Path(model).name, **_model_digests(Path(model))},
        "source": {"name": source or verification.source, "sha256": _source_digest(source)},
        "made": dict(made or {}),
        "asked": _normal(asked),
        "versions": versions(),
        "verification": _figures(verification),
    }
    inputs = asked.get("inputs")
    if inputs is not None:
        text["inputs"] = {"name": inputs, "sha256": _source_digest(inputs)}
    sealed = {**text, "seal": _seal(text)}
    write_whole(Path(path), (json.dumps(sealed, indent=1, sort_keys=True) + "\n").encode())
    return sealed


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a certificate and check its seal.

    Raises:
        InvalidArgumentError: It cannot be read, or was edited.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"the certificate '{path}' cannot be read: {error.strerror or error}") from error
    try:
        found = json.loads(content)
        seal = found.pop("seal")
        known = found["format"]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(f"'{path}' is no certificate: {error}") from error
    if seal != _seal(found):
        raise InvalidArgumentError(f"the certificate '{path}' was edited: its seal does not fit its text")
    if known != FORMAT:
        raise InvalidArgumentError(f"the certificate '{path}' has format {known}, this Sardonyx reads {FORMAT}")
    return found


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
    for key, value in _model_digests(model).items():
        if text["model"].get(key) != value:
            wrong.append(f"the {key} of '{model}' is {_short(value)}, certified is {_short(text['model'].get(key))}")
    source = text["source"]
    for what, entry in (("source", source), ("inputs", text.get("inputs"))):
        if (
            entry is not None
            and entry["sha256"] is not None
            and _source_digest(entry["name"], folder) != entry["sha256"]
        ):
            wrong.append(f"the {what} '{entry['name']}' is not the one that was certified")
    asked = text["asked"]
    given = None if source["sha256"] is None else load_source(_located(folder, source["name"]))
    inputs = asked.get("inputs")
    again = verify(
        given,
        model,
        inputs=None if inputs is None else load_inputs(_located(folder, inputs)),
        dims=asked["dims"],
        providers=asked["providers"],
        limits=Limits.from_json(text["verification"]),
        seed=asked["seed"],
        only=asked.get("only"),
        locate_culprit=False,
        progress=progress,
    )
    wrong.extend(_disagreements(text["verification"], _figures(again), versions() == text["versions"]))
    return again, wrong


def _disagreements(old: Mapping[str, Any], new: Mapping[str, Any], same_versions: bool) -> list[str]:
    """What two verifications do not share. With other versions, figures may differ within the limits."""
    wrong: list[str] = []
    for key in ("ok", "dims", "frozen"):
        if old[key] != new[key]:
            wrong.append(f"'{key}' is now {new[key]}, certified is {old[key]}")
    if len(old["results"]) != len(new["results"]):
        return [*wrong, f"there are now {len(new['results'])} results, certified are {len(old['results'])}"]
    for before, after in zip(old["results"], new["results"]):
        where = f"{before['execution']} at {before['dims']}"
        if UNTESTED in (before["status"], after["status"]) and not same_versions:
            continue  # what is installed differs
        if before["status"] != after["status"]:
            wrong.append(f"{where}: now {after['status']}, certified {before['status']}")
            continue
        for a, b in zip(before["outputs"], after["outputs"]):
            near = np.isclose(a["max_abs"], b["max_abs"], rtol=SAME, atol=0)
            if a["output"] != b["output"] or (same_versions and not near):
                wrong.append(f"{where}: the error of '{b['output']}' is {b['max_abs']:g}, certified {a['max_abs']:g}")
    return wrong


def _figures(verification: Verification) -> dict[str, Any]:
    """The verification without what differs from machine to machine."""
    text = verification.to_json()
    for result in text["results"]:
        result["inputs"] = Path(result["inputs"]).name
    text["model"], text["source"] = Path(text["model"]).name, Path(text["source"]).name
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


def _seal(text: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(text, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _model_digests(path: Path) -> dict[str, str]:
    """The hashes of a model's file and of each file with weights that it names."""
    found = {"sha256": file_digest(path)}
    names = sorted({content.path for content in load_file(path).files.values()}, key=str)
    for weights in names:
        found[f"sha256 of {weights.name}"] = file_digest(weights)
    return found


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
    beside = folder / path
    return source.replace(str(path), str(beside), 1) if not path.is_file() and beside.is_file() else source


def _found(folder: Path, name: str) -> Path:
    beside = folder / Path(name).name
    if not beside.is_file():
        raise InvalidArgumentError(f"the certified model '{name}' is not beside its certificate")
    return beside


def _short(digest: str | None) -> str:
    return "unknown" if digest is None else f"{digest[:12]}…"
