"""Nine reports that together show every part of the page, for screenshots and browser tests.

Reports of real data need ../shared/data and are left out where it is absent.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

import karat
from support.paths import SHARED_DATA

Record = dict[str, Any]

DL19 = SHARED_DATA / "trec-dl19-passage"
CHUNKING = SHARED_DATA / "chunking-evaluation"
FINANCEBENCH = SHARED_DATA / "financebench" / "financebench_open_source.jsonl"
FIVE_RUNS = ("idst_bert_p1", "p_bert", "TUW19-p3-re", "bm25tuned_rm3_p", "bm25base_p")
TOPICS = ("billing", "delivery", "returns", "account", "privacy")


def available_reports() -> list[str]:
    """Return the names of the reports whose data is here."""
    return [name for name, (_, data) in REPORTS.items() if data is None or data.exists()]


def build_report(name: str, folder: Path, *, small: bool = False) -> Path:
    """Write one report into a folder; a small one has fewer queries if its data is large."""
    path = folder / f"{name}.html"
    build, _ = REPORTS[name]
    build(small).report(path)
    return path


def _demo(small: bool) -> karat.Comparison:
    with as_file(files("karat") / "docs" / "faq") as folder:
        return karat.compare(
            folder / "support-faq.jsonl",
            {"bm25": folder / "bm25.run", "hybrid": folder / "hybrid.jsonl"},
            ["nDCG@10", "R@10", "RR@10", "P@5"],
            by="category",
        )


def _dl19(names: Iterable[str]) -> karat.Comparison:
    gold = karat.Gold.read(DL19 / "qrels.txt", queries=DL19 / "topics.tsv")
    runs = {name: DL19 / "runs" / f"{name}.gz" for name in names}
    return karat.compare(gold, runs, ["nDCG@10", "RR(rel=2)@10", "AP(rel=2)", "R(rel=2)@100"])


def _dl19_of_5_runs(small: bool) -> karat.Comparison:
    return _dl19(FIVE_RUNS)


def _dl19_of_20_runs(small: bool) -> karat.Comparison:
    names = sorted(path.stem for path in (DL19 / "runs").glob("*.gz"))
    others = [name for name in names if name not in FIVE_RUNS]
    return _dl19([*others[:15], *FIVE_RUNS])


def _spans(small: bool) -> karat.Comparison:
    """Compare three sizes of chunks, found by BM25; all documents are searched."""
    corpus = karat.Corpus.read(CHUNKING / "corpora")
    with (CHUNKING / "questions_df.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    gold = [_span_question(number, row) for number, row in enumerate(rows)]
    gold = gold[:: len(gold) // 60][:60] if small else gold
    runs = {}
    for size in (200, 400, 800):
        chunks = karat.chunk.recursive(corpus, size=size).frame.rename({"item_id": "id"})
        runs[f"recursive-{size}"] = _search(gold, chunks.to_dicts(), depth=10)
    measures = ["span.recall@2000c", "span.precision@2000c", "span.iou@2000c", "span.recall@5"]
    return karat.compare(
        karat.Gold.of(gold, name="chunking-evaluation"), runs, measures, corpus=corpus, by="corpus"
    )


def _span_question(number: int, row: dict[str, str]) -> Record:
    spans = [
        {"doc_id": f"{row['corpus_id']}.md", "start": part["start_index"], "end": part["end_index"]}
        for part in json.loads(row["references"])
    ]
    text = {"query_id": f"q{number:03}", "query": row["question"], "corpus": row["corpus_id"]}
    return text | {"spans": spans}


def _evidence(small: bool) -> karat.Comparison:
    """Compare three sizes of chunks of the pages that FinanceBench quotes."""
    with FINANCEBENCH.open(encoding="utf-8") as file:
        questions = [json.loads(line) for line in file]
    pages = {
        f"{part['doc_name']} p. {part['evidence_page_num']}": part["evidence_text_full_page"]
        for question in questions
        for part in question["evidence"]
    }
    gold = [
        {
            "query_id": question["financebench_id"].removeprefix("financebench_"),
            "query": question["question"],
            "question_type": question["question_type"],
            "reasoning": question["question_reasoning"] or "not given",
            "company": question["company"],
            "reference": question["answer"],
            "evidence": [part["evidence_text"] for part in question["evidence"]],
        }
        for question in questions[: 40 if small else None]
    ]
    runs = {}
    for size in (600, 1200, 2400):
        chunks = karat.chunk.recursive(pages, size=size).frame.rename({"item_id": "id"})
        runs[f"pages-{size}"] = _search(gold, chunks.to_dicts(), depth=10)
    measures = ["evidence.coverage@10", "evidence.full@10", "evidence.recall@5", "evidence.P@5"]
    gold = karat.Gold.of(gold, name="financebench")
    return karat.compare(gold, runs, measures, by="question_type")


def _search(gold: list[Record], chunks: list[Record], depth: int) -> list[Record]:
    """Return a run: the best chunks for each question by BM25 (k1 = 1.2, b = 0.75)."""
    lengths = np.zeros(len(chunks))
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        counts = Counter(_words(chunk["text"]))
        lengths[number] = counts.total()
        for word, count in counts.items():
            postings[word].append((number, count))
    norms = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    lines = []
    for question in gold:
        scores = np.zeros(len(chunks))
        for word in set(_words(question["query"])) & postings.keys():
            numbers, counts = np.array(postings[word]).T
            rarity = np.log1p((len(chunks) - len(numbers) + 0.5) / (len(numbers) + 0.5))
            scores[numbers] += rarity * 2.2 * counts / (counts + norms[numbers])
        best = np.argsort(-scores, kind="stable")[:depth]
        results = [chunks[number] | {"score": float(scores[number])} for number in best]
        lines.append({"query_id": question["query_id"], "results": results})
    return lines


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _live(small: bool) -> karat.Comparison:
    """Compare two live retrievers: one reranks, is slower and more expensive, and failed twice."""
    gold = _questions(60, seed=1)
    runs = {}
    for name, quality, reranks in (("hybrid", 0.45, False), ("hybrid + rerank", 0.7, True)):
        draw = random.Random(name)
        lines = _lists(gold, quality, draw)
        for line in lines:
            line |= _usage(draw, reranks)
        runs[name] = lines
    failures = {7: ("Timeout", "no answer within 2 s"), 31: ("HTTPError", "503 from the reranker")}
    for number, (kind, message) in failures.items():
        error = {"type": kind, "message": message, "attempts": 3}
        query = gold[number]["query_id"]
        runs["hybrid + rerank"][number] = {"query_id": query, "results": [], "error": error}
    measures = ["nDCG@10", "R@10", "latency.p50", "latency.p90", "cost.mean"]
    return karat.compare(karat.Gold.of(gold, name="helpdesk"), runs, measures, by="topic")


def _usage(draw: random.Random, reranks: bool) -> Record:
    """Return the timings and model calls of one query."""
    stages = {"embed": draw.gauss(9, 1), "retrieval": draw.lognormvariate(3, 0.4)}
    tokens = draw.randint(8, 30)
    embed = {"stage": "embed", "model": "small-embedder", "prompt_tokens": tokens}
    calls = [embed | {"price_per_1k": 0.00002}]
    if reranks:
        stages["rerank"] = draw.lognormvariate(4.2, 0.3)
        calls.append({"stage": "rerank", "model": "cross-encoder", "price_per_call": 0.002})
    stages = {stage: round(ms, 2) for stage, ms in stages.items()}
    return {"latency_ms": {"total": round(sum(stages.values()), 2)} | stages, "calls": calls}


def _gate(small: bool) -> karat.Verdict:
    """Check a run that has become worse than its baseline; one threshold of four passes."""
    gold = _questions(120, seed=2)
    baseline, run = (_lists(gold, quality, random.Random(3)) for quality in (0.8, 0.55))
    thresholds = {
        "nDCG@10": {"min": 0.6, "max_drop": 0.02},
        "R@10": ">= 0.30",
        "by": {"topic": {"billing": {"R@10": ">= 0.9"}}},
    }
    return karat.gate(
        karat.Gold.of(gold, name="helpdesk"),
        karat.Run.of(run, name="candidate"),
        thresholds,
        baseline=karat.Run.of(baseline, name="main"),
    )


def _one_query(small: bool) -> karat.Scores:
    gold = [{"query_id": "q1", "query": "How do I pay?", "relevant": {"payment-1": 2}}]
    run = karat.Run.of({"q1": ["refunds-3", "payment-1", "login-2"]}, name="bm25")
    return karat.evaluate(karat.Gold.of(gold, name="single"), run, ["nDCG@10", "RR", "P@5"])


def _many_queries(small: bool) -> karat.Comparison:
    gold = _questions(5_000, seed=4)
    qualities = {"bm25": 0.5, "dense": 0.55, "hybrid": 0.65}
    runs = {name: _lists(gold, quality, random.Random(name)) for name, quality in qualities.items()}
    measures = ["nDCG@10", "R@10", "RR@10"]
    return karat.compare(karat.Gold.of(gold, name="helpdesk-5k"), runs, measures, by="topic")


def _questions(n: int, seed: int) -> list[Record]:
    """Return gold with texts, two fields and reference answers."""
    draw = random.Random(seed)
    verbs = ("change", "cancel", "find", "confirm", "dispute", "download")
    things = ("an invoice", "my order", "the return label", "my password", "my stored data")
    return [
        {
            "query_id": f"q{number:04}",
            "query": f"How do I {draw.choice(verbs)} {draw.choice(things)} from order {number}?",
            "topic": TOPICS[number % len(TOPICS)],
            "difficulty": draw.choice(("easy", "medium", "hard")),
            "reference": f"Open your account, choose order {number} and follow the link.",
            "relevant": {f"{number}-{part}": draw.randint(1, 3) for part in range(3)},
        }
        for number in range(n)
    ]


def _lists(gold: list[Record], quality: float, draw: random.Random) -> list[Record]:
    """Return a run of ten results per query; relevant ones are ranked high with this chance."""
    lines = []
    for number, question in enumerate(gold):
        scores = {f"other-{draw.randrange(10_000)}": draw.random() for _ in range(10)}
        for item, grade in question["relevant"].items():
            if draw.random() < quality:
                scores[item] = draw.random() + 0.2 * grade
        results = sorted(scores.items(), key=lambda pair: -pair[1])[:10]
        lines.append(
            {
                "query_id": question["query_id"],
                "response": f"Order {number} is in your account; follow the link there.",
                "results": [{"id": item, "score": round(score, 4)} for item, score in results],
            }
        )
    return lines


# Per report: how it is built, and the data that it needs.
REPORTS: dict[str, tuple[Callable[[bool], Any], Path | None]] = {
    "demo": (_demo, None),
    "dl19-5": (_dl19_of_5_runs, DL19),
    "dl19-20": (_dl19_of_20_runs, DL19),
    "spans": (_spans, CHUNKING),
    "evidence": (_evidence, FINANCEBENCH),
    "live": (_live, None),
    "gate": (_gate, None),
    "one-query": (_one_query, None),
    "many-queries": (_many_queries, None),
}
