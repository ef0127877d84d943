"""Seven small data sets for golden screens, written to a folder; the same numbers every time."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from karat import evaluate
from karat.evaluation.provenance import Provenance


def write_all(folder: Path) -> None:
    """Write the data sets: faq, five, twenty, spans, live, reranked and history."""
    write_faq(folder)
    write_runs(folder / "five", n_runs=5, n_queries=60)
    write_runs(folder / "twenty", n_runs=20, n_queries=40)
    write_spans(folder / "spans")
    write_live(folder / "live")
    write_reranked(folder / "reranked")
    write_history(folder)


def write_history(folder: Path) -> None:
    """Write the saved scores of three runs with the same name, at different times and commits."""
    gold = folder / "five/gold.jsonl"
    target = folder / "history"
    target.mkdir()
    for number, name in enumerate(["run-4", "run-1", "run-0"]):
        scores = evaluate(gold, folder / f"five/{name}.jsonl", ["nDCG@10", "RR"])
        time = datetime(2026, 3, 2 + number, 9, 30, tzinfo=UTC)
        saved = Provenance(time, str(number + 1) * 40, time, number == 2)
        replace(scores, name="search", saved=saved).write(target / f"{number}.parquet")


def write_faq(folder: Path) -> None:
    """Copy the example of the package: 12 queries, two runs."""
    target = folder / "faq"
    target.mkdir(parents=True)
    for source in files("karat").joinpath("docs", "faq").iterdir():
        (target / source.name).write_bytes(source.read_bytes())


def write_runs(folder: Path, n_runs: int, n_queries: int) -> None:
    """Write judgments of 8 items per query, and runs that are better the higher their number."""
    folder.mkdir(parents=True)
    draw = random.Random(1).random
    grades = {
        f"q{query}": {f"d{item}": int(draw() * 3) for item in range(8)}
        for query in range(n_queries)
    }
    lines = [
        {"query_id": query, "query": f"question number {query[1:]}", "relevant": items}
        for query, items in grades.items()
    ]
    _write_lines(folder / "gold.jsonl", lines)
    for number in range(n_runs):
        results = []
        for query, items in grades.items():
            noisy = {
                f"d{item}": items.get(f"d{item}", 0) * 0.1 * number + 3 * draw()
                for item in range(12)
            }
            ranked = sorted(noisy, key=lambda item: -noisy[item])
            results.append({"query_id": query, "results": ranked})
        _write_lines(folder / f"run-{number}.jsonl", results)


def write_spans(folder: Path) -> None:
    """Write gold with spans and evidence texts, a document, and two runs with chunks."""
    folder.mkdir(parents=True)
    sentences = [f"Fact number {n} of the manual is about topic {n % 7}." for n in range(60)]
    starts = [sum(len(s) + 1 for s in sentences[:n]) for n in range(60)]
    text = " ".join(sentences)
    (folder / "corpus").mkdir()
    (folder / "corpus" / "manual.md").write_text(text, encoding="utf-8")
    gold = []
    for n in range(0, 60, 3):
        span = {"doc_id": "manual.md", "start": starts[n], "end": starts[n] + len(sentences[n])}
        gold.append({"query_id": f"q{n}", "query": f"What is fact {n} about?", "spans": [span]})
    _write_lines(folder / "gold.jsonl", gold)
    evidence = [
        {"query_id": line["query_id"], "query": line["query"], "evidence": [sentences[3 * at]]}
        for at, line in enumerate(gold)
    ]
    evidence[3]["evidence"] = ["This sentence is in no document."]
    _write_lines(folder / "evidence.jsonl", evidence)
    draw = random.Random(2).random
    for name, size in (("small", 120), ("large", 600)):
        lines = []
        for line in gold:
            middle = line["spans"][0]["start"]
            results = []
            for rank in range(4):
                offset = 0 if draw() > 0.3 + 0.1 * rank else size
                start = max(0, min(middle - size // 2 + offset * (rank + 1), len(text) - size))
                end = start + size
                results.append(
                    {
                        "id": f"c{start}",
                        "doc_id": "manual.md",
                        "start": start,
                        "end": end,
                        "text": text[start:end],
                    }
                )
            lines.append({"query_id": line["query_id"], "results": results})
        _write_lines(folder / f"{name}.jsonl", lines)


def write_live(folder: Path) -> None:
    """Write a run with timings, model calls and a failed query."""
    folder.mkdir(parents=True)
    gold = [{"query_id": f"q{n}", "query": f"question {n}", "relevant": ["a"]} for n in range(30)]
    _write_lines(folder / "gold.jsonl", gold)
    draw = random.Random(3).random
    call = {
        "stage": "embed",
        "model": "embedder",
        "prompt_tokens": 12,
        "completion_tokens": 0,
        "price_in": 0.00002,
        "price_out": 0.0,
    }
    lines = []
    for n in range(30):
        results = ["a", "b"] if draw() > 0.4 else ["b", "a"]
        total = 20 + 30 * draw()
        lines.append(
            {
                "query_id": f"q{n}",
                "results": results,
                "latency_ms": {"total": total, "retrieval": total / 2},
                "calls": [call],
            }
        )
    lines[7] = {"query_id": "q7", "results": [], "error": {"type": "Timeout", "message": "slow"}}
    _write_lines(folder / "run.jsonl", lines)


def write_reranked(folder: Path) -> None:
    """Write two runs with candidates: one reranks 20 of them, the other returns only 5 items."""
    folder.mkdir(parents=True)
    draw = random.Random(4).random
    gold, runs = [], {"long": [], "short": []}
    for n in range(60):
        relevant = {f"d{n}-{int(40 * draw() ** 2)}": 1, f"d{n}-{int(60 * draw())}": 2}
        gold.append({"query_id": f"q{n}", "query": f"question {n}", "relevant": relevant})
        candidates = [f"d{n}-{item}" for item in range(30)]
        noisy = {item: relevant.get(item, 0) + 1.5 * draw() for item in candidates[:20]}
        reranked = sorted(noisy, key=lambda item: -noisy[item])
        line = {"query_id": f"q{n}", "candidates": candidates}
        runs["long"].append(line | {"results": [*reranked, *candidates[20:]]})
        runs["short"].append(line | {"results": reranked[:5]})
    _write_lines(folder / "gold.jsonl", gold)
    header = {"karat": 1, "kind": "run", "settings": {"rerank_top_n": 20}}
    header["settings"]["handed"] = ["rerank_top_n"]
    for name, lines in runs.items():
        _write_lines(folder / f"{name}.jsonl", [header | {"name": name}, *lines])


def _write_lines(path: Path, lines: list) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
