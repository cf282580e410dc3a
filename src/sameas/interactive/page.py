"""A result as a notebook shows it: the text with its mentions marked, and the facts below.

Rule: every word of a document is escaped, nothing is fetched, and a long text is cut so that a notebook stays small.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sameas.extraction.outputs.context import local_name

if TYPE_CHECKING:
    from sameas.interactive.findings import FoundRelation, Place
    from sameas.interactive.result import DocumentResult, Result

_DOCUMENTS_SHOWN = 5
_TEXT_SHOWN = 20_000
_FACTS_SHOWN = 200
# Soft colours on which black text is readable; a class keeps its colour within a page.
_COLOURS = ("#cfe8ff", "#d9f2d0", "#ffe3c2", "#f3d6ff", "#fff3b0", "#ffd6d6", "#d3f3f0", "#e3e0ff")


def page_of(result: Result) -> str:
    """The result as HTML."""
    kinds = sorted({_kind(entity.types) for entity in result.entities})
    colours = {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(kinds)}
    parts = [f"<p><b>{escape(repr(result)[1:-1])}</b></p>", _legend(colours)]
    parts += [_document(document, colours) for document in result.documents[:_DOCUMENTS_SHOWN]]
    left = len(result.documents) - _DOCUMENTS_SHOWN
    if left > 0:
        parts.append(f"<p>and {left} more documents</p>")
    parts.append(_facts(result.relations))
    return f'<div style="font-family:sans-serif;color:#111;background:#fff;padding:.5em">{"".join(parts)}</div>'


def _document(document: DocumentResult, colours: dict[str, str]) -> str:
    marks = sorted(
        (mention.start, -mention.end, mention.end, entity.name, _kind(entity.types))
        for entity in document.graph.entities
        for mention in entity.mentions
        if mention.end <= _TEXT_SHOWN
    )
    text, at, pieces = document.text, 0, []
    for start, _, end, name, kind in marks:
        # Of two that overlap the first and longer one is shown.
        if start < at:
            continue
        style = f"background:{colours[kind]};color:#111;border-radius:.2em;padding:0 .15em"
        pieces.append(escape(text[at:start]))
        pieces.append(f'<mark style="{style}" title="{escape(f"{name} ({kind})")}">{escape(text[start:end])}</mark>')
        at = end
    pieces.append(escape(text[at : max(at, _TEXT_SHOWN)]))
    if len(text) > _TEXT_SHOWN:
        pieces.append(f" <i>... {len(text) - _TEXT_SHOWN} more characters</i>")
    box = "white-space:pre-wrap;border:1px solid #ccc;padding:.5em;max-height:30em;overflow:auto"
    return (
        f'<details open><summary>{escape(document.name)}</summary><div style="{box}">{"".join(pieces)}</div></details>'
    )


def _legend(colours: dict[str, str]) -> str:
    shown = (f'<mark style="background:{colour};color:#111">{escape(kind)}</mark>' for kind, colour in colours.items())
    return f"<p>{' '.join(shown)}</p>" if colours else ""


def _facts(relations: list[FoundRelation]) -> str:
    heads = ("subject", "relation", "object", "evidence", "where")
    rows = "".join(_row(relation) for relation in relations[:_FACTS_SHOWN])
    left = len(relations) - _FACTS_SHOWN
    more = f"<p>and {left} more facts: to_pandas() has them all</p>" if left > 0 else ""
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _row(relation: FoundRelation) -> str:
    first = relation.evidence[0] if relation.evidence else None
    value = f"{relation.object} {relation.unit}" if relation.unit else relation.object
    more = f" (+{len(relation.evidence) - 1})" if len(relation.evidence) > 1 else ""
    cells = (
        relation.subject,
        relation.relation,
        value,
        "" if first is None else first.text,
        "" if first is None else _where(first) + more,
    )
    written = "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{written}</tr>"


def _where(place: Place) -> str:
    if place.page is not None:
        return f"{place.document}, page {place.page}"
    return place.document if place.paragraph is None else f"{place.document}, paragraph {place.paragraph}"


def _kind(types: tuple[str, ...]) -> str:
    return local_name(types[0]) if types else "thing"
