"""A validation: what was found wrong with gold and what belongs to it, and how it is shown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

import polars as pl

from karat.errors import counted, printable
from karat.report.terminal import WIDTH, plain_lines, short
from karat.version import __version__

_ID_WIDTH = 32

# Every kind of finding, in the order in which they are shown: how bad it is and what it means.
KINDS = {
    "duplicate-query": ("error", "a query stands on more than one line"),
    "negative": ("error", "a span begins before its document does"),
    "inverted": ("error", "a span ends before it begins"),
    "too-far": ("error", "a span ends further than any document goes"),
    "systematic-offsets": ("error", "all offsets of gold seem to be counted in another way"),
    "past-end": ("error", "a place reaches past the end of its document"),
    "inside-character": ("error", "a place begins or ends inside a character"),
    "unknown-document": ("error", "a place is in a document that there is not"),
    "text-mismatch": ("error", "the text is not what stands in that place"),
    "unknown-item": ("error", "no document, chunk or result has this relevant id"),
    "no-item-retrieved": ("error", "not one relevant id stands in any run"),
    "no-document-retrieved": ("error", "not one document of gold stands in any run"),
    "no-shared-query": ("error", "gold and the run have no query in common"),
    "zero-length": ("warning", "a span holds no characters, and so counts nothing"),
    "blank": ("warning", "a span holds nothing but white space"),
    "overlap": ("warning", "a span overlaps another of the same query; characters count once"),
    "no-gold": ("warning", "nothing is known that should be found for a query"),
    "nothing-relevant": ("warning", "every judgment of a query has a grade of 0 or below"),
    "judged-twice": ("warning", "an item is judged more than once; the highest grade counts"),
    "empty-evidence": ("warning", "a piece of evidence holds no text"),
    "duplicate-evidence": ("warning", "a piece of evidence stands more than once in its query"),
    "item-not-retrieved": ("warning", "a relevant id stands in no run"),
    "document-not-retrieved": ("warning", "a document of gold stands in no run"),
    "missing-query": ("warning", "a query of gold is not in the run"),
    "unknown-query": ("warning", "a query of the run is not in gold"),
}


@dataclass(frozen=True)
class Example:
    """One place where something is wrong."""

    problem: str
    hint: str | None = None
    path: str | None = None
    line: int | None = None
    query_id: str | None = None
    item_id: str | None = None
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, as plain data."""
        held = {part.name: getattr(self, part.name) for part in fields_of(self)}
        return {name: value for name, value in held.items() if value is not None}

    def __str__(self) -> str:
        words = [
            f"{word} {short(name, _ID_WIDTH)}"
            for word, name in (
                ("query", self.query_id),
                ("item", self.item_id),
                ("document", self.doc_id),
            )
            if name is not None
        ]
        if self.start is not None:
            words.append(f"[{self.start}, {self.end})")
        file = None if self.line is None else f"{printable(self.path or 'line')}:{self.line}"
        return ": ".join(part for part in (file, ", ".join(words), printable(self.problem)) if part)


@dataclass(frozen=True)
class Finding:
    """One kind of thing that is wrong, how often, and where for instance."""

    kind: str
    source: str
    """What it was found in: gold, chunks or `run NAME`."""
    count: int
    examples: tuple[Example, ...]
    hint: str | None = None

    @property
    def severity(self) -> str:
        """`error`: numbers would be wrong or refused; `warning`: they may not mean what they seem.

        A validation with errors is not ok.
        """
        return KINDS[self.kind][0]

    @property
    def meaning(self) -> str:
        """What the kind says, in a sentence."""
        return KINDS[self.kind][1]

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        told: dict[str, Any] = {
            "severity": self.severity,
            "kind": self.kind,
            "source": self.source,
            "count": self.count,
            "examples": [example.as_dict() for example in self.examples],
        }
        return told | ({"hint": self.hint} if self.hint else {})


@dataclass(frozen=True)
class Validation:
    """All findings, errors first, and how much was checked."""

    findings: tuple[Finding, ...]
    checked: dict[str, int]
    recognised: dict[str, dict[str, str]] = field(default_factory=dict)
    """For gold and each run, which column or key was read as what: {ours: theirs}."""
    fields: tuple[str, ...] = ()
    """What else gold knows of its queries."""

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.count("error")

    def count(self, severity: str) -> int:
        """Return how many errors or warnings there are over all findings."""
        return sum(found.count for found in self.findings if found.severity == severity)

    @property
    def frame(self) -> pl.DataFrame:
        """A row a finding: severity, kind, source, count, meaning."""
        names = ("severity", "kind", "source", "count", "meaning")
        rows = [[getattr(found, name) for name in names] for found in self.findings]
        kinds = {name: pl.Int64 if name == "count" else pl.String for name in names}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat validate --json` prints."""
        return {
            "karat": __version__,
            "ok": self.ok,
            "checked": self.checked,
            "recognised": self.recognised,
            "fields": list(self.fields),
            "findings": [found.as_dict() for found in self.findings],
        }

    @property
    def verdict(self) -> str:
        """Everything in one line."""
        found = [
            counted(self.count(word), word) for word in ("error", "warning") if self.count(word)
        ]
        documents = self.checked.get("documents")
        against = "" if documents is None else f" against {counted(documents, 'document')}"
        parts = [counted(n, noun) for noun, n in self._nouns() if n] or ["0 queries"]
        return f"{', '.join(found) or 'no findings'}: {', '.join(parts)} checked{against}"

    def _nouns(self) -> Iterator[tuple[str, int]]:
        """Yield the word for one of each thing that was checked, and how many there were."""
        yield "query", self.checked["queries"]
        for name, noun in (
            ("judgments", "judgment"),
            ("spans", "span"),
            ("evidence", "evidence text"),
            ("chunks", "chunk"),
            ("results", "result"),
        ):
            yield noun, self.checked.get(name, 0)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.findings:
            rows = [
                [found.severity, found.kind, short(found.source, _ID_WIDTH), f"{found.count:,}"]
                for found in self.findings
            ]
            yield from plain_lines(["", "finding", "in", "count"], rows, 3)
            yield ""
        for found in self.findings:
            where = "" if found.source == "gold" else f" in {short(found.source, _ID_WIDTH)}"
            yield from _wrapped(f"{found.kind}{where}: {found.meaning}", "")
            for example in found.examples:
                yield from _wrapped(str(example), "  ")
                if example.hint:
                    yield from _wrapped(f"hint: {printable(example.hint)}", "    ")
            if found.examples and (more := found.count - len(found.examples)):
                yield f"  and {more:,} more"
            if found.hint:
                yield from _wrapped(f"hint: {printable(found.hint)}", "  ")
            yield ""
        for source, names in self.recognised.items():
            if all(ours == theirs for ours, theirs in names.items()):
                continue
            yield from _wrapped(printable(_read_as(source, names, self.fields)), "")
        yield from _wrapped(self.verdict, "")


def _read_as(source: str, names: dict[str, str], fields: tuple[str, ...]) -> str:
    pairs = (ours if ours == theirs else f"{ours} from {theirs}" for ours, theirs in names.items())
    also = f"; fields: {', '.join(fields)}" if fields and source == "gold" else ""
    return f"read {short(source, _ID_WIDTH)}: {', '.join(pairs)}{also}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
