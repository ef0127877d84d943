"""Evidence in files and on the command line: what is measured, shown, written and refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.data import Gold
from karat.data.convert import convert
from karat.errors import ConventionError, KaratWarning, MeasureError
from karat.match.text import Matching
from karat.measures import Plan, parse, score
from oracles import evidence as evidence_oracle
from support.errors import refused

DEFAULTS = [
    "evidence.coverage@10",
    "evidence.coverage@3",
    "evidence.full@10",
    "evidence.full@3",
    "evidence.recall@10",
    "evidence.recall@3",
    "evidence.P@5",
    "evidence.AP",
    "evidence.RR",
    "evidence.Success@10",
]
EVIDENCE = {
    "q1": ["paid within 14 days", "to the card"],
    "q2": ["by post"],
    "q3": ["from 50 EUR", "on invoice", "in advance"],
}
TEXTS = {"q1": ["PAID within\n14 days."], "q2": ["by post"], "q3": ["never", "on invoice"]}
GOLD = [
    {"query_id": query, "kind": "short" if query == "q2" else "long", "evidence": evidence}
    for query, evidence in EVIDENCE.items()
]
RUN = [
    {"query_id": query, "results": [{"text": text} for text in texts]}
    for query, texts in TEXTS.items()
]


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    """Run karat in the folder with the files; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name, records in (("gold.jsonl", GOLD), ("run.jsonl", RUN)):
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return command


# What is measured


def test_default_measures_of_evidence_are_those_of_the_coverage_preset():
    scores = karat.evaluate(GOLD, RUN)
    assert scores.keys() == DEFAULTS
    macro = (1 / 2 + 1 + 1 / 3) / 3
    assert [scores[name] for name in DEFAULTS[:2]] == [macro, macro]
    assert [scores[name] for name in DEFAULTS[4:6]] == [0.5, 0.5]
    assert scores.notes == ()
    judged = [GOLD[0] | {"relevant": ["a"]}]
    run = [{"query_id": "q1", "results": [{"id": "a", "text": "no"}]}]
    scores = karat.evaluate(judged, run)
    assert scores.keys() == DEFAULTS  # evidence is more specific than judgments
    (note,) = scores.notes
    assert "evidence" in note
    assert "judgments" in note
    empty = karat.evaluate([{"query_id": "q", "evidence": []}], {"q": []})
    assert empty.keys() == DEFAULTS


def test_recall_of_groups_sums_evidence_before_dividing():
    scores = karat.evaluate(GOLD, RUN, ["evidence.recall", "evidence.coverage"])
    assert scores.by("kind").select("kind", "measure", "value").rows() == [
        ("long", "evidence.recall", 2 / 5),
        ("long", "evidence.coverage", (1 / 2 + 1 / 3) / 2),
        ("short", "evidence.recall", 1.0),
        ("short", "evidence.coverage", 1.0),
    ]


def test_groups_show_the_number_of_queries_of_each_value(command):
    _, out, _ = command(
        *("eval", "gold.jsonl", "run.jsonl", "--by", "kind"),
        *("-m", "evidence.full,evidence.RankOfFullCoverage", "--no-intervals"),
    )
    lines = [line.split() for line in out.splitlines()]
    assert ["long", "0.000", "–", "0–2*"] in lines
    assert ["short", "1.000", "1", "1*"] in lines


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_scores_read_from_a_file_keep_the_denominator_of_recall(ending, tmp_path):
    names = ["evidence.recall@1", "evidence.RankOfFullCoverage", "evidence.recall@2", "evidence.RR"]
    scores = karat.evaluate(GOLD, RUN, names, matching=Matching(fuzzy_threshold=0.9))
    path = tmp_path / f"scores.{ending}"
    scores.write(path)
    again = karat.Scores.read(path)
    assert again.summary().equals(scores.summary())
    assert again.by("kind").equals(scores.by("kind"))
    assert again["evidence.recall@2"] == 0.5
    assert again.matching == scores.matching == str(Matching(fuzzy_threshold=0.9))
    again.write(tmp_path / f"twice.{ending}")
    assert karat.Scores.read(tmp_path / f"twice.{ending}").summary().equals(scores.summary())


