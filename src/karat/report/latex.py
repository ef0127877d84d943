"""Scores and comparisons as LaTeX tables: runs as rows, measures as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_letters
from types import MappingProxyType

from karat.errors import printable
from karat.evaluation.comparison import tests
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
    """Return a comparison as a table for a paper, with marks of significance."""
    letters = {run.name: run_letter(at) for at, run in enumerate(sheet.runs)}
    marks = _marks(sheet, letters)
    values = {
        (run.name, row["measure"]): format_value(row["value"], row["measure"])
        for run in sheet.runs
        for row in run.summary.iter_rows(named=True)
    }
    named = letters if sheet.comparison.baseline is None else {}
    return _table(sheet.runs, _caption(sheet), values, named, marks)


def scores_latex(sheets: Sequence[Sheet]) -> str:
    """Return scores as a table for a paper, with intervals; remarks stand in comments."""
    values = {
        (sheet.name, row["measure"]): format_with_interval(row)
        for sheet in sheets
        for row in sheet.summary.iter_rows(named=True)
    }
    said = [*interval_methods(sheets), *(["Best values are bold"] if len(sheets) > 1 else [])]
    caption = ". ".join(map(escape, said))
    beside = [*remarks(sheets), *scoring_notes(sheets[0].scores)]
    comments = "".join(f"% {printable(remark)}\n" for remark in beside)
    return comments + _table(sheets, caption, values)


def _table(
    sheets: Sequence[Sheet],
    caption: str,
    values: Mapping[tuple[str, str], str],
    letters: Mapping[str, str] = MappingProxyType({}),
    marks: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> str:
    """Return a table of values by run and measure, the best bold; it needs the package booktabs."""
    rows = {sheet.name: list(sheet.summary.iter_rows(named=True)) for sheet in sheets}
    leaders = [
        measure_named(same[0]["measure"]).best([row["value"] for row in same])
        for same in zip(*rows.values(), strict=True)
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
    for name, own in rows.items():
        cells = []
        for row, leader in zip(own, leaders, strict=True):
            place = name, row["measure"]
            value, *interval = map(escape, values[place].split(maxsplit=1))
            if len(rows) > 1 and leader is not None and row["value"] == leader:
                value = f"\\textbf{{{value}}}"
            value += f"$^{{{marks[place]}}}$" if place in marks else ""
            cells.append(" ".join([value, *interval]))
        named = escape(name)
        if name in letters:
            named = f"$^{{{letters[name]}}}$ {named}"
        elif named.startswith(("[", "*")):  # which would be taken for an option of \\ above it
            named = f"{{}}{named}"
        lines.append(" & ".join([named, *cells]) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def _marks(sheet: ComparisonSheet, letters: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return what stands behind a value: the runs it is shown to be better than.

    With a baseline, a dagger says better than it, and a double dagger worse.
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
    joint = "," if len(letters) > len(ascii_letters) else ""  # aa is not a twice
    for key, others in beaten.items():
        marks[key] = joint.join(letters[name] for name in letters if name in others)
    return marks


def _caption(sheet: ComparisonSheet) -> str:
    comparison, n = sheet.comparison, tests(sheet.pairs)
    how = TEST_TITLES[comparison.test]
    if n > 1 and comparison.correction != "none":
        how += f", corrected by {corrections.TITLES[comparison.correction]} over {n} pairs"
        how += ", each measure by itself"
    if comparison.baseline is None:
        said = "Letters mark the runs that a value is significantly better than"
    else:
        name = escape(comparison.baseline)
        said = f"$\\dagger$ and $\\ddagger$ mark values significantly better and worse than {name}"
    return f"{said} ({escape(how)}; $\\alpha = {ALPHA}$). Best values are bold"


def escape(text: str) -> str:
    """Return a text as LaTeX sets it letter by letter."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
