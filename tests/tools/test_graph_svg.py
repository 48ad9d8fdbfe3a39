"""Drawings of graphs: layout, SVG, the page."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from browser import run_in
from run_opt import T, run_opt

from sardonyx.tools import graph_layout
from sardonyx.tools.graph_layout import Edge, Node

NET = f"""\
func.func @main(%x: {T} {{sx.name = "x<y"}}, %b: tensor<i1>) -> {T} {{
  %c = sx.constant {{value = dense<2.0> : tensor<f32>}} : () -> tensor<f32>
  %0 = sx.exp %x : ({T}) -> {T}
  %1 = sx.mul %0, %c : ({T}, tensor<f32>) -> {T}
  %2 = sx.tanh %1 : ({T}) -> {T}
  %3 = sx.add %0, %2 : ({T}, {T}) -> {T}
  func.return %3 : {T}
}}
"""


def test_layers_and_no_overlaps():
    rng = random.Random(7)
    for size in (1, 2, 30, 200):
        nodes = [Node(rng.randrange(20, 200), rng.randrange(20, 60)) for _ in range(size)]
        edges = [Edge(rng.randrange(target), target) for target in range(1, size) for _ in range(2)]
        width, height = graph_layout.place(nodes, edges)
        for edge in edges:
            assert nodes[edge.source].layer < nodes[edge.target].layer
            assert edge.path[0][1] <= edge.path[-1][1]
            assert edge.path[0] == (nodes[edge.source].middle, nodes[edge.source].y + nodes[edge.source].height)
        for node in nodes:
            assert node.x >= -1e-6 and node.x + node.width <= width + 1e-6
            assert node.y >= 0 and node.y + node.height <= height + 1e-6
        for layer in {node.layer for node in nodes}:
            row = sorted((n for n in nodes if n.layer == layer), key=lambda n: n.x)
            for a, b in zip(row, row[1:]):
                assert a.x + a.width <= b.x + 1e-6
    assert graph_layout.place([], []) == (0.0, 0.0)


def test_a_chain_is_straight_and_cycles_are_drawn():
    nodes = [Node(10.0 + i, 10.0) for i in range(5)]
    edges = [Edge(i, i + 1) for i in range(4)]
    graph_layout.place(nodes, [*edges, Edge(4, 0)])
    assert max(n.middle for n in nodes) - min(n.middle for n in nodes) < 1.0
    assert [n.layer for n in nodes] == list(range(5))


def test_svg(tmp_path: Path):
    path = tmp_path / "net.svg"
    assert run_opt("--view", path, "-p", "infer-types", stdin=NET).status == 0
    root = ET.parse(path).getroot()
    name = "{http://www.w3.org/2000/svg}"
    titles = [e.text for e in root.iter(f"{name}text") if e.get("class") == "title"]
    assert titles == ["x", "b", "exp", "mul", "tanh", "add", "outputs"]
    lines = [e.text for e in root.iter(f"{name}text") if e.get("class") == "line"]
    assert "float32[2, 3]" in lines and "c: float32[]" in lines
    assert len([e for e in root.iter(f"{name}path") if e.get("class") == "edge"]) == 6
    told = [e.find(f"{name}title").text for e in root.iter(f"{name}g")]  # type: ignore[union-attr]
    assert any("from: <stdin>:3" in (t or "") for t in told)


def test_what_is_not_drawn(tmp_path: Path, monkeypatch):
    assert run_opt("--view", tmp_path / "x.png", stdin=NET).status == 2
    monkeypatch.setattr("sardonyx.tools.graph_svg.MAX_OPS", 3)
    ran = run_opt("--view", tmp_path / "x.svg", stdin=NET)
    assert ran.status == 4
    assert "more than 3 are not drawn" in ran.err


def test_the_page_in_a_browser(tmp_path: Path):
    path = tmp_path / "net.html"
    assert run_opt("--view", path, stdin=NET).status == 0
    for width, height in ((1280, 800), (390, 800)):
        found = run_in(path, """
            const nodes = [...document.querySelectorAll(".node")];
            const mul = nodes.find(n => n.querySelector(".title").textContent === "mul");
            mul.dispatchEvent(new MouseEvent("click", {bubbles: true}));
            const facts = document.getElementById("facts");
            const search = document.getElementById("search");
            search.value = "TANH"; search.dispatchEvent(new Event("input"));
            const box = document.querySelector("svg.graph").getAttribute("viewBox");
            document.getElementById("in").click();
            return {count: nodes.length, shown: !facts.hidden, text: facts.textContent,
                    found: [...document.querySelectorAll(".node.found .title")].map(n => n.textContent),
                    zoomed: box !== document.querySelector("svg.graph").getAttribute("viewBox"),
                    wide: document.documentElement.scrollWidth, inner: window.innerWidth};
        """, width, height)  # fmt: skip
        assert found["count"] == 7 and found["shown"] and found["zoomed"]
        assert re.search(r"operand 1constant %c: float32\[\]", found["text"])
        assert found["found"] == ["tanh"]
        assert found["wide"] <= found["inner"]


def test_the_page_is_walked_by_keys_and_by_its_outline(tmp_path: Path):
    path = tmp_path / "net.html"
    assert run_opt("--view", path, stdin=NET).status == 0
    for width, height in ((1280, 800), (400, 800)):
        found = run_in(path, """
            const svg = document.querySelector("svg.graph"), facts = document.getElementById("facts");
            const box = () => svg.getAttribute("viewBox").split(" ").map(Number);
            const press = key => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            const heads = [], head = () => heads.push(facts.hidden ? "" : facts.querySelector("h2").textContent);
            const areas = [box()[2]];
            for (const key of ["+", "-", "0"]) { press(key); areas.push(box()[2]); }
            const before = box(); press("ArrowDown"); const moved = box()[1] - before[1];
            press("/"); const focus = document.activeElement.id;
            const outline = document.getElementById("outline"), closed = outline.hidden;
            press("o");
            const groups = [...outline.querySelectorAll("summary")].map(s => s.firstChild.textContent);
            const group = [...outline.querySelectorAll("details")].find(d => d.textContent.startsWith("exp"));
            group.open = true;
            group.querySelector("button").click(); head();
            const near = [...svg.querySelectorAll(".node.near .title")].map(t => t.textContent);
            const lines = svg.querySelectorAll(".edge.near").length;
            for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "Escape"]) { press(key); head(); }
            const link = () => [...facts.querySelectorAll("p button")].map(b => b.textContent);
            svg.querySelectorAll(".node")[5].dispatchEvent(new MouseEvent("click", {bubbles: true})); head();
            const links = link(); facts.querySelector("p button").click(); head();
            return {areas, moved, focus, closed, groups, near, lines, heads, links,
                    outline: outline.hidden, over: document.documentElement.scrollWidth - window.innerWidth};
        """, width, height)  # fmt: skip
        start, larger, back, whole = found["areas"]
        assert larger < start and abs(back - start) < 1e-6 * start and whole >= start * 0.5
        assert found["moved"] > 0 and found["focus"] == "search" and found["closed"]
        assert found["groups"] == ["inputs", "exp", "mul", "tanh", "add", "outputs"]
        assert sorted(found["near"]) == ["add", "exp", "mul", "x"] and found["lines"] == 3
        assert found["heads"] == ["exp", "mul", "tanh", "mul", "", "add", "exp"]
        assert found["links"] == ["exp", "tanh", "outputs"]
        assert found["outline"] == (width < 700)  # on a phone it makes room for what was chosen
        assert found["over"] <= 0