def test_native_files_are_read_and_written_with_their_evidence(tmp_path):
    path, again = tmp_path / "gold.jsonl", tmp_path / "again.jsonl"
    records = [*GOLD, {"query_id": "q4", "evidence": []}, {"query_id": "q5", "relevant": ["a"]}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    Gold.read(path).write(again)
    for gold in (path, again):
        scores = karat.evaluate(gold, RUN, "evidence.recall")
        assert scores["evidence.recall"] == 0.5
        assert scores.left_out == {"no_evidence": 1, "no_texts": 1}


def test_gold_in_several_files_keeps_the_queries_that_need_no_evidence(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(GOLD[0]) + "\n")
    (tmp_path / "b.jsonl").write_text('{"query_id": "q4", "evidence": []}\n')
    scores = karat.evaluate(
        str(tmp_path / "*.jsonl"), RUN, "evidence.recall", conventions={"no_gold": "zero"}
    )
    assert scores.per_query.rows() == [("q1", 0.5), ("q4", 0.0)]
    assert karat.evaluate(
        karat.locate(str(tmp_path / "*.jsonl"), {"d": "paid within 14 days to the card"}).gold,
        RUN,
        "evidence.recall",
        conventions={"no_gold": "zero"},
    ).per_query.rows() == [("q1", 0.5), ("q4", 0.0)]


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_reference_contexts_of_ragas_are_evidence():
    rows = [
        {
            "user_input": "How long does a refund take?",
            "retrieved_contexts": ["by post", "It takes TWO weeks."],
            "reference_contexts": ["two weeks", "by card"],
        }
    ]
    scores = karat.evaluate(Gold.of(rows), karat.Run.of(rows), ["evidence.coverage", "evidence.RR"])
    assert [row[1:] for row in scores.per_query.rows()] == [(0.5, 0.5)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_with_a_column_of_evidence_is_gold(ending, tmp_path):
    rows = [(query, text, "x.pdf") for query, texts in EVIDENCE.items() for text in texts]
    table = pl.DataFrame(rows, schema=["query_id", "Evidence", "doc_id"], orient="row")
    path = tmp_path / f"gold.{ending}"
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    for gold in (Gold.read(path), Gold.of(table)):
        assert gold.evidence.rows() == [row[:2] for row in rows]
        assert gold.fields == ["doc_id"]
    assert convert(path, tmp_path / "native.jsonl").kind == "gold"
    for gold in (Gold.read(path), Gold.read(tmp_path / "native.jsonl")):
        assert karat.evaluate(gold, RUN, "evidence.recall")["evidence.recall"] == 3 / 6


def test_row_without_evidence_is_refused_with_its_line(tmp_path):
    (tmp_path / "gold.csv").write_text("query_id,evidence\nq1,by post\nq2,\n")
    with refused(path=tmp_path / "gold.csv", line=3, field="evidence"):
        Gold.read(tmp_path / "gold.csv")


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_empty_and_absent_reference_contexts_of_ragas_are_counted_separately():
    rows = [
        {"query_id": "q1", "user_input": "a", "reference_contexts": ["by card"]},
        {"query_id": "q2", "user_input": "b", "reference_contexts": []},
        {"query_id": "q3", "user_input": "c"},
    ]
    run = [{"query_id": f"q{n}", "results": [{"text": "by card"}]} for n in (1, 2, 3)]
    scores = karat.evaluate(rows, run, "evidence.coverage")
    assert scores.left_out == {"no_evidence": 1, "no_texts": 1}


def test_a_table_of_results_needs_no_ids_where_texts_are_compared(tmp_path):
    rows = [
        (query, rank, text) for query, texts in TEXTS.items() for rank, text in enumerate(texts)
    ]
    table = pl.DataFrame(rows, schema=["query_id", "rank", "text"], orient="row")
    table.write_csv(tmp_path / "run.csv")
    for run in (table, tmp_path / "run.csv"):
        assert karat.evaluate(GOLD, run, "evidence.recall")["evidence.recall"] == 0.5
    with refused(field="item_id"):
        karat.evaluate({"q1": ["a"]}, table, "RR")
    with refused(field="item_id") as error:
        karat.Run.of(table.drop("text"))
    assert "query_id, rank" in error.value.problem


# Evidence without text


@pytest.mark.parametrize(
    ("texts", "rule", "n"),
    [
        (["", " \n\u00a0", "by post"], {}, 2),
        (["\x1c", "by post"], {}, 1),
        (["\u200b\ufeff", "by post"], {"zero_width": True}, 1),
    ],
)
def test_evidence_without_text_is_left_out_with_a_warning(texts, rule, n):
    with pytest.warns(KaratWarning) as warned:
        scores = karat.Evaluator(
            [{"query_id": "q2", "evidence": texts}], "evidence.recall", matching=Matching(**rule)
        ).all([RUN, RUN])
    assert len(warned) == 1
    message = str(warned[0].message)
    assert f" {n} " in message
    assert "'q2'" in message
    assert [one["evidence.recall"] for one in scores] == [1.0, 1.0]


@pytest.mark.parametrize("texts", [[], [""], [" "], ["\x1c"], ["\u200b"]])
@pytest.mark.parametrize(("word", "value"), [("family", None), ("zero", 0), ("one", 1)])
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_query_without_evidence_text_is_scored_by_the_convention(texts, word, value):
    gold = [GOLD[0], {"query_id": "q2", "evidence": texts}]
    scores = karat.evaluate(
        gold,
        RUN,
        ["evidence.coverage", "evidence.recall", "evidence.RankOfFullCoverage"],
        conventions={"no_gold": word},
        matching=Matching(zero_width=True),
    )
    assert scores.per_query.row(1) == ("q2", value, value, None)
    assert scores["evidence.recall"] == 0.5  # it adds nothing to either sum
    counted = scores.left_out if word == "family" else scores.noted
    assert counted["no_texts"] == 1


# What cannot be measured


@pytest.mark.parametrize(
    "run",
    [
        {"q1": ["a"]},
        {"q1": {"a": 0.5}},
        [{"query_id": "q1", "results": [{"id": "a"}, {"id": "b", "text": "by post"}]}],
        pl.DataFrame({"query_id": ["q1"], "item_id": ["a"]}),
    ],
)
def test_run_without_texts_is_refused_with_a_hint(run):
    with refused(field="text") as error:
        karat.evaluate(GOLD, run, "evidence.recall")
    assert error.value.hint


def test_chunk_missing_from_the_table_of_chunks_is_named():
    chunks = pl.DataFrame({"id": "a", "doc_id": "d", "start": 0, "end": 7, "text": ["by post"]})
    run = {"q2": ["a"]}
    assert karat.evaluate(GOLD, run, "evidence.P@1", chunks=chunks)["evidence.P@1"] == 1 / 3
    with refused(field="chunks") as error:
        karat.evaluate(GOLD, {"q2": ["a", "zzz"]}, "evidence.P@1", chunks=chunks)
    assert "'zzz'" in error.value.problem


def test_only_the_lists_of_queries_with_evidence_need_texts():
    gold = [*GOLD, {"query_id": "other", "relevant": ["a"]}]
    run = [*RUN, {"query_id": "other", "results": [{"id": "a"}]}]
    run[:3] = [r | {"results": [{"id": "x", **i} for i in r["results"]]} for r in run[:3]]
    scores = karat.evaluate(gold, run, ["evidence.recall", "RR"])
    assert dict(scores) == {"evidence.recall": 0.5, "RR": 1.0}


@pytest.mark.parametrize(
    ("gold", "name", "needed", "available"),
    [
        ({"q1": ["a"]}, "evidence.full@3", "evidence", "judgments"),
        (GOLD, "nDCG@10", "judgments", "evidence"),
    ],
)
def test_measure_of_another_kind_of_gold_is_refused(gold, name, needed, available):
    with refused(field=needed) as error:
        karat.evaluate(gold, RUN, name)
    assert available in error.value.problem
    assert name in error.value.hint


@pytest.mark.parametrize(
    ("rule", "field", "value"),
    [
        ({"fuzzy_threshold": 0}, "fuzzy_threshold", "0"),
        ({"fuzzy_threshold": 1.01}, "fuzzy_threshold", "1.01"),
        ({"fuzzy_threshold": float("nan")}, "fuzzy_threshold", "nan"),
        ({"fuzzy_threshold": "0.7"}, "fuzzy_threshold", "'0.7'"),
        ({"fuzzy_threshold": True}, "fuzzy_threshold", "True"),
        ({"matcher": "cosine"}, "matcher", "'cosine'"),
        ({"direction": "chunk"}, "direction", "'chunk'"),
        ({"matcher": "tokens", "autojunk": True}, "autojunk", "'ratio'"),
    ],
)
def test_invalid_matching_rule_is_refused_with_a_hint(rule, field, value):
    with refused(field=field) as error:
        Matching(**rule)
    assert value in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize("matching", [0.7, "tokens", {"fuzzy_threshold": 0.5}])
def test_value_that_is_not_a_matching_rule_is_refused(matching):
    with refused(field="matching") as error:
        karat.evaluate(GOLD, RUN, "evidence.recall", matching=matching)
    assert repr(matching) in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize(
    ("evidence", "field", "value"),
    [
        ({"q": "text"}, "evidence", "'q'"),
        ({"q": [1]}, "evidence", "'q'"),
        ({"q": None}, "evidence", "'q'"),
        ({1.5: ["text"]}, "query_id", "1.5"),
    ],
)
def test_evidence_other_than_lists_of_texts_is_refused(evidence, field, value):
    with refused(field=field) as error:
        Gold.of(evidence=evidence)
    assert value in error.value.problem


@pytest.mark.parametrize(
    ("evidence", "field"),
    [
        (1, "evidence"),
        ([1], "evidence[0]"),
        ({"quote": "x"}, "evidence[0]"),
        ([None], "evidence[0]"),
    ],
)
def test_record_with_evidence_other_than_a_list_of_texts_is_refused(evidence, field):
    with refused(field=field):
        Gold.of([{"query_id": "q", "evidence": evidence}])


def test_query_missing_from_the_run_is_refused_where_that_is_an_error():
    with refused(ConventionError, field="missing") as error:
        karat.evaluate(GOLD, RUN[:2], "evidence.AP", conventions={"missing": "error"})
    assert "'q3'" in error.value.problem


@pytest.mark.parametrize(
    ("name", "field", "value", "suggestion"),
    [
        ("evidence.recall@0", None, "evidence.recall@0", "@1"),
        ("evidence.recall@5c", None, "evidence.recall@5c", "@1"),
        ("evidence.recal@5", None, "'evidence.recal@5'", "evidence.recall"),
        ("evidence.union(least=0)", "evidence.union: least", "'0'", ""),
        ("evidence.union(least=1.5)", "evidence.union: least", "'1.5'", ""),
        ("evidence.recall(rel=2)", None, "'rel'", ""),
    ],
)
def test_mistake_in_a_name_is_refused_with_a_hint(name, field, value, suggestion):
    with refused(MeasureError, field=field) as error:
        parse(name)
    assert value in error.value.problem
    assert suggestion in error.value.hint


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("EvidenceRecall@3", "evidence.recall@3"),
        ("PerQueryCoverage@10", "evidence.coverage@10"),
        ("FullCoverageRate@3", "evidence.full@3"),
        ("evidence.precision@5", "evidence.P@5"),
        ("evidence.map", "evidence.AP"),
        ("evidence.mrr", "evidence.RR"),
        ("evidence.hit_rate@10", "evidence.Success@10"),
        ("Evidence.NDCG@10", "evidence.nDCG@10"),
        ("evidence.rankoffullcoverage", "evidence.RankOfFullCoverage"),
        ("evidence.union(least=20)@5", "evidence.union@5"),
    ],
)
def test_other_spellings_name_the_canonical_measure(spelling, canonical):
    assert parse(spelling).name == canonical


