"""Opens a page in a real browser (headless Chromium), runs a script in it, and returns what it left."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser() -> str:
    """The browser's program; the test is skipped where there is none."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("no Chromium here to open the page in")
    return found


def run_in(page: Path, script: str, width: int = 1280, height: int = 800) -> Any:
    """Open a copy of the page whose `return`ing script runs after the page's own; returns its value.

    Errors of the page's scripts fail the test, and so does a request for anything outside of the page.
    """
    program = browser()
    watch = "<script>window.problems=[];window.onerror=m=>{problems.push(m)}</script>"
    tail = (
        "<script>(() => { let r; try { r = (() => {" + script + "})() } catch (e) { r = {error: String(e)} }"
        "const loaded = performance.getEntriesByType('resource').map(e => e.name);"
        "const out = document.createElement('pre'); out.id = 'said';"
        "out.textContent = JSON.stringify({r, problems, loaded}); document.body.replaceChildren(out) })()</script>"
    )
    text = page.read_text("utf-8").replace("<head>", f"<head>{watch}", 1)
    head, _, end = text.rpartition("</body>")
    copy = page.with_name(f"{page.stem}.opened.html")
    copy.write_text(f"{head}{tail}</body>{end}", "utf-8")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}",
               "--virtual-time-budget=3000", f"--user-data-dir={page.parent / 'profile'}", "--dump-dom",
               copy.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    _, _, said = done.stdout.partition('<pre id="said">')
    assert said, done.stdout[-2000:]
    raw = said.partition("</pre>")[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    found = json.loads(raw)
    assert found["problems"] == [] and found["loaded"] == [], found
    assert not (isinstance(found["r"], dict) and "error" in found["r"]), found["r"]
    return found["r"]
