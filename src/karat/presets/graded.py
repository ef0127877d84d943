"""Six metrics over graded relevance judgments of chunks.

Relevant is grade 1 and up. The list is cut to the top k first; precision is the share of what
remains, average precision divides by all relevant chunks. Where nothing is relevant, all six are
0.0. Recall, precision and average precision are as in Manning et al. 2008, MRR as in Voorhees
1999, nDCG as in Järvelin and Kekäläinen 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from karat.data.dict_runs import text_id
from karat.data.gold_tables import check_grade, highest_grades
from karat.errors import InputError
from karat.match.hits import Hits
from karat.measures.presets import PRESETS
from karat.measures.single_query import checked_cutoff, hits_of, value

MEASURES = PRESETS["graded"].measures
CONVENTIONS = PRESETS["graded"].conventions


class QueryType(Enum):
    """What kind of question a query asks."""

    FACTUAL = "factual"
    CONCEPTUAL = "conceptual"
    CODE_LOOKUP = "code_lookup"
    TROUBLESHOOTING = "troubleshooting"


@dataclass(frozen=True)
class RelevanceJudgment:
    """How relevant a chunk is to a query; 0 is not at all.

    `Gold.of({query: [judgment, …]})` takes judgments too.
    """

    chunk_id: str
    grade: int

    def __post_init__(self) -> None:
        text_id(self.chunk_id, "chunk_id")
        check_grade(None, self.chunk_id, self.grade)


@dataclass(frozen=True)
class MetricsResult:
    """All six metrics of one query."""

    recall_at_k: float
    precision_at_k: float
    mrr: float
    ndcg_at_k: float
    average_precision: float
    hit_rate: float


class RetrievalMetrics:
    """The six metrics, each `(retrieved_chunk_ids, judgments, k) -> float`.

    >>> judged = [RelevanceJudgment("a", 2), RelevanceJudgment("b", 1), RelevanceJudgment("d", 2)]
    >>> round(RetrievalMetrics.recall_at_k(["a", "b", "c"], judged, 3), 4)
    0.6667
    """

    def __new__(cls) -> NoReturn:
        """Refuse to be instantiated: there is no state."""
        raise TypeError("RetrievalMetrics is not instantiated; call its functions on the class")

    @staticmethod
    def recall_at_k(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return relevant chunks in the top k / all relevant chunks."""
        return value("R", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def precision_at_k(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return relevant chunks in the top k / chunks in the top k."""
        return value("P", _hits(retrieved_chunk_ids, judgments, k), k, denominator="retrieved")

    @staticmethod
    def mrr(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return 1 / rank of the first relevant chunk in the top k, 0 if there is none."""
        return value("RR", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def ndcg_at_k(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return DCG@k / ideal DCG@k, with grade / log2(rank + 1)."""
        return value("nDCG", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def average_precision(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return the sum of precision at each relevant chunk in the top k / all relevant."""
        return value("AP", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def hit_rate(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return 1.0 if a relevant chunk is in the top k, else 0.0."""
        return value("Success", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def compute_all(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> MetricsResult:
        """Return all six, looking grades up once."""
        hits = _hits(retrieved_chunk_ids, judgments, k)
        return MetricsResult(
            recall_at_k=value("R", hits, k),
            precision_at_k=value("P", hits, k, denominator="retrieved"),
            mrr=value("RR", hits, k),
            ndcg_at_k=value("nDCG", hits, k),
            average_precision=value("AP", hits, k),
            hit_rate=value("Success", hits, k),
        )


def _hits(retrieved: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int) -> Hits:
    """Look up the top k alone: what is below rank k costs nothing and is not checked."""
    cutoff = checked_cutoff(k)
    if isinstance(retrieved, (str, bytes)):
        raise InputError("this is one text", field="retrieved_chunk_ids", hint="give ids in a list")
    return hits_of(retrieved[:cutoff], highest_grades(judgments))
