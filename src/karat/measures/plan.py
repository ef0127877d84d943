"""What to compute, settled before any partition is scored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from karat.conventions import Conventions
from karat.data.chunks import Chunks
from karat.errors import InputError
from karat.match.texts import Matching
from karat.measures.declare import Measure
from karat.measures.families import EVIDENCE, FAMILIES, RANK, SPAN, FamilyName
from karat.measures.names import AnyMeasure, parse_all

DEFAULT_MEASURES = RANK.defaults
DEFAULT_SPAN_MEASURES = SPAN.defaults
DEFAULT_EVIDENCE_MEASURES = EVIDENCE.defaults
LEVELS = ("item", "doc")


@dataclass(frozen=True)
class Plan:
    """Measures, conventions, and what must be known of the whole gold.

    `level="doc"` scores documents: a list of chunks is cut to the first of each doc_id.
    `chunks` is the table of all that could be retrieved, for the measures that read it.
    `matching` says when a text covers an evidence, where that is not the default rule.
    `largest_grade` scales ERR, nERR and RBP(gain=linear); a part of gold cannot know it.
    """

    measures: tuple[Measure, ...]
    conventions: Conventions = field(default_factory=Conventions)
    level: str = "item"
    largest_grade: int | None = None
    chunks: Chunks | None = None
    matching: Matching | None = None

    @property
    def families(self) -> set[FamilyName]:
        """What the measures ask gold for."""
        return {measure.declaration.family for measure in self.measures}

    def of_family(self, family: FamilyName) -> list[Measure]:
        """Return the measures of one family, in the order asked."""
        return [measure for measure in self.measures if measure.declaration.family == family]

    @property
    def rule(self) -> str | None:
        """When a text covers an evidence, in words, where evidence is measured."""
        compares = any(FAMILIES[name].compares_texts for name in self.families)
        return str(self.matching or Matching()) if compares else None

    @property
    def compares_documents(self) -> bool:
        """Whether places in documents are compared, so that document ids must agree."""
        return any(FAMILIES[name].compares_documents for name in self.families)

    @classmethod
    def of(
        cls,
        measures: AnyMeasure | Iterable[AnyMeasure] | None = None,
        *,
        conventions: Conventions | dict[str, Any] | None = None,
        level: str = "item",
        largest_grade: int | None = None,
        chunks: Any = None,
        has_chunks: bool = False,
        matching: Matching | None = None,
    ) -> Plan:
        """Parse names and words into a plan; `has_chunks` promises a table of chunks per run."""
        if level not in LEVELS:
            raise InputError(
                f"{level!r} is no level", field="level", hint=f"choose one of {', '.join(LEVELS)}"
            )
        if not isinstance(matching, Matching | None):
            raise InputError(
                f"{matching!r} does not say how texts are compared",
                field="matching",
                hint="give karat.Matching(fuzzy_threshold=0.8), for example",
            )
        asked = parse_all(DEFAULT_MEASURES if measures is None else measures)
        for measure in asked:
            if measure.declaration.needs_chunks and chunks is None and not has_chunks:
                raise InputError(
                    f"{measure} needs the table of all chunks",
                    field="chunks",
                    hint="give chunks=…, on the command line --chunks FILE",
                )
        return cls(
            asked,
            Conventions.of(conventions),
            level,
            largest_grade,
            None if chunks is None else Chunks.open(chunks),
            matching,
        )
