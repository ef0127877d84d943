"""Comparisons in files; the ending says how they are written."""

from __future__ import annotations

from typing import IO

from karat.report.comparison import ComparisonSheet, comparison_document
from karat.report.comparison_text import markdown
from karat.report.document import encoded
from karat.report.endings import Endings
from karat.report.latex import latex


def _write_csv(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write a row a pair and measure, or a row for each group of these where groups are asked."""
    (sheet.pairs if sheet.groups is None else sheet.groups).write_csv(file)


_ENDINGS: Endings[ComparisonSheet] = Endings(
    "a comparison",
    {
        ".json": lambda sheet, file: file.write(encoded(comparison_document(sheet)) + b"\n"),
        ".csv": _write_csv,
        ".md": lambda sheet, file: file.write(markdown(sheet).encode()),
        ".tex": lambda sheet, file: file.write(latex(sheet).encode()),
    },
)
write, check = _ENDINGS.write, _ENDINGS.check
