"""evaluate, Evaluator and Scores: what they take and what they return."""

import math
import warnings
from decimal import Decimal

import polars as pl
import pytest

import karat
from support.errors import refused

GOLD = {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}, "q3": {"d": 1}}
RUN = {"q1": {"a": 0.9, "x": 0.8, "b": 0.7}, "q2": {"x": 0.9, "c": 0.1}, "q9": {"a": 1.0}}


def native_gold():
    return karat.Gold.of(
        [
            {"query_id": "q1", "category": "billing", "level": 1, "relevant": {"a": 1}},
            {"query_id": "q2", "category": "shipping", "level": 1, "relevant": ["b"]},
            {"query_id": "q3", "category": "billing", "level": 2, "relevant": ["c"]},
            {"query_id": "q4", "relevant": ["d"]},
        ]
    )


def test_evaluate_takes_dicts_paths_frames_and_values_alike(tmp_path):
    gold, run = karat.Gold.of(GOLD), karat.Run.of(RUN)
    gold.write(tmp_path / "gold.qrels")
    run.write(tmp_path / "run.run")
    expected = karat.evaluate(GOLD, RUN, ["nDCG@10", "RR"]).per_query
    golds = (gold, tmp_path / "gold.qrels", gold.judgments, gold.judgments.to_pandas())
    runs = (run, str(tmp_path / "run.run"), run.results, run.results.to_arrow())
    for gold_of_a_kind, run_of_a_kind in zip(golds, runs, strict=True):
        scores = karat.evaluate(gold_of_a_kind, run_of_a_kind, ["nDCG@10", "RR"])
        assert scores.per_query.equals(expected)


def test_default_measures():
    scores = karat.evaluate(GOLD, RUN)
    assert scores.per_query.columns == [
        "query_id",
        "nDCG@10",
        "R@10",
        "R@100",
        "RR@10",
        "Success@10",
    ]


def test_a_missing_query_is_scored_as_nothing_retrieved_and_counted():
    scores = karat.evaluate(GOLD, RUN, "RR")
    assert scores["RR"] == (1.0 + 0.5 + 0.0) / 3
    assert scores.noted == {"missing": 1}
    assert scores.left_out == {"unknown": 1}


def test_a_missing_query_may_be_skipped_or_refused():
    skipped = karat.evaluate(GOLD, RUN, "RR", conventions={"missing": "skip"})
    assert skipped["RR"] == 0.75
    assert skipped.per_query["RR"].to_list() == [1.0, 0.5, None]
    assert skipped.left_out == {"unknown": 1, "missing": 1}
    with refused(karat.ConventionError, field="missing") as error:
        karat.evaluate(GOLD, RUN, "RR", conventions={"missing": "error"})
    assert "'q3'" in error.value.problem


def test_an_unknown_query_may_be_refused():
    with refused(karat.ConventionError, field="unknown"):
        karat.evaluate(GOLD, RUN, "RR", conventions={"unknown": "error"})


def test_repeated_item_may_be_refused():
    with refused(karat.ConventionError, field="duplicates") as error:
        karat.evaluate({"q1": ["a"]}, {"q1": ["a", "b", "a"]}, conventions={"duplicates": "error"})
    assert "'q1'" in error.value.problem
    assert "3" in error.value.problem


def test_where_nothing_is_relevant_the_convention_decides():
    gold, run = {"q1": {"a": 0}, "q2": {"b": 1}}, {"q1": ["a"], "q2": ["b"]}
    for word, value in {"family": 0.5, "zero": 0.5, "one": 1.0, "skip": 1.0}.items():
        scores = karat.evaluate(gold, run, ["RR", "Hits"], conventions={"no_gold": word})
        assert scores["RR"] == value
        assert scores["Hits"] == 0.5
    assert scores.left_out == {"no_relevant": 1}
    assert scores.summary()["n"].to_list() == [1, 2]


def test_queries_without_judgments_are_left_out_and_counted():
    gold = karat.Gold.of(
        [{"query_id": "q1", "relevant": ["a"]}, {"query_id": "q2", "evidence": ["some text"]}]
    )
    scores = karat.evaluate(gold, {"q1": ["a"], "q2": ["b"]}, "RR")
    assert scores.per_query["RR"].to_list() == [1.0, None]
    assert scores.left_out == {"no_judgments": 1}


