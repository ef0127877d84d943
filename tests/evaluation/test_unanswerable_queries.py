"""Queries with `answerable: false`: excluded from every measure, counted and reported."""

import json
import warnings
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat import Gold, InputError, KaratWarning, Plan, Run, score
from karat.measures.score_table import ScoreTable

MEASURES = (
    "nDCG@5 RR R@5 Judged@5 span.recall@50c span.iou@2 evidence.recall@3 evidence.coverage@2 "
    "latency.mean latency.p50 cost.sum context.tokens@2"
)


def gold_record(query: str, *, is_answerable: bool = True) -> dict:
    if not is_answerable:
        return {"query_id": query, "query": "Why?", "answerable": False}
    return {
        "query_id": query,
        "relevant": {"a": 2, "b": 1},
        "spans": [{"doc_id": "d", "start": 0, "end": 8}],
        "evidence": ["the refund is paid"],
    }


def run_record(query: str, items: str, score: float = 0.5) -> dict:
    results = [
        {"id": item, "score": score, "doc_id": "d", "start": 5 * at, "end": 5 * at + 5}
        | {"text": "the refund is paid within a week", "tokens": 7 + at}
        for at, item in enumerate(items)
    ]
    call = {"model": "m", "prompt_tokens": 5, "completion_tokens": 1, "price_per_1k": 0.5}
    return {"query_id": query, "results": results, "latency_ms": len(items) + 1, "calls": [call]}


def with_threshold(run: Run, threshold) -> Run:
    return replace(run, settings={"score_threshold": threshold})


GOLD = [gold_record("q1"), gold_record("q2", is_answerable=False), gold_record("q3")]
RUN = [run_record("q1", "xab"), run_record("q2", "ab"), run_record("q3", "ax")]


@st.composite
def queries(draw):
    names = [f"q{n}" for n in range(draw(st.integers(1, 6)))]
    flags = [draw(st.booleans()) for _ in names]
    gold = [gold_record(q, is_answerable=flag) for q, flag in zip(names, flags, strict=True)]
    run = [
        run_record(
            query,
            draw(st.text("abxy", max_size=4).map(lambda s: "".join(dict.fromkeys(s)))),
            draw(st.sampled_from([0.1, 0.5, 0.9])),
        )
        for query in names
        if draw(st.booleans())
    ]
    return [*gold, gold_record("zz")], [*run, run_record("zz", "a")]


@settings(max_examples=10)
@given(queries(), st.sampled_from([None, 0.5]), st.sampled_from(["family", "one", "skip"]))
def test_any_partition_gives_the_same_table(data, threshold, no_gold):
    gold, run = Gold.of(data[0]), with_threshold(Run.of(data[1]), threshold)
    plan = Plan.of(MEASURES, conventions={"no_gold": no_gold}, largest_grade=2)
    whole = score(gold, run, plan)
    parts = [score(gold.only(query), run.only([query]), plan) for query in gold.query_ids]
    joined = ScoreTable.concat(parts)
    assert joined.frame.equals(whole.frame)
    assert joined.counts == whole.counts | {"unknown": 0}


@settings(max_examples=20)
@given(queries(), st.sampled_from(["family", "zero", "one", "recall", "skip"]))
def test_values_are_those_without_the_unanswerable_queries(data, no_gold):
    records, run = data
    gold = Gold.of(records)
    conventions = {"no_gold": no_gold}
    plan = Plan.of(MEASURES, conventions=conventions, largest_grade=2)
    table = score(gold, Run.of(run), plan)
    unanswerable = [record["query_id"] for record in records if "answerable" in record]
    others = score(gold.without(unanswerable), Run.of(run), plan)
    assert table.frame.filter(~pl.col("query_id").is_in(unanswerable)).equals(others.frame)
    for row in table.frame.filter(pl.col("query_id").is_in(unanswerable)).iter_rows():
        assert row[1:] == (None,) * len(plan.measures)
    assert [table.value(m) for m in plan.measures] == [others.value(m) for m in plan.measures]
    assert [table.judged(m) for m in plan.measures] == [others.judged(m) for m in plan.measures]
    changed = {"queries", "unknown"} | {key for key in table.counts if "unanswerable" in key}
    assert {key: n for key, n in table.counts.items() if key not in changed} == {
        key: n for key, n in others.counts.items() if key not in changed
    }
    assert table.counts["unanswerable"] == len(unanswerable)


