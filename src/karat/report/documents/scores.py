"""The document of scores: values with intervals, groups, queries, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat.evaluation.remarks import main_measure, scoring_notes
from karat.report.cells import (
    DASH,
    format_counts,
    format_value,
    measure_label,
    measure_named,
    readable,
    table_label,
    value_cell,
)
from karat.report.conclusion import scores_conclusion
from karat.report.document_model import Cell, Column, Document, Section, Table
from karat.report.documents.reranking import reranking_sections
from karat.report.sheet import Sheet, interval_methods, remarks

MOST_COLUMNS = 3
"""With more runs than this, runs are rows instead of columns."""
SCALE = Column("0 … 1", "left", priority=9, scale=(0.0, 1.0))
_UPPER_BOUND = "upper bound: the value if every unjudged item were relevant"


def scores_document(sheets: Sequence[Sheet]) -> Document:
    """Return the document of the scores of one or more runs."""
    sections = [Section([values_table(sheets)])]
    sections += [Section([table]) for sheet in sheets for table in [group_table(sheet)] if table]
    sections += reranking_sections([sheet.scores for sheet in sheets])
    sections += [Section([table]) for sheet in sheets for table in [query_table(sheet)] if table]
    return Document(
        "Scores",
        scores_conclusion(sheets),
        sections,
        notes=[*remarks(sheets), *scoring_notes(sheets[0].scores)],
        details=interval_methods(sheets),
    )


def values_table(sheets: Sequence[Sheet]) -> Table:
    """Return the values: measures as rows for up to three runs, else runs as rows."""
    return _runs_as_columns(sheets) if len(sheets) <= MOST_COLUMNS else runs_as_rows(sheets)


def _runs_as_columns(sheets: Sequence[Sheet]) -> Table:
    draws = len(sheets) == 1 and any(value_cell(row).drawing for row in _rows(sheets[0]))
    medians = sheets if sheets[0].show_medians else []
    columns = [
        Column("measure", "left"),
        *(Column(sheet.name) for sheet in sheets),
        *([SCALE] if draws else []),
        *(Column(_median_head(sheet, sheets)) for sheet in medians),
        Column("queries"),
    ]
    rows = []
    for same in zip(*map(_rows, sheets), strict=True):
        measure = same[0]["measure"]
        best = best_value(same)
        cells = [
            value_cell(row, is_best=row["value"] == best, digits=sheets[0].digits) for row in same
        ]
        rows.append(
            [
                Cell(table_label(measure, sheets[0])),
                *cells,
                *([Cell("", drawing=cells[0].drawing)] if draws else []),
                *(
                    Cell(format_value(row["median"], measure, sheets[0].digits))
                    for row in same
                    if medians
                ),
                Cell(format_counts(row["n"] for row in same)),
            ]
        )
    empty = [Cell("")] * (int(draws) + len(medians) + 1)
    unjudged = unjudged_rows(sheets)
    for name, values in unjudged.items():
        rows.append([Cell(name), *(Cell(_plain(value)) for value in values), *empty])
    return Table(columns, rows, notes=unjudged_notes(unjudged))


def runs_as_rows(
    sheets: Sequence[Sheet],
    *,
    letters: Sequence[str] = (),
    marks: dict[tuple[str, str], str] | None = None,
) -> Table:
    """Return runs as rows, the best by the main measure on top.

    With letters, each run is named by one; marks are shown behind values by run and measure.
    """
    marks = marks or {}
    letter_of = dict(zip((sheet.name for sheet in sheets), letters, strict=False))
    measures = sheets[0].summary["measure"].to_list()
    draws = value_cell(_rows(sheets[0])[0]).drawing is not None
    unjudged = unjudged_rows(sheets)
    columns = [
        *([Column("", "left")] if letters else []),
        Column("run", "left"),
        Column(table_label(measures[0], sheets[0])),
        *([SCALE] if draws else []),
        *(Column(table_label(measure, sheets[0])) for measure in measures[1:]),
        *(Column(name, priority=5 if name.startswith("Judged@") else 7) for name in unjudged),
        Column("queries", priority=6),
    ]
    best = [best_value(same) for same in zip(*map(_rows, sheets), strict=True)]
    rows = []
    for at in sorted_by_main(sheets):
        sheet = sheets[at]
        cells = [
            value_cell(
                row,
                is_best=row["value"] == top,
                mark=marks.get((sheet.name, measure), ""),
                digits=sheet.digits,
            )
            for row, top, measure in zip(_rows(sheet), best, measures, strict=True)
        ]
        others = [Cell(cell.text, mark=cell.mark, is_best=cell.is_best) for cell in cells[1:]]
        rows.append(
            [
                *([Cell(letter_of[sheet.name])] if letters else []),
                Cell(sheet.name),
                cells[0],
                *([Cell("", drawing=cells[0].drawing)] if draws else []),
                *others,
                *(Cell(_plain(values[at])) for values in unjudged.values()),
                Cell(format_counts(sheet.summary["n"])),
            ]
        )
    n_labels = 2 if letters else 1
    return Table(columns, rows, n_labels=n_labels)


def sorted_by_main(sheets: Sequence[Sheet]) -> list[int]:
    """Return the positions of the runs, the best by the main measure first."""
    measure = main_measure([sheet.scores for sheet in sheets])
    sign = -1 if measure.declaration.higher_is_better else 1
    values = [sheet.row(measure.name)["value"] for sheet in sheets]
    return sorted(
        range(len(sheets)),
        key=lambda at: (values[at] is None, 0 if values[at] is None else sign * values[at], at),
    )


def best_value(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the best value of a measure; None if all runs have the same or there is only one."""
    values = [row["value"] for row in rows]
    if len(set(values)) < 2:
        return None
    return measure_named(rows[0]["measure"]).best(values)


