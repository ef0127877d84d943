"""karat tells how good a retriever is, and shows why the number can be trusted.

Public names are loaded when they are first used, so that `import karat` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from karat.version import __version__

if TYPE_CHECKING:
    from karat.conventions import Conventions
    from karat.data import Chunks, Corpus, Gold, Run
    from karat.errors import (
        ConventionError,
        InputError,
        KaratError,
        KaratWarning,
        MeasureError,
        RetrieverError,
    )
    from karat.evaluation import (
        Comparison,
        Evaluator,
        Explanation,
        Finding,
        Scores,
        Validation,
        Verdict,
        compare,
        evaluate,
        explain,
        gate,
        validate,
    )
    from karat.functional import (
        average_precision,
        calculate_overlap,
        hit_rate,
        merge_overlapping_spans,
        mrr,
        ndcg_at_k,
        precision_at_k,
        recall_at_k,
    )
    from karat.live.marks import carry, record_call, stage
    from karat.live.retrieve import retrieve
    from karat.match.judging import to_judgments
    from karat.match.locate import Located, locate
    from karat.match.texts import Matching
    from karat.measures import Plan, ScoreTable, score

_HOMES = {
    "karat.conventions": ("Conventions",),
    "karat.data": ("Chunks", "Corpus", "Gold", "Run"),
    "karat.errors": (
        "ConventionError",
        "InputError",
        "KaratError",
        "KaratWarning",
        "MeasureError",
        "RetrieverError",
    ),
    "karat.evaluation": (
        "Comparison",
        "Evaluator",
        "Explanation",
        "Finding",
        "Scores",
        "Validation",
        "Verdict",
        "compare",
        "evaluate",
        "explain",
        "gate",
        "validate",
    ),
    "karat.functional": (
        "average_precision",
        "calculate_overlap",
        "hit_rate",
        "merge_overlapping_spans",
        "mrr",
        "ndcg_at_k",
        "precision_at_k",
        "recall_at_k",
    ),
    "karat.live.marks": ("carry", "record_call", "stage"),
    "karat.live.retrieve": ("retrieve",),
    "karat.match.judging": ("to_judgments",),
    "karat.match.locate": ("Located", "locate"),
    "karat.match.texts": ("Matching",),
    "karat.measures": ("Plan", "ScoreTable", "score"),
}
_MODULES = ("chunk", "compat", "data", "functional", "live", "measures", "presets", "testing")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Chunks",
    "Comparison",
    "ConventionError",
    "Conventions",
    "Corpus",
    "Evaluator",
    "Explanation",
    "Finding",
    "Gold",
    "InputError",
    "KaratError",
    "KaratWarning",
    "Located",
    "Matching",
    "MeasureError",
    "Plan",
    "RetrieverError",
    "Run",
    "ScoreTable",
    "Scores",
    "Validation",
    "Verdict",
    "__version__",
    "average_precision",
    "calculate_overlap",
    "carry",
    "compare",
    "evaluate",
    "explain",
    "gate",
    "hit_rate",
    "locate",
    "merge_overlapping_spans",
    "mrr",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "record_call",
    "retrieve",
    "score",
    "stage",
    "to_judgments",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"karat.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
