"""The HTML file: one self-contained document with all sections, data and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO

import msgspec

from karat.evaluation.verdict import GateEntry
from karat.markup import brief, shown
from karat.report.charts import PageChart, charts
from karat.report.page.model import Page
from karat.report.page.pack import pack_queries
from karat.report.page.scripts import (
    check_installed,
    csp_hash,
    packed_vega,
    page_script,
    styles,
    vega_script,
)
from karat.report.page.sections.figures import figures_view
from karat.report.page.sections.group_tables import groups_view
from karat.report.page.sections.headline import page_headline
from karat.report.page.sections.leaderboard import results_view
from karat.report.page.sections.method import method_view
from karat.report.page.sections.reranking import reranking_view
from karat.report.page.sections.thresholds_section import gate_view
from karat.report.page.sections.verdict_summary import summary_view
from karat.report.page.templates import render, safe

__all__ = ["check_installed", "write", "write_failure", "write_gates"]

_TITLES = {
    "summary": "Summary",
    "gate": "Thresholds",
    "findings": "Key findings",
    "results": "Results",
    "comparison": "Comparison",
    "reranking": "Reranking",
    "queries": "Queries",
    "groups": "By group",
    "cutoffs": "By cutoff",
    "speed": "Speed and cost",
    "history": "History",
    "method": "Method",
}
_DRAWN_FROM_LISTS = {
    "results": "The curve of recall by characters is drawn",
    "cutoffs": "The curves by cutoff are drawn",
    "speed": "The charts of latency and cost are drawn",
}
"""The charts that are drawn from ranked lists, timings and costs, by section."""
_FINDINGS_SHOWN = 5


def write(page: Page, file: IO[bytes]) -> None:
    """Write a page part by part, since the queries can take many megabytes."""
    for part in _parts(page):
        file.write(part.encode())


def write_failure(title: str, problem: str, file: IO[bytes]) -> None:
    """Write a page that shows only why there is no result."""
    document = render(
        "failure.html",
        title=title,
        description=problem,
        problem=problem,
        policy=_policy([]),
        styles=safe(styles()),
    )
    file.write(document.encode())


def write_gates(title: str, gates: list[tuple[str, GateEntry]], file: IO[bytes]) -> None:
    """Write a page that lists gates, each with the name of the file of its own page."""
    document = render(
        "gates.html",
        title=title,
        description=title,
        gates=gates,
        policy=_policy([]),
        styles=safe(styles()),
    )
    file.write(document.encode())


def _parts(page: Page) -> Iterator[str]:
    with ThreadPoolExecutor(
        1
    ) as threads:  # zlib releases the interpreter lock, so charts are made meanwhile
        packing = threads.submit(pack_queries, page)
        page_charts = charts(page)
    packed = packing.result()
    script = page_script()
    yield render(
        "page.html",
        title=page.title,
        description=page_headline(page).text,
        policy=_policy([vega_script(), script]),
        styles=safe(styles()),
        sections=[
            {"id": name, "title": _TITLES[name], "content": safe(content)}
            for name, content in _sections(page, page_charts)
        ],
    )
    yield _data_script("page", "application/json", _json(packed.data))
    specs = [
        {"id": chart.id, "title": shown(brief(chart.title, 200)), "spec": chart.spec}
        for chart in page_charts
    ]
    yield _data_script("charts", "application/json", _json(specs))
    for number, block in enumerate(packed.blocks):
        yield _data_script(f"b{number}", "text/plain", block)
    yield _data_script("vega", "text/plain", packed_vega())
    yield f'<script type="module">{script}</script>\n'
    yield "</body></html>\n"


def _policy(scripts: list[str]) -> str:
    """Return the Content-Security-Policy that allows only these scripts."""
    allowed = " ".join(map(csp_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sections(page: Page, page_charts: list[PageChart]) -> Iterator[tuple[str, str]]:
    """Yield the sections that have content, in the order of the page."""
    groups, reranked = groups_view(page), reranking_view(page)
    sample = page.queries.sample
    content: dict[str, str] = {
        "summary": render("summary.html", view=summary_view(page)),
        "gate": "" if page.verdict is None else render("gate.html", view=gate_view(page)),
        "findings": render("findings.html", view=page.findings, shown=_FINDINGS_SHOWN)
        if page.findings
        else "",
        "results": render("results.html", view=results_view(page)),
        "comparison": render("comparison.html", sample=sample) if len(page.sheets) > 1 else "",
        "reranking": "" if reranked is None else render("reranking.html", view=reranked),
        "groups": "" if groups is None else render("groups.html", view=groups),
        "queries": render("queries.html", sample=sample),
        "method": render("method.html", view=method_view(page)),
    }
    for name in _TITLES:
        figures = figures_view(page_charts, name)
        note = ""
        if sample is not None and name in _DRAWN_FROM_LISTS:
            note = f"{_DRAWN_FROM_LISTS[name]} from {sample.of_charts}"
        drawn = "" if figures is None else render("figures.html", view=figures, sample=note)
        if body := content.get(name, "") + drawn:
            yield name, body


def _json(value: object) -> str:
    """Return JSON for a script element, with "<" escaped so that it contains no tag."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def _data_script(name: str, kind: str, content: str) -> str:
    return f'<script type="{kind}" id="{name}">{content}</script>\n'
