"""The documents of a query, with what gold wants of them and what each run brought."""

from __future__ import annotations

from collections.abc import Sequence

from karat.evaluation.page.sources import Texts, parts
from karat.match.highlights import Piece, limited, pieces
from karat.report.calculation import Row
from karat.report.page.model import Json

MOST_DOCUMENTS = 10
MOST_WITHOUT_GOLD = 5


def documents(spans: Sequence[Row], runs: Sequence[Sequence[Row]], texts: Texts) -> list[Json]:
    """Cut the documents of a query into pieces; there are none where gold has no spans.

    `spans` and the items of each run hold doc_id, start, end and perhaps text. Documents with gold
    come first, then those that rank highest in any run.
    """
    if not spans:
        return []
    placed = [[item for item in items if item["start"] is not None] for items in runs]
    chosen = _chosen(spans, placed)
    cut = limited([_pieces(document, spans, placed, texts) for document in chosen])
    return [
        {
            "doc_id": document,
            "length": texts.length(document),
            "pieces": [dict(vars(piece)) for piece in shown],
        }
        for document, shown in zip(chosen, cut, strict=True)
    ]


def _chosen(spans: Sequence[Row], placed: Sequence[Sequence[Row]]) -> list[str]:
    wanted = list(dict.fromkeys(span["doc_id"] for span in spans))[:MOST_DOCUMENTS]
    best: dict[str, int] = {}
    for items in placed:
        for item in items:
            best[item["doc_id"]] = min(item["rank"], best.get(item["doc_id"], item["rank"]))
    others = sorted(best.keys() - set(wanted), key=lambda document: (best[document], document))
    return [*wanted, *others[:MOST_WITHOUT_GOLD]][:MOST_DOCUMENTS]


def _pieces(
    document: str, spans: Sequence[Row], placed: Sequence[Sequence[Row]], texts: Texts
) -> list[Piece]:
    own = [span for span in spans if span["doc_id"] == document]
    items = [[item for item in run if item["doc_id"] == document] for run in placed]
    known = texts.known(document).joined(parts([*own, *(item for run in items for item in run)]))
    return pieces(
        [(span["start"], span["end"]) for span in own],
        [[(item["rank"], item["start"], item["end"]) for item in run] for run in items],
        known,
        texts.length(document),
    )