# The command line


def test_eval_shows_the_matching_rule_at_the_end(command):
    code, out, err = command(
        *("eval", "gold.jsonl", "run.jsonl", "-m", "EvidenceRecall@3,evidence.P"),
        "--no-intervals",
    )
    assert code == 0
    assert "warning" not in err
    rows = [line.split() for line in out.splitlines()]
    assert ["evidence.recall@3", "0.500", "●", "3"] in rows
    assert ["evidence.P", "0.833", "●", "3"] in rows
    assert out.endswith(
        "\nevidence: a substring of the chunk, or SequenceMatcher's ratio ≥ 0.7; lower case\n"
    )
    document = json.loads(command("eval", "gold.jsonl", "run.jsonl", "--json", "--by", "kind")[1])
    assert document["matching"] == str(Matching())
    assert list(document["runs"][0]["measures"]) == DEFAULTS
    groups = {g["by"]["kind"]: g["measures"] for g in document["runs"][0]["groups"]}
    assert groups["long"]["evidence.recall@3"]["value"] == 0.4
    assert groups["long"]["evidence.recall@3"]["n"] == 2


def test_eval_without_evidence_shows_no_matching_rule(command):
    Path("ids.jsonl").write_text('{"query_id": "q1", "relevant": ["a"]}\n')
    Path("run.trec").write_text("q1 Q0 a 1 0.9 t\n")
    out = command("eval", "ids.jsonl", "run.trec", "-m", "RR")[1]
    assert "evidence" not in out
    assert "matching" not in json.loads(command("eval", "ids.jsonl", "run.trec", "--json")[1])