def test_gold_without_judgments_is_refused_and_its_contents_named():
    gold = karat.Gold.of([{"query_id": "q", "evidence": ["text"]}])
    with refused(field="judgments") as error:
        karat.evaluate(gold, {"q": ["a"]}, "RR")
    assert "evidence" in error.value.problem
    assert "RR" in error.value.hint


def test_a_failed_query_is_scored_as_nothing_retrieved_and_counted():
    run = karat.Run.of(
        [
            {"query_id": "q1", "results": [{"id": "a"}]},
            {"query_id": "q2", "error": {"type": "Timeout"}, "results": [{"id": "c"}]},
        ]
    )
    scores = karat.evaluate({"q1": ["a"], "q2": ["c"]}, run, "RR", fail_on_error=0.5)
    assert scores["RR"] == 0.5
    assert scores.noted == {"failed": 1}


def test_no_query_in_common_is_an_error_with_ids_of_both_sides():
    with refused(field="query_id") as error:
        karat.evaluate({"1": ["a"], "2": ["b"]}, {"q1": ["a"], "q2": ["b"]})
    assert "'1', '2'" in error.value.problem
    assert "'q1', 'q2'" in error.value.problem


@pytest.mark.parametrize("kind", ["dicts", "frames"])
def test_ids_missing_from_the_run_give_a_warning_with_samples_of_both_sides(kind):
    gold = {"q1": ["doc-1", "doc-2", "doc-3"], "q2": ["doc-4"]}
    run = {"q1": {"1.txt": 1.0, "2.txt": 0.5}, "q2": {"doc-4": 0.5, "3.txt": 0.1}}
    if kind == "frames":
        gold, run = karat.Gold.of(gold).judgments, karat.Run.of(run).results
    with pytest.warns(karat.KaratWarning) as caught:
        karat.evaluate(gold, run)
    message = str(caught[0].message)
    assert "1 of 4" in message
    assert "'doc-1', 'doc-2', 'doc-3'" in message
    assert "'1.txt', '2.txt', " in message


def test_ids_found_in_another_run_give_no_warning():
    evaluator = karat.Evaluator({"q1": ["a", "b", "c", "d"]}, "RR")
    with pytest.warns(karat.KaratWarning):
        evaluator({"q1": ["a"]})
    both = evaluator.all({"one": {"q1": ["a"]}, "two": {"q1": ["b", "c"]}})
    assert [scores.name for scores in both] == ["one", "two"]


def test_the_evaluator_prepares_gold_once_for_many_runs():
    evaluator = karat.Evaluator(GOLD, ["RR"])
    assert [measure.name for measure in evaluator.measures] == ["RR"]
    assert evaluator(RUN, name="mine").name == "mine"
    assert evaluator(RUN)["RR"] == evaluator(RUN)["mrr"]


def test_chunks_may_be_scored_as_documents():
    run = pl.DataFrame(
        {
            "query_id": ["q"] * 4,
            "item_id": ["d1#0", "d1#1", "d2#0", "d3#0"],
            "doc_id": ["d1", "d1", "d2", "d3"],
        }
    )
    scores = karat.evaluate({"q": ["d2"]}, run, ["RR", "NumRet"], level="doc")
    assert (scores["RR"], scores["NumRet"]) == (0.5, 3)
    with refused(field="doc_id"):
        karat.evaluate({"q": ["d2"]}, run.drop("doc_id"), level="doc")
    with refused(field="level") as error:
        karat.evaluate({"q": ["d2"]}, run, level="page")
    assert "'page'" in error.value.problem
    assert "item, doc" in error.value.hint


def test_a_run_without_ids_cannot_be_scored_by_rank_measures():
    run = karat.Run.of([{"query_id": "q", "results": [{"text": "some chunk"}]}])
    with refused(field="item_id"):
        karat.evaluate({"q": ["a"]}, run)


def test_summary_has_one_row_per_measure():
    summary = karat.evaluate(GOLD, RUN, ["RR", "FirstRelevant", "NumRel"]).summary()
    assert summary.select("measure", "value", "median", "n", "left_out").rows() == [
        ("RR", 0.5, 0.5, 3, 0),
        ("FirstRelevant", 1.5, 1.5, 2, 1),
        ("NumRel", 4.0, 1.0, 3, 0),
    ]


