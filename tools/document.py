"""Documents of headings, paragraphs, tables and pictures, as one HTML page and as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table; the columns named in `right` are aligned there."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """An SVG image with what it shows; Markdown has the words alone."""

    svg: str
    words: str


Block = str | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Fact:
    """A figure at the top of a document; `state` is 'good', 'bad', 'open' or ''."""

    name: str
    value: str
    state: str = ""


@dataclass(frozen=True)
class Document:
    """A title, the figures at its top, and sections; `style` is that of its pictures."""

    title: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    footer: str = ""
    style: str = ""


STATES = {"passed": "good", "failed": "bad", "unsupported": "bad", "untested": "open", "refused": "open"}
"""Cells that are marked by what they say."""
ROWS = 25
"""So many rows of a table are seen at once; the others unfold."""
LONG = 28
"""Words longer than this may be broken, so that a table stays readable on a phone."""


# ---- HTML


def to_html(document: Document) -> str:
    """The document as one page that needs nothing from elsewhere."""
    template = (resources.files("sardonyx.tools") / "document.html").read_text(encoding="utf-8")
    facts = "".join(
        f'<div class="fact {fact.state}"><b>{html.escape(fact.value)}</b><span>{html.escape(fact.name)}</span></div>'
        for fact in document.facts
    )
    links = "".join(
        f'<a href="#s{number}">{html.escape(section.title)}</a>' for number, section in enumerate(document.sections)
    )
    sections = "".join(
        f'<section id="s{number}"><details open><summary><h2>{html.escape(section.title)}</h2></summary>'
        f"{''.join(map(_html_block, section.blocks))}</details></section>"
        for number, section in enumerate(document.sections)
    )
    parts = {
        "title": html.escape(document.title),
        "facts": facts,
        "links": links,
        "sections": sections,
        "footer": html.escape(document.footer),
        "style": document.style,
    }
    for name, text in parts.items():
        template = template.replace(f"<!--{name}-->", text)
    return template


def _html_block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{html.escape(block)}</p>"
    if isinstance(block, Picture):
        words = html.escape(block.words)
        return f'<figure><div class="picture">{block.svg}</div><figcaption>{words}</figcaption></figure>'
    right = {index for index, column in enumerate(block.columns) if column in block.right}
    head = "".join(_html_cell("th", column, index in right) for index, column in enumerate(block.columns))
    rows = [
        f"<tr>{''.join(_html_cell('td', cell, index in right) for index, cell in enumerate(row))}</tr>"
        for row in block.rows
    ]
    wide = ' class="wide"' if len(block.columns) > 3 else ""
    start, end = f'<div class="table"><table{wide}><thead><tr>{head}</tr></thead><tbody>', "</tbody></table></div>"
    if len(rows) <= ROWS + 5:
        return f"{start}{''.join(rows)}{end}"
    more = f"<summary>{len(rows) - ROWS} more rows</summary>{start}{''.join(rows[ROWS:])}{end}"
    return f'{start}{"".join(rows[:ROWS])}{end}<details class="rest">{more}</details>'


def _html_cell(tag: str, text: str, right: bool) -> str:
    names = [*(["right"] if right else []), *([STATES[text]] if tag == "td" and text in STATES else [])]
    if tag == "td" and max(map(len, text.split()), default=0) > LONG:
        names.append("long")
    attribute = f' class="{" ".join(names)}"' if names else ""
    return f"<{tag}{attribute}>{html.escape(text)}</{tag}>"


# ---- data


def to_data(document: Document) -> dict[str, Any]:
    """The document for a program: `facts` by name, `sections` by title, tables as lists of objects; no pictures."""
    sections: dict[str, Any] = {}
    for section in document.sections:
        tables = [b for b in section.blocks if isinstance(b, Table)]
        sections[section.title] = {
            "text": [b for b in section.blocks if isinstance(b, str)],
            "tables": [[dict(zip(t.columns, row)) for row in t.rows] for t in tables],
        }
    return {"facts": {f.name: f.value for f in document.facts}, "sections": sections}


# ---- Markdown


def to_markdown(document: Document) -> str:
    """The document as Markdown."""
    lines = [f"# {_plain(document.title)}", ""]
    lines += [f"- {_plain(fact.name)}: **{_plain(fact.value)}**" for fact in document.facts]
    for section in document.sections:
        lines += ["", f"## {_plain(section.title)}"]
        for block in section.blocks:
            lines += ["", *_markdown_block(block)]
    if document.footer:
        lines += ["", document.footer]
    return "\n".join(lines) + "\n"


def _markdown_block(block: Block) -> Sequence[str]:
    if isinstance(block, str):
        return [_plain(block)]
    if isinstance(block, Picture):
        return [f"*{_plain(block.words)}*"]
    rule = ["---:" if column in block.right else "---" for column in block.columns]
    rows = [block.columns, tuple(rule), *block.rows]
    return ["| " + " | ".join(cell if row is rows[1] else _cell(cell) for cell in row) + " |" for row in rows]


def _plain(text: str) -> str:
    return text.replace("\n", " ")


def _cell(text: str) -> str:
    return _plain(text).replace("\\", "\\\\").replace("|", "\\|")


@dataclass
class Builder:
    """Collects a document's sections; empty ones are left out."""

    sections: list[Section] = field(default_factory=list)

    def add(self, title: str, *blocks: Block | None) -> None:
        kept = tuple(b for b in blocks if b is not None and (not isinstance(b, Table) or b.rows))
        if kept:
            self.sections.append(Section(title, kept))
