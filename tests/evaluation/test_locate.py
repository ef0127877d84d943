"""Evidence becomes spans: where texts are found, and how the others are reported."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import warnings
from functools import partial
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import KaratWarning
from karat.match import occurrences
from karat.match.occurrences import strand_starts
from oracles import locate as locate_oracle
from support.effort import examples
from support.errors import refused
from support.paths import SHARED_DATA

LETTERS = ["a", "b", "A", "é", "𝄞", "İ", " ", "\n", "\t ", "\x1c", "\u3000"]
TEXTS = st.lists(st.sampled_from(LETTERS), max_size=14).map("".join)
CORPORA = st.dictionaries(st.sampled_from(["d1", "d2", "e"]), TEXTS, max_size=3)


def gold_of(evidence: dict[str, list[str]]) -> karat.Gold:
    return karat.Gold.of([{"query_id": q, "evidence": texts} for q, texts in evidence.items()])


def quietly(gold, corpus, threshold=0.9) -> karat.Located:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        return karat.locate(gold, corpus, threshold)


def outcome(text, corpus, threshold=0.9) -> tuple:
    return quietly(gold_of({"q": [text]}), corpus, threshold).report.row(0)[2:]


# Against plain loops over all places


@examples(60, 600)
@given(CORPORA, st.lists(TEXTS, min_size=1, max_size=4), st.data())
def test_all_places_are_found_and_no_others(corpus, texts, data):
    slices = [text[i:j] for text in corpus.values() for i, j in [(0, 3), (1, 9), (4, 14)]]
    evidence = texts + slices
    threshold = data.draw(st.sampled_from([0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]))
    located = quietly(gold_of({"q": evidence}), corpus, threshold)
    rows = {row["evidence"]: row for row in located.report.to_dicts()}
    assert rows.keys() == set(evidence)
    for text, row in rows.items():
        expected, places = locate_oracle.located(text, corpus, threshold)
        assert (row["outcome"], row["places"]) == (expected, len(places)), text
        assert row["ratio"] == (max(place[3] for place in places) if places else None)
        if expected == "ambiguous":
            listed = located.places.filter(evidence=text)
            assert listed.select("doc_id", "start", "end", "ratio").rows() == places
        elif places:
            assert (row["doc_id"], row["start"], row["end"]) == places[0][:3]


@examples(50, 500)
@given(st.text("ab", max_size=9), st.text("abc", max_size=12))
def test_strand_starts_give_the_common_length_with_each_stretch(text, other):
    if not text or not other:
        return
    starts = strand_starts(text, other)
    for start in range(len(other)):
        for length, shared in enumerate(locate_oracle.common(text, other[start:])):
            assert length - sum(starts[: start + length] >= start) == shared


@examples(50, 500)
@given(
    st.text("abc", min_size=1, max_size=9),
    st.text("abcd", max_size=40),
    st.integers(1, 12),
    st.integers(1, 9),
    st.integers(1, 30),
)
def test_no_window_with_enough_in_common_is_left_out(text, long, size, common, block):
    with mock.patch.object(occurrences, "_BLOCK", block):
        stretches = list(occurrences.similar_windows(text, long, size, common))
    for start in range(max(1, len(long) - size + 1)):
        if locate_oracle.common(text, long[start : start + size])[-1] >= common:
            assert any(begin <= start and start + size <= end for begin, end in stretches)


@pytest.mark.parametrize("seed", range(12))
def test_a_text_with_edits_is_found_where_it_was_planted(seed):
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(4000)]
    document = " ".join(words)
    start = chance.randrange(len(document) - 700)
    while document[start] == " ":
        start += 1
    end = start + chance.randint(30, 600)
    text = list(document[start:end].strip())
    end = start + len(text)
    places = chance.sample(range(1, len(text) - 1), 1 + len(text) // 50)
    text[places[0]] = "y"  # which is nowhere in the document
    for at in places[1:]:
        text[at] = chance.choice(["", text[at] + "x", text[at] + "\n", text[at].upper() + "?"])
    edits = 2 * len(places)
    word, ratio, count, _, found_start, found_end = outcome("".join(text), {"d": document})
    assert (word, count) == ("fuzzy", 1)
    assert abs(found_start - start) <= edits
    assert abs(found_end - end) <= edits
    assert ratio >= 1 - edits / (len(text) + end - start - edits)


@pytest.mark.parametrize(("removed", "added"), [(0, 96), (60, 0), (12, 70)])
def test_a_stretch_much_longer_or_shorter_than_the_text_is_found(removed, added):
    chance = random.Random(7)
    text = "".join(chance.choices("etaoinshrdlu", k=200))
    stretch = text[:100] + "z" * added + text[100 + removed :]
    filler = ["".join(chance.choices("etaoinshrdlu", k=3000)) for _ in range(2)]
    place = (3000, 3000 + len(stretch))
    ratio = 2 * (200 - removed) / (200 + len(stretch))
    located = outcome(text, {"d": stretch.join(filler)}, 0.8)
    assert located == ("fuzzy", ratio, 1, "d", *place)


# What counts as what


@pytest.mark.parametrize(
    ("text", "corpus", "expected"),
    [
        ("b c", {"d": "a b c"}, ("exact", 1.0, 1, "d", 2, 5)),
        ("é𝄞 b", {"d": "𝄞é𝄞 \n b"}, ("white space", 1.0, 1, "d", 1, 7)),
        ("PAID IN 14 DAYS", {"d": "is  paid in\n14 days."}, ("fuzzy", 1.0, 1, "d", 4, 19)),
        ("aa", {"d": "aaa"}, ("ambiguous", 1.0, 2, None, None, None)),
        ("same", {"d": "same", "e": "same"}, ("ambiguous", 1.0, 2, None, None, None)),
        ("a b", {"d": "a  b", "e": "a\nb"}, ("ambiguous", 1.0, 2, None, None, None)),
        ("a b", {"d": "a b", "e": "a\nb"}, ("exact", 1.0, 1, "d", 0, 3)),
        ("abcdefghij", {"d": "ABCDEFGHIJ abcdefghix"}, ("ambiguous", 1.0, 2, None, None, None)),
        ("no", {"d": "yes", "e": ""}, ("not found", None, 0, None, None, None)),
        (" \n", {"d": "a \n b"}, ("not found", None, 0, None, None, None)),
        ("a", {}, ("not found", None, 0, None, None, None)),
        ("ab", {"d": "a", "e": "b"}, ("not found", None, 0, None, None, None)),
    ],
)
def test_outcome_of_evidence(text, corpus, expected):
    assert outcome(text, corpus) == expected


def test_the_threshold_is_inclusive():
    corpus = {"d": "xxxx abcdefghiX yyyy"}
    assert outcome("abcdefghij", corpus, 0.9)[:2] == ("fuzzy", 18 / 19)
    assert outcome("abcdefghij", corpus, 18 / 19)[0] == "fuzzy"
    assert outcome("abcdefghij", corpus, 0.948)[0] == "not found"


def test_the_order_of_rows_and_documents_does_not_matter():
    corpus = {"b": "one two three one", "a": "one twoo three"}
    evidence = {"q2": ["two three", "one"], "q1": ["one two thre"]}
    one = quietly(gold_of(evidence), corpus)
    turned = {query: texts[::-1] for query, texts in reversed(evidence.items())}
    two = quietly(gold_of(turned), dict(reversed(corpus.items())))
    assert one.report.equals(two.report)
    assert one.places.equals(two.places)
    assert one.gold.spans.equals(two.gold.spans)


def test_repeated_evidence_counts_once_per_query():
    located = quietly(gold_of({"q1": ["one", "one"], "q2": ["one"]}), {"d": "one"})
    assert located.report.select("query_id", "evidence").rows() == [("q1", "one"), ("q2", "one")]
    assert located.counts["exact"] == 2


# The gold that comes back


def test_gold_keeps_its_contents_and_new_spans_are_added_to_its_own():
    own = {"doc_id": "d", "start": 0, "end": 3, "text": "one", "grade": 2}
    gold = karat.Gold(
        pl.DataFrame({"query_id": ["q1"], "item_id": ["x"], "grade": [3]}),
        query_data=pl.DataFrame({"query_id": ["q1", "q2"], "text": ["why", None], "kind": [1, 2]}),
        spans=pl.DataFrame({"query_id": ["q1"], **{key: [value] for key, value in own.items()}}),
        empty_spans=["q2", "q3"],
        evidence=pl.DataFrame({"query_id": ["q1", "q1", "q2"], "text": ["one", "two", "two"]}),
        name="mine",
        settings={"a": 1},
    )
    after = karat.locate(gold, {"d": "one two"}).gold
    assert after.spans.rows() == [
        ("q1", *own.values()),
        ("q1", "d", 4, 7, "two", 1),
        ("q2", "d", 4, 7, "two", 1),
    ]
    assert after.empty_spans == ("q3",)
    for name in ("judgments", "evidence", "queries"):
        assert getattr(after, name).equals(getattr(gold, name))
    assert (after.name, after.settings) == ("mine", {"a": 1})
    assert karat.locate(after, {"d": "one two"}).gold.spans.equals(after.spans)


def test_evidence_without_a_place_gives_a_warning_and_may_be_left_out():
    gold = gold_of({"q1": ["one", "x" * 99], "q2": ["two"], "q3": ["three"]})
    with pytest.warns(KaratWarning) as warned:
        located = karat.locate(gold, {"d": "one two three one"})
    assert len(warned) == 1
    message = str(warned[0].message)
    assert "4" in message
    assert re.search(rf"1 .*'one'.*'q1'.*1 .*'{'x' * 60}…'.*'q1'.*1 query", message)
    assert warned[0].filename == __file__
    assert located.incomplete == ["q1"]
    rest = located.gold.without(located.incomplete)
    assert rest.query_ids.to_list() == ["q2", "q3"]
    assert rest.spans["query_id"].to_list() == ["q2", "q3"]


def test_queries_may_be_removed_from_judgments():
    gold = karat.Gold.of({"q1": {"a": 1}, "q2": {"b": 1}}).without(["q1"])
    assert gold.judgments.rows() == [("q2", "b", 1)]
    assert gold.query_ids.to_list() == ["q2"]


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan"), "0.9", None])
def test_invalid_threshold_is_refused(threshold):
    with refused(field="threshold") as error:
        karat.locate(gold_of({"q": ["a"]}), {"d": "a"}, threshold)
    assert repr(threshold) in error.value.problem


def test_span_measures_of_evidence_are_refused_with_a_hint_at_locate():
    with refused(field="spans") as error:
        karat.evaluate(gold_of({"q": ["one"]}), {"q": []}, "span.recall")
    assert "karat locate" in error.value.hint


def test_gold_without_evidence_is_refused():
    with refused(field="evidence"):
        karat.locate({"q": {"a": 1}}, {"d": "a"})


def test_spans_in_other_units_are_converted_to_code_points():
    spans = pl.DataFrame(
        {"query_id": ["q"], "doc_id": ["d"], "start": [2], "end": [3], "text": ["a"], "grade": [1]}
    )
    evidence = pl.DataFrame({"query_id": ["q"], "text": ["b"]})
    gold = karat.Gold(spans=spans, evidence=evidence, offsets="utf16")
    located = karat.locate(gold, {"d": "😀a😀b"}).gold
    assert located.offsets == "codepoint"
    assert located.spans.select("start", "end").sort("start").rows() == [(1, 2), (3, 4)]
    with refused(field="spans") as error:
        karat.locate(gold, {"d": "b"})
    assert re.search(r"'q'.*'d'.*\[2, 3\).* 1 ", error.value.problem)
    located = karat.locate(karat.Gold(evidence=evidence, offsets="utf16"), {"d": "b"})
    assert located.gold.offsets == "codepoint"


# The command


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(command, "locate")


def test_command_writes_gold_and_exits_with_0(command, tmp_path):
    gold_of({"q": ["two"]}).write("gold.jsonl")
    (tmp_path / "d.txt").write_text("one two")
    code, out, err = command("gold.jsonl", "--corpus", "d.txt", "-o", "out.jsonl")
    assert (code, err) == (0, "wrote out.jsonl\n")
    assert ["exact", "1"] in [line.split() for line in out.splitlines()]
    assert karat.Gold.read("out.jsonl").spans.rows() == [("q", "d.txt", 4, 7, "two", 1)]


def test_command_exits_with_1_and_shows_evidence_without_a_place_in_80_columns(command, tmp_path):
    evidence = {f"{'q' * 40}{n}": [f"n{n} " + "long " * 40] for n in range(7)}
    gold_of({"q": ["one"], **evidence}).write("gold.jsonl")
    (tmp_path / "d.txt").write_text("one, one")
    code, out, err = command("gold.jsonl", "--corpus", "d.txt", "-o", "out.jsonl")
    lines = out.splitlines()
    assert code == 1
    assert lines[6:8] == ["ambiguous                 1", "not found                 7"]
    assert lines[9:12] == [
        "ambiguous",
        "query  evidence text  candidates",
        "q      one                     2",
    ]
    assert lines[-1] == "and 2 more"
    assert max(map(len, lines)) <= 80
    assert err.startswith("warning: 1 of 8 ")
    assert Path("out.jsonl").exists()


def test_the_command_prints_json(command, tmp_path):
    gold_of({"q": ["one", "zzz"]}).write("gold.jsonl")
    (tmp_path / "d.txt").write_text("one, one")
    code, out, _ = command("gold.jsonl", "--corpus", "d.txt", "--threshold", "0.95", "--json")
    places = [{"doc_id": "d.txt", "start": s, "end": s + 3, "ratio": 1.0} for s in (0, 5)]
    assert code == 1
    assert json.loads(out) == {
        "counts": {"exact": 0, "white space": 0, "fuzzy": 0, "ambiguous": 1, "not found": 1},
        "ambiguous": [{"query_id": "q", "evidence": "one", "places": places}],
        "not_found": [{"query_id": "q", "evidence": "zzz"}],
        "incomplete": ["q"],
    }


@pytest.mark.parametrize(
    ("words", "place", "value"),
    [
        (["-o", "out.xyz"], "out.xyz", "'.xyz'"),
        (["-o", "out.qrels"], "out.qrels", "spans"),
        (["-o", "out.csv"], "out.csv", "spans"),
        (["-o", "no/out.jsonl"], "no/out.jsonl", ""),
        (["--threshold", "2"], "threshold", "2.0"),
    ],
)
def test_command_reports_mistakes_before_writing(command, tmp_path, words, place, value):
    gold_of({"q": ["one"]}).write("gold.jsonl")
    (tmp_path / "d.txt").write_text("one")
    code, out, err = command("gold.jsonl", "--corpus", "d.txt", *words)
    assert (code, out) == (2, "")
    problem, hint = err.splitlines()
    assert problem.startswith(f"error: {place}: ")
    assert value in problem
    assert hint.startswith("  hint: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.txt", "gold.jsonl"]


# Real texts


def real(*names: str) -> Path:
    path = SHARED_DATA.joinpath(*names)
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def test_references_of_chunking_evaluation_are_found_at_their_offsets():
    folder = real("chunking-evaluation")
    corpus = {p.stem: p.read_bytes().decode() for p in (folder / "corpora").glob("*.md")}
    expected = {}
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            for reference in json.loads(row["references"]):
                place = (row["corpus_id"], reference["start_index"], reference["end_index"])
                expected[f"q{number}", reference["content"]] = place
    evidence: dict[str, list[str]] = {}
    for query, text in expected:
        evidence.setdefault(query, []).append(text)
    located = quietly(gold_of(evidence), corpus)
    assert located.counts | {"exact": 0} == dict.fromkeys(located.counts, 0) | {"ambiguous": 97}
    repeated: dict[str, int] = {}
    for row in located.report.iter_rows(named=True):
        doc_id, start, end = expected[row["query_id"], row["evidence"]]
        if row["outcome"] == "exact":
            assert (row["doc_id"], row["start"], row["end"]) == (doc_id, start, end)
        else:
            assert row["places"] > 1
            repeated[doc_id] = repeated.get(doc_id, 0) + 1
    assert repeated["finance"] == 96


@pytest.mark.parametrize("language", ["en", "de", "zh", "ar", "hi"])
def test_answers_of_xquad_are_among_the_places_found(language):
    with gzip.open(real("xquad", f"xquad.{language}.json.gz")) as file:
        articles = json.load(file)["data"]
    corpus, records, expected = {}, [], []
    for paragraph in (p for article in articles for p in article["paragraphs"]):
        doc_id = str(len(corpus))
        corpus[doc_id] = paragraph["context"]
        for question in paragraph["qas"]:
            (answer,) = question["answers"]
            records.append({"query_id": question["id"], "evidence": [answer["text"]]})
            expected.append((question["id"], doc_id, answer["answer_start"]))
    located = quietly(records, corpus)
    assert located.counts["exact"] + located.counts["ambiguous"] == len(records) == 1190
    every = set(located.places.select("query_id", "doc_id", "start").iter_rows())
    every |= set(located.report.select("query_id", "doc_id", "start").iter_rows())
    assert every.issuperset(expected)


def test_evidence_of_financebench_is_found_also_after_another_extraction():
    with real("financebench", "financebench_open_source.jsonl").open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    pages, evidence, home = {}, {}, {}
    for record in records:
        for piece in record["evidence"]:
            page = f"{piece['doc_name']} {piece['evidence_page_num']}"
            pages[page] = piece["evidence_text_full_page"]
            evidence.setdefault(record["financebench_id"], []).append(piece["evidence_text"])
            home[piece["evidence_text"]] = page
    located = karat.locate(gold_of(evidence), pages)
    assert located.counts["exact"] == located.report.height == 189
    assert located.report["doc_id"].to_list() == [home[text] for text in located.report["evidence"]]

    other = {page: " ".join(text.split()) for page, text in pages.items()}
    assert karat.locate(gold_of(evidence), other).incomplete == []

    changes = str.maketrans({",": "", "’": "'", "é": "e"})
    other = {page: text.translate(changes) for page, text in other.items()}
    few = dict(list(evidence.items())[::16])
    again = karat.locate(gold_of(few), other)
    assert again.incomplete == []
    assert again.counts["fuzzy"] > 0
    assert again.report["doc_id"].to_list() == [home[text] for text in again.report["evidence"]]