@pytest.mark.parametrize(
    ("evidence", "chunk", "flags", "rule"),
    [
        ("abcdefghij", "abcdexyzvw", ["--fuzzy-threshold", "0.5"], {"fuzzy_threshold": 0.5}),
        ("paid in euros", "all is paid, it says, in new euros", ["--matcher", "tokens"], None),
        ("paid in Euros", f"{'x' * 60} paid_in euros", ["--matcher", "partial"], None),
        ("a long evidence", "long", ["--direction", "either"], {"direction": "either"}),
        ("Straße", "strasse nr 7 am markt", ["--casefold"], {"casefold": True}),
        ("five fi", "and ﬁve ﬁ, they say", ["--nfkc"], {"nfkc": True}),
        ("refund", "the re\u200bfund is there", ["--zero-width"], {"zero_width": True}),
    ],
)
def test_flag_changes_the_matching_rule_and_is_shown(command, evidence, chunk, flags, rule):
    Path("gold.jsonl").write_text(json.dumps({"query_id": "q", "evidence": [evidence]}))
    Path("run.jsonl").write_text(json.dumps({"query_id": "q", "results": [{"text": chunk}]}))
    rule = {"matcher": flags[1]} if rule is None else rule
    words = ("eval", "gold.jsonl", "run.jsonl", "-m", "evidence.recall", "--json")
    values = []
    for options, matching in (((), Matching()), (flags, Matching(**rule))):
        document = json.loads(command(*words, *options)[1])
        assert document["matching"] == str(matching)
        values.append(document["runs"][0]["measures"]["evidence.recall"]["value"])
    assert values == [0.0, 1.0]


