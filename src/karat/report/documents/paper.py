"""The documents of LaTeX tables: runs as rows, measures as columns, marks of significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from karat.evaluation.comparison import count_tests
from karat.evaluation.remarks import scoring_notes
from karat.report.cells import format_value, measure_label, value_cell
from karat.report.comparison import ComparisonSheet, run_letter, significant_differences
from karat.report.document_model import Cell, Column, Document, Section, Table
from karat.report.documents.comparison import TESTS, letter_ranges
from karat.report.documents.scores import best_value
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.stats import corrections
from karat.stats.power import ALPHA

_NO_MARKS: Mapping[tuple[str, str], str] = MappingProxyType({})


def scores_table(sheets: Sequence[Sheet]) -> Document:
    """Return scores with intervals; remarks become comments."""
    caption = [*interval_methods(sheets), *(["Best values are bold"] if len(sheets) > 1 else [])]
    return Document(
        ". ".join(caption) if sheets[0].caption is None else sheets[0].caption,
        sections=[Section([_table(sheets, intervals=True)])],
        notes=[*remarks(sheets), *scoring_notes(sheets[0].scores)],
        label=sheets[0].tex_label,
    )


def comparison_table(sheet: ComparisonSheet) -> Document:
    """Return a comparison: letters of the runs that a value is significantly better than.

    With a baseline, a dagger marks values significantly better than it, a double dagger worse ones.
    """
    baseline = sheet.comparison.baseline
    letters: dict[str, str] = {}
    if baseline is None:
        letters = {run.name: run_letter(at) for at, run in enumerate(sheet.runs)}
    table = _table(sheet.runs, letters, _marks(sheet, letters, baseline), intervals=False)
    caption = _caption(sheet, baseline) if sheet.caption is None else sheet.caption
    return Document(caption, sections=[Section([table])], label=sheet.tex_label)


def _table(
    sheets: Sequence[Sheet],
    letters: Mapping[str, str] = MappingProxyType({}),
    marks: Mapping[tuple[str, str], str] = _NO_MARKS,
    *,
    intervals: bool,
) -> Table:
    summaries = [list(sheet.summary.iter_rows(named=True)) for sheet in sheets]
    best = [best_value(same) for same in zip(*summaries, strict=True)]
    measures = sheets[0].summary["measure"].to_list()
    rows = []
    for sheet, summary in zip(sheets, summaries, strict=True):
        cells = [Cell(sheet.name, mark=letters.get(sheet.name, ""))]
        for row, top in zip(summary, best, strict=True):
            interval = value_cell(row, digits=sheet.digits).interval if intervals else ""
            cells.append(
                Cell(
                    format_value(row["value"], row["measure"], sheet.digits),
                    interval,
                    marks.get((sheet.name, row["measure"]), ""),
                    is_best=top is not None and row["value"] == top,
                )
            )
        rows.append(cells)
    heads = [
        Column("run", "left"),
        *(Column(measure_label(measure, sheets[0])) for measure in measures),
    ]
    return Table(heads, rows)


def _marks(
    sheet: ComparisonSheet, letters: Mapping[str, str], baseline: str | None
) -> dict[tuple[str, str], str]:
    marks: dict[tuple[str, str], str] = {}
    beaten: dict[tuple[str, str], set[str]] = {}
    for winner, loser, measure in significant_differences(sheet):
        if baseline is None:
            beaten.setdefault((winner, measure), set()).add(letters[loser])
        elif winner == baseline:
            marks[loser, measure] = "‡"
        else:
            marks[winner, measure] = "†"
    order = list(letters.values())
    return marks | {key: letter_ranges(found, order) for key, found in beaten.items()}


def _caption(sheet: ComparisonSheet, baseline: str | None) -> str:
    comparison, n = sheet.comparison, count_tests(sheet.pairs)
    method = TESTS[comparison.test]
    if n > 1 and comparison.correction != "none":
        title = corrections.TITLES[comparison.correction]
        method += f", corrected by {title} over {n} pairs, separately for each measure"
    if baseline is None:
        meaning = "Letters mark the runs that a value is significantly better than"
    else:
        meaning = f"† and ‡ mark values significantly better and worse than {baseline}"
    return f"{meaning} ({method}; α = {ALPHA}). Best values are bold"
