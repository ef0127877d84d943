"""Six metrics over graded relevance judgments of chunks.

Chunks with a grade of 1 or higher are relevant. The list is cut to the top k first. Precision
divides by the number of chunks that remain, average precision by all relevant chunks. If nothing
is relevant, all six are 0.0. Recall, precision and average precision are as in Manning et al.
2008, MRR as in Voorhees 1999, nDCG as in Järvelin and Kekäläinen 2002.
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
    """The type of a query."""

    FACTUAL = "factual"
    CONCEPTUAL = "conceptual"
    CODE_LOOKUP = "code_lookup"
    TROUBLESHOOTING = "troubleshooting"


@dataclass(frozen=True)
class RelevanceJudgment:
    """The grade of a chunk for a query.

    `Gold.of({query: [judgment, …]})` accepts judgments too.

    Parameters
    ----------
    chunk_id : str
        The id of the chunk.
    grade : int
        How relevant the chunk is; 0 is not relevant.

    Examples
    --------
    >>> RelevanceJudgment("a", 2)
    RelevanceJudgment(chunk_id='a', grade=2)
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

    In all methods, `retrieved_chunk_ids` is a sequence of ids, best first, `judgments` a sequence
    of `RelevanceJudgment`, and `k` a cutoff of at least 1.

    Examples
    --------
    >>> judged = [RelevanceJudgment("a", 2), RelevanceJudgment("b", 1), RelevanceJudgment("d", 2)]
    >>> round(RetrievalMetrics.recall_at_k(["a", "b", "c"], judged, 3), 4)
    0.6667
    """

    def __new__(cls) -> NoReturn:
        """Raise a TypeError: the class has only static methods."""
        raise TypeError("RetrievalMetrics cannot be instantiated; call its methods on the class")

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
        """Return 1 / rank of the first relevant chunk in the top k, or 0 if there is none."""
        return value("RR", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def ndcg_at_k(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return DCG@k / ideal DCG@k, where DCG@k is Σ grade / log2(rank + 1) over the top k."""
        return value("nDCG", _hits(retrieved_chunk_ids, judgments, k), k)

    @staticmethod
    def average_precision(
        retrieved_chunk_ids: Sequence[str], judgments: Sequence[RelevanceJudgment], k: int
    ) -> float:
        """Return Σ precision at each relevant chunk in the top k, / all relevant chunks."""
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
        """Return all six metrics."""
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
    """Return the hits of the top k; ids below rank k are neither looked up nor checked."""
    cutoff = checked_cutoff(k)
    if isinstance(retrieved, (str, bytes)):
        raise InputError(
            f"must be a list, got the text {retrieved!r}",
            field="retrieved_chunk_ids",
            hint="pass a list of ids",
        )
    return hits_of(retrieved[:cutoff], highest_grades(judgments))
