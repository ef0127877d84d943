"""karat validate: every fault is counted, and shown with where it is and how to fix it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.evaluation.validation_checks import KINDS
from oracles import validation as validation_oracle
from support.effort import examples
from support.errors import refused
from support.paths import ROOT

TEXTS = st.text(st.sampled_from("ab \n😀é"), max_size=8)
DOCUMENTS = st.sampled_from(["d1", "d2", "d3"])
UNITS = st.sampled_from(["codepoint", "utf16", "utf8"])
QUERIES = st.sampled_from(["q1", "q2", "q3"])
ITEMS = st.sampled_from(["a", "b", "c", "d1", "d2"])
PLACES = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(sorted)


@st.composite
def gold_records(draw):
    broken = st.sampled_from([(-1, 3), (-2, -3), (4, 2), (1, 0), (0, 2**40), (2**40, 2)])
    span = st.builds(
        lambda doc_id, place, text: {"doc_id": doc_id, "start": place[0], "end": place[1]} | text,
        DOCUMENTS,
        st.one_of(PLACES, PLACES, PLACES, broken),
        st.one_of(st.just({}), st.builds(lambda text: {"text": text}, TEXTS)),
    )
    record = st.fixed_dictionaries(
        {"query_id": QUERIES},
        optional={
            "relevant": st.dictionaries(ITEMS, st.integers(-1, 2), max_size=3),
            "spans": st.lists(span, max_size=4),
            "evidence": st.lists(st.sampled_from(["", " ", "x", "X ", "a b", "A  b"]), max_size=3),
        },
    )
    return draw(st.lists(record, min_size=1, max_size=4))


@st.composite
def run_records(draw):
    lines = []
    for query in draw(st.lists(st.sampled_from(["q1", "q2", "w"]), unique=True, min_size=1)):
        results = []
        for item in draw(st.lists(ITEMS, unique=True, max_size=3)):
            result = {"id": item}
            if draw(st.booleans()):
                result["doc_id"] = draw(DOCUMENTS)
            if draw(st.booleans()):
                result["start"], result["end"] = draw(PLACES)
            if draw(st.booleans()):
                result["text"] = draw(TEXTS)
            results.append(result)
        lines.append({"query_id": query, "results": results})
    return lines


@st.composite
def chunk_rows(draw):
    ids = draw(st.lists(ITEMS, unique=True, min_size=1, max_size=3))
    return [(item, draw(DOCUMENTS), *draw(PLACES), draw(st.none() | TEXTS)) for item in ids]


def chunk_table(rows):
    names = ["item_id", "doc_id", "start", "end", "text"]
    schema = {n: pl.Int64 if n in ("start", "end") else pl.String for n in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def counts(validation):
    pairs = [(finding.kind, finding.source) for finding in validation.findings]
    assert len(pairs) == len(set(pairs))
    return {(f.kind, f.source): f.count for f in validation.findings}


@examples(60, 600)
@given(
    gold_records(),
    st.none() | st.dictionaries(DOCUMENTS, TEXTS, max_size=2),
    st.none() | chunk_rows(),
    st.lists(st.tuples(UNITS, run_records()), max_size=2),
    UNITS,
)
def test_every_fault_is_counted(tmp_path_factory, records, corpus, chunks, runs, unit):
    path = tmp_path_factory.mktemp("gold") / "gold.jsonl"
    header = {"karat": 1, "kind": "gold", "offsets": unit}
    path.write_text("\n".join(map(json.dumps, [header, *records])), encoding="utf-8")
    named = {f"r{at}": run for at, run in enumerate(runs)}
    validation = karat.validate(
        path,
        corpus=corpus,
        chunks=None if chunks is None else chunk_table(chunks),
        runs={name: karat.Run.of(lines, offsets=u) for name, (u, lines) in named.items()},
    )
    found = counts(validation)
    found.pop(("systematic-offsets", "gold"), None)  # one cause of faults: test_offset_causes.py
    assert found == validation_oracle.faults(records, corpus, chunks, named, unit)
    assert validation.ok == all(f.severity == "warning" for f in validation.findings)
    for finding in validation.findings:
        if finding.kind != "systematic-offsets":
            assert len(finding.examples) == min(3, finding.count)
    assert all(len(line) <= 80 for line in str(validation).splitlines())


@examples(25, 250)
@given(gold_records(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(records, random):
    gold = {record["query_id"]: record for record in records}
    rows = [
        (query, span["doc_id"], span["start"], span["end"], span.get("text"))
        for query, record in gold.items()
        for span in record.get("spans", [])
        if 0 <= span["start"] <= span["end"] < 99
    ]
    names = ["query_id", "doc_id", "start", "end", "text"]
    schema = {n: pl.Int64 if n in ("start", "end") else pl.String for n in names}
    shown = set()
    for _ in range(3):
        random.shuffle(rows)
        spans = pl.DataFrame(rows, schema=schema, orient="row")
        shown.add(str(karat.validate(karat.Gold.of(spans=spans), corpus={"d1": "a b", "d2": "é"})))
    assert len(shown) == 1


# Examples


@pytest.mark.parametrize(
    ("gold", "unit", "expected"),
    [
        ([(0, 4, None), (4, 8, None)], "codepoint", {}),
        ([(0, 4, None), (3, 8, None)], "codepoint", {"overlap": 1}),
        ([(0, 4, None), (0, 4, None)], "codepoint", {"overlap": 1}),
        ([(0, 9, None), (1, 2, None), (5, 6, None)], "codepoint", {"overlap": 2}),
        ([(0, 9, None), (5, 5, None)], "codepoint", {"zero-length": 1}),
        ([(3, 3, "")], "codepoint", {"zero-length": 1}),
        ([(3, 5, " \n")], "codepoint", {"blank": 1}),
        ([(0, 2, "😀")], "codepoint", {"text-mismatch": 1}),
        ([(0, 2, "😀")], "utf16", {}),
        ([(0, 4, "😀")], "utf8", {}),
    ],
)
def test_spans_are_checked_as_far_as_possible_without_a_corpus(gold, unit, expected):
    spans = [{"doc_id": "d", "start": s, "end": e, "text": text} for s, e, text in gold]
    validation = karat.validate(karat.Gold.of([{"query_id": "q", "spans": spans}], offsets=unit))
    assert {f.kind: f.count for f in validation.findings} == expected


def test_id_may_be_a_document_a_chunk_or_the_document_of_a_chunk():
    chunks = chunk_table([("c1", "d1", 0, 2, None)])
    gold = {"q": {"c1": 1, "d1": 1, "d2": 1, "x": 0, "y": 1}}
    for corpus, unknown in (({"d1": "abc", "d2": ""}, ["y"]), (None, ["d2", "y"])):
        validation = karat.validate(gold, corpus=corpus, chunks=chunks)
        assert [e.item_id for e in examples_of(validation, "unknown-item")] == unknown
        assert counts(validation) == {("unknown-item", "gold"): len(unknown)}


def put(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def span(start, end, doc_id="d", **more):
    return {"doc_id": doc_id, "start": start, "end": end, **more}


def examples_of(validation, kind):
    return next(finding.examples for finding in validation.findings if finding.kind == kind)


def test_examples_have_path_line_query_and_offsets(tmp_path):
    path = put(
        tmp_path / "gold.jsonl",
        {"karat": 1, "kind": "gold"},
        {"query_id": "q1", "spans": [span(5, 2)]},
        {"query_id": "q2", "spans": [span(-1, 2)]},
        {"query_id": "q1", "spans": [span(0, 4, text="paid")]},
    )
    validation = karat.validate(path, corpus={"d": "is paid"})
    where = {
        f.kind: [(e.query_id, e.doc_id, e.start, e.end, e.line) for e in f.examples]
        for f in validation.findings
    }
    assert where == {
        "duplicate-query": [("q1", None, None, None, 4)],
        "negative": [("q2", "d", -1, 2, 3)],
        "inverted": [("q1", "d", 5, 2, 2)],
        "text-mismatch": [("q1", "d", 0, 4, 2)],
    }
    assert all(e.path == str(path) for f in validation.findings for e in f.examples)
    mismatch = examples_of(validation, "text-mismatch")[0]
    assert mismatch.problem == "the document has 'is p' here, but the given text is 'paid'"
    assert mismatch.hint == "the text is at [3, 7) in code points"


def test_faults_in_records_do_not_stop_reading():
    validation = karat.validate([{"query_id": "q", "spans": [span(5, 2)]}, {"query_id": "q"}])
    assert counts(validation) == {("duplicate-query", "gold"): 1, ("inverted", "gold"): 1}
    assert examples_of(validation, "inverted")[0].problem.startswith("record 1: [5, 2)")


def test_ids_not_retrieved_are_shown_with_ids_that_are():
    validation = karat.validate(
        {"q": {"D1": 1, "D2": 2, "x": 0}}, runs={"bm25": {"q": ["d1", "d2"]}}
    )
    assert counts(validation) == {("no-item-retrieved", "gold"): 2}
    assert validation.findings[0].hint.startswith("existing ids are 'd1', 'd2'")


def test_the_document_of_an_item_counts_as_its_id():
    run = [{"query_id": "q", "results": [{"id": "c1", "doc_id": "d1"}]}]
    assert karat.validate({"q": {"d1": 1}}, runs=[run]).findings == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_newlines_of_documents_are_not_translated(tmp_path, newline):
    (tmp_path / "d.md").write_bytes(f"one{newline}two".encode())
    gold = [{"query_id": "q", "spans": [span(5, 8, "d.md", text="two")]}]
    validation = karat.validate(gold, corpus=tmp_path)
    assert validation.ok == (newline == "\r\n")


def test_runs_with_the_same_name_are_numbered():
    runs = [{"w": ["a"]}, {"w": ["a"]}]
    validation = karat.validate({"q": ["a"]}, runs=runs)
    assert [f.source for f in validation.findings] == ["run run", "run run (2)"]


def test_single_run_need_not_be_in_a_list(tmp_path):
    (tmp_path / "one.run").write_text("w Q0 a 1 0.5 t\n")
    validation = karat.validate({"q": ["a"]}, runs=tmp_path / "one.run")
    assert [f.source for f in validation.findings] == ["run one"]
    table = pl.DataFrame({"query_id": ["w"], "item_id": ["a"]})
    validation = karat.validate({"q": ["a"]}, runs=table)
    assert [f.source for f in validation.findings] == ["run run"]


def test_gold_without_queries_has_a_complete_verdict():
    assert karat.validate({}).verdict == "no findings: 0 queries checked"


def test_items_judged_twice_show_their_grades(tmp_path):
    (tmp_path / "gold.qrels").write_text("q 0 a 2\nq 0 a 0\nq 0 b 1\n")
    validation = karat.validate(tmp_path / "gold.qrels")
    assert counts(validation) == {("judged-twice", "gold"): 1}
    assert examples_of(validation, "judged-twice")[0].problem == "its grades are 0, 2"


def test_gold_in_several_files_names_the_file(tmp_path):
    put(tmp_path / "a.jsonl", {"query_id": "q1", "relevant": ["a"]})
    put(tmp_path / "b.jsonl", {"query_id": "q2"}, {"query_id": "q3", "spans": [span(4, 3)]})
    validation = karat.validate(tmp_path / "*.jsonl")
    lines = {
        f.kind: (Path(f.examples[0].path).name, f.examples[0].line) for f in validation.findings
    }
    assert lines == {"inverted": ("b.jsonl", 2), "no-gold": ("b.jsonl", 1)}


def test_a_validation_is_a_table_and_plain_data():
    validation = karat.validate({"q1": {"a": 1}, "q2": {"b": 0}}, runs={"r": {"q1": ["a"]}})
    assert validation.frame.select("severity", "kind", "source", "count").rows() == [
        ("warning", "nothing-relevant", "gold", 1),
        ("warning", "missing-query", "run r", 1),
    ]
    document = validation.as_dict()
    assert document["ok"] is validation.ok is True
    assert document["checked"] == {
        "queries": 2,
        "judgments": 2,
        "spans": 0,
        "evidence": 0,
        "runs": 1,
        "results": 1,
    }
    assert document["findings"][1] == {
        "severity": "warning",
        "kind": "missing-query",
        "source": "run r",
        "count": 1,
        "examples": [{"problem": "it is scored as if nothing was retrieved", "query_id": "q2"}],
    }
    assert karat.validate({"q": ["a"]}).frame.height == 0


EVIDENCE = [{"query_id": "q1", "evidence": ["paid in 14 days", "by\nbank  transfer", "no fee"]}]


def test_evidence_that_no_document_contains_is_a_warning():
    documents = {"d": "It is paid in 14 days by bank transfer."}
    validation = karat.validate(EVIDENCE, corpus=documents)
    assert validation.ok
    (finding,) = validation.findings
    assert (finding.kind, finding.severity, finding.count) == (
        "evidence-not-in-corpus",
        "warning",
        1,
    )
    assert finding.examples[0].query_id == "q1"
    assert finding.examples[0].problem == "no document contains 'no fee', nor a similar text"
    found = karat.validate(EVIDENCE, corpus=documents | {"e": "There is no fee."})
    assert found.findings == ()


def test_evidence_that_differs_in_a_character_is_in_the_corpus():
    gold = [{"query_id": "q", "evidence": ["The refund is payed within 14 days"]}]
    assert karat.validate(gold, corpus={"d": "The refund is paid within 14 days."}).findings == ()


def test_evidence_that_is_split_between_two_chunks_is_in_no_chunk():
    rows = [("a", "d", 0, 17, "It is paid in 14 "), ("b", "d", 17, 22, "days.")]
    gold = [{"query_id": "q", "evidence": ["paid in 14 days"]}]
    validation = karat.validate(
        gold, corpus={"d": "It is paid in 14 days."}, chunks=chunk_table(rows)
    )
    assert [(f.kind, f.count) for f in validation.findings] == [("evidence-not-in-chunks", 1)]
    without_texts = chunk_table(rows).drop("text")
    assert karat.validate(gold, chunks=without_texts).findings == ()


def test_a_long_search_for_similar_evidence_is_skipped_and_stated(monkeypatch):
    monkeypatch.setattr("karat.evaluation.location._MAX_SIMILAR_WORK", 10)
    gold = [{"query_id": "q", "evidence": ["The refund is payed", "within 14days"]}]
    validation = karat.validate(gold, corpus={"d": "The refund is paid within 14 days."})
    (finding,) = validation.findings
    assert finding.count == 1
    assert "only exact copies were searched for" in finding.hint
    assert "similar" not in finding.examples[0].problem


def test_every_kind_is_described_in_the_docs():
    page = (ROOT / "docs" / "validate.md").read_text(encoding="utf-8")
    for kind, (severity, _) in KINDS.items():
        assert f"| {severity} | `{kind}` |" in page


# The command


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(command, "validate")


def test_nothing_found_is_one_line(command):
    put(Path("gold.jsonl"), {"query_id": "q", "spans": [span(0, 2, "d.txt", text="is")]})
    Path("d.txt").write_text("is paid")
    assert command("gold.jsonl", "--corpus", "d.txt") == (
        0,
        "no findings: 1 query, 1 span checked against 1 document\n",
        "",
    )


def test_errors_end_with_1_and_fit_80_columns(command):
    put(
        Path("gold.jsonl"),
        {"query_id": "q1", "relevant": ["c1"], "spans": [span(n, n - 3) for n in range(5)]},
        {"query_id": "q2", "spans": [span(3, 7, "d.txt", text="paid"), span(4, 6, "d.txt")]},
    )
    Path("docs").mkdir()
    Path("docs/d.txt").write_text("is paid")
    put(Path("chunks.jsonl"), {"id": "c1", **span(0, 9, "d.txt")})
    put(Path("run.jsonl"), {"query_id": "q1", "results": [{"id": "c1", **span(0, 7, "e.txt")}]})
    code, out, err = command(
        *("gold.jsonl", "--corpus", "docs", "--chunks", "chunks.jsonl", "--run", "run.jsonl")
    )
    assert (code, err) == (1, "")
    assert out == (
        "7 errors, 2 warnings: 2 queries, 1 judgment, 7 spans, 1 chunk, 1 result checked\n"
        "against 1 document\n"
        "\n"
        "         finding           in       count\n"
        "error    inverted          gold         5\n"
        "error    past-end          chunks       1\n"
        "error    unknown-document  run run      1\n"
        "warning  overlap           gold         1\n"
        "warning  missing-query     run run      1\n"
        "\n"
        "inverted\n"
        "a span ends before it starts\n"
        "  gold.jsonl:1: query q1, document d, [0, -3): [0, -3) is not a valid span\n"
        "  gold.jsonl:1: query q1, document d, [1, -2): [1, -2) is not a valid span\n"
        "  gold.jsonl:1: query q1, document d, [2, -1): [2, -1) is not a valid span\n"
        "  and 2 more\n"
        "  hint: use 0 ≤ start ≤ end, counted from the start of the document\n"
        "\n"
        "past-end in chunks\n"
        "a span ends after the end of its document\n"
        "  item c1, document d.txt, [0, 9): the document ends at 7 (code points)\n"
        "\n"
        "unknown-document in run run\n"
        "the document of a span does not exist\n"
        "  query q1, item c1, document e.txt, [0, 7): the document is not in the corpus\n"
        "    hint: the corpus has 'd.txt'\n"
        "\n"
        "overlap\n"
        "a span overlaps another of the same query; characters count once\n"
        "  gold.jsonl:2: query q2, document d.txt, [4, 6): it overlaps [3, 7)\n"
        "\n"
        "missing-query in run run\n"
        "a query of gold is not in the run\n"
        "  query q2: it is scored as if nothing was retrieved\n"
    )


def test_json_has_the_same_findings(command):
    put(Path("gold.jsonl"), {"query_id": "q1", "spans": [span(3, 1)]}, {"query_id": "q2"})
    code, out, _ = command("gold.jsonl", "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["karat"]) == (1, False, karat.__version__)
    assert document["checked"] == {"queries": 2, "judgments": 0, "spans": 1, "evidence": 0}
    assert [(f["severity"], f["kind"], f["count"]) for f in document["findings"]] == [
        ("error", "inverted", 1),
        ("warning", "no-gold", 1),
    ]
    assert document["findings"][0]["examples"] == [
        {
            "problem": "[3, 1) is not a valid span",
            "path": "gold.jsonl",
            "line": 1,
            "query_id": "q1",
            "doc_id": "d",
            "start": 3,
            "end": 1,
        }
    ]


def test_formats_may_be_named(command):
    Path("gold").write_text("q1\ta\t1\t0\n")
    Path("run").write_text("q1\ta\t0.5\n")
    formats = ["--gold-format", "ir_datasets", "--format", "ir_datasets"]
    assert command("gold", "--run", "run", *formats)[:2] == (
        0,
        "no findings: 1 query, 1 judgment, 1 result checked\n",
    )


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"query_id": "q1"', ""),
        ('{"query_id": "q1", "spans": [{"start": 1, "end": 2}]}', "spans[0].doc_id: "),
        ('{"query_id": "q1", "relevant": {"a": 1, "a": 2}}', '"a": '),
    ],
)
def test_unreadable_gold_is_reported_with_exit_code_2(command, line, field):
    Path("gold.jsonl").write_text(line)
    code, out, err = command("gold.jsonl")
    assert (code, out) == (2, "")
    problem, shown, *_, hint = err.splitlines()
    assert problem.startswith(f"error: gold.jsonl:1: {field}")
    assert shown == f"  1 | {line}"
    assert hint.startswith("  hint: ")


def test_missing_corpus_is_reported_with_exit_code_2(command):
    put(Path("gold.jsonl"), {"query_id": "q1"})
    code, out, err = command("gold.jsonl", "--corpus", "no")
    assert (code, out) == (2, "")
    assert err.startswith("error: no: ")


def test_other_readers_still_stop_at_the_first_fault(tmp_path):
    path = put(tmp_path / "gold.jsonl", {"query_id": "q", "spans": [span(5, 2)]})
    with refused(path=path, line=1, field="spans[0]"):
        karat.Gold.read(path)