def unjudged_rows(sheets: Sequence[Sheet]) -> dict[str, list[float | None]]:
    """Return the share of judged items, and what measures would be if all others were relevant.

    Empty if every item that counts was judged.
    """
    judged: dict[int, list[float | None]] = {}
    bounds: dict[str, list[float | None]] = {}
    for same in zip(*map(_rows, sheets), strict=True):
        measure = same[0]["measure"]
        cutoff = measure_named(measure).cutoff
        if any(row["judged"] is not None and row["judged"] < 1 for row in same):
            assert isinstance(cutoff, int)
            judged[cutoff] = [row["judged"] for row in same]
        bound = [row["bound_high"] for row in same]
        values = [_plain(row["value"]) for row in same]
        if any(value is not None for value in bound) and list(map(_plain, bound)) != values:
            bounds[f"{measure} upper bound"] = bound
    shares = {f"Judged@{k}": values for k, values in sorted(judged.items())}
    measures = set(sheets[0].summary["measure"])
    return {name: values for name, values in (shares | bounds).items() if name not in measures}


def unjudged_notes(unjudged: dict[str, list[float | None]]) -> list[str]:
    """Return what the rows on unjudged items mean."""
    return [_UPPER_BOUND] if any(name.endswith("upper bound") for name in unjudged) else []


def group_table(sheet: Sheet) -> Table | None:
    """Return one row per group, if groups were asked for."""
    if sheet.groups is None:
        return None
    measures = sheet.summary["measure"].to_list()
    columns = [
        *(Column(field, "left") for field in sheet.group_fields),
        *(Column(table_label(measure, sheet)) for measure in measures),
        Column("queries"),
    ]
    rows = []
    for key, part in sheet.group_parts:
        labels = [Cell(DASH if value is None else str(value)) for value in key]
        mark = "*" if part["small"].any() else ""
        values = [value_cell(readable(row)) for row in part.iter_rows(named=True)]
        rows.append([*labels, *values, Cell(format_counts(part["n"]) + mark)])
    title = f"{sheet.name} by {', '.join(sheet.group_fields)}"
    return Table(columns, rows, title, n_labels=len(sheet.group_fields), may_omit_intervals=True)


def query_table(sheet: Sheet) -> Table | None:
    """Return one row per query, if queries were asked for."""
    if not sheet.show_queries:
        return None
    measures = sheet.summary["measure"].to_list()
    texts: dict[str, str] = {}
    if "text" in sheet.scores.queries.columns:
        texts = dict(sheet.scores.queries.select("query_id", "text").iter_rows())
    columns = [
        Column("query", "left"),
        *([Column("text", "left", priority=8, is_flexible=True)] if texts else []),
        *(Column(measure_label(measure, sheet)) for measure in measures),
    ]
    rows = [
        [
            Cell(query),
            *([Cell(texts.get(query) or "")] if texts else []),
            *(Cell(format_value(value, m)) for m, value in zip(measures, values, strict=True)),
        ]
        for query, *values in sheet.scores.per_query.iter_rows()
    ]
    return Table(columns, rows, sheet.name)


def _rows(sheet: Sheet) -> list[dict[str, Any]]:
    return [readable(row) for row in sheet.summary.iter_rows(named=True)]


def _median_head(sheet: Sheet, sheets: Sequence[Sheet]) -> str:
    return "median" if len(sheets) == 1 else f"median of {sheet.name}"


def _plain(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"
