"""The page with every step of a pipeline."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from browser import run_in
from run_opt import T, run_opt

from sardonyx.tools import explorer

NET = f"""\
func.func @main(%x: {T}) -> {T} {{
  %0 = sx.transpose %x {{perm = array<i64: 1, 0>}} : ({T}) -> tensor<3x2xf32>
  %1 = sx.exp %0 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = sx.transpose %1 {{perm = array<i64: 1, 0>}} : (tensor<3x2xf32>) -> {T}
  %3 = sx.tanh %x : ({T}) -> {T}
  func.return %2 : {T}
}}
"""


def explore(path: Path, pipeline: str, *args: object) -> Any:
    ran = run_opt("-p", pipeline, "--explore", path, *args, stdin=NET)
    _, _, rest = path.read_text("utf-8").partition('type="application/json">')
    return ran, json.loads(rest.partition("</script>")[0])


def test_steps(tmp_path: Path):
    ran, data = explore(tmp_path / "x.html", "cse,compose-transposes,remove-dead-nodes")
    assert ran.status == 0 and ran.err == ""
    steps = data["steps"]
    assert [s["name"] for s in steps] == ["input", "cse", "compose-transposes", "remove-dead-nodes"]
    assert [s["changed"] for s in steps] == [True, False, True, True]
    assert steps[1]["lines"] is None
    text = [data["texts"][line] for line in steps[3]["lines"]]
    assert len([line for line in text if "sx." in line]) == 1
    at = next(i for i, line in enumerate(text) if "sx.exp" in line)
    assert data["origins"][steps[3]["origins"][at]] == "compose-transposes:through-elementwise · <stdin>:3"
    assert steps[0]["ops"]["sx.transpose"] == 2 and "sx.transpose" not in steps[2]["ops"]
    assert steps[2]["statistics"]["transposes-removed"] == 2
    assert steps[2]["promise"] == "reassociates(1)"


def test_a_failure_is_on_the_page(tmp_path: Path, plugin: Path):
    ran, data = explore(tmp_path / "x.html", "cse,test-crash", "--load", plugin)
    assert ran.status == 70
    assert "KeyError" in data["steps"][-1]["error"]


def test_changes_make_the_one_text_of_the_other():
    rng = random.Random(3)
    for _ in range(200):
        old = [rng.randrange(6) for _ in range(rng.randrange(12))]
        new = [rng.randrange(6) for _ in range(rng.randrange(12))]
        for limit in (4000, 2):
            explorer.MATCHED_LINES, kept = limit, explorer.MATCHED_LINES
            pieces = explorer.changes(old, new)
            explorer.MATCHED_LINES = kept
            assert [x for _, i, j, _, _ in pieces for x in old[i:j]] == old
            assert [x for _, _, _, k, m in pieces for x in new[k:m]] == new
            for tag, i, j, k, m in pieces:
                assert (old[i:j] == new[k:m]) if tag == "equal" else True


def test_the_page_in_a_browser(tmp_path: Path):
    path = tmp_path / "x.html"
    explore(path, "cse,compose-transposes,remove-dead-nodes")
    for width, height in ((1280, 800), (390, 800)):
        found = run_in(path, """
            const text = name => [...document.querySelectorAll(name)].map(e => e.firstChild?.textContent ?? "");
            const tabs = [...document.querySelectorAll("#tabs button")];
            const tab = name => tabs.find(b => b.textContent === name).click();
            const out = {first: text("nav button[aria-current=true] span"), removed: text("pre .del"),
                         added: text("pre .add"), summary: document.getElementById("summary").textContent};
            tab("Ops");
            out.rows = [...document.querySelectorAll("tr")].map(r => [...r.cells].map(c => c.textContent));
            document.getElementById("previous").click();
            tab("Changes");
            out.same = document.getElementById("content").textContent;
            document.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown"}));
            out.back = text("nav button[aria-current=true] span");
            document.querySelector("nav button").click();
            tab("IR");
            out.lines = text("pre div");
            const search = document.getElementById("search");
            search.value = "sx.tanh"; search.oninput();
            out.hits = document.querySelectorAll(".hit").length;
            const origins = document.getElementById("origins");
            out.wide = document.documentElement.scrollWidth; out.inner = innerWidth; out.origins = origins.checked;
            return out;
        """, width, height)  # fmt: skip
        assert found["first"] == found["back"] == ["2. compose-transposes", "−2", ""]
        assert [line.split()[3] for line in found["removed"]] == ["sx.transpose", "sx.exp", "sx.transpose", ":"]
        assert [line.split()[1:4] for line in found["added"]] == [["%4", "=", "sx.exp"], ["func.return", "%4", ":"]]
        assert ["sx.transpose", "0", "−2", "−2"] in found["rows"]
        assert found["same"] == "This pass changed nothing."
        assert "7 → 4 ops" in found["summary"]
        assert any("sx.tanh" in line for line in found["lines"]) and found["hits"] == 1
        assert found["wide"] <= found["inner"], "the page does not scroll sideways"
        assert found["origins"] == (width > 900)
