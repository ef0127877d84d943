"""The HTML file: one self-contained document with all sections, data and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO

import msgspec

from karat.errors import counted
from karat.markup import Child, Markup, joined, named, tag
from karat.report import conclusion
from karat.report.charts import PageChart, charts
from karat.report.page.gate import gate_section, outcome_sign
from karat.report.page.group_table import group_tables
from karat.report.page.model import Notice, Page
from karat.report.page.pack import pack_queries
from karat.report.page.provenance import provenance_section, time_tag
from karat.report.page.run_pairs import pair_section
from karat.report.page.scripts import check_installed, csp_hash, page_script, styles, vega_script
from karat.report.page.templates import render, safe
from karat.report.page.value_table import MAX_SENTENCE, show_button, value_section

__all__ = ["check_installed", "write", "write_failure"]

_TITLES = {
    "verdict": "Verdict",
    "first": "What to look at first",
    "headline": "Values",
    "pairs": "Differences",
    "curves": "Curves",
    "groups": "Groups",
    "speed": "Speed and cost",
    "queries": "Queries",
    "made": "Provenance",
}


def write(page: Page, file: IO[bytes]) -> None:
    """Write a page part by part, since the queries can take many megabytes."""
    for part in _parts(page):
        file.write(part.encode())


def write_failure(title: str, problem: str, file: IO[bytes]) -> None:
    """Write a page that shows only why there is no result."""
    document = render(
        "failure.html",
        title=title,
        problem=problem,
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
    data = packing.result()
    sections = [
        {"id": name, "title": _TITLES[name], "content": safe(joined(content))}
        for name, content in _sections(page, page_charts)
    ]
    scripts = [vega_script(), page_script()]
    yield render(
        "page.html",
        title=page.title,
        policy=_policy(scripts),
        styles=safe(styles()),
        header=safe(header(page)),
        sections=sections,
    )
    yield _data_script("page", "application/json", _json(data.data))
    specs = [
        {"id": c.id, "section": c.section, "title": c.title, "caption": c.caption, "spec": c.spec}
        for c in page_charts
    ]
    yield _data_script("charts", "application/json", _json(specs))
    for number, block in enumerate(data.blocks):
        yield _data_script(f"b{number}", "text/plain", block)
    for script in scripts:
        yield f'<script type="module">{script}</script>\n'
    yield "</body></html>\n"


def _policy(scripts: list[str]) -> str:
    """Return the Content-Security-Policy that allows only these scripts."""
    allowed = " ".join(map(csp_hash, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sections(page: Page, page_charts: list[PageChart]) -> Iterator[tuple[str, Child]]:
    """Yield the sections that have content, in the order of the page."""
    content: dict[str, Markup | None] = {
        "verdict": None if page.verdict is None else gate_section(page.verdict),
        "first": _notices(page.notices) if page.notices else None,
        "headline": value_section(page.sheets, page.comparison),
        "pairs": None if page.comparison is None else pair_section(page.comparison),
        "groups": group_tables(page.groups),
        "queries": Markup(render("queries.html")),
        "made": provenance_section(page),
    }
    for name in _TITLES:
        figures = [_figure(chart) for chart in page_charts if chart.section == name]
        charts = tag("div", figures, class_="figures") if figures else None
        body = content.get(name)
        if not body and not charts:
            continue
        if name == "groups":  # the chart is the overview of the long tables
            yield name, (charts, body)
        else:
            yield name, (body, charts)


def _notices(notices: list[Notice]) -> Markup:
    items = [
        tag(
            "li",
            named(notice.text, MAX_SENTENCE),
            (" ", show_button(notice.show)) if notice.show else None,
            class_=f"notice {notice.kind}",
        )
        for notice in notices
    ]
    return tag("ul", items, class_="notices")


def _figure(chart: PageChart) -> Markup:
    """Return the figure that a script draws a chart into; its caption describes the chart."""
    caption = tag(
        "figcaption",
        tag("strong", named(chart.title, 200)),
        " ",
        tag("span", named(chart.caption, MAX_SENTENCE)),
    )
    return tag("figure", caption, tag("div", class_="drawing"), id=f"chart-{chart.id}")


def _json(value: object) -> str:
    """Return JSON for a script element, with "<" escaped so that it contains no tag."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def _data_script(name: str, kind: str, content: str) -> str:
    return f'<script type="{kind}" id="{name}">{content}</script>\n'


def header(page: Page) -> Markup:
    """Return the title, the conclusion, and the number of queries and runs."""
    sign = None if page.verdict is None else (outcome_sign(page.verdict.passed), " ")
    facts = [
        counted(page.queries.ids.len(), "query"),
        counted(len(page.sheets), "run"),
        time_tag(page.created),
    ]
    return tag(
        "header",
        tag("h1", named(page.title, 200)),
        tag("p", sign, named(_conclusion(page), MAX_SENTENCE), class_="lead"),
        tag("p", [tag("span", fact) for fact in facts], class_="about"),
    )


def _conclusion(page: Page) -> str:
    if page.verdict is not None:
        return page.verdict.summary
    if page.comparison is not None:
        return conclusion.comparison_conclusion(page.comparison).text
    return conclusion.scores_conclusion(page.sheets).text
