"""Presets: sets of measures, conventions and names that belong together.

The functions of each preset are in `karat.presets`; both give the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from karat.conventions import Conventions
from karat.errors import InputError
from karat.measures.name_parser import AnyMeasure, measure_list, parse, parse_all
from karat.measures.registry import Measure, folded

# The name of a measure, then a cutoff and parameters: MRR, HitRate@10, precision_at_5.
_NAME = re.compile(r"(?P<word>[A-Za-z_-]+?)(?:_at_(?P<k>\d+))?(?P<rest>[(@].*)?", re.DOTALL)


@dataclass(frozen=True)
class Preset:
    """A named set of measures, conventions and settings."""

    measures: tuple[str, ...]
    """The default measures."""
    conventions: Conventions = field(default_factory=Conventions)
    names: Mapping[str, str] = field(default_factory=dict)
    """From the names of measures in the preset to their names in the registry."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For some settings, the environment variable that provides the default."""
    adds_usage: bool = False
    """Whether latency and cost are measured too, if the runs have data for them."""

    def parse(self, name: AnyMeasure) -> Measure:
        """Return the measure with a name, which may be a name of the preset.

        >>> PRESETS["coverage"].parse("HitRate@10"), PRESETS["graded"].parse("HitRate@10")
        (evidence.Success@10, Success@10)
        """
        parts = _NAME.fullmatch(name.strip()) if isinstance(name, str) else None
        declared = {folded(word): measure for word, measure in self.names.items()}
        if parts is None or folded(parts["word"]) not in declared:
            return parse(name)
        cutoff = f"@{parts['k']}" if parts["k"] else ""
        return parse(f"{declared[folded(parts['word'])]}{cutoff}{parts['rest'] or ''}")

    def parse_all(self, measures: AnyMeasure | Iterable[AnyMeasure]) -> tuple[Measure, ...]:
        """Return the measures of a list of names, without repeats, in the same order."""
        return parse_all([self.parse(measure) for measure in measure_list(measures)])

    def label(self, measure: str) -> str:
        """Return the name of a measure in the reports of the preset.

        >>> PRESETS["coverage"].label("evidence.Success@10")
        'HitRate@10'
        """
        if not self.names:
            return measure
        name = parse(measure).declaration.name
        preset_names = {declared: word for word, declared in self.names.items()}
        return preset_names.get(name, name) + measure[len(name) :]


PRESETS = {
    "benchmark": Preset(
        ("P@3", "P@5", "R@10", "RR", "Hits@3", "Hits@5", "FirstRelevant"),
        Conventions(duplicates="count"),
    ),
    "chunks": Preset(("R", "P", "F1"), Conventions(no_gold="recall", duplicates="set")),
    "coverage": Preset(
        (
            "evidence.P@5",
            "evidence.recall@3",
            "evidence.recall@10",
            "evidence.coverage@3",
            "evidence.coverage@10",
            "evidence.full@3",
            "evidence.full@10",
            "evidence.AP",
            "evidence.RR",
            "evidence.Success@10",
        ),
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
"""A preset that changes nothing."""


def preset_named(name: str | None) -> Preset:
    """Return the preset with a name; `NO_PRESET` if the name is None."""
    if name is None:
        return NO_PRESET
    if name not in PRESETS:
        raise InputError(
            f"{name!r} not found",
            field="preset",
            hint=f"choose one of {', '.join(PRESETS)}",
        )
    return PRESETS[name]
