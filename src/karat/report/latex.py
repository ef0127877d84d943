"""A comparison as a LaTeX table: runs as rows, measures as columns, with marks of significance."""

from __future__ import annotations

from string import ascii_letters

from karat.errors import printable
from karat.report.comparison import ComparisonSheet, tests
from karat.report.comparison_tables import TESTS
from karat.report.marks import best, letter, real
from karat.report.tables import label, number
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


def latex(sheet: ComparisonSheet) -> str:
    """Return a table for a paper; it needs the package booktabs."""
    measures = sheet.measures
    letters = {run.name: letter(at) for at, run in enumerate(sheet.runs)}
    values = {
        run.name: dict(run.summary.select("measure", "value").iter_rows()) for run in sheet.runs
    }
    leading = {name: best(name, [own[name] for own in values.values()]) for name in measures}
    marks = _marks(sheet, letters)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_caption(sheet)}}}",
        f"\\begin{{tabular}}{{l{'l' * len(measures)}}}",
        "\\toprule",
        " & ".join(["run", *(escape(label(measure)) for measure in measures)]) + r" \\",
        "\\midrule",
    ]
    for name, own in values.items():
        cells = []
        for measure in measures:
            shown = escape(number(own[measure], measure))
            if own[measure] is not None and own[measure] == leading[measure]:
                shown = f"\\textbf{{{shown}}}"
            mark = marks.get((name, measure), "")
            cells.append(shown + (f"$^{{{mark}}}$" if mark else ""))
        named = escape(name)
        if sheet.choices.baseline is None:
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
    baseline = sheet.choices.baseline
    if baseline is not None:
        return {
            (loser, measure) if winner == baseline else (winner, measure): (
                r"\ddagger" if winner == baseline else r"\dagger"
            )
            for winner, loser, measure in real(sheet)
        }
    beaten: dict[tuple[str, str], set[str]] = {}
    for winner, loser, measure in real(sheet):
        beaten.setdefault((winner, measure), set()).add(loser)
    joint = "," if len(letters) > len(ascii_letters) else ""  # aa is not a twice
    return {
        key: joint.join(letters[name] for name in letters if name in others)
        for key, others in beaten.items()
    }


def _caption(sheet: ComparisonSheet) -> str:
    choices, n = sheet.choices, tests(sheet.pairs)
    how = TESTS[choices.test]
    if n > 1 and choices.correction != "none":
        how += f", corrected by {corrections.TITLES[choices.correction]} over {n} pairs"
        how += ", each measure by itself"
    if choices.baseline is None:
        said = "Letters mark the runs that a value is significantly better than"
    else:
        name = escape(choices.baseline)
        said = f"$\\dagger$ and $\\ddagger$ mark values significantly better and worse than {name}"
    return f"{said} ({escape(how)}; $\\alpha = {ALPHA}$). Best values are bold."


def escape(text: str) -> str:
    """Return a text as LaTeX sets it letter by letter."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
