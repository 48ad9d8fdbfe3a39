"""The text of a certificate: what it has to hold, its seal, and reading it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from sardonyx.errors import InvalidArgumentError

FORMAT = 2
_NUMBER = (int, float)
_FILE: Mapping[str, Any] = {"name": str, "sha256": (str, NoneType)}
_OUTPUT: Mapping[str, Any] = {
    "output": str,
    "ok": bool,
    "max_abs": _NUMBER,
    "max_rel": _NUMBER,
    "use": (*_NUMBER, NoneType),
    "reason?": str,
    "argmax_flips?": int,
    "rows?": int,
    "worst?": {"index": [int], "expected": str, "actual": str},
}
_RESULT: Mapping[str, Any] = {
    "execution": str,
    "inputs": str,
    "dims": dict,
    "status": str,
    "outputs": [_OUTPUT],
    "error?": str,
    "culprit?": dict,
    "metrics?": dict,
}
TEXT: Mapping[str, Any] = {
    "format": int,
    "model": {"file": str, "sha256": str, "weights": str, "files": dict},
    "source": _FILE,
    "inputs?": _FILE,
    "made": dict,
    "asked": {"dims": [str], "inputs": (str, NoneType), "only": (list, NoneType), "providers": [str], "seed": int},
    "versions": dict,
    "verification": {
        "model": str,
        "source": str,
        "ok": bool,
        "dims": [str],
        "frozen": [str],
        "precision": str,
        "tolerances": dict,
        "results": [_RESULT],
    },
}
"""What a certificate holds beside its seal: keys (with `?` those that may be absent) and types."""


def sealed(text: Mapping[str, Any]) -> bytes:
    """The bytes of a certificate, with its seal."""
    return (json.dumps({**text, "seal": _seal(text)}, indent=1, sort_keys=True) + "\n").encode()


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a certificate and check its seal, byte by byte.

    Raises:
        InvalidArgumentError: It cannot be read, was edited, or lacks something.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"the certificate '{path}' cannot be read: {error.strerror or error}") from error
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"'{path}' is no certificate: {error}") from error
    if not isinstance(found, dict) or "seal" not in found or not isinstance(found.get("format"), int):
        raise InvalidArgumentError(f"'{path}' is no certificate: it has no format and no seal")
    if found["format"] != FORMAT:
        raise InvalidArgumentError(
            f"the certificate '{path}' has format {found['format']}, this Sardonyx reads {FORMAT}"
        )
    seal = found.pop("seal")
    if seal != _seal(found):
        raise InvalidArgumentError(f"the certificate '{path}' was edited: its seal does not fit its text")
    if content != sealed(found):
        raise InvalidArgumentError(f"the certificate '{path}' was edited: the text is the same, its bytes are not")
    wrong = _mismatch(found, TEXT, "it")
    if wrong:
        raise InvalidArgumentError(f"'{path}' is no certificate: {wrong}")
    return found


def _seal(text: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(text, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _mismatch(value: Any, wanted: Any, where: str) -> str:
    """What a value has otherwise than wanted, in words; nothing if all is there."""
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        found = (_mismatch(entry, wanted[0], f"{where}[{number}]") for number, entry in enumerate(value))
        return next((text for text in found if text), "")
    if not isinstance(wanted, Mapping):
        fits = isinstance(value, wanted) and (not isinstance(value, bool) or wanted is bool)
        return "" if fits else f"{where} is {type(value).__name__}"
    if not isinstance(value, dict):
        return f"{where} is no JSON object"
    known = {key.removesuffix("?") for key in wanted}
    for key in sorted(set(value) - known):
        return f"{where} has '{key}', which no certificate has"
    for key, entry in wanted.items():
        name = key.removesuffix("?")
        if name not in value:
            if key == name:
                return f"{where} has no '{name}'"
            continue
        text = _mismatch(value[name], entry, f"'{name}'" if where == "it" else f"{where} '{name}'")
        if text:
            return text
    return ""
