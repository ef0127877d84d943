"""The document of an explanation: what a measure means, and how its value is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from karat.conventions import HELP, Conventions
from karat.evaluation.calculation import MOST_ROWS, TOP, Calculation, changes
from karat.evaluation.explanation import Explanation
from karat.evaluation.list_rows import Row
from karat.format import amount
from karat.measures import Measure
from karat.measures.registry import UNITS, format_value
from karat.report.cells import DASH
from karat.report.document_model import (
    Block,
    Cell,
    Column,
    Document,
    FieldList,
    Headline,
    Notes,
    Section,
    Table,
    TextLines,
)

_SMALL = 0.001
_TINY = 1e-9
_TEXTS = ("item", "evidence text", "match", "stage", "model")
"""The columns with texts; the others contain numbers."""


def explanation_document(explanation: Explanation) -> Document:
    """Return the meaning of a measure with an example, or its calculation for one query."""
    measure = explanation.measure
    sections: list[Section] = []
    if explanation.query is None:
        headline = f"{measure}: {measure.declaration.title}"
        fields = [*_meaning(measure, explanation.conventions)]
        if explanation.matching:
            fields.append(("Covered", explanation.matching))
        sections.append(Section([FieldList(fields)]))
    else:
        headline = _values(explanation)
        sections.append(Section([FieldList([*_facts(explanation)])]))
    if len(explanation.calculations) == 2:
        first, second = explanation.calculations
        sections += _side_by_side(measure, first, second)
    else:
        heading = "Example" if explanation.query is None else explanation.calculations[0].run
        sections += _calculation(measure, explanation.calculations[0], heading)
    return Document(f"{measure}", Headline(headline), sections)


def _values(explanation: Explanation) -> str:
    """Return the value of each run, and their difference."""
    query = f"query {explanation.query}"
    if len(explanation.calculations) == 1:
        return f"{explanation.measure} of {query} = {_number(explanation.calculations[0].value)}"
    first, second = explanation.calculations
    names = _distinct(first.run, second.run)
    values = f"{names[0]} {_number(first.value)}, {names[1]} {_number(second.value)}"
    if explanation.difference is None:
        return f"{explanation.measure} of {query}: {values}"
    return (
        f"{explanation.measure} of {query}: {values} (difference {_signed(explanation.difference)})"
    )


def _facts(explanation: Explanation) -> Iterator[tuple[str, str]]:
    declaration = explanation.measure.declaration
    if explanation.text is not None:
        yield "Query", explanation.text
    yield "Measure", declaration.title
    yield "Formula", declaration.formula
    if departures := explanation.conventions.departures():
        yield "Conventions", ", ".join(f"{name}={word}" for name, word in departures.items())
    if explanation.level != "item":
        yield "Level", explanation.level
    if explanation.matching:
        yield "Covered", explanation.matching


def _meaning(measure: Measure, conventions: Conventions) -> Iterator[tuple[str, str]]:
    declaration = measure.declaration
    yield "Formula", declaration.formula
    for param in declaration.params:
        value = measure.params[param.name]
        name = param.name if value is None else f"{param.name}={format_value(value)}"
        yield "Parameter", f"{name}: {param.help}"
    cutoffs = {
        "none": "none: the whole list counts" if declaration.reads_gold else "none",
        "optional": "@k cuts the list at rank k; without it the whole list counts",
        "budget": "@k cuts the list at rank k, @2000c after 2000 characters (the item that crosses "
        "the limit is cut there); without it the whole list counts",
        "share": "@r is a point of recall from 0 to 1",
    }
    yield "Cutoff", cutoffs[declaration.cutoff]
    better = "higher" if declaration.higher_is_better else "lower"
    unit = f"; in {declaration.unit}" if declaration.unit else ""
    yield "Over queries", f"{declaration.combine}; {better} is better{unit}"
    yield "Edge cases", declaration.edges
    yield "Other tools", declaration.differs
    for publication in declaration.cites:
        yield "Defined in", publication
    if declaration.aliases:
        yield "Also called", ", ".join(declaration.aliases)
    for name, word in _conventions(measure, conventions).items():
        yield "Convention", f"{name}={word}: {HELP[name]}"


def _conventions(measure: Measure, conventions: Conventions) -> dict[str, str]:
    """Return the conventions that matter for a measure."""
    declaration = measure.declaration
    words = conventions.as_dict()
    if not declaration.no_gold:
        del words["no_gold"]
    if not declaration.reads.is_graded:
        del words["unjudged"]
    if not declaration.reads.is_graded and not declaration.counts_repeats:
        del words["duplicates"]
    if not declaration.reads_gold:  # a query that is not in the run has no latency in any case
        del words["missing"]
    return words


def _calculation(measure: Measure, calculation: Calculation, heading: str) -> list[Section]:
    rows = calculation.picked
    blocks: list[Block] = []
    if rows:
        notes = []
        if len(rows) < len(calculation.rows):
            notes.append(
                f"{len(rows):,} of {len(calculation.rows):,} ranks shown: the first {TOP}, and "
                "those below that count"
            )
        blocks.append(_table(rows, notes=notes))
    else:
        blocks.append(Notes([measure.declaration.reads.empty]))
    blocks += _missed(calculation)
    blocks += _matched(calculation)
    if calculation.ideal:
        more = len(calculation.ideal) - TOP
        notes = [f"and {more:,} more"] if more > 0 else []
        blocks.append(_table(calculation.ideal[:TOP], title="Ideal list", notes=notes))
    lines = [f"{name} = {_number(value)}" for name, value in calculation.numbers.items()]
    blocks.append(
        TextLines([*lines, *calculation.remarks, f"{measure} = {_number(calculation.value)}"])
    )
    return [Section(blocks, heading)]


def _side_by_side(measure: Measure, first: Calculation, second: Calculation) -> list[Section]:
    a, b = _distinct(first.run, second.run)
    sections = []
    if measure.declaration.reads_gold:
        sections.append(Section(_items(measure, first, second, a, b)))
    else:
        for name, calculation in ((a, first), (b, second)):
            rows = calculation.picked
            block: Block = _table(rows) if rows else Notes([measure.declaration.reads.empty])
            sections.append(Section([block], name))
    for name, calculation in ((a, first), (b, second)):
        blocks = [*_missed(calculation), *_matched(calculation)]
        if blocks:
            sections.append(Section(blocks, name))
    cells = [
        [
            Cell(name),
            Cell(_number(first.numbers.get(name))),
            Cell(_number(second.numbers.get(name))),
        ]
        for name in dict.fromkeys([*first.numbers, *second.numbers])
    ]
    cells.append([Cell(str(measure)), Cell(_number(first.value)), Cell(_number(second.value))])
    columns = [Column("", "left"), Column(a), Column(b)]
    sections.append(Section([Table(columns, cells)]))
    remarks = [f"{n}: {r}" for n, c in ((a, first), (b, second)) for r in c.remarks]
    if remarks:
        sections.append(Section([Notes(remarks)]))
    return sections


def _distinct(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a != b else (f"{a} (1)", f"{b} (2)")


def _items(
    measure: Measure, first: Calculation, second: Calculation, a: str, b: str
) -> list[Block]:
    """Return what each item adds to the value in each list, the largest difference first."""
    items = changes(first, second)
    if not items:
        return [Notes(["no single item counts"])]
    names = first.columns or second.columns
    adds = names[-1] if names else "contribution"
    columns = [
        Column("item", "left"),
        Column("grade"),
        Column(f"{a} rank"),
        Column(f"{b} rank"),
        Column(a),
        Column(b),
        Column("difference"),
    ]
    # Relevant items below the cutoff have a rank, too; it would be wrong to show them as absent.
    below_a, below_b = (
        {row["item"]: row["rank"] for row in calculation.missed} for calculation in (first, second)
    )
    rows = []
    for item in items[:MOST_ROWS]:
        rank_a, rank_b = (
            item.rank_a or below_a.get(item.item),
            item.rank_b or below_b.get(item.item),
        )
        plain = (item.grade, rank_a, rank_b, item.brought_a, item.brought_b)
        shown = [Cell(_shown(value)) for value in plain]
        rows.append([Cell(item.item), *shown, Cell(_signed(item.difference))])
    more = len(items) - MOST_ROWS
    notes = [f"and {more:,} more"] if more > 0 else []
    if isinstance(cutoff := measure.cutoff, int) and any(
        cell.text == DASH for row in rows for cell in row[2:4]
    ):
        notes.append(f"rank {DASH}: not among the first {cutoff}; relevant items: not in the list")
    return [Table(columns, rows, f"{adds} of each item", notes)]


def _missed(calculation: Calculation) -> list[Block]:
    """Return what should have been found: what is further down the list, then the rest by grade."""
    if not calculation.missed:
        return []
    in_list = sorted(
        (row for row in calculation.missed if row["rank"] is not None), key=lambda row: row["rank"]
    )
    rows = [*in_list, *(row for row in calculation.missed if row["rank"] is None)][:TOP]
    more = len(calculation.missed) - len(rows)
    columns = [Column("relevant, but not counted", "left"), Column("grade"), Column("rank")]
    cells = [
        [
            Cell(row["item"]),
            Cell(str(row["grade"])),
            Cell("not in the list" if row["rank"] is None else str(row["rank"])),
        ]
        for row in rows
    ]
    return [Table(columns, cells, notes=[f"and {more:,} more"] if more else [])]


def _matched(calculation: Calculation) -> list[Block]:
    """Return what covers each evidence text, or the most similar chunk if none does."""
    if not calculation.matches:
        return []
    rows = [
        {
            "evidence text": " ".join(match["evidence"].split()),
            "rank": match["rank"],
            "match": match["how"],
            "ratio": match["ratio"],
            "nearest rank": match["nearest_rank"],
            "its similarity": match["nearest_indel"],
            "its ratio": match["nearest_ratio"],
        }
        for match in calculation.matches[:TOP]
    ]
    more = len(calculation.matches) - TOP
    return [_table(rows, title="Evidence", notes=[f"and {more:,} more"] if more > 0 else [])]


def _table(rows: Sequence[Row], *, title: str = "", notes: Sequence[str] = ()) -> Table:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = []
    for key in keys:
        is_text = key in _TEXTS or any(isinstance(row.get(key), str) for row in rows)
        columns.append(
            Column(key, "left" if is_text else "right", is_flexible=key == "evidence text")
        )
    cells = [[Cell(_shown(row.get(key), key)) for key in keys] for row in rows]
    return Table(columns, cells, title, notes)


def _shown(value: Any, key: str = "") -> str:
    if value is None:
        return DASH
    if isinstance(value, float):
        return amount(value) if key in UNITS else f"{value:.4f}"
    return str(value)


def _number(value: Any) -> str:
    """Format a value with four digits; all digits are in the JSON output."""
    if value is None:
        return "excluded"
    if not isinstance(value, float):
        return str(value)
    # With four decimals, a small cost would be rounded to 0 or to a different value.
    if 0 < value < _TINY:
        return f"{value:.2e}"
    return amount(value) if 0 < value < _SMALL else f"{value:.4f}"


def _signed(value: float) -> str:
    if not value:
        return "0.0000"
    return ("+" if value > 0 else "-") + _number(abs(value))
