"""Evidence of real golden sets, in chunks made by karat, compared with the oracle."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache

import pytest

import karat
from karat.chunk import fixed, recursive
from oracles import evidence as evidence_oracle
from support.effort import FULL
from support.paths import SHARED_DATA

FINANCEBENCH = SHARED_DATA / "financebench/financebench_open_source.jsonl"
CONTRACTNLI = SHARED_DATA / "contractnli/dev.json.gz"
ASKED = [(name, k) for name in evidence_oracle.MEASURES for k in (None, 1, 3)]


@cache
def words(text):
    return frozenset(re.findall(r"\w+", text.lower()))


def best(question, chunks, most):
    """Rank chunks by the words that they share with a question, ties in the order of the chunks."""
    return sorted(chunks, key=lambda chunk: -len(words(question) & words(chunk)))[:most]


def assert_equal_to_oracle(gold, run, step):
    """Score all queries with karat, and every step-th with difflib, which is slow."""
    names = [name if k is None else f"{name}@{k}" for name, k in ASKED]
    records = [
        {"query_id": query, "results": [{"text": text} for text in texts]}
        for query, texts in run.items()
    ]
    scores = karat.evaluate(karat.Gold.of(evidence=gold), records, names)
    by_query = {query: values for query, *values in scores.per_query.rows()}
    for query in list(gold)[:: 1 if FULL else step]:
        expected = [evidence_oracle.value(n, run[query], gold[query], k) for n, k in ASKED]
        assert by_query[query] == expected
    return scores


@pytest.mark.skipif(not FINANCEBENCH.exists(), reason="needs the data of financebench")
def test_evidence_of_financial_reports():
    lines = [json.loads(line) for line in FINANCEBENCH.read_text().splitlines()]
    gold = {q["financebench_id"]: [e["evidence_text"] for e in q["evidence"]] for q in lines}
    pages = {
        f"{e['doc_name']}:{e['evidence_page_num']}": e["evidence_text_full_page"]
        for q in lines
        for e in q["evidence"]
    }
    assert (len(gold), sum(map(len, gold.values()))) == (150, 189)
    # Whole pages contain all of the evidence.
    whole = {
        q["financebench_id"]: [e["evidence_text_full_page"] for e in q["evidence"]] for q in lines
    }
    names = ["evidence.recall", "evidence.full", "evidence.union", "evidence.P"]
    records = [
        {"query_id": query, "results": [{"text": text} for text in texts]}
        for query, texts in whole.items()
    ]
    scores = karat.evaluate(karat.Gold.of(evidence=gold), records, names)
    assert dict(scores) == dict.fromkeys(names, 1.0)
    # Chunks contain few of the long texts, and a part of most.
    chunks = recursive(pages, size=1500).frame["text"].to_list()
    run = {q["financebench_id"]: best(q["question"], chunks, 5) for q in lines}
    scores = assert_equal_to_oracle(gold, run, step=30)
    assert 0 < scores["evidence.recall"] < scores["evidence.union"] < 1


@pytest.mark.skipif(not CONTRACTNLI.exists(), reason="needs the data of contractnli")
def test_several_evidence_texts_of_contracts():
    with gzip.open(CONTRACTNLI) as file:
        contracts = json.load(file)
    gold, run = {}, {}
    for document in contracts["documents"][: 20 if FULL else 5]:
        text = document["text"]
        chunks = fixed({"d": text}, size=400, overlap=100).frame["text"].to_list()
        for label, answer in document["annotation_sets"][0]["annotations"].items():
            query = f"{document['id']}:{label}"
            places = [document["spans"][at] for at in answer["spans"]]
            gold[query] = [text[start:end] for start, end in places]
            run[query] = best(contracts["labels"][label]["hypothesis"], chunks, 8)
    assert sum(len(evidence) > 1 for evidence in gold.values()) > 20
    scores = assert_equal_to_oracle(gold, run, step=8)
    assert scores.left_out["no_texts"] == sum(not evidence for evidence in gold.values())
    assert 0 < scores["evidence.full"] < scores["evidence.coverage"] < scores["evidence.union"] < 1
