"""Verdicts in files; the ending says how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat.format import to_json
from karat.report.endings import REPORT, Endings
from karat.report.verdict_junit import junit
from karat.report.verdict_text import markdown
from karat.version import __version__

if TYPE_CHECKING:
    from karat.report.verdict import Entry


def document(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return a report as plain data; `passed` is null where a gate could not be judged."""
    outcomes = [entry.passed for entry in entries]
    unknown = None in outcomes or not outcomes
    return {
        "karat": __version__,
        "passed": False if False in outcomes else None if unknown else True,
        "gates": [entry.as_dict() for entry in entries],
    }


_ENDINGS: Endings[Sequence[Entry]] = Endings(
    "a verdict",
    {
        ".xml": lambda entries, file: file.write(junit(entries)),
        ".md": lambda entries, file: file.write(markdown(entries).encode()),
        ".json": lambda entries, file: file.write(f"{to_json(document(entries))}\n".encode()),
    },
    hint=f"{REPORT}; .xml is JUnit",
)
write, check = _ENDINGS.write, _ENDINGS.check
