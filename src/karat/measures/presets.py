"""Presets: measures, conventions and names that belong together.

The functions of each preset are in `karat.presets`; both must give the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from karat.conventions import Conventions
from karat.errors import InputError
from karat.measures.name_parser import AnyMeasure, measure_list, parse, parse_all
from karat.measures.plan import DEFAULT_EVIDENCE_MEASURES
from karat.measures.registry import Measure, folded

# The word before a cutoff and parameters: MRR, HitRate@10, precision_at_5.
_NAME = re.compile(r"(?P<word>[A-Za-z_-]+?)(?:_at_(?P<k>\d+))?(?P<rest>[(@].*)?", re.DOTALL)


@dataclass(frozen=True)
class Preset:
    """What a preset consists of."""

    measures: tuple[str, ...]
    """The measures that are used where none is named."""
    conventions: Conventions = field(default_factory=Conventions)
    names: Mapping[str, str] = field(default_factory=dict)
    """Names that measures have inside the preset: its word, and the declared name."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For each setting, the environment variable that is read if the setting is not given."""
    adds_usage: bool = False
    """Whether latency and cost are measured too, where the runs have them."""

    def parse(self, name: AnyMeasure) -> Measure:
        """Return the measure that a name means inside the preset.

        >>> PRESETS["coverage"].parse("HitRate@10"), PRESETS["graded"].parse("HitRate@10")
        (evidence.Success@10, Success@10)
        """
        parts = _NAME.fullmatch(name.strip()) if isinstance(name, str) else None
        declared = {folded(word): measure for word, measure in self.names.items()}
        if parts is None or folded(parts["word"]) not in declared:
            return parse(name)
        cutoff = f"@{parts['k']}" if parts["k"] else ""
        return parse(f"{declared[folded(parts['word'])]}{cutoff}{parts['rest'] or ''}")

    def parse_all(self, given: AnyMeasure | Iterable[AnyMeasure]) -> tuple[Measure, ...]:
        """Return the measures of a list of names, each once, in the order asked."""
        return parse_all([self.parse(each) for each in measure_list(given)])

    def label(self, measure: str) -> str:
        """Return the name that reports print for a measure.

        >>> PRESETS["coverage"].label("evidence.Success@10")
        'HitRate@10'
        """
        if not self.names:
            return measure
        declared = parse(measure).declaration.name
        words = {name: word for word, name in self.names.items()}
        return words.get(declared, declared) + measure[len(declared) :]


PRESETS = {
    "benchmark": Preset(
        ("P@3", "P@5", "R@10", "RR", "Hits@3", "Hits@5", "FirstRelevant"),
        Conventions(duplicates="count"),
    ),
    "chunks": Preset(("R", "P", "F1"), Conventions(no_gold="recall", duplicates="set")),
    "coverage": Preset(
        DEFAULT_EVIDENCE_MEASURES,
        names={
            "Precision": "evidence.P",
            "EvidenceRecall": "evidence.recall",
            "PerQueryCoverage": "evidence.coverage",
            "FullCoverageRate": "evidence.full",
            "MAP": "evidence.AP",
            "MRR": "evidence.RR",
            "HitRate": "evidence.Success",
        },
        environment={"top_k": "RAG_TOP_K", "score_threshold": "RAG_SCORE_THRESHOLD"},
        adds_usage=True,
    ),
    "graded": Preset(
        ("R@10", "P(denominator=retrieved)@10", "RR@10", "nDCG@10", "AP@10", "Success@10")
    ),
    "spans": Preset(("span.recall", "span.precision", "span.iou", "span.f1")),
}


NO_PRESET = Preset(())


def preset_named(name: str | None) -> Preset:
    """Return a preset; without a name, one that changes nothing."""
    if name is None:
        return NO_PRESET
    if name not in PRESETS:
        raise InputError(
            f"there is no preset {name!r}", field="preset", hint=f"known: {', '.join(PRESETS)}"
        )
    return PRESETS[name]