def test_a_measure_with_no_value_at_all_is_null():
    scores = karat.evaluate({"q": ["a"]}, {"q": ["x", "a", "b"]}, "FirstRelevant@1")
    assert scores["FirstRelevant@1"] is None
    assert "FirstRelevant@1 –" in repr(scores)


def test_measure_that_was_not_evaluated_is_refused():
    with refused(karat.MeasureError) as error:
        karat.evaluate(GOLD, RUN, "RR")["AP"]
    assert "AP" in error.value.problem
    assert "RR" in error.value.hint


def test_groups_contain_the_summary_of_their_queries():
    run = {"q1": ["a"], "q2": ["x", "b"], "q3": ["x", "y", "c"], "q4": ["d"]}
    scores = karat.evaluate(native_gold(), run, "RR")
    assert scores.by("category").select("category", "measure", "value", "n", "left_out").rows() == [
        ("billing", "RR", (1 + 1 / 3) / 2, 2, 0),
        ("shipping", "RR", 0.5, 1, 0),
        (None, "RR", 1.0, 1, 0),
    ]
    assert scores.by("category", "level").height == 4
    with refused(field="by") as error:
        scores.by("categories")
    assert "'categories'" in error.value.problem
    assert "'category'" in error.value.hint
    with refused(field="by") as error:
        karat.evaluate(GOLD, RUN, "RR").by("x")
    assert "'x'" in error.value.problem


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_scores_are_the_same_after_writing_and_reading(tmp_path, ending):
    run = {"q1": ["a"], "q2": ["x", "b"], "q3": ["x", "y", "c"], "zz": ["a"]}
    scores = karat.evaluate(
        native_gold(), run, ["RR", "FirstRelevant"], conventions={"missing": "skip"}
    )
    scores.write(tmp_path / f"scores.{ending}")
    again = karat.Scores.read(tmp_path / f"scores.{ending}")
    assert again.per_query.equals(scores.per_query)
    assert again.by("category").equals(scores.by("category"))
    assert again.summary().equals(scores.summary())
    assert (again.name, again.conventions, again.left_out, again.noted) == (
        scores.name,
        scores.conventions,
        scores.left_out,
        scores.noted,
    )


def test_unreadable_and_unwritable_scores_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"runs": 3}')
    (tmp_path / "x.csv").write_text("a")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    for name in ("x.json", "x.csv", "x.parquet"):
        with refused(path=tmp_path / name, field=None):
            karat.Scores.read(tmp_path / name)
    with refused(path=tmp_path / "x.xlsx", field=None) as error:
        karat.evaluate(GOLD, RUN).write(tmp_path / "x.xlsx")
    assert "'.xlsx'" in error.value.problem


def test_the_largest_grade_is_of_the_whole_gold_and_must_be_known():
    gold, run = karat.Gold.of({"q1": {"a": 1}, "q2": {"b": 3}}), karat.Run.of({"q1": ["a"]})
    assert karat.evaluate(gold, run, "ERR").per_query["ERR"][0] == 1 / 8
    with refused(karat.MeasureError) as error:
        karat.score(gold, run, karat.Plan.of("ERR"))
    assert "ERR" in error.value.problem


def test_means_are_exact_sums():
    gold = {f"q{i}": [f"d{j}" for j in range(10)] for i in range(100)}
    run = {query: [f"d{i % 10}"] for i, query in enumerate(gold)}
    assert karat.evaluate(gold, run, "R")["R"] == math.fsum([0.1] * 100) / 100


def test_conventions_are_checked_and_list_departures_from_the_default():
    with refused(karat.ConventionError, field="missing") as error:
        karat.Conventions(missing="ignore")
    assert "'ignore'" in error.value.problem
    assert "zero, skip, error" in error.value.hint
    for name, suggestion in (("mising", "'missing'"), ("zzz", "missing, unknown")):
        with refused(karat.ConventionError, field=None) as error:
            karat.Conventions.of({name: "skip"})
        assert f"'{name}'" in error.value.problem
        assert suggestion in error.value.hint
    assert karat.Conventions(unjudged="skip").departures() == {"unjudged": "skip"}


