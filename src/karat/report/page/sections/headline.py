"""The verdict of a page in a few words and in a sentence, and what the page is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from karat.errors import counted
from karat.report import conclusion
from karat.report.document_model import Headline, Tone
from karat.report.page.model import Page

_ICONS: dict[Tone, str] = {"good": "✓", "caution": "≈", "bad": "✗", "neutral": "–"}


@dataclass(frozen=True)
class Pill:
    """The verdict in a few words, coloured by its tone."""

    text: str
    tone: Tone

    @property
    def icon(self) -> str:
        """A sign with the same meaning as the colour."""
        return "!" if self.text == conclusion.UNEQUAL_LABEL else _ICONS[self.tone]


def page_pill(headline: Headline) -> Pill | None:
    """Return the verdict in a few words; None for one run without thresholds."""
    return Pill(headline.label, headline.tone) if headline.label else None


def page_headline(page: Page) -> Headline:
    """Return the verdict of the page; its label is empty for one run without thresholds."""
    if page.verdict is not None:
        passed = page.verdict.passed
        label = "gate passed" if passed else "gate failed"
        return Headline(page.verdict.summary, "good" if passed else "bad", label)
    if page.comparison is not None:
        return conclusion.comparison_conclusion(page.comparison)
    return conclusion.scores_conclusion(page.sheets)


def as_sentence(page: Page, headline: Headline) -> str:
    """Return the verdict as a sentence. Names of runs are not capitalised."""
    text = headline.text
    names = [sheet.name for sheet in page.sheets if sheet.name != "run"]  # "Run run leads"
    starts_with_name = any(text.startswith((f"{n} ", f"{n},", f"{n}:")) for n in names)
    if starts_with_name and not text[:1].isupper():
        several = headline.label == conclusion.TIE_LABEL
        text = f"{'Runs' if several else 'Run'} {text}"
    else:
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def page_facts(page: Page) -> list[str]:
    """Return what the title does not say: the numbers of queries and runs, the name of the gold."""
    scored_run = page.sheets[0].scores.scored_run
    gold = None if scored_run is None else scored_run.session.gold.name
    counts = [
        counted(page.sheets[0].scores.per_query.height, "query"),
        counted(len(page.sheets), "run"),
    ]
    facts = [fact for fact in counts if fact not in page.title]
    return facts if gold is None or gold in page.title else [*facts, f"gold: {gold}"]


def page_date(page: Page) -> str:
    """Return the day on which the page was made."""
    created = datetime.fromisoformat(page.created)
    return f"{created.day} {created:%B %Y}"
