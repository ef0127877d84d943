"""The offsets of public data sets are valid, except for known faults."""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache

import pytest

import karat
from support.paths import SHARED_DATA

pytestmark = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason=f"there is no data in {SHARED_DATA}"
)


@cache
def load(path):
    with gzip.open(SHARED_DATA / path, "rt", encoding="utf-8") as file:
        return json.load(file)


def counts(validation):
    return {finding.kind: finding.count for finding in validation.findings}


def span(doc_id, start, end, text=None):
    return {"doc_id": doc_id, "start": start, "end": end, "text": text}


def test_all_790_references_of_chunking_evaluation_are_valid():
    with (SHARED_DATA / "chunking-evaluation" / "questions_df.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    gold = [
        {
            "query_id": at,
            "query": row["question"],
            "spans": [
                span(f"{row['corpus_id']}.md", r["start_index"], r["end_index"], r["content"])
                for r in json.loads(row["references"])
            ],
        }
        for at, row in enumerate(rows)
    ]
    validation = karat.validate(gold, corpus=SHARED_DATA / "chunking-evaluation" / "corpora")
    assert validation.ok
    assert counts(validation).keys() <= {"overlap"}
    assert validation.verdict.endswith("472 queries, 790 spans checked against 5 documents")


@pytest.mark.parametrize(("part", "n_spans", "blank"), [("dev", 1228, 1), ("test", 2404, 0)])
def test_spans_of_contractnli_are_valid_except_one_blank_span(part, n_spans, blank):
    documents = load(f"contractnli/{part}.json.gz")["documents"]
    gold = [
        {
            "query_id": f"{document['id']} {name}",
            "spans": [span(document["id"], *document["spans"][at]) for at in annotation["spans"]],
        }
        for document in documents
        for name, annotation in document["annotation_sets"][0]["annotations"].items()
    ]
    corpus = {document["id"]: document["text"] for document in documents}
    validation = karat.validate(gold, corpus=corpus)
    assert validation.ok
    assert validation.checked["spans"] == n_spans
    assert validation.checked["documents"] == len(documents)
    assert counts(validation).get("blank", 0) == blank
    # What is not mentioned in a contract has no spans there.
    assert counts(validation).keys() <= {"blank", "no-gold"}


OFFSETS = {
    "codepoint": len,
    "utf16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf8": lambda text: len(text.encode()),
}


@cache
def xquad(language, unit):
    """Return XQuAD as native gold with offsets in this unit, and its documents."""
    offset_of = OFFSETS[unit]
    gold, corpus = [], {}
    for article in load(f"xquad/xquad.{language}.json.gz")["data"]:
        for paragraph in article["paragraphs"]:
            doc_id, context = f"p{len(corpus)}", paragraph["context"]
            corpus[doc_id] = context
            for question in paragraph["qas"]:
                (answer,) = question["answers"]
                start = answer["answer_start"]
                places = [offset_of(context[:end]) for end in (start, start + len(answer["text"]))]
                gold.append(
                    {"query_id": question["id"], "spans": [span(doc_id, *places, answer["text"])]}
                )
    return gold, corpus


@pytest.mark.parametrize("language", ["en", "de", "zh", "ar", "hi"])
@pytest.mark.parametrize("unit", OFFSETS)
def test_xquad_is_valid_in_five_languages_and_every_unit(language, unit):
    gold, corpus = xquad(language, unit)
    validation = karat.validate(karat.Gold.of(gold, offsets=unit), corpus=corpus)
    assert validation.findings == ()
    assert validation.checked["spans"] == 1190
    in_code_points, _ = xquad(language, "codepoint")
    converted = karat.Gold.of(gold, offsets=unit).in_code_points(corpus)
    assert converted.spans.equals(karat.Gold.of(in_code_points).spans)


def test_byte_offsets_declared_as_code_points_are_found_and_recognised():
    gold, corpus = xquad("zh", "utf8")
    validation = karat.validate(gold, corpus=corpus)
    kinds = counts(validation)
    assert kinds["past-end"] + kinds["text-mismatch"] > 1100
    assert kinds["systematic-offsets"] == 1190
    cause, *others = validation.findings
    assert cause.kind == "systematic-offsets"
    assert "utf8" in cause.hint
    for finding in others:
        assert finding.kind in ("past-end", "text-mismatch")
        assert finding.examples
        assert all('"utf8"' in example.hint for example in finding.examples)


def test_458_of_503_paragraph_mappings_of_tatqa_are_verbatim():
    """A mapping includes the white space around a fact, so it is stripped on both sides."""
    gold, corpus = [], {}
    for at, passage in enumerate(load("tatqa/tatqa_dataset_test_gold.json.gz")):
        for paragraph in passage["paragraphs"]:
            corpus[f"{at}_paragraph_{paragraph['order']}"] = paragraph["text"]
        for question in passage["questions"]:
            spans = []
            if len(question["facts"]) != len(question["mappings"]):
                continue
            for fact, mapping in zip(question["facts"], question["mappings"], strict=True):
                for name, (start, end) in mapping.items():
                    if not name.startswith("paragraph"):
                        continue
                    text = corpus[f"{at}_{name}"][start:end]
                    first = start + len(text) - len(text.lstrip())
                    last = first + len(text.strip())
                    spans.append(span(f"{at}_{name}", first, last, str(fact).strip()))
            if spans:
                gold.append({"query_id": question["uid"], "spans": spans})
    validation = karat.validate(gold, corpus=corpus)
    assert validation.checked["spans"] == 503
    assert counts(validation)["text-mismatch"] == 503 - 458
    assert {f.kind for f in validation.findings if f.severity == "error"} == {"text-mismatch"}