def test_too_large_grades_are_refused_rather_than_overflowing():
    with refused(field="grade") as error:
        karat.evaluate({"q": {"a": 1 << 40}}, {"q": ["a"]})
    assert str(1 << 40) in error.value.problem
    table = pl.DataFrame({"query_id": ["q"], "item_id": ["a"], "grade": [1 << 40]})
    with refused(field="grade"):
        karat.evaluate(table, {"q": ["a"]})
    with refused(karat.MeasureError):
        karat.evaluate({"q": {"a": 2000}}, {"q": ["a"]}, "nDCG(gain=exp2)")


def test_an_item_judged_twice_keeps_the_highest_grade_with_a_warning():
    gold = pl.DataFrame(
        {"query_id": ["q", "q", "q"], "item_id": ["a", "b", "a"], "grade": [0, 1, 2]}
    )
    with pytest.warns(karat.KaratWarning) as caught:
        scores = karat.evaluate(gold, {"q": ["a", "b"]}, ["nDCG", "NumRel"])
    assert len(caught) == 1
    assert "1" in str(caught[0].message)
    assert (scores["nDCG"], scores["NumRel"]) == (1.0, 2)


def test_public_names_are_listed_and_loaded_when_used():
    assert set(karat.__all__) < set(dir(karat))
    assert {"chunk", "data", "functional", "measures"} < set(dir(karat)) - set(karat.__all__)
    for name in dir(karat):
        assert getattr(karat, name) is not None
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = karat.nothing


def test_scores_are_a_mapping():
    scores = karat.evaluate(GOLD, RUN, ["RR", "NumRel"])
    assert dict(scores) == {"RR": 0.5, "NumRel": 4.0}
    assert list(scores) == scores.keys() == ["RR", "NumRel"]
    assert "mrr" in scores
    assert "AP" not in scores


def test_queries_left_out_by_a_relevance_level_are_counted():
    gold, run = {"q1": {"a": 1}, "q2": {"b": 2}}, {"q1": ["a"], "q2": ["b"]}
    scores = karat.evaluate(gold, run, "AP(rel=2)", conventions={"no_gold": "skip"})
    assert scores.summary()["n"].to_list() == [1]
    assert scores.left_out == {"no_relevant": 1}


def test_failed_query_not_in_gold_counts_only_as_unknown():
    run = [
        {"query_id": "q1", "results": ["a"]},
        {"query_id": "zz", "error": {"type": "Timeout"}},
    ]
    scores = karat.evaluate({"q1": ["a"]}, karat.Run.of(run), "RR", fail_on_error=0.5)
    assert (scores.left_out, scores.noted) == ({"unknown": 1}, {})


def test_lists_of_judged_items_keep_their_repeats():
    gold, run = {"q": {"a": 1, "b": 1}}, {"q": ["a", "x", "a", "b", "x"]}
    words = {"unjudged": "skip", "duplicates": "count"}
    scores = karat.evaluate(gold, run, ["Hits", "RR", "AP", "NumRet"], conventions=words)
    assert dict(scores) == {"Hits": 3.0, "RR": 1.0, "AP": (1 + 2 / 3) / 2, "NumRet": 2.0}
    assert scores.noted == {"repeats": 1}


@pytest.mark.parametrize("score", [0.1, "0.1", Decimal("0.1")])
def test_scores_of_any_number_type_tie_alike(score):
    run = {"q": {"c": score, "b": score, "a": score}}
    assert karat.evaluate({"q": ["a"]}, run, "FirstRelevant")["FirstRelevant"] == 3


def test_gold_in_parts_is_the_same_as_in_one_file(tmp_path):
    (tmp_path / "1.json").write_text('{"q1": {"a": 1}}')
    (tmp_path / "2.json").write_text('{"q2": {}}')
    run = {"q1": ["a"], "q2": ["a"]}
    scores = karat.evaluate(tmp_path / "*.json", run, "RR")
    assert (scores["RR"], scores.noted) == (0.5, {"no_relevant": 1})


def test_parts_that_count_offsets_differently_are_refused(tmp_path):
    for name, offsets in (("1", "utf16"), ("2", "utf8")):
        header = f'{{"karat":1,"kind":"gold","offsets":"{offsets}"}}'
        (tmp_path / f"{name}.jsonl").write_text(f'{header}\n{{"query_id":"q{name}","relevant":[]}}')
    with refused(path=tmp_path / "*.jsonl", field="offsets") as error:
        karat.Gold.read(tmp_path / "*.jsonl")
    assert "utf16" in error.value.problem
    assert "utf8" in error.value.problem