@pytest.mark.parametrize(
    ("threshold", "returned"), [(None, 3), (0.5, 2), (0.51, 1), (0, 3), (9, 0)]
)
def test_items_below_the_threshold_of_the_run_do_not_count(threshold, returned):
    gold = [
        gold_record("q1"),
        *(gold_record(q, is_answerable=False) for q in ("q2", "q3", "q4", "q5")),
    ]
    scores = {"q1": 0.5, "q2": 0.9, "q3": 0.5, "q4": 0.1}
    run = with_threshold(Run.of([run_record(q, "a", s) for q, s in scores.items()]), threshold)
    counts = karat.evaluate(gold, run, "RR").table.counts
    assert counts["unanswerable"] == 4
    assert counts["unanswerable_in_run"] == 3
    assert counts["unanswerable_returned"] == returned


def test_notes_state_the_threshold_and_absent_queries():
    run = Run.of(RUN)
    (note,) = karat.evaluate(GOLD, run, "RR").notes
    assert note == "returned items (no score_threshold is set) for 1 of 1 query without an answer"
    (note,) = karat.evaluate(GOLD, with_threshold(run, 0.6), "RR").notes
    assert "at least 0.6 (score_threshold) for 0 of 1 query" in note
    (note,) = karat.evaluate(GOLD, run.only(["q1", "q3"]), "RR").notes
    assert note.endswith("0 of 1 query without an answer; 1 of them is not in the run")
    notes = karat.evaluate(GOLD, with_threshold(run, 0.2), "RR", score_threshold=0.7).notes
    assert "at least 0.7 (score_threshold) for 0 of 1 query" in notes[0]


def test_threshold_in_the_header_must_be_a_number():
    with pytest.raises(InputError) as caught:
        karat.evaluate(GOLD, with_threshold(Run.of(RUN), "high"), "RR")
    assert caught.value.field == "settings.score_threshold"


def test_missing_and_failed_conventions_ignore_unanswerable_queries():
    answered = Run.of([RUN[0], RUN[2]])
    assert karat.evaluate(GOLD, answered, "RR latency.mean", conventions={"missing": "error"})["RR"]
    failed = {"query_id": "q2", "error": {"type": "Timeout", "message": "", "attempts": 1}}
    scores = karat.evaluate(
        GOLD, Run.of([RUN[0], {**failed, "results": []}, RUN[2]]), "RR", fail_on_error=1
    )
    assert scores.noted == {}
    assert scores.left_out == {"unanswerable": 1}


