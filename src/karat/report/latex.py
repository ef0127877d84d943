"""Scores and comparisons as LaTeX tables: runs as rows, measures as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_letters
from types import MappingProxyType

from karat.errors import printable
from karat.evaluation.comparison import count_tests
from karat.evaluation.remarks import scoring_notes
from karat.report.comparison import ComparisonSheet, run_letter, significant_differences
from karat.report.comparison_tables import TEST_TITLES
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.report.tables import format_value, format_with_interval, measure_label, measure_named
from karat.stats import corrections
from karat.stats.power import ALPHA

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": "$-$",
}


def comparison_latex(sheet: ComparisonSheet) -> str:
    """Return a comparison as a table for a paper, with significance marks."""
    letters = {run.name: run_letter(at) for at, run in enumerate(sheet.runs)}
    marks = _marks(sheet, letters)
    values = {
        (run.name, row["measure"]): format_value(row["value"], row["measure"])
        for run in sheet.runs
        for row in run.summary.iter_rows(named=True)
    }
    shown_letters = letters if sheet.comparison.baseline is None else {}
    return _table(sheet.runs, _caption(sheet), values, shown_letters, marks)


def scores_latex(sheets: Sequence[Sheet]) -> str:
    """Return scores as a table for a paper, with intervals; remarks become comments."""
    values = {
        (sheet.name, row["measure"]): format_with_interval(row)
        for sheet in sheets
        for row in sheet.summary.iter_rows(named=True)
    }
    sentences = interval_methods(sheets)
    if len(sheets) > 1:
        sentences.append("Best values are bold")
    caption = ". ".join(map(escape, sentences))
    notes = [*remarks(sheets), *scoring_notes(sheets[0].scores)]
    comments = "".join(f"% {printable(note)}\n" for note in notes)
    return comments + _table(sheets, caption, values)


def _table(
    sheets: Sequence[Sheet],
    caption: str,
    values: Mapping[tuple[str, str], str],
    letters: Mapping[str, str] = MappingProxyType({}),
    marks: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> str:
    """Return a table of values by run and measure, best values bold; it needs booktabs."""
    rows = {sheet.name: list(sheet.summary.iter_rows(named=True)) for sheet in sheets}
    leaders = [
        measure_named(run_rows[0]["measure"]).best([row["value"] for row in run_rows])
        for run_rows in zip(*rows.values(), strict=True)
    ]
    measures = sheets[0].summary["measure"].to_list()
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        *([f"\\caption{{{caption}.}}"] if caption else []),
        f"\\begin{{tabular}}{{l{'l' * len(measures)}}}",
        "\\toprule",
        " & ".join(["run", *(escape(measure_label(measure, sheets[0])) for measure in measures)])
        + r" \\",
        "\\midrule",
    ]
    for name, measure_rows in rows.items():
        cells = []
        for row, leader in zip(measure_rows, leaders, strict=True):
            key = name, row["measure"]
            value, *interval = map(escape, values[key].split(maxsplit=1))
            if len(rows) > 1 and leader is not None and row["value"] == leader:
                value = f"\\textbf{{{value}}}"
            if key in marks:
                value += f"$^{{{marks[key]}}}$"
            cells.append(" ".join([value, *interval]))
        head = escape(name)
        if name in letters:
            head = f"$^{{{letters[name]}}}$ {head}"
        elif head.startswith(("[", "*")):  # LaTeX would read it as an argument of the \\ above
            head = f"{{}}{head}"
        lines.append(" & ".join([head, *cells]) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def _marks(sheet: ComparisonSheet, letters: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return the mark of each value: the letters of the runs it is significantly better than.

    With a baseline, a dagger means better than the baseline, and a double dagger worse.
    """
    marks: dict[tuple[str, str], str] = {}
    beaten: dict[tuple[str, str], set[str]] = {}
    baseline = sheet.comparison.baseline
    for winner, loser, measure in significant_differences(sheet):
        if baseline is None:
            beaten.setdefault((winner, measure), set()).add(loser)
        elif winner == baseline:
            marks[loser, measure] = r"\ddagger"
        else:
            marks[winner, measure] = r"\dagger"
    separator = "," if len(letters) > len(ascii_letters) else ""  # "aa" could be read as a, a
    for key, losers in beaten.items():
        marks[key] = separator.join(letters[name] for name in letters if name in losers)
    return marks


def _caption(sheet: ComparisonSheet) -> str:
    comparison, n = sheet.comparison, count_tests(sheet.pairs)
    test = f"{TEST_TITLES[comparison.test]} test"
    if n > 1 and comparison.correction != "none":
        test += f", {corrections.TITLES[comparison.correction]} correction over {n} pairs"
        test += ", separately for each measure"
    if comparison.baseline is None:
        marks = "Letters mark the runs that a value is significantly better than"
    else:
        name = escape(comparison.baseline)
        marks = f"$\\dagger$ and $\\ddagger$ mark values significantly better and worse than {name}"
    return f"{marks} ({escape(test)}; $\\alpha = {ALPHA}$). Best values are bold"


def escape(text: str) -> str:
    """Return a text with all special characters of LaTeX escaped."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