def test_a_table_with_documents_and_chunks_ranks_chunks():
    table = pl.DataFrame({"qid": ["q", "q"], "docid": ["d", "d"], "chunk_id": ["d#1", "d#2"]})
    results = karat.Run.of(table).results
    assert results["item_id"].to_list() == ["d#1", "d#2"]
    assert results["doc_id"].to_list() == ["d", "d"]


def test_a_table_of_documents_can_be_scored_as_documents():
    table = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["x", "d"]})
    assert karat.evaluate({"q": ["d"]}, table, "RR", level="doc")["RR"] == 0.5
    nothing = karat.evaluate({"q": ["d"]}, karat.Run.of({"q": []}), "RR", level="doc")
    assert nothing["RR"] == 0.0


def test_grade_above_the_largest_of_the_plan_is_refused():
    with refused(karat.MeasureError, field="largest_grade") as error:
        karat.score({"q": {"a": 3}}, {"q": ["a"]}, karat.Plan.of("ERR", largest_grade=1))
    assert "3" in error.value.problem
    assert "1" in error.value.problem


def test_score_tables_with_a_common_query_cannot_be_concatenated():
    table = karat.score({"q": ["a"]}, {"q": ["a"]}, karat.Plan.of("RR"))
    with refused():
        karat.ScoreTable.concat([table, table])
    with refused():
        karat.ScoreTable.concat([])


@pytest.mark.parametrize("field", ["n", "tags"])
def test_a_field_that_cannot_make_groups_is_refused(field):
    gold = karat.Gold.of([{"query_id": "q", "n": 1, "tags": ["x"], "relevant": ["a"]}])
    with refused(field="by") as error:
        karat.evaluate(gold, {"q": ["a"]}, "RR").by(field)
    assert f"'{field}'" in error.value.problem


def test_groups_need_a_field():
    with refused(field="by"):
        karat.evaluate(GOLD, RUN, "RR").by()
    gold = native_gold()
    scores = karat.evaluate(gold, {"q1": ["a"], "q2": ["b"], "q3": ["c"], "q4": ["d"]}, "RR")
    assert scores.by("category", "category").equals(scores.by("category"))


def test_arguments_next_to_complete_data_are_applied_or_refused():
    assert karat.Run.of(karat.Run.of(RUN), name="x").name == "x"
    with refused() as error:
        karat.Gold.of(GOLD, judgments=GOLD)
    assert "judgments" in error.value.problem


CHUNKS = [
    {"query_id": query, "results": [{"id": f"{doc}#0", "doc_id": doc, "start": 0, "end": 5}]}
    for query, doc in (("q1", "d1"), ("q2", "d2"), ("q3", "d3"))
]
DOCUMENT_GOLD = {"q1": ["d1"], "q2": ["d2"], "q3": ["d9"]}


def ids_warning(runs, level="item"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        karat.Evaluator(DOCUMENT_GOLD, "RR", level=level).all(runs)
    assert len(caught) < 2
    return str(caught[0].message) if caught else ""


def test_chunks_against_gold_of_documents_give_a_warning_that_names_the_level():
    assert '--level doc (level="doc")' in ids_warning({"chunks": CHUNKS})
    assert ids_warning({"chunks": CHUNKS}, level="doc") == ""


def test_the_warning_names_the_run_of_chunks_among_runs_of_documents():
    documents = [
        {"query_id": query, "results": [{"id": doc, "doc_id": doc}]}
        for query, (doc,) in DOCUMENT_GOLD.items()
    ]
    message = ids_warning({"documents": documents, "chunks": CHUNKS})
    assert "'chunks'" in message
    assert "--level doc" in message
    assert ids_warning({"documents": documents, "other": {"q1": ["x"]}}) == ""


def test_other_document_ids_do_not_suggest_the_level():
    run = [{"query_id": "q1", "results": [{"id": "x#0", "doc_id": "x", "start": 0, "end": 5}]}]
    assert "--level" not in ids_warning({"run": run})


def test_ids_missing_from_the_run_give_a_warning_without_relevant_items():
    with pytest.warns(karat.KaratWarning, match="the only relevant id of gold"):
        karat.evaluate({"q": {"a": 0}}, {"q": ["b"]}, "RR")
