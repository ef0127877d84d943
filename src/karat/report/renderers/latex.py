"""Documents as LaTeX tables for papers; they need the packages booktabs and siunitx."""

from __future__ import annotations

from collections.abc import Sequence

from karat.errors import printable
from karat.report.document_model import Cell, Document, Table

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
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "α": r"$\alpha$",
}


def latex(document: Document) -> str:
    """Return the tables of a document; its notes are comments, its title the caption."""
    comments = "".join(f"% {printable(note)}\n" for note in document.notes)
    return comments + "\n".join(
        _table(table, document.title, document.label) for table in document.tables()
    )


def _table(table: Table, title: str, label: str) -> str:
    columns = [at for at, column in enumerate(table.columns) if column.scale is None]
    alignment = "".join(table.columns[at].align[0] for at in columns)
    caption = ". ".join(part.rstrip(".") for part in (title or table.title, *table.notes) if part)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        *([f"\\caption{{{escape(caption)}.}}"] if caption else []),
        *([f"\\label{{{label}}}"] if label else []),
        f"\\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _line([escape(table.columns[at].head) for at in columns]),
        r"\midrule",
        *(_line([_cell(row[at]) for at in columns]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    first = cells[0]
    if first.startswith(("[", "*")):  # otherwise read as an option of the \\ above it
        first = f"{{}}{first}"
    return " & ".join([first, *cells[1:]]) + r" \\"


def _cell(cell: Cell) -> str:
    value = escape(cell.text)
    if cell.is_best:
        value = f"\\textbf{{{value}}}"
    if cell.mark:
        value += f"\\textsuperscript{{{escape(cell.mark)}}}"
    return f"{value} {escape(cell.interval)}" if cell.interval else value


def escape(text: str) -> str:
    """Return a text with the special characters of LaTeX escaped."""
    return "".join(_SPECIAL.get(character, character) for character in printable(text))
