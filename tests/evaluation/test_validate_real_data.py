"""The offsets of public data sets check out, but for what is known to be wrong with them."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

import karat
from support.paths import SHARED_DATA

pytestmark = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason=f"there is no data in {SHARED_DATA}"
)


def load(path):
    with gzip.open(SHARED_DATA / path, "rt", encoding="utf-8") as file:
        return json.load(file)


def counts(validation):
    return {found.kind: found.count for found in validation.findings}


def span(doc_id, start, end, text=None):
    return {"doc_id": doc_id, "start": start, "end": end, "text": text}


def test_all_790_references_of_chunking_evaluation_hold():
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
    found = karat.validate(gold, corpus=SHARED_DATA / "chunking-evaluation" / "corpora")
    assert found.ok
    assert counts(found).keys() <= {"overlap"}
    assert found.verdict.endswith("472 queries, 790 spans checked against 5 documents")


@pytest.mark.parametrize(("part", "n_spans", "blank"), [("dev", 1228, 1), ("test", 2404, 0)])
def test_contractnli_holds_but_for_one_blank_span(part, n_spans, blank):
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
    found = karat.validate(gold, corpus=corpus)
    assert found.ok
    assert found.checked["spans"] == n_spans
    assert found.checked["documents"] == len(documents)
    assert counts(found).get("blank", 0) == blank
    # What is not mentioned in a contract has no spans there.
    assert counts(found).keys() <= {"blank", "no-gold"}


def xquad(language, offset_of):
    """Return XQuAD as native gold, its offsets counted by a function of the text before."""
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
@pytest.mark.parametrize(
    ("unit", "offset_of"),
    [
        ("codepoint", len),
        ("utf16", lambda text: len(text.encode("utf-16-le")) // 2),
        ("utf8", lambda text: len(text.encode())),
    ],
)
def test_xquad_holds_in_five_languages_and_every_unit(language, unit, offset_of):
    gold, corpus = xquad(language, offset_of)
    found = karat.validate(karat.Gold.of(gold, offsets=unit), corpus=corpus)
    assert found.findings == ()
    assert found.checked["spans"] == 1190
    plain, _ = xquad(language, len)
    converted = karat.Gold.of(gold, offsets=unit).in_code_points(corpus)
    assert converted.spans.equals(karat.Gold.of(plain).spans)


def test_bytes_passed_off_as_code_points_are_found_and_recognised():
    gold, corpus = xquad("zh", lambda text: len(text.encode()))
    found = karat.validate(gold, corpus=corpus)
    kinds = counts(found)
    assert kinds["past-end"] + kinds["text-mismatch"] > 1100
    for finding in found.findings:
        assert finding.kind in ("past-end", "text-mismatch")
        assert all('declare "offsets": "utf8"' in example.hint for example in finding.examples)


def test_458_of_503_paragraph_mappings_of_tatqa_are_verbatim():
    """A mapping takes white space around the fact along, so that is cut off on both sides."""
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
    found = karat.validate(gold, corpus=corpus)
    assert found.checked["spans"] == 503
    assert counts(found)["text-mismatch"] == 503 - 458
    assert {f.kind for f in found.findings if f.severity == "error"} == {"text-mismatch"}
