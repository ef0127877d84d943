"""Offsets in UTF-16 code units and UTF-8 bytes, against what the encoded text itself says."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.cli.main import main
from karat.data.offsets import code_points
from karat.errors import InputError, KaratWarning

ENCODINGS = {"codepoint": ("utf-32-le", 4), "utf16": ("utf-16-le", 2), "utf8": ("utf-8", 1)}
UNITS = st.sampled_from(list(ENCODINGS))
TEXTS = st.text(st.sampled_from("ab \r\néß中😀𝒳") | st.characters(exclude_categories=["Cs"]))


def units(text, unit):
    encoding, width = ENCODINGS[unit]
    return len(text.encode(encoding)) // width


def sliced(text, start, end, unit):
    """Cut the encoded text, or return None where that is no text."""
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


MADE = [(gold_of, "spans"), (run_of, "results")]


@given(TEXTS, UNITS)
def test_every_offset_is_what_decoding_up_to_there_says(text, unit):
    encoding, width = ENCODINGS[unit]
    asked = list(range(units(text, unit) + 3))
    expected = []
    for offset in asked:
        try:
            before = text.encode(encoding)[: offset * width].decode(encoding)
            expected.append(len(before) if offset <= units(text, unit) else len(text) + 1)
        except UnicodeDecodeError:
            expected.append(-1)
    assert code_points(text, pl.Series(asked).to_numpy(), unit).tolist() == expected


@pytest.mark.parametrize(("make", "table"), MADE)
@given(places())
def test_a_place_is_converted_or_refused(make, table, place):
    text, unit, start, end = place
    held = make(start, end, unit)
    cut = sliced(text, start, end, unit)
    if end > units(text, unit) or cut is None:
        with pytest.raises(InputError, match=r"the document ends at|inside a character"):
            held.in_code_points({"d": text, "other": "é"})
        return
    converted = held.in_code_points({"d": text, "other": "é"})
    assert converted.offsets == "codepoint"
    row = getattr(converted, table).row(0, named=True)
    assert (row["start"], row["end"]) == (len(cut[0]), len(cut[0]) + len(cut[1]))
    assert text[row["start"] : row["end"]] == cut[1]


@pytest.mark.parametrize(("make", "table"), MADE)
@given(places(), TEXTS)
def test_a_text_must_be_what_stands_there(make, table, place, other):
    text, unit, start, end = place
    cut = sliced(text, start, end, unit)
    if end > units(text, unit) or cut is None:
        return
    converted = make(start, end, unit, cut[1]).in_code_points({"d": text})
    assert getattr(converted, table)["text"][0] == cut[1]
    if other != cut[1]:
        with pytest.raises(InputError, match=r"the document has .* and the text is"):
            make(start, end, unit, other).in_code_points({"d": text})


def message(held, corpus):
    with pytest.raises(InputError) as caught:
        held.in_code_points(corpus)
    return str(caught.value)


def test_a_mismatch_shows_both_sides_from_where_they_differ():
    document = "The refund is paid within 14 days of the request, in full."
    said = message(gold_of(4, 33, text="refund is paid within 40 days"), {"d": document})
    assert said == (
        "spans: query 'q', document 'd', [4, 33): the document has …' is paid within 14 days' "
        "and the text is …' is paid within 40 days'"
        "\n  hint: karat validate lists all that is wrong"
    )


def test_what_cannot_be_seen_is_written_out():
    said = message(gold_of(0, 3, text="a\nb"), {"d": "a\rb"})
    assert r"'a\rb' and the text is 'a\nb'" in said


@pytest.mark.parametrize(
    ("document", "text", "start", "hint"),
    [
        ("😀😀 paid", "paid", 5, 'it fits in UTF-16 code units: declare "offsets": "utf16"'),
        ("éé paid", "paid", 5, 'it fits in UTF-8 bytes: declare "offsets": "utf8"'),
        ("a\r\nb\r\npaid now", "paid", 4, r"it fits where \r\n is one character: count both"),
        ("a\nb\npaid now", "paid", 6, r"it fits where every newline is \r\n: count what the docu"),
        ("It is paid.", "paid", 1, "the text stands at [6, 10) in code points"),
        ("éé paid", "paid", 90, "the text stands at [3, 7) in code points"),
    ],
)
def test_a_hint_says_how_the_offsets_may_have_been_counted(document, text, start, hint):
    said = message(gold_of(start, start + len(text), text=text), {"d": document})
    assert f"\n  hint: {hint}" in said


def test_a_text_at_the_end_does_not_fit_a_place_past_it():
    said = message(gold_of(6, 90, text="paid"), {"d": "It is paid"})
    assert "the document ends at 10 (code points)" in said
    assert "it fits" not in said
    assert "the text stands at [6, 10) in code points" in said


def test_offsets_declared_wrongly_are_recognised_too():
    said = message(gold_of(3, 7, "utf8", "paid"), {"d": "éé paid"})
    assert 'it fits in code points: declare "offsets": "codepoint"' in said


def test_an_unknown_document_is_named_with_those_there_are():
    said = message(gold_of(0, 1, doc_id="D1"), {"d2": "x", "d1": "x"})
    assert "document 'D1', [0, 1): the corpus has no such document" in said
    assert "hint: it has 'd1', 'd2'" in said


def test_a_result_with_a_place_needs_a_document():
    result = {"id": "c", "start": 0, "end": 1, "text": "x"}
    run = karat.Run.of([{"query_id": "q", "results": [result]}])
    assert "it does not say in which document" in message(run, {"d": "x"})


def test_the_first_place_at_fault_is_named():
    spans = {"query_id": ["q1", "q2", "q3"], "doc_id": "d", "start": [0, 0, 0], "end": [1, 9, 99]}
    gold = karat.Gold.of(spans=pl.DataFrame(spans))
    assert "query 'q2', document 'd', [0, 9): the document ends at 5" in message(
        gold, {"d": "ab cd"}
    )


def test_what_has_no_places_stays_as_it_is():
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
    for held in (gold, run):
        held.in_code_points({"d": "😀b"}).write(tmp_path / "after.jsonl")
        held.write(tmp_path / "before.jsonl")
        before, after = (
            (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("before", "after")
        )
        expected = before.replace('"offsets":"utf16",', "").replace('"offsets":"utf16"', "")
        expected = expected.replace(",}", "}").replace('"start":2,"end":3', '"start":1,"end":2')
        assert after == expected
        assert after != before


@pytest.mark.parametrize("kind", ["gold", "run"])
def test_files_say_in_their_header_what_they_count_and_keep_it(tmp_path, kind):
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


def test_a_unit_that_is_none_is_refused(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text('{"karat":1,"kind":"gold","offsets":"bytes"}\n{"query_id":"q"}\n')
    with pytest.raises(InputError, match=r"gold.jsonl:1: offsets: 'bytes' is no unit") as caught:
        karat.Gold.read(path)
    assert caught.value.hint == "known: codepoint, utf16, utf8"
    for make in (karat.Gold.of, karat.Run.of):
        with pytest.raises(InputError, match="'chars' is no unit"):
            make({"q": ["a"]}, offsets="chars")


def test_runs_in_parts_must_count_alike(tmp_path):
    for name in ("utf16", "utf8"):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"karat":1,"kind":"run","offsets":"{name}"}}\n{{"query_id":"{name}","results":[]}}\n'
        )
    with pytest.raises(InputError, match="count offsets in utf16 and utf8"):
        karat.Run.read(tmp_path / "*.jsonl")


def test_a_table_that_cannot_say_the_unit_says_so(tmp_path):
    with pytest.warns(KaratWarning, match="cannot hold that offsets count utf16"):
        karat.Run.of(
            [{"query_id": "q", "results": [{"id": "c", "doc_id": "d", "start": 2, "end": 3}]}],
            offsets="utf16",
        ).write(tmp_path / "run.csv")


def test_newlines_of_files_are_untouched(tmp_path):
    (tmp_path / "d.txt").write_bytes("é\r\npaid\r\n".encode())
    for unit, start in (("codepoint", 3), ("utf16", 3), ("utf8", 4)):
        held = gold_of(start, start + 4, unit, "paid", "d.txt").in_code_points(tmp_path)
        assert held.spans.select("start", "end").rows() == [(3, 7)]


# What is scored goes through the documents too.


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
def test_spans_are_scored_and_explained_alike_in_every_unit(unit):
    text, gold, run = places_in(unit)
    scores = karat.evaluate(gold, run, ["span.recall", "span.precision"], corpus={"d": text})
    assert list(dict(scores).values()) == [6 / 10, 6 / 10]
    explained = karat.explain(
        "span.recall", gold=gold, run=run, query="q", corpus={"d": text}, other=run
    )
    assert [each.value for each in explained.calculations] == [0.6, 0.6]


def test_other_units_are_refused_without_the_documents():
    _, gold, run = places_in("utf16")
    with pytest.raises(InputError, match="gold counts its offsets in utf16") as caught:
        karat.evaluate(gold, run, "span.recall")
    assert "--corpus DIR" in str(caught.value)
    plain = places_in("codepoint")[1]
    with pytest.raises(InputError, match="the run counts its offsets in utf16"):
        karat.evaluate(plain, run, "span.recall")
    with pytest.raises(InputError, match="the run counts its offsets in utf16"):
        karat.explain("span.recall", gold=plain, run=run, query="q")


def test_places_are_checked_against_the_documents_before_they_are_scored():
    text, gold, run = places_in("codepoint")
    with pytest.raises(InputError, match="text"):
        karat.evaluate(gold, run, "span.recall", corpus={"d": text.replace("Z", "z")})
    with pytest.raises(InputError, match="d"):
        karat.evaluate(gold, run, "span.recall", corpus={"other": text})


def test_the_file_whose_places_do_not_hold_is_named(tmp_path):
    text, gold, run = places_in("utf16")
    gold.write(tmp_path / "gold.jsonl")
    run.write(tmp_path / "run.jsonl")
    with pytest.raises(InputError, match=r"gold\.jsonl: offsets: gold counts its offsets in utf16"):
        karat.evaluate(tmp_path / "gold.jsonl", tmp_path / "run.jsonl", "span.recall")
    with pytest.raises(InputError, match=r"gold\.jsonl: spans: query 'q', document 'd'"):
        karat.evaluate(tmp_path / "gold.jsonl", run, "span.recall", corpus={"other": text})


def test_files_in_other_units_go_through_the_documents_on_the_command_line(
    tmp_path, monkeypatch, capsys
):
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
        monkeypatch.setattr(sys, "argv", ["karat", name, *words, "--corpus", "documents"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, capsys.readouterr().err
    assert "0.6" in capsys.readouterr().out
    converted = karat.Gold.read("code-points.jsonl")
    assert converted.offsets == "codepoint"
    assert converted.spans["start"].to_list() == [2, 12]
