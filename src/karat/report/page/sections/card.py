"""The card: verdict and plot as one picture, to be pasted into a chat or a document."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from karat.files import writing
from karat.report.page.model import Page
from karat.report.page.sections.headline import (
    Pill,
    as_sentence,
    page_date,
    page_facts,
    page_headline,
    page_pill,
)
from karat.report.page.sections.interval_plot import Plot, draw_plot
from karat.report.page.sections.text_width import fitted, text_width, wrapped
from karat.report.page.templates import render
from karat.version import __version__

_WIDTH, _LEAST_HEIGHT, _MARGIN = 1200.0, 630.0, 64.0
_TITLE, _PILL, _SENTENCE, _FOOT = 44.0, 24.0, 27.0, 20.0
_PLOT, _PLOT_OF_FEW = 23.0, 28.0
"""Font sizes; a plot of few runs is larger, so that it fills the card."""
_FEW = 3
_PIXELS_PER_UNIT = 2
_COLOUR = re.compile(r"var\((--[\w-]+)\)")
_DECLARATION = re.compile(r"(--[\w-]+):\s*([^;]+);")
_TONES = {"good": "better", "caution": "caution", "bad": "worse", "neutral": "muted"}


@dataclass(frozen=True)
class Line:
    """A line of text."""

    y: float
    text: str


@dataclass(frozen=True)
class Card:
    """The texts of the card and their places."""

    height: float
    title: list[Line]
    pill: Pill | None
    pill_y: float
    pill_width: float
    tone: str
    """The CSS variable of the colour of the pill, without its dashes."""
    sentence: list[Line]
    plot: Plot
    plot_y: float
    foot: Line
    width: float = _WIDTH
    margin: float = _MARGIN
    title_size: float = _TITLE
    pill_size: float = _PILL
    sentence_size: float = _SENTENCE
    foot_size: float = _FOOT


def page_card(page: Page) -> Card:
    """Return the card of a page."""
    headline, inner = page_headline(page), _WIDTH - 2 * _MARGIN
    pill = page_pill(headline)
    title = _lines(page.title, _MARGIN - 0.2 * _TITLE, 1.05 * _TITLE, most=2)
    pill_y = y = title[-1].y + 1.2 * _PILL
    if pill is not None:
        y += 2.1 * _PILL
    sentence = _lines(as_sentence(page, headline), y, _SENTENCE, most=4)
    size = _PLOT_OF_FEW if len(page.sheets) <= _FEW else _PLOT
    plot = draw_plot(page, width=inner, size=size)
    plot_y = sentence[-1].y + 1.7 * size
    height = max(_LEAST_HEIGHT, plot_y + plot.height + 2.2 * _FOOT + _MARGIN / 2)
    facts = [*page_facts(page), page_date(page), f"karat {__version__}"]
    return Card(
        height=round(height),
        title=title,
        pill=pill,
        pill_y=round(pill_y, 2),
        pill_width=0.0 if pill is None else round(text_width(pill.text, _PILL) + 2.8 * _PILL),
        tone="line-strong" if pill is None else _TONES[pill.tone],
        sentence=sentence,
        plot=plot,
        plot_y=round(plot_y, 2),
        foot=Line(round(height) - _MARGIN / 2, fitted(" · ".join(facts), inner, _FOOT)),
    )


def _lines(text: str, top: float, size: float, most: int) -> list[Line]:
    """Return a text as lines that start below a height."""
    texts = wrapped(text, _WIDTH - 2 * _MARGIN, size, most)
    return [Line(round(top + 1.35 * size * at, 2), line) for at, line in enumerate(texts, 1)]


def write_card(page: Page, path: str | os.PathLike[str]) -> None:
    """Write the card as .svg or .png, in light colours."""
    svg = card_svg(page)
    content = svg.encode()
    if Path(path).suffix.lower() == ".png":
        import vl_convert

        content = vl_convert.svg_to_png(svg, scale=_PIXELS_PER_UNIT)
    with writing(path) as file:
        file.write(content)


def card_svg(page: Page) -> str:
    """Return the card as an SVG document whose colours are literal."""
    markup = render("card.svg", card=page_card(page))
    return _COLOUR.sub(lambda variable: _light_colours()[variable[1]], markup)


@cache
def _light_colours() -> dict[str, str]:
    """Return the colours of the light theme, by the names of their CSS variables."""
    css = files("karat.report.page").joinpath("static", "theme.css").read_text(encoding="utf-8")
    return dict(_DECLARATION.findall(css[: css.index("}")]))
