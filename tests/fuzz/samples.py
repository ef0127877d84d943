"""Valid small inputs of every format, as rows, records or columns that mutations can change."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

Row = list[Any]
Record = dict[str, Any]

TEXTS = (
    "The refund is paid within 14 days.",
    "Cards are accepted, and so is cash.",
    "A lost parcel is searched for by the courier.",
    "Der Rücktritt gilt für 30 Tage 😀 ab Kauf.",
    'Say "no" to it, or don\'t; both work.',
    "Prices, taxes and fees are listed in the table.",
)


@dataclass(frozen=True)
class Sample:
    """A few queries with judgments, results, spans and evidence that agree with each other."""

    grades: dict[str, dict[str, int]]
    scores: dict[str, dict[str, float]]
    texts: dict[str, str]
    queries: dict[str, str]


def sample(draw: random.Random) -> Sample:
    """Draw a sample; scores are often tied, so that the order of ties matters."""
    prefix = draw.choice(["d", "doc-", "ü", "1"])
    items = [f"{prefix}{number}" for number in range(1, draw.randint(4, 7))]
    queries = {f"q{n}": f"Question {n}, {draw.choice(TEXTS)}" for n in range(draw.randint(1, 4))}
    grades = {}
    scores = {}
    for query in queries:
        judged = draw.sample(items, draw.randint(1, len(items)))
        grades[query] = {item: draw.choice([0, 1, 1, 2, 3]) for item in judged}
        found = draw.sample(items, draw.randint(1, len(items)))
        scores[query] = {item: draw.choice([1.0, 2.0, 0.5, 0.25, 7.5, -1.0]) for item in found}
    texts = {item: draw.choice(TEXTS) for item in items}
    return Sample(grades, scores, texts, queries)


def gold_rows(data: Sample) -> list[Row]:
    return [
        [query, item, grade] for query in data.grades for item, grade in data.grades[query].items()
    ]


def run_rows(data: Sample) -> list[Row]:
    return [
        [query, item, score] for query in data.scores for item, score in data.scores[query].items()
    ]


def gold_columns(data: Sample, draw: random.Random) -> tuple[list[str], list[Row]]:
    """Return a gold table: judgments, spans or evidence texts."""
    shape = draw.choice([*["judgments"] * 5, "spans", "spans", "evidence", "lists"])
    query_id = draw.choice(["query_id", "qid", "query-id", "Query_ID"])
    if shape == "evidence":
        rows = [[query, data.texts[item]] for query, item, _ in gold_rows(data)]
        return [query_id, "evidence"], rows
    if shape == "lists":
        gap = draw.choice([";", "; "])
        rows = [[query, gap.join(data.grades[query])] for query in data.grades]
        return [query_id, draw.choice(["relevant_ids", "expected"])], rows
    if shape == "spans":
        rows = []
        for query, item, grade in gold_rows(data):
            start = draw.randint(0, 20)
            rows.append([query, item, start, start + draw.randint(0, 30), grade])
        return [query_id, "doc_id", "start", "end", "grade"], rows
    names = [query_id, draw.choice(["item_id", "docid", "chunk_id"]), draw.choice(["grade", "rel"])]
    rows = gold_rows(data)
    if draw.random() < 0.3:
        names.append("query")
        rows = [[*row, data.queries[row[0]]] for row in rows]
    return names, rows


def run_columns(data: Sample, draw: random.Random) -> tuple[list[str], list[Row]]:
    """Return a table of results, with or without scores, ranks, texts and offsets."""
    names = [draw.choice(["query_id", "qid"]), draw.choice(["item_id", "docno", "id"]), "score"]
    rows = run_rows(data)
    if draw.random() < 0.2:
        names, rows = names[:2], [row[:2] for row in rows]
    if draw.random() < 0.3:
        names.append("rank")
        rows = [[*row, number] for number, row in enumerate(rows, 1)]
    if draw.random() < 0.2:
        names.append("text")
        rows = [[*row, data.texts[row[1]]] for row in rows]
    if draw.random() < 0.2:
        names += ["doc_id", "start", "end"] if "docno" not in names else ["start", "end"]
        for row in rows:
            start = draw.randint(0, 20)
            row += ["d1"] if "docno" not in names else []
            row += [start, start + draw.randint(0, 30)]
    return names, rows


def gold_records(data: Sample, draw: random.Random) -> list[Record]:
    """Return native gold, sometimes with a header, spans, evidence and fields."""
    records: list[Record] = []
    if draw.random() < 0.5:
        records.append({"karat": 1, "kind": "gold", "name": "sample"})
    for query, grades in data.grades.items():
        record: Record = {"query_id": query, "query": data.queries[query], "relevant": grades}
        if draw.random() < 0.2:
            record["relevant"] = list(grades)
        elif draw.random() < 0.1:
            record["relevant"] = [{"chunk_id": item, "grade": g} for item, g in grades.items()]
        if draw.random() < 0.3:
            record["spans"] = [
                {"doc_id": item, "start": at, "end": at + 9, "text": data.texts[item][at : at + 9]}
                for at, item in enumerate(grades)
            ]
        if draw.random() < 0.3:
            record["evidence"] = [data.texts[item] for item in grades]
        if draw.random() < 0.05:
            record["evidence"] = draw.choice(TEXTS)
        if draw.random() < 0.3:
            record["category"] = draw.choice(["billing", "other", 3])
        records.append(record)
    return records


def run_records(data: Sample, draw: random.Random) -> list[Record]:
    """Return a native run, sometimes with a header, latency, model calls and errors."""
    records: list[Record] = []
    if draw.random() < 0.5:
        records.append({"karat": 1, "kind": "run", "name": "sample", "settings": {"top_k": 5}})
    timed, plain = draw.random() < 0.4, draw.random() < 0.3
    for query, scores in data.scores.items():
        results: list[Any] = [{"id": item, "score": score} for item, score in scores.items()]
        if draw.random() < 0.3:
            for at, result in enumerate(results):
                result |= {"doc_id": result["id"], "start": at, "end": at + 20}
        if draw.random() < 0.3:
            results = [result | {"text": data.texts[result["id"]]} for result in results]
        record: Record = {"query_id": query, "results": list(scores) if plain else results}
        if timed:
            record["latency_ms"] = {"total": draw.choice([5, 12.5, 80.25]), "rerank": 1.5}
            if draw.random() < 0.1:
                record["latency_ms"] = 12.5
        if draw.random() < 0.2:
            record["calls"] = [
                {"stage": "rerank", "model": "m", "prompt_tokens": 12, "price_per_1k": 0.5}
            ]
        if draw.random() < 0.3:
            record["candidates"] = [*reversed(record["results"]), "not-reranked"]
        if draw.random() < 0.1:
            record |= {"results": [], "error": {"type": "Timeout", "message": "late"}}
        records.append(record)
    return records


def ragas_records(data: Sample, draw: random.Random) -> list[Record]:
    with_ids = draw.random() < 0.5
    records = []
    for query in data.queries:
        found, wanted = list(data.scores[query]), list(data.grades[query])
        record: Record = {
            "user_input": data.queries[query],
            "retrieved_contexts": [data.texts[item] for item in found],
            "reference_contexts": [data.texts[item] for item in wanted],
        }
        if with_ids:
            record |= {"retrieved_context_ids": found, "reference_context_ids": wanted}
        if draw.random() < 0.7:
            record["query_id"] = query
        records.append(record)
    return records


def chunk_records(data: Sample) -> list[Record]:
    return [
        {"item_id": f"c-{item}", "doc_id": item, "start": 0, "end": len(text), "text": text}
        for item, text in data.texts.items()
    ]


def document_records(data: Sample, draw: random.Random) -> list[Record]:
    name = draw.choice(["doc_id", "_id", "id"])
    return [{name: item, "text": text, "title": item} for item, text in data.texts.items()]


def query_records(data: Sample, draw: random.Random) -> list[Record]:
    name, text = draw.choice(["query_id", "_id", "qid"]), draw.choice(["query", "text", "question"])
    return [{name: query, text: data.queries[query]} for query in data.queries]


def settings(draw: random.Random) -> Record:
    """Return the content of a karat.toml."""
    words: Record = {"missing": draw.choice(["zero", "skip", "error"])}
    if draw.random() < 0.5:
        words["duplicates"] = draw.choice(["first", "count", "set"])
    thresholds: Record = {
        "RR": draw.choice([">= 0.5", {"min": 0.25}, "<= 0.9", {"min": 0.1, "max_drop": 0.1}]),
        "R@3": draw.choice([">= 0.1", {"min": 0}, ">= 1"]),
    }
    return {"conventions": words, "gate": thresholds}
