"""The document of a comparison: which run is best, whether that is certain, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import polars as pl

from karat.evaluation.comparison import Moved, count_tests
from karat.evaluation.remarks import scoring_notes
from karat.report.cells import (
    BETTER,
    DASH,
    WORSE,
    change,
    difference_cell,
    format_counts,
    format_difference,
    format_size,
    format_value,
    interval_text,
    measure_named,
    p_cell,
    readable,
    significance_mark,
    table_label,
)
from karat.report.comparison import ComparisonSheet, run_letter, significant_differences
from karat.report.conclusion import comparison_conclusion
from karat.report.document_model import Cell, Column, Document, Section, Table, Tone
from karat.report.documents.reranking import reranking_sections
from karat.report.documents.scores import (
    best_value,
    runs_as_rows,
    sorted_by_main,
    unjudged_notes,
    unjudged_rows,
)
from karat.report.sheet import interval_methods, remarks
from karat.stats import corrections, paired_tests
from karat.stats.groups import FEW
from karat.stats.intervals import describe_method
from karat.stats.power import ALPHA, POWER

TESTS = {
    "randomization": "sign-flip randomization test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
}
_POWER = f"{POWER:.0%} power at α = {ALPHA}"
_LETTERS_IN_FULL = 6
_HAS_INTERVAL = pl.any_horizontal(pl.col("low", "high").is_not_null())
_CHANGES_SHOWN = 3

Pair = tuple[str, str]
Row = dict[str, Any]


def comparison_document(sheet: ComparisonSheet) -> Document:
    """Return the document of a comparison.

    Two runs are shown in one table. Of three or more, a table of all runs comes first, then the
    best run against each other one; `show_all_pairs` of the sheet adds every pair.
    """
    sections = _two_runs(sheet) if len(sheet.runs) == 2 else _many_runs(sheet)
    if sheet.groups is not None:
        measures = sheet.measures if sheet.wide else [sheet.main_measure]
        sections += [
            Section([_group_table(sheet, sheet.groups, pair, measures)])
            for pair in _shown_pairs(sheet)
        ]
    if sheet.needed is not None:
        pairs = _shown_pairs(sheet, all_of_leader=True)
        sections.append(Section([_needed_table(sheet, sheet.needed, pairs)]))
    sections += reranking_sections(sheet.comparison.scores)
    sections += _moved(sheet)
    return Document(
        "Comparison",
        comparison_conclusion(sheet),
        sections,
        notes=[*_pair_remarks(sheet), *remarks(sheet.runs), *scoring_notes(sheet.runs[0].scores)],
        details=method_notes(sheet),
    )


def _pair_remarks(sheet: ComparisonSheet) -> Iterator[str]:
    """Yield remarks on the pairs and measures that are shown."""
    if len(sheet.runs) == 2 or sheet.show_all_pairs:
        return sheet.remarks(sheet.names, sheet.measures)
    return sheet.remarks(_shown_pairs(sheet, all_of_leader=True), [sheet.main_measure])


def _two_runs(sheet: ComparisonSheet) -> list[Section]:
    """Return one table with both runs and their difference, one row per measure."""
    (a, b) = sheet.names[0]
    summaries = {
        run.name: {r["measure"]: readable(r) for r in run.summary.to_dicts()} for run in sheet.runs
    }
    rows = []
    for pair_row in _rows_of(sheet.pairs, (a, b)):
        measure = pair_row["measure"]
        same = [summaries[name][measure] for name in (a, b)]
        best = best_value(same)
        rows.append(
            [
                Cell(table_label(measure, sheet.runs[0])),
                *(
                    Cell(
                        format_value(r["value"], measure, sheet.digits), is_best=r["value"] == best
                    )
                    for r in same
                ),
                *_tested_cells(sheet, pair_row),
            ]
        )
    unjudged = unjudged_rows(sheet.runs)
    values_of = {run.name: at for at, run in enumerate(sheet.runs)}
    columns = [Column("measure", "left"), Column(a), Column(b), *_tested_columns(sheet)]
    for name, values in unjudged.items():
        cells = [
            Cell(DASH if values[values_of[run]] is None else f"{values[values_of[run]]:.3f}")
            for run in (a, b)
        ]
        rows.append([Cell(name), *cells, *[Cell("")] * (len(columns) - 3)])
    notes = [*_legend(sheet.pairs), *unjudged_notes(unjudged)]
    return [Section([Table(columns, rows, notes=notes)])]


def _many_runs(sheet: ComparisonSheet) -> list[Section]:
    baseline = sheet.comparison.baseline
    names = [run.name for run in sheet.runs]
    ranked = [names[at] for at in sorted_by_main(sheet.runs)]
    if baseline is None:
        letters = {name: run_letter(at) for at, name in enumerate(ranked)}
        marks = _letter_marks(sheet, letters)
        ordered = [letters[name] for name in names]
        note = (
            "letters after a value: significantly better than the runs with these letters"
            if marks
            else "no difference between two runs is significant"
        )
    else:
        ordered, marks = [], _baseline_marks(sheet, baseline)
        note = f"{BETTER} significantly better, {WORSE} significantly worse than {baseline}"
        if not marks:
            note = f"no run differs significantly from {baseline}"
    table = runs_as_rows(sheet.runs, letters=ordered, marks=marks)
    first = Table(table.columns, table.rows, notes=[note, *table.notes], n_labels=table.n_labels)
    sections = [Section([first])]
    if sheet.show_all_pairs:
        return [*sections, *(Section([table]) for table in pair_tables(sheet))]
    return [*sections, Section([_leader_table(sheet)])]


def pair_tables(sheet: ComparisonSheet) -> list[Table]:
    """Return every pair: a table per pair, or a table per measure if there are many pairs."""
    if sheet.many or len(sheet.measures) == 1:
        return [_measure_table(sheet, measure) for measure in sheet.measures]
    return [_pair_table(sheet, pair) for pair in sheet.names]


def _pair_table(sheet: ComparisonSheet, pair: Pair) -> Table:
    columns = [Column("measure", "left"), *_tested_columns(sheet)]
    rows = [
        [Cell(table_label(row["measure"], sheet.runs[0])), *_tested_cells(sheet, row)]
        for row in _rows_of(sheet.pairs, pair)
    ]
    return Table(columns, rows, f"{pair[1]} − {pair[0]}")


def _measure_table(sheet: ComparisonSheet, measure: str) -> Table:
    columns = [Column("pair", "left"), *_tested_columns(sheet)]
    rows = [
        [Cell(f"{row['b']} − {row['a']}"), *_tested_cells(sheet, row)]
        for row in sheet.pairs.filter(measure=measure).to_dicts()
    ]
    return Table(columns, rows, table_label(measure, sheet.runs[0]))


def _leader_table(sheet: ComparisonSheet) -> Table:
    """Return the best run against the others by the main measure, or all against a baseline."""
    measure, baseline = sheet.main_measure, sheet.comparison.baseline
    rows = sheet.pairs.filter(measure=measure).to_dicts()
    ranked = [sheet.runs[at].name for at in sorted_by_main(sheet.runs)]
    name = table_label(measure, sheet.runs[0])
    if baseline is None:
        title, head = f"{ranked[0]} against the others, {name}", f"{ranked[0]} −"
        found = {
            row["a"] if row["b"] == ranked[0] else row["b"]: _oriented(row, ranked[0])
            for row in rows
            if ranked[0] in (row["a"], row["b"])
        }
    else:
        title, head = f"against {baseline}, {name}", f"− {baseline}"
        found = {row["b"]: row for row in rows}
    cells = [
        [Cell(other), *_tested_cells(sheet, found[other])] for other in ranked if other in found
    ]
    notes = _legend(sheet.pairs)
    if baseline is None and len(sheet.names) > len(cells):
        notes.append(f"--all-pairs shows all {len(sheet.names):,} pairs and all measures")
    return Table([Column(head, "left"), *_tested_columns(sheet)], cells, title, notes)


def _oriented(row: Row, leader: str) -> Row:
    """Return a row of a pair with the leader as run b."""
    if row["b"] == leader:
        return row
    flipped = {**row, "a": row["b"], "b": row["a"], "wins": row["losses"], "losses": row["wins"]}
    flipped |= {"value_a": row["value_b"], "value_b": row["value_a"]}
    for name in ("difference", "effect"):
        flipped[name] = None if row[name] is None else 0.0 - row[name]
    flipped["low"] = None if row["high"] is None else 0.0 - row["high"]
    flipped["high"] = None if row["low"] is None else 0.0 - row["low"]
    flipped["relative"] = None
    if flipped["value_a"] and flipped["difference"] is not None:
        flipped["relative"] = flipped["difference"] / flipped["value_a"]
    return flipped


def _tested_columns(sheet: ComparisonSheet) -> list[Column]:
    confidence = f"{100 * sheet.comparison.confidence:g}% interval"
    columns = [
        Column("difference"),
        Column(confidence, priority=3),
        Column("p"),
        Column("change", priority=5),
        Column("W/T/L", priority=4),
        Column("queries", priority=6),
    ]
    if sheet.wide:
        columns += [Column("p alone"), Column("dz"), Column("MDE")]
    return columns


def _tested_cells(sheet: ComparisonSheet, row: Row) -> list[Cell]:
    """Return the difference of a pair, its interval, and how certain it is."""
    row = readable(row)
    measure = row["measure"]
    cells = [
        difference_cell(row),
        Cell(interval_text(row["low"], row["high"], measure, sign=True)),
        p_cell(row["p_corrected"]),
        Cell(change(row["relative"])),
        Cell(f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}"),
        Cell(f"{row['n']:,}"),
    ]
    if sheet.wide:
        effect = DASH if row["effect"] is None else f"{row['effect']:+.2f}"
        cells += [p_cell(row["p"]), Cell(effect), Cell(format_size(row["detectable"], measure))]
    return cells


def _legend(frame: pl.DataFrame) -> list[str]:
    if not any(significance_mark(row) for row in frame.iter_rows(named=True)):
        return []
    return [f"{BETTER} significantly better, {WORSE} significantly worse (p < {ALPHA})"]


def _letter_marks(sheet: ComparisonSheet, letters: dict[str, str]) -> dict[Pair, str]:
    """Return for each run and measure the letters of the runs that it significantly beats."""
    beaten: dict[Pair, set[str]] = {}
    for winner, loser, measure in significant_differences(sheet):
        beaten.setdefault((winner, measure), set()).add(letters[loser])
    order = list(letters.values())
    return {key: letter_ranges(found, order) for key, found in beaten.items()}


def letter_ranges(found: set[str], order: Sequence[str]) -> str:
    """Return letters in order; many consecutive ones as a range.

    >>> letter_ranges({"b", "c"}, "abcdefghij"), letter_ranges(set("bcdefghj"), "abcdefghij")
    ('bc', 'b–h,j')
    """
    if len(found) <= _LETTERS_IN_FULL and all(len(name) == 1 for name in found):
        return "".join(name for name in order if name in found)
    runs = []
    for is_in, group in groupby(order, key=lambda name: name in found):
        names = list(group)
        if is_in:
            runs.append(names[0] if len(names) == 1 else f"{names[0]}–{names[-1]}")
    return ",".join(runs)


def _baseline_marks(sheet: ComparisonSheet, baseline: str) -> dict[Pair, str]:
    marks = {}
    for winner, loser, measure in significant_differences(sheet):
        other, mark = (loser, WORSE) if winner == baseline else (winner, BETTER)
        marks[other, measure] = mark
    return marks


def _shown_pairs(sheet: ComparisonSheet, *, all_of_leader: bool = False) -> list[Pair]:
    """Return the pairs to show in detail: all of them with two runs or `show_all_pairs`.

    Otherwise the best run against the baseline or against the second best; or, with
    `all_of_leader`, all pairs with the baseline or with the best run.
    """
    baseline = sheet.comparison.baseline
    if len(sheet.runs) == 2 or sheet.show_all_pairs or (all_of_leader and baseline is not None):
        return sheet.names
    ranked = [sheet.runs[at].name for at in sorted_by_main(sheet.runs)]
    if baseline is not None:
        best = next(name for name in ranked if name != baseline)
        return [pair for pair in sheet.names if best in pair]
    others = ranked[1:] if all_of_leader else ranked[1:2]
    return [pair for pair in sheet.names if ranked[0] in pair and set(pair) & set(others)]


def _group_table(
    sheet: ComparisonSheet, groups: pl.DataFrame, pair: Pair, measures: Sequence[str]
) -> Table:
    fields = sheet.group_fields
    columns = [
        Column("measure", "left"),
        *(Column(field, "left") for field in fields),
        *_tested_columns(sheet),
    ]
    rows = [
        [
            Cell(table_label(row["measure"], sheet.runs[0])),
            *_group_cells(row, fields),
            *_tested_cells(sheet, row),
        ]
        for row in _rows_of(groups, pair)
        if row["measure"] in measures
    ]
    title = f"{pair[1]} − {pair[0]} by {', '.join(fields)}"
    notes = _legend(groups)
    if len(measures) < len(sheet.measures):
        notes.append(f"groups of {sheet.label(measures[0])}; --wide shows the other measures")
    if (groups["n"] < FEW).any():
        notes.append(f"*: groups of fewer than {FEW} queries are too small for conclusions")
    return Table(columns, rows, title, notes, n_labels=1 + len(fields))


def _group_cells(row: Row, fields: Sequence[str]) -> list[Cell]:
    """Return the values of the fields; the last one is marked, because it is always shown."""
    cells = [Cell(DASH if row[field] is None else str(row[field])) for field in fields]
    return [*cells[:-1], Cell(f"{cells[-1].text}*")] if row["n"] < FEW else cells


def _needed_table(sheet: ComparisonSheet, needed: pl.DataFrame, pairs: Sequence[Pair]) -> Table:
    columns = [
        Column("pair", "left"),
        *(Column(table_label(m, sheet.runs[0])) for m in sheet.measures),
    ]
    found = {(row["a"], row["b"], row["measure"]): row["queries"] for row in needed.to_dicts()}
    rows = []
    for a, b in pairs:
        numbers = [found[a, b, measure] for measure in sheet.measures]
        cells = [Cell(DASH if n is None else f"{n:,}") for n in numbers]
        rows.append([Cell(f"{b} − {a}"), *cells])
    title = f"queries needed to detect a difference of {sheet.difference:g} ({_POWER})"
    return Table(columns, rows, title)


def _moved(sheet: ComparisonSheet) -> list[Section]:
    """Return the queries that changed most, with their texts and what moved in their lists."""
    sections = []
    for pair in _shown_pairs(sheet):
        moved = [query for query in sheet.moved if (query.a, query.b) == pair]
        if moved and len(sheet.runs) > 2 and pair[0] == _leader(sheet):
            # As in the table above: the best run minus the other one.
            moved = [_reversed(query) for query in reversed(moved)]
        if moved:
            sections.append(Section([_moved_table(sheet, (moved[0].a, moved[0].b), moved)]))
    return sections


def _leader(sheet: ComparisonSheet) -> str:
    return sheet.runs[sorted_by_main(sheet.runs)[0]].name


def _reversed(moved: Moved) -> Moved:
    """Return a query that changed with its two runs exchanged."""
    changes = None
    if moved.changes is not None:
        changes = [
            replace(
                item,
                rank_a=item.rank_b,
                rank_b=item.rank_a,
                brought_a=item.brought_b,
                brought_b=item.brought_a,
            )
            for item in moved.changes
        ]
    return replace(
        moved,
        a=moved.b,
        b=moved.a,
        value_a=moved.value_b,
        value_b=moved.value_a,
        difference=0.0 - moved.difference,
        changes=changes,
    )


def _moved_table(sheet: ComparisonSheet, pair: Pair, moved: Sequence[Moved]) -> Table:
    a, b = pair
    has_texts = any(query.text for query in moved)
    columns = [
        Column("query", "left"),
        *([Column("text", "left", is_flexible=True)] if has_texts else []),
        Column(a),
        Column(b),
        Column("difference"),
        Column("moved items (rank)", "left", priority=2, is_flexible=True),
    ]
    rows = []
    for query in moved:
        is_better = measure_named(query.measure).is_better(query.difference, 0.0)
        tone: Tone = "good" if is_better else "bad"
        rows.append(
            [
                Cell(query.query_id),
                *([Cell(query.text or "")] if has_texts else []),
                Cell(format_value(query.value_a, query.measure)),
                Cell(format_value(query.value_b, query.measure)),
                Cell(format_difference(query.difference, query.measure), tone=tone),
                Cell(format_changes(query)),
            ]
        )
    measure = sheet.label(moved[0].measure)
    return Table(columns, rows, f"largest changes of {measure}, {a} → {b}")


def format_changes(moved: Moved) -> str:
    """Return which items made most of a difference, and how their ranks changed."""
    changes = moved.changes or []
    words = [
        f"{item.item} {_rank(item.rank_a)}→{_rank(item.rank_b)}"
        for item in changes[:_CHANGES_SHOWN]
    ]
    more = len(changes) - _CHANGES_SHOWN
    return ", ".join(words) + (f" and {more:,} more" if more > 0 else "")


def _rank(rank: int | None) -> str:
    return DASH if rank is None else str(rank)


def _rows_of(frame: pl.DataFrame, pair: Pair) -> list[Row]:
    return frame.filter(pl.col("a") == pair[0], pl.col("b") == pair[1]).to_dicts()


def method_notes(sheet: ComparisonSheet, *, direction: bool = True) -> list[str]:
    """Return how p-values and intervals were computed, and what is subtracted from what."""
    comparison = sheet.comparison
    n = count_tests(sheet.pairs)
    queries = format_counts(sheet.pairs["n"])
    noun = "query" if queries == "1" else "queries"
    sentence = f"p: two-sided {TESTS[comparison.test]}{_draws(sheet)} over {queries} {noun}"
    if _is_clustered(sheet):
        sentence += f" in {format_counts(sheet.pairs['clusters'])} clusters"
    if n > 1 and comparison.correction == "none":
        sentence += f", not corrected for {n:,} pairs"
    elif n > 1:
        sentence += f", corrected by {corrections.TITLES[comparison.correction]} over {n:,} pairs"
        if comparison.correction == "tukey":
            sentence += f" ({corrections.tukey_draws(_most_queries(sheet)):,} random draws)"
        sentence += ", separately for each measure; intervals are not corrected"
    details = [sentence, *_group_correction(sheet)]
    if direction:
        details += _direction(sheet)
    details += _interval_methods(sheet)
    if sheet.wide:
        details.append("p alone: before correction for several pairs")
        details.append("dz: mean difference divided by its standard deviation over queries")
        details.append(f"MDE: smallest difference that could have been detected ({_POWER})")
    return details


def _most_queries(sheet: ComparisonSheet) -> int:
    """Return the largest number of queries, or of clusters, of a pair."""
    column = "clusters" if "clusters" in sheet.pairs.columns else "n"
    counts: list[int] = sheet.pairs[column].to_list()
    return max(counts)


def _draws(sheet: ComparisonSheet) -> str:
    """Return how many random draws the test has; empty if it has none.

    The notes on intervals state the number of resamples of quantiles, which are tested with them.
    """
    if sheet.comparison.test != "randomization":
        return ""
    draws = sheet.pairs.filter(pl.col("method") != "percentile")["draws"].drop_nulls()
    if draws.is_empty():
        return ""
    fewer = ""
    if _has_fewer_draws(sheet):
        fewer = f"; {paired_tests.DRAWS:,} up to {paired_tests.MANY_QUERIES:,} queries"
    return f" ({format_counts(draws)} random draws{fewer})"


def _has_fewer_draws(sheet: ComparisonSheet) -> bool:
    """Return whether a sign-flip test has fewer draws because there are many queries."""
    flips = sheet.pairs.filter(pl.col("method") == "flips")["draws"].drop_nulls()
    return bool((flips < paired_tests.DRAWS).any())


def _group_correction(sheet: ComparisonSheet) -> list[str]:
    """Return over how many tests the p-values of groups were corrected."""
    if sheet.groups is None or count_tests(sheet.groups) < 2:
        return []
    n = count_tests(sheet.groups)
    if sheet.comparison.correction == "none":
        return [f"p of groups: not corrected for {n:,} pairs and groups"]
    title = corrections.TITLES[sheet.comparison.correction]
    return [f"p of groups: corrected by {title} over {n:,} pairs and groups"]


def _direction(sheet: ComparisonSheet) -> list[str]:
    """Return what is subtracted from what, and whose wins are counted."""
    if len(sheet.names) == 1:
        a, b = sheet.names[0]
        return [
            f"difference: {b} − {a}",
            f"W/T/L: queries on which {b} is better, equal, worse",
        ]
    return ["W/T/L: queries on which the run before the minus sign is better, equal, worse"]


def _interval_methods(sheet: ComparisonSheet) -> list[str]:
    of_values = interval_methods(sheet.runs)
    out = list(of_values) if len(sheet.runs) > 2 else []
    measures_of: dict[tuple[str, ...], list[str]] = {}
    for measure in sheet.measures:
        used = sheet.pairs.filter(_HAS_INTERVAL, measure=measure)["method"].drop_nulls()
        if methods := tuple(used.unique(maintain_order=True)):
            measures_of.setdefault(methods, []).append(sheet.label(measure))
    for methods, measures in measures_of.items():
        words = ", ".join(_method(sheet, sheet.pairs, method) for method in methods)
        scope = "" if len(measures_of) == 1 else f" in {', '.join(measures)}"
        if scope or out != [f"95% intervals: {words}"]:
            out.append(f"intervals of differences{scope}: {words}")
    if others := _group_methods(sheet):
        out.append(f"intervals of differences of some groups: {', '.join(others)}")
    if sheet.comparison.test == "wilcoxon":
        out.append(
            "the Wilcoxon test has no interval of the mean: that of the sign-flip test is shown"
        )
    return out


def _group_methods(sheet: ComparisonSheet) -> list[str]:
    """Return the interval methods of groups that no pair of the same measure has."""
    if sheet.groups is None:
        return []
    keys = ["measure", "method"]
    of_pairs = set(sheet.pairs.filter(_HAS_INTERVAL).select(keys).iter_rows())
    of_groups = sheet.groups.filter(_HAS_INTERVAL).select(keys).iter_rows()
    used = dict.fromkeys(key[1] for key in of_groups if key not in of_pairs)
    return [_method(sheet, sheet.groups, method) for method in used]


def _method(sheet: ComparisonSheet, frame: pl.DataFrame, method: str) -> str:
    resamples = frame.filter(method=method)["draws"].min()
    clustered = _is_clustered(sheet)
    if not isinstance(resamples, int):
        return describe_method(method, clustered=clustered)
    return describe_method(method, clustered=clustered, resamples=resamples)


def _is_clustered(sheet: ComparisonSheet) -> bool:
    return sheet.runs[0].scores.cluster is not None
