"""The top of a page: what it is of, and its verdict in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.errors import counted
from karat.markup import Markup, brief, named, tag
from karat.report.comparison import ComparisonSheet, better
from karat.report.comparison_tables import probability
from karat.report.marks import real
from karat.report.page.gate import sign
from karat.report.page.headline import LONGEST
from karat.report.page.made import when
from karat.report.page.model import Page
from karat.report.sheet import Sheet
from karat.report.tables import interval, number

_NAME = 80
_NAMED = 3
"""More runs than these are counted, not named."""


def header(page: Page) -> Markup:
    """Return the title, the verdict and the facts that tell one page from another."""
    told = named(sentence(page), LONGEST)
    verdict = page.verdict
    facts = [
        counted(page.queries.ids.len(), "query"),
        counted(len(page.sheets), "run"),
        when(page.created),
    ]
    return tag(
        "header",
        tag("h1", named(page.title, 200)),
        tag("p", None if verdict is None else (sign(verdict.passed), " "), told, class_="lead"),
        tag("p", [tag("span", fact) for fact in facts], class_="about"),
    )


def sentence(page: Page) -> str:
    """Say what came of it: who is best by the first measure, and whether that is real."""
    if page.verdict is not None:
        return page.verdict.summary
    ranked = _ranked(page.sheets)
    first = page.sheets[0].summary.row(0, named=True)
    measure = first["measure"]
    if not ranked:
        return f"No run has a value of {measure}."
    name, value = ranked[0]
    shown = number(value, measure)
    if len(page.sheets) == 1:
        between = f" {interval(first)}" if interval(first) else ""
        return f"{_short(name)}: {measure} is {shown}{between} over {counted(first['n'], 'query')}."
    level = [_short(other) for other, own in ranked if own == value]
    if len(level) > 1:
        return f"{_listed(level)} are level by {measure}: {shown}."
    told = f"{_short(name)} is best by {measure}: {shown}"
    if page.comparison is None:
        second, below = ranked[1]
        return f"{told}, before {_short(second)}: {number(below, measure)}."
    return f"{told}. {_whether_real(page.comparison, measure, name)}"


def _ranked(sheets: Sequence[Sheet]) -> list[tuple[str, float]]:
    """Return the runs that have a value of the first measure, best first."""
    values = [(sheet.name, sheet.summary["value"][0]) for sheet in sheets]
    known = [(name, value) for name, value in values if value is not None]
    measure = sheets[0].summary["measure"][0]
    return sorted(known, key=lambda run: run[1], reverse=better(measure, 1.0, 0.0))


def _whether_real(comparison: ComparisonSheet, measure: str, leader: str) -> str:
    """Say which of the others the best run is shown to be better than."""
    rows = comparison.pairs.filter(
        pl.col("measure") == measure, (pl.col("a") == leader) | (pl.col("b") == leader)
    ).to_dicts()
    beaten = {loser for winner, loser, by in real(comparison) if (winner, by) == (leader, measure)}
    sure = [row for row in rows if _other(row, leader) in beaten]
    unsure = [row for row in rows if _other(row, leader) not in beaten]
    told = []
    if sure:
        told.append(f"Its lead over {_named(sure, leader)} is real ({_probabilities(sure)}).")
    if unsure:
        told.append(
            f"Its lead over {_named(unsure, leader)} may be chance ({_probabilities(unsure)})."
        )
    return " ".join(told)


def _other(row: dict[str, Any], leader: str) -> str:
    return str(row["a"] if row["b"] == leader else row["b"])


def _named(rows: list[dict[str, Any]], leader: str) -> str:
    if len(rows) > _NAMED:
        return f"{len(rows):,} other runs"
    return _listed([_short(_other(row, leader)) for row in rows])


def _probabilities(rows: list[dict[str, Any]]) -> str:
    """Say how sure it is: of one pair its p, of several that which is nearest to the limit."""
    known = [row["p_corrected"] for row in rows if row["p_corrected"] is not None]
    if not known:
        return "not tested"
    if len(rows) == 1:
        return f"p = {probability(known[0])}".replace("= <", "< ")
    return f"p from {probability(min(known))} to {probability(max(known))}"


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > _NAMED:
        return f"{len(names):,} runs"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _short(name: str) -> str:
    return brief(name, _NAME)
