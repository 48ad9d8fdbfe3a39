"""The page of a report: what it is made of, and how it behaves in a browser."""

from __future__ import annotations

from pathlib import Path

from browser import run_in

from sardonyx.tools.document import ROWS, Document, Fact, Picture, Section, Table, to_data, to_html, to_markdown

ROW = ("a" * 60, "passed", "1.5e-07", "batch=1")
DOCUMENT = Document(
    "a <model>.onnx",
    (Fact("parity", "verified", "good"), Fact("opset", "21")),
    (
        Section(
            "Parity", ("Held against itself.", Table(("node", "result", "error", "dims"), (ROW,) * 60, ("error",)))
        ),
        Section("Operators", (Table(("nodes", "operator"), (("3", "Add"), ("1", "Mul")), ("nodes",)),)),
        Section("Graph", (Picture('<svg width="900" height="900"><rect width="5" height="5"/></svg>', "A picture."),)),
    ),
    "Made of nothing",
)


def test_a_document_is_html_markdown_and_data() -> None:
    page, text, data = to_html(DOCUMENT), to_markdown(DOCUMENT), to_data(DOCUMENT)
    assert "a &lt;model&gt;.onnx" in page and "http" not in page.replace("http://www.w3.org", "")
    assert page.count("<tr>") == 60 + 2 + 2 + 1  # with the heads, that of the unfolding part included
    assert "| nodes | operator |\n| ---: | --- |\n| 3 | Add |" in text and "*A picture.*" in text
    assert data["facts"] == {"parity": "verified", "opset": "21"}
    assert data["sections"]["Operators"] == {
        "text": [], "tables": [[{"nodes": "3", "operator": "Add"}, {"nodes": "1", "operator": "Mul"}]]
    }  # fmt: skip


def test_sections_fold_and_long_tables_unfold_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(to_html(DOCUMENT), "utf-8")
    for width in (1280, 400):
        found = run_in(page, """
            const seen = e => e.checkVisibility();
            const section = document.querySelector("section");
            const rows = () => [...section.querySelectorAll("td")].filter(seen).length;
            const counts = [rows()];
            section.querySelector(".rest > summary").click(); counts.push(rows());
            section.querySelector("details > summary").click(); counts.push(rows());
            const ground = e => getComputedStyle(e).backgroundColor;
            const colors = [ground(document.body), ground(document.querySelector(".picture"))];
            const links = [...document.querySelectorAll("nav a")].every(a => document.querySelector(a.hash));
            return {counts, colors, links,
                    over: document.documentElement.scrollWidth - window.innerWidth};
        """, width, 800)  # fmt: skip
        assert found["counts"] == [4 * ROWS, 4 * 60, 0]
        assert found["colors"][0] == found["colors"][1]  # a picture is on the page's own ground, light or dark
        assert found["links"] and found["over"] <= 0
