"""The verdict of a gate: each threshold, its outcome, and the reasons for failures."""

from __future__ import annotations

from karat.evaluation.gate_checks import BlamedQuery, Check
from karat.evaluation.verdict import Verdict
from karat.markup import Markup, joined, named, tag
from karat.report.documents.verdict import checks_table
from karat.report.page.value_table import query_button, remark_list, scrollable


def gate_section(verdict: Verdict) -> Markup:
    """Return the thresholds as a table, and the reason for each failure."""
    checks = checks_table(verdict)
    heads = [column.head for column in checks.columns]
    cells = [[cell.text for cell in row] for row in checks.rows]
    top = tag(
        "tr",
        [
            tag("th", head or "outcome", scope="col", class_=_cell_class(at))
            for at, head in enumerate(heads)
        ],
    )
    body = [
        tag(
            "tr",
            tag("td", outcome_sign(check.passed, " passed" if check.passed else " failed")),
            tag("th", named(row[1], 200), scope="row"),
            [tag("td", cell) for cell in row[2:]],
        )
        for check, row in zip(verdict.checks, cells, strict=True)
    ]
    table = tag("table", tag("thead", top), tag("tbody", body), class_="numbers gate")
    return joined(
        scrollable(table, "Thresholds"),
        [_failure(check) for check in verdict.failures],
        remark_list(verdict.remarks),
    )


def outcome_sign(passed: bool, word: str = "") -> Markup:
    """Return a sign for an outcome, with an optional word: colour alone is not accessible."""
    return tag("strong", "✓" if passed else "✗", word, class_="passed" if passed else "failed")


def _failure(check: Check) -> Markup:
    queries = None
    if check.blamed:
        total = f" (of {check.to_blame:,})" if check.to_blame > len(check.blamed) else ""
        items = [tag("li", _blamed_query(query, check)) for query in check.blamed]
        queries = joined(
            tag("p", f"{check.guilt}{total}:"), tag("ul", items, class_="queries-listed")
        )
    return tag(
        "div",
        tag("h3", named(check.name, 200)),
        tag("p", check.reason),
        queries,
        class_="broken",
    )


def _blamed_query(query: BlamedQuery, check: Check) -> Markup:
    before = "" if query.baseline is None else f"{check.shown(query.baseline)} → "
    return joined(query_button(query.query_id), f" {before}{check.shown(query.value)}")


def _cell_class(at: int) -> str | None:
    return "label" if at < 2 else None
