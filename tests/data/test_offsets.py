"""Offsets in UTF-16 code units and UTF-8 bytes, compared with the encoded text itself."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data.offsets import code_points
from karat.errors import KaratWarning
from support.effort import examples
from support.errors import refused

ENCODINGS = {"codepoint": ("utf-32-le", 4), "utf16": ("utf-16-le", 2), "utf8": ("utf-8", 1)}
UNITS = st.sampled_from(list(ENCODINGS))
TEXTS = st.text(st.sampled_from("ab \r\néß中😀𝒳") | st.characters(exclude_categories=["Cs"]))


def units(text, unit):
    encoding, width = ENCODINGS[unit]
    return len(text.encode(encoding)) // width


def sliced(text, start, end, unit):
    """Cut the encoded text, or return None where the cut is inside a character."""
    encoding, width = ENCODINGS[unit]
    try:
        before = text.encode(encoding)[: start * width].decode(encoding)
        inside = text.encode(encoding)[start * width : end * width].decode(encoding)
    except UnicodeDecodeError:
        return None
    return before, inside


@st.composite
def places(draw):
    text, unit = draw(TEXTS), draw(UNITS)
    ends = st.integers(0, units(text, unit) + 3)
    start, end = sorted([draw(ends), draw(ends)])
    return text, unit, start, end


def gold_of(start, end, unit="codepoint", text=None, doc_id="d"):
    span = {"doc_id": doc_id, "start": start, "end": end, "text": text}
    return karat.Gold.of([{"query_id": "q", "spans": [span]}], offsets=unit)


def run_of(start, end, unit="codepoint", text=None, doc_id="d"):
    result = {"id": "c", "doc_id": doc_id, "start": start, "end": end, "text": text}
    return karat.Run.of([{"query_id": "q", "results": [result, {"id": "plain"}]}], offsets=unit)


GOLD_AND_RUN = [(gold_of, "spans"), (run_of, "results")]


@examples(60, 1_000)
@given(TEXTS, UNITS)
def test_every_offset_is_the_length_of_the_decoded_text_before_it(text, unit):
    encoding, width = ENCODINGS[unit]
    offsets = list(range(units(text, unit) + 3))
    expected = []
    for offset in offsets:
        try:
            before = text.encode(encoding)[: offset * width].decode(encoding)
            expected.append(len(before) if offset <= units(text, unit) else len(text) + 1)
        except UnicodeDecodeError:
            expected.append(-1)
    assert code_points(text, pl.Series(offsets).to_numpy(), unit).tolist() == expected


@examples(60, 1_000)
@given(places())
def test_a_place_is_converted_or_refused(place):
    text, unit, start, end = place
    cut = sliced(text, start, end, unit)
    for make, table in GOLD_AND_RUN:
        made = make(start, end, unit)
        if end > units(text, unit) or cut is None:
            with refused(field=table) as caught:
                made.in_code_points({"d": text, "other": "é"})
            assert f"[{start}, {end})" in caught.value.problem
            continue
        converted = made.in_code_points({"d": text, "other": "é"})
        assert converted.offsets == "codepoint"
        row = getattr(converted, table).row(0, named=True)
        assert (row["start"], row["end"]) == (len(cut[0]), len(cut[0]) + len(cut[1]))
        assert text[row["start"] : row["end"]] == cut[1]


@examples(60, 1_000)
@given(places(), TEXTS)
def test_a_text_must_be_equal_to_the_text_at_its_place(place, other):
    text, unit, start, end = place
    cut = sliced(text, start, end, unit)
    if end > units(text, unit) or cut is None:
        return
    for make, table in GOLD_AND_RUN:
        converted = make(start, end, unit, cut[1]).in_code_points({"d": text})
        assert getattr(converted, table)["text"][0] == cut[1]
        if other != cut[1]:
            with refused(field=table):
                make(start, end, unit, other).in_code_points({"d": text})


def error_of(made, corpus, field="spans"):
    """Return the error of places that do not fit the documents, which must have a hint."""
    with refused(path=None, line=None, field=field) as caught:
        made.in_code_points(corpus)
    assert caught.value.hint
    return caught.value


def test_a_mismatch_shows_both_texts_from_where_they_differ():
    document = "The refund is paid within 14 days of the request, in full."
    error = error_of(gold_of(4, 33, text="refund is paid within 40 days"), {"d": document})
    shown = ["'q'", "'d'", "[4, 33)", "…' is paid within 14 days'", "…' is paid within 40 days'"]
    assert [part for part in shown if part not in error.problem] == []


def test_control_characters_of_a_mismatch_are_escaped():
    problem = error_of(gold_of(0, 3, text="a\nb"), {"d": "a\rb"}).problem
    assert r"'a\rb'" in problem
    assert r"'a\nb'" in problem


@pytest.mark.parametrize(
    ("document", "text", "start", "value"),
    [
        ("😀😀 paid", "paid", 5, '"offsets": "utf16"'),
        ("éé paid", "paid", 5, '"offsets": "utf8"'),
        ("a\r\nb\r\npaid now", "paid", 4, r"\r\n"),
        ("a\nb\npaid now", "paid", 6, r"\r\n"),
        ("It is paid.", "paid", 1, "[6, 10)"),
        ("éé paid", "paid", 90, "[3, 7)"),
    ],
)
def test_the_hint_suggests_how_the_offsets_may_have_been_counted(document, text, start, value):
    error = error_of(gold_of(start, start + len(text), text=text), {"d": document})
    assert value in error.hint


def test_the_two_hints_about_newlines_differ():
    both = error_of(gold_of(4, 8, text="paid"), {"d": "a\r\nb\r\npaid now"})
    one = error_of(gold_of(6, 10, text="paid"), {"d": "a\nb\npaid now"})
    neither = error_of(gold_of(5, 9, text="paid"), {"d": "a\nb\npaid now"})
    assert both.hint != one.hint
    assert r"\r\n" not in neither.hint


def test_a_text_at_the_end_does_not_fit_a_place_beyond_it():
    error = error_of(gold_of(6, 90, text="paid"), {"d": "It is paid"})
    assert "10" in error.problem
    assert "[6, 10)" in error.hint
    assert "offsets" not in error.hint


def test_wrongly_declared_offsets_are_recognised():
    error = error_of(gold_of(3, 7, "utf8", "paid"), {"d": "éé paid"})
    assert '"offsets": "codepoint"' in error.hint


def test_an_unknown_document_is_refused_with_the_ids_of_the_corpus():
    error = error_of(gold_of(0, 1, doc_id="D1"), {"d2": "x", "d1": "x"})
    assert "'D1', [0, 1)" in error.problem
    assert "'d1', 'd2'" in error.hint


def test_a_result_with_a_place_needs_a_document():
    result = {"id": "c", "start": 0, "end": 1, "text": "x"}
    run = karat.Run.of([{"query_id": "q", "results": [result]}])
    error = error_of(run, {"d": "x"}, "results")
    assert "'q', [0, 1)" in error.problem
    assert "doc_id" in error.hint


def test_the_first_wrong_place_is_reported():
    spans = {"query_id": ["q1", "q2", "q3"], "doc_id": "d", "start": [0, 0, 0], "end": [1, 9, 99]}
    gold = karat.Gold.of(spans=pl.DataFrame(spans))
    problem = error_of(gold, {"d": "ab cd"}).problem
    assert "'q2'" in problem
    assert "[0, 9)" in problem
    assert "5" in problem


def test_data_without_places_is_unchanged():
    gold = karat.Gold.of({"q": {"a": 1}}).in_code_points({"d": "x"})
    assert gold.judgments.rows() == [("q", "a", 1)]
    assert gold.spans is None
    assert karat.Run.of({"q": ["a"]}).in_code_points({"d": "x"}).results.height == 1


def test_everything_else_of_gold_and_run_is_kept(tmp_path):
    gold = karat.Gold.of(
        [
            {"query_id": "q1", "query": "?", "kind": 3, "relevant": {"a": 1}, "evidence": ["e"]},
            {"query_id": "q2", "spans": []},
            {"query_id": "q3", "spans": [{"doc_id": "d", "start": 2, "end": 3, "grade": 2}]},
        ],
        name="faq",
        offsets="utf16",
    )
    run = karat.Run.of(
        [
            {"query_id": "q1", "results": [{"id": "c", "doc_id": "d", "start": 2, "end": 3}]},
            {"query_id": "q2", "results": [], "error": {"type": "Timeout"}},
        ],
        name="hybrid",
        offsets="utf16",
    )
    for made in (gold, run):
        made.in_code_points({"d": "😀b"}).write(tmp_path / "after.jsonl")
        made.write(tmp_path / "before.jsonl")
        before, after = (
            (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("before", "after")
        )
        expected = before.replace('"offsets":"utf16",', "").replace('"offsets":"utf16"', "")
        expected = expected.replace(",}", "}").replace('"start":2,"end":3', '"start":1,"end":2')
        assert after == expected
        assert after != before


@pytest.mark.parametrize("kind", ["gold", "run"])
def test_files_declare_the_unit_of_offsets_in_their_header_and_keep_it(tmp_path, kind):
    line = {
        "gold": {"query_id": "q", "spans": [{"doc_id": "d", "start": 2, "end": 3}]},
        "run": {"query_id": "q", "results": [{"doc_id": "d", "start": 2, "end": 3}]},
    }[kind]
    path = tmp_path / "one.jsonl"
    header = {"karat": 1, "kind": kind, "offsets": "utf16"}
    path.write_text("\n".join(map(json.dumps, (header, line))))
    reader = {"gold": karat.Gold, "run": karat.Run}[kind]
    reader.read(path).write(tmp_path / "two.jsonl")
    again = reader.read(tmp_path / "two.jsonl")
    assert again.offsets == "utf16"
    table = again.in_code_points({"d": "😀b"})
    assert (table.spans if kind == "gold" else table.results)["start"].to_list() == [1]


def test_an_unknown_unit_is_refused(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text('{"karat":1,"kind":"gold","offsets":"bytes"}\n{"query_id":"q"}\n')
    with refused(path=path, line=1, field="offsets") as caught:
        karat.Gold.read(path)
    assert "'bytes'" in caught.value.problem
    assert "codepoint, utf16, utf8" in caught.value.hint
    for make in (karat.Gold.of, karat.Run.of):
        with refused(path=None, field="offsets") as caught:
            make({"q": ["a"]}, offsets="chars")
        assert "'chars'" in caught.value.problem


def test_parts_of_a_run_must_have_the_same_unit(tmp_path):
    for name in ("utf16", "utf8"):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"karat":1,"kind":"run","offsets":"{name}"}}\n{{"query_id":"{name}","results":[]}}\n'
        )
    with refused(path=tmp_path / "*.jsonl") as caught:
        karat.Run.read(tmp_path / "*.jsonl")
    assert "utf16" in caught.value.problem
    assert "utf8" in caught.value.problem


def test_a_lost_unit_of_offsets_is_reported(tmp_path):
    with pytest.warns(KaratWarning, match="utf16"):
        karat.Run.of(
            [{"query_id": "q", "results": [{"id": "c", "doc_id": "d", "start": 2, "end": 3}]}],
            offsets="utf16",
        ).write(tmp_path / "run.csv")


def test_newlines_of_files_are_untouched(tmp_path):
    (tmp_path / "d.txt").write_bytes("é\r\npaid\r\n".encode())
    for unit, start in (("codepoint", 3), ("utf16", 3), ("utf8", 4)):
        made = gold_of(start, start + 4, unit, "paid", "d.txt").in_code_points(tmp_path)
        assert made.spans.select("start", "end").rows() == [(3, 7)]


# Scores of places in other units


def places_in(unit):
    """Gold and a run of one query in a text of wide characters, counted in a unit."""
    text = "😀 Zürich, ß und 𝄞: zwei Noten"

    def place(start, end):
        return {"doc_id": "d", "start": units(text[:start], unit), "end": units(text[:end], unit)}

    gold = karat.Gold.of(
        [{"query_id": "q", "spans": [{**place(2, 8), "text": text[2:8]}, place(12, 16)]}],
        offsets=unit,
    )
    run = karat.Run.of([{"query_id": "q", "results": [{"id": "c", **place(4, 14)}]}], offsets=unit)
    return text, gold, run


@pytest.mark.parametrize("unit", ["codepoint", "utf16", "utf8"])
def test_spans_have_the_same_scores_and_explanations_in_every_unit(unit):
    text, gold, run = places_in(unit)
    scores = karat.evaluate(gold, run, ["span.recall", "span.precision"], corpus={"d": text})
    assert list(dict(scores).values()) == [6 / 10, 6 / 10]
    explained = karat.explain(
        "span.recall", gold=gold, run=run, query="q", corpus={"d": text}, other=run
    )
    assert [calculation.value for calculation in explained.calculations] == [0.6, 0.6]


def test_other_units_are_refused_without_the_documents():
    _, gold, run = places_in("utf16")
    with refused(field="offsets") as caught:
        karat.evaluate(gold, run, "span.recall")
    assert "gold" in caught.value.problem
    assert "utf16" in caught.value.problem
    assert "--corpus" in caught.value.hint
    plain = places_in("codepoint")[1]
    with refused(field="offsets") as caught:
        karat.evaluate(plain, run, "span.recall")
    assert "run" in caught.value.problem
    assert "utf16" in caught.value.problem
    with refused(field="offsets"):
        karat.explain("span.recall", gold=plain, run=run, query="q")


def test_places_are_checked_against_the_documents_before_they_are_scored():
    text, gold, run = places_in("codepoint")
    with refused(field="spans") as caught:
        karat.evaluate(gold, run, "span.recall", corpus={"d": text.replace("Z", "z")})
    assert "'zürich'" in caught.value.problem
    with refused(field="spans") as caught:
        karat.evaluate(gold, run, "span.recall", corpus={"other": text})
    assert "'other'" in caught.value.hint


def test_the_file_with_the_wrong_places_is_named(tmp_path):
    text, gold, run = places_in("utf16")
    gold.write(tmp_path / "gold.jsonl")
    run.write(tmp_path / "run.jsonl")
    with refused(path=tmp_path / "gold.jsonl", field="offsets"):
        karat.evaluate(tmp_path / "gold.jsonl", tmp_path / "run.jsonl", "span.recall")
    with refused(path=tmp_path / "gold.jsonl", field="spans"):
        karat.evaluate(tmp_path / "gold.jsonl", run, "span.recall", corpus={"other": text})


def test_the_command_line_converts_offsets_of_files_in_other_units(tmp_path, monkeypatch, command):
    text, gold, run = places_in("utf16")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "d.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    gold.write("gold.jsonl")
    run.write("run.jsonl")
    for name in ("gold.jsonl", "run.jsonl"):
        path = tmp_path / name
        path.write_text(path.read_text().replace('"doc_id":"d"', '"doc_id":"d.txt"'))
    commands = {
        "eval": ["gold.jsonl", "run.jsonl", "-m", "span.recall", "--json"],
        "explain": ["span.recall", "--gold", "gold.jsonl", "--run", "run.jsonl", "--query", "q"],
        "convert": ["gold.jsonl", "code-points.jsonl"],
    }
    for name, words in commands.items():
        code, out, err = command(name, *words, "--corpus", "documents")
        assert code == 0, err
        assert name == "convert" or "0.6" in out
    converted = karat.Gold.read("code-points.jsonl")
    assert converted.offsets == "codepoint"
    assert converted.spans["start"].to_list() == [2, 12]