TABLES = {
    "judgments": {"query_id": ["q1", "q2"], "item_id": ["a", None], "grade": [1, None]},
    "spans": {
        "query_id": ["q1", "q2"],
        "doc_id": ["d", None],
        "start": [0, None],
        "end": [4, None],
    },
    "evidence": {"query_id": ["q1", "q2"], "evidence": ["text", None]},
    "lists": {"query_id": ["q1", "q2"], "relevant": ["a;b", None]},
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("flags", [[None, False], [True, False], ["", "false"], ["TRUE", "False"]])
def test_tables_with_a_column_answerable(kind, flags):
    gold = Gold.of(pl.DataFrame(TABLES[kind] | {"answerable": flags}))
    assert gold.unanswerable.to_list() == ["q2"]
    assert gold.query_ids.to_list() == ["q1", "q2"]
    assert gold.queries["answerable"].dtype == pl.Boolean
    assert gold.fields == []


def test_mapped_column_and_table_of_queries():
    table = pl.DataFrame(TABLES["judgments"] | {"has_answer": [True, False]})
    assert Gold.of(table, columns={"answerable": "has_answer"}).unanswerable.to_list() == ["q2"]
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "answerable": ["true", "false"]})
    assert Gold.of({"q1": ["a"]}, queries=queries).unanswerable.to_list() == ["q2"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet", "arrow"])
def test_files_keep_unanswerable_queries(tmp_path, ending):
    records = [{"query_id": "q1", "query": "Pay?", "relevant": {"a": 2}}, GOLD[1]]
    path = tmp_path / f"gold.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Gold.of(records).write(path)
    gold = Gold.read(path)
    assert gold.unanswerable.to_list() == ["q2"]
    assert gold.judgments.rows() == [("q1", "a", 2)]
    assert gold.queries["text"].to_list() == ["Pay?", "Why?"]


def test_error_names_the_row_of_the_file_after_rows_without_gold(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("query_id,item_id,grade,answerable\nq1,,,false\nq2,a,high,\n")
    with pytest.raises(InputError) as caught:
        Gold.read(path)
    assert (caught.value.line, caught.value.field) == (3, "grade")


def test_row_without_an_item_is_an_error_unless_the_query_has_no_answer():
    with pytest.raises(InputError) as caught:
        Gold.of(pl.DataFrame(TABLES["judgments"] | {"answerable": [None, True]}))
    assert caught.value.field == "item_id"


def test_validate_accepts_unanswerable_queries_and_reports_contradictions():
    assert karat.validate(GOLD).findings == ()
    assert karat.validate([{**GOLD[1], "relevant": {"a": 0}}]).findings == ()
    for part in ({"relevant": ["a"]}, {"spans": GOLD[0]["spans"]}, {"evidence": ["text"]}):
        validation = karat.validate([{**GOLD[1], **part}])
        assert [finding.kind for finding in validation.findings] == ["unanswerable-with-gold"]
        assert not validation.ok


def test_contradicting_query_is_left_out_with_a_warning():
    gold = [GOLD[0], {**gold_record("q2"), "answerable": False}]
    with pytest.warns(KaratWarning, match="marked as unanswerable"):
        scores = karat.evaluate(gold, Run.of(RUN[:2]), MEASURES)
    assert scores.per_query.row(1)[1:] == (None,) * len(scores.keys())


def test_saved_scores_and_comparison_keep_the_counts(tmp_path):
    scores = karat.evaluate(GOLD, Run.of(RUN), "RR")
    for ending in ("json", "parquet"):
        path = tmp_path / f"scores.{ending}"
        scores.write(path)
        read = karat.Scores.read(path)
        assert read.table.counts == scores.table.counts
        assert read.notes == scores.notes
        comparison = karat.compare(GOLD, {"old": path, "new": Run.of(RUN)}, "RR")
        assert comparison.scores[0].left_out == {"unanswerable": 1}
    saved = json.loads((tmp_path / "scores.json").read_text())
    assert saved["runs"][0]["left_out"] == {"unanswerable": 1}
    assert saved["runs"][0]["per_query"][1]["RR"] is None


def test_explanation_states_why_there_is_no_value():
    explanation = karat.explain("RR", gold=GOLD, run=Run.of(RUN), query="q2")
    assert explanation.calculations[0].value is None
    assert any("answerable: false" in remark for remark in explanation.calculations[0].remarks)
    assert "excluded" in str(explanation)


def test_gate_ignores_unanswerable_queries_and_reports_them():
    verdict = karat.gate(GOLD, Run.of(RUN), ["RR >= 0.7"])
    assert verdict.passed
    assert any("without an answer: left out" in remark for remark in verdict.remarks)


def test_retriever_is_run_on_unanswerable_queries():
    texts = []

    def search(query: str) -> list[str]:
        texts.append(query)
        return ["a"]

    run = karat.retrieve(search, Gold.of([{**record, "query": "Why?"} for record in GOLD]))
    assert run.query_ids.sort().to_list() == ["q1", "q2", "q3"]
    assert len(texts) == 3


def test_page_shows_how_often_something_was_returned(tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "report.html"
    karat.evaluate(GOLD, Run.of(RUN, name="mine"), "RR").report(path)
    page = path.read_text()
    assert "mine returned something for 1 of 1 query (100%) without an answer." in page
    assert "1 query without an answer: left out" in page
