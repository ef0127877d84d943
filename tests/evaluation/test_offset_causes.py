"""Offsets that are wrong for one reason in all of gold: recognised, explained and converted."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError, KaratWarning

DOCUMENT = "Hello wörld 😀 and more text here, hello again."
TEXTS = ["wörld", "more", "😀 and", "again"]


def units(text, unit):
    width = {"codepoint": 4, "utf16": 2, "utf8": 1}[unit]
    coding = {"codepoint": "utf-32-le", "utf16": "utf-16-le", "utf8": "utf-8"}[unit]
    return len(text.encode(coding)) // width


def gold(start=0, end=0, unit="codepoint", texts=TEXTS):
    def span(text):
        at = DOCUMENT.index(text)
        begin, stop = units(DOCUMENT[:at], unit), units(DOCUMENT[: at + len(text)], unit)
        return {"doc_id": "d", "start": begin + start, "end": stop + end, "text": text}

    return [{"query_id": f"q{n}", "query": "?", "spans": [span(t)]} for n, t in enumerate(texts)]


CASES = {
    "inclusive ends": (gold(end=-1), "--shift-end 1"),
    "1-based, inclusive": (gold(start=1), "--shift-start -1"),
    "1-based": (gold(start=1, end=1), "--shift-start -1 --shift-end -1"),
    "utf16": (gold(unit="utf16"), "--offsets utf16 --corpus DIR"),
    "utf8": (gold(unit="utf8"), "--offsets utf8 --corpus DIR"),
}


def systematic(records, **given):
    findings = karat.validate(records, **given).findings
    return [finding for finding in findings if finding.kind == "systematic-offsets"]


@pytest.mark.parametrize("case", CASES)
def test_one_cause_for_all_spans_is_recognised_with_its_remedy(case):
    records, remedy = CASES[case]
    (finding,) = systematic(records, corpus={"d": DOCUMENT})
    assert finding.count == len(TEXTS)
    assert finding.hint.endswith(f"{remedy}`")


@pytest.mark.parametrize("case", CASES)
def test_the_remedy_gives_offsets_that_fit(case, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records, remedy = CASES[case]
    karat.Gold.of(records).write("gold.jsonl")
    Path("docs.jsonl").write_text(json.dumps({"doc_id": "d", "text": DOCUMENT}) + "\n")
    words = remedy.replace("DIR", "docs.jsonl").split()
    assert command("convert", "gold.jsonl", "fixed.jsonl", *words)[0] == 0
    fixed = karat.Gold.read("fixed.jsonl")
    assert karat.validate(fixed, corpus={"d": DOCUMENT}).ok
    assert fixed.spans["start"].to_list() == karat.Gold.of(gold()).spans["start"].to_list()


def test_without_documents_only_lengths_are_checked():
    (finding,) = systematic(gold(end=-1))
    assert "--corpus" in finding.hint
    (finding,) = systematic(gold(unit="utf8"))
    assert finding.hint.endswith("--offsets utf8 --corpus DIR`")
    assert systematic(gold(start=1, end=1)) == []  # lengths are right


def test_offsets_that_fit_or_are_wrong_for_different_reasons_have_no_one_cause():
    assert systematic(gold(), corpus={"d": DOCUMENT}) == []
    mixed = gold(end=-1)[:2] + gold(start=1)[2:]
    assert systematic(mixed, corpus={"d": DOCUMENT}) == []


def test_scoring_without_documents_warns_where_texts_and_spans_differ_in_length():
    run = [{"query_id": "q0", "results": [{"doc_id": "d", "start": 0, "end": 9}]}]
    with pytest.warns(KaratWarning) as caught:
        karat.evaluate(gold(end=-1), run)
    message = str(caught[0].message)
    assert "4 spans" in message
    assert "all 4 ends" in message


def test_scoring_with_documents_names_the_cause_in_the_hint():
    run = [{"query_id": "q0", "results": [{"doc_id": "d", "start": 0, "end": 9}]}]
    with pytest.raises(InputError) as error:
        karat.evaluate(gold(end=-1), run, corpus={"d": DOCUMENT})
    assert "all 4 ends" in error.value.hint
    assert "--shift-end 1" in error.value.hint


@given(st.integers(0, 30), st.sampled_from(["ab", "b", "abab"]))
def test_the_hint_names_the_nearest_occurrence(start, text):
    document = "abab--ab----abab------ab--------b"
    span = {"doc_id": "d", "start": start, "end": start + len(text), "text": text}
    records = [{"query_id": "q", "query": "?", "spans": [span]}]
    findings = karat.validate(records, corpus={"d": document}).findings
    mismatch = [finding for finding in findings if finding.kind in ("text-mismatch", "past-end")]
    if not mismatch or "fits" in (mismatch[0].examples[0].hint or ""):
        return
    starts = [at for at in range(len(document)) if document.startswith(text, at)]
    nearest = min(abs(at - start) for at in starts)
    named = int(mismatch[0].examples[0].hint.split("[")[1].split(",")[0])
    assert abs(named - start) == nearest