def test_autojunk_misses_evidence_covered_without_it(command):
    chunk = " ".join(f"word{number} of the text" for number in range(40))
    evidence = chunk.replace("of", "in")
    rules = [{}, {"autojunk": True}]
    expected = [
        evidence_oracle.value("evidence.recall", [chunk], [evidence], None, rule) for rule in rules
    ]
    assert expected == [1.0, 0.0]
    Path("gold.jsonl").write_text(json.dumps({"query_id": "q", "evidence": [evidence]}))
    Path("run.jsonl").write_text(json.dumps({"query_id": "q", "results": [{"text": chunk}]}))
    words = ("eval", "gold.jsonl", "run.jsonl", "-m", "evidence.recall")
    assert "evidence.recall 1.000 over 1 query" in command(*words)[1]
    out = command(*words, "--autojunk")[1]
    assert "evidence.recall 0.000 over 1 query" in out
    assert "with autojunk" in out


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--fuzzy-threshold", "0"], "fuzzy_threshold", "0.0"),
        (["--fuzzy-threshold", "70"], "fuzzy_threshold", "70.0"),
        (["--matcher", "cosine"], "matcher", "'cosine'"),
        (["--direction", "both"], "direction", "'both'"),
    ],
)
def test_invalid_flag_is_reported_with_a_hint_and_exit_code_2(command, flags, field, value):
    code, out, err = command("eval", "gold.jsonl", "run.jsonl", *flags)
    assert (code, out) == (2, "")
    problem, hint = err.splitlines()
    assert problem.startswith(f"error: {field}: ")
    assert value in problem
    assert hint.startswith("  hint: ")


def test_matches_of_a_query_are_looked_up_by_its_original_id():
    gold, run = Gold.of(evidence={1: ["by post"]}), [{"query_id": 1, "results": [{"text": "post"}]}]
    scores = karat.evaluate(gold, run, "evidence.recall")
    assert scores.matches_of(1).equals(scores.matches_of("1"))
    with refused(field="query") as error:
        scores.matches_of(2)
    assert "2" in error.value.problem
    assert "'1'" in error.value.hint


def test_matcher_may_be_a_function():
    def starts_alike(evidence, chunk):
        return evidence[:2] == chunk[:2]

    plan = Plan.of("evidence.coverage", matching=Matching(matcher=starts_alike))
    assert score(GOLD, RUN, plan).frame["evidence.coverage"].to_list() == [0.5, 1.0, 1 / 3]
