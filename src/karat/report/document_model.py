"""The document model: what a result shows, whatever renders it.

Every result (scores, a comparison, a verdict, an explanation, …) becomes one `Document`. The
renderers in `report/renderers` turn a document into terminal output, Markdown, LaTeX or HTML.

A document states its answer first: the headline, then sections with tables and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["neutral", "good", "caution", "bad"]
"""How a headline or a cell is coloured: green, amber or red."""

Align = Literal["left", "right"]


@dataclass(frozen=True)
class Whisker:
    """An interval and the value inside it, on a scale that a chart of characters can draw."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    """The value as it is shown: formatted, not rounded again."""
    interval: str = ""
    """The confidence interval, such as `[0.61, 0.72]`."""
    mark: str = ""
    """What follows the value: letters of runs that it is significantly better than, ▲ or ▼."""
    tone: Tone = "neutral"
    is_best: bool = False
    """Whether this is the best value of its row or column."""
    drawing: Whisker | None = None
    """What a dot-and-whisker mark shows."""

    @property
    def full_text(self) -> str:
        """The value, its mark and its interval."""
        return " ".join(part for part in (self.text, self.mark, self.interval) if part)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: str
    align: Align = "right"
    priority: int = 0
    """Columns that do not fit are dropped, the highest priority number first; 0 always stays."""
    scale: tuple[float, float] | None = None
    """The ends of the scale, if the column is drawn as dot-and-whisker marks."""
    is_flexible: bool = False
    """Whether long texts of the column are cut at their end to fit a terminal."""


@dataclass(frozen=True)
class Table:
    """A table with typed cells."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    """The legend: what marks and abbreviations of this table mean."""
    n_labels: int = 1
    """How many columns at the left name a row."""
    may_omit_intervals: bool = False
    """Whether a terminal leaves intervals out if the table does not fit with them."""


@dataclass(frozen=True)
class FieldList:
    """Labels with texts, such as the formula and the parameters of a measure."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Notes:
    """Sentences below a table."""

    sentences: Sequence[str]
    is_detail: bool = False
    """Whether they can be folded away, such as how intervals were computed."""


@dataclass(frozen=True)
class TextLines:
    """Lines that are shown as they are, such as the steps of a calculation."""

    lines: Sequence[str]


Block = Table | FieldList | Notes | TextLines


@dataclass(frozen=True)
class Section:
    """Blocks under a heading; the first section of a document has none."""

    blocks: Sequence[Block]
    heading: str = ""


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence."""

    text: str
    tone: Tone = "neutral"
    label: str = ""
    """The answer in a few words, such as "too close to call"; empty if nothing was compared."""


@dataclass(frozen=True)
class Document:
    """What a result shows."""

    title: str
    headline: Headline | None = None
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()
    """What was left out, counted or assumed: shown wherever the numbers are shown."""
    details: Sequence[str] = ()
    """How numbers were computed, such as the method of the intervals."""
    label: str = field(default="", kw_only=True)
    """The label of a LaTeX table."""

    def tables(self) -> Iterator[Table]:
        """Yield the tables of all sections."""
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Table):
                    yield block
