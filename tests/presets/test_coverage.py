"""The coverage preset: ten measures of text evidence, with plain difflib as the oracle."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.presets import coverage
from karat.presets.coverage import covers, evaluate_coverage, normalize
from oracles import texts as text_oracle
from support.effort import examples
from support.errors import refused

NAMES = [
    "Precision@5",
    "EvidenceRecall@3",
    "EvidenceRecall@10",
    "PerQueryCoverage@3",
    "PerQueryCoverage@10",
    "FullCoverageRate@3",
    "FullCoverageRate@10",
    "MAP",
    "MRR",
    "HitRate@10",
]

GOLD = [
    {"query_id": "q1", "evidence": ["Paid within 14 days", "by bank\ntransfer"]},
    {"query_id": "q2", "evidence": ["parcels leave at noon"]},
    {"query_id": "q3", "evidence": ["no such text anywhere"]},
    {"query_id": "q4", "relevant": ["x"]},
]


def result(text, score):
    return {"text": text, "score": score}


RUN = [
    {
        "query_id": "q1",
        "results": [
            result("Something else entirely", 0.9),
            result("The refund is paid  within 14 days.", 0.8),
            result("It is paid within 14 days, as ever.", 0.7),
            result("We pay by bank transfer only.", 0.3),
        ],
    },
    {"query_id": "q2", "results": [result("Parcels leave at Moon", 0.5)]},
    {"query_id": "q3", "results": []},
]


def test_ten_measures_worked_by_hand():
    report = evaluate_coverage(GOLD, RUN)
    assert list(report.metrics) == NAMES
    # q1 covers one of two at rank 2, again at 3, the other at 4; q2 its one at rank 1, by
    # 20 of 21 characters; q3 nothing; q4 has no evidence and is left out.
    assert report.metrics == pytest.approx(
        {
            "Precision@5": (3 / 5 + 1 / 5 + 0) / 3,
            "EvidenceRecall@3": 2 / 4,
            "EvidenceRecall@10": 3 / 4,
            "PerQueryCoverage@3": (1 / 2 + 1 + 0) / 3,
            "PerQueryCoverage@10": (1 + 1 + 0) / 3,
            "FullCoverageRate@3": 1 / 3,
            "FullCoverageRate@10": 2 / 3,
            "MAP": ((1 / 2 + 2 / 4) / 2 + 1 + 0) / 3,
            "MRR": (1 / 2 + 1 + 0) / 3,
            "HitRate@10": 2 / 3,
        },
        abs=1e-15,
    )
    assert report.per_query.columns == ["query_id", *NAMES]
    assert report.per_query.row(0) == ("q1", 3 / 5, 1 / 2, 1.0, 1 / 2, 1.0, 0.0, 1.0, 0.5, 0.5, 1.0)
    assert report.per_query["MRR"].to_list() == [0.5, 1.0, 0.0, None]
    assert report.scores.left_out == {"no_evidence": 1}
    assert (report.speed, report.cost) == (None, None)


def test_settings_shorten_the_list_but_not_the_denominators():
    report = evaluate_coverage(GOLD, RUN, score_threshold=0.4, top_k=2)
    # q1 keeps ranks 1 and 2, q2 its only one.
    assert report.metrics["Precision@5"] == pytest.approx((1 / 5 + 1 / 5) / 3, abs=1e-15)
    assert report.metrics["EvidenceRecall@10"] == 2 / 4
    assert str(report.scores.settings) == "top_k=2, score_threshold=0.4"
    gone = evaluate_coverage(GOLD, RUN, score_threshold=0.6).metrics
    assert gone["EvidenceRecall@10"] == 1 / 4  # q2 still counts, without results
    strict = evaluate_coverage(GOLD, RUN, fuzzy_threshold=1.0).metrics
    assert strict["EvidenceRecall@10"] == 2 / 4  # noon is not Moon


def test_evaluate_with_the_preset_gives_the_same_values():
    report, scores = evaluate_coverage(GOLD, RUN), karat.evaluate(GOLD, RUN, preset="coverage")
    assert list(scores) == list(coverage.MEASURES)
    assert list(report.metrics.values()) == [scores[measure] for measure in coverage.MEASURES]


def timed(query, times, calls):
    return {"query_id": query, "results": [], "latency_ms": times, "calls": calls}


def test_speed_and_cost_worked_by_hand():
    one = {"model": "m", "prompt_tokens": 900, "completion_tokens": 100, "price_per_1k": 0.5}
    run = [
        timed("q1", {"total": 10.0, "rerank, 'deep'": 4.0}, [one, {"price_per_call": 0.25}]),
        timed("q2", {"total": 30.0}, []),
        timed("q9", {"total": 1e6}, [{"price_per_call": 1e6}]),  # gold has no such query
    ]
    report = evaluate_coverage(GOLD, run)
    assert report.speed == {
        "rerank, 'deep'": {"average": 4.0, "P50": 4.0, "P90": 4.0, "P99": 4.0},
        "total": {"average": 20.0, "P50": 20.0, "P90": 28.0, "P99": pytest.approx(29.8)},
    }
    assert report.cost == {"sum": 0.75, "per_query": 0.375}
    assert report.metrics["MRR"] == 0.0
    assert report.per_query.columns == ["query_id", *NAMES]


def test_stage_with_any_name_is_written_and_read_again(tmp_path):
    run = [{"query_id": "q", "results": [{"text": "a b"}], "latency_ms": {"rank, (late)": 2.0}}]
    report = evaluate_coverage([{"query_id": "q", "evidence": ["a b"]}], run)
    for path in (tmp_path / "scores.json", tmp_path / "scores.parquet", tmp_path / "scores.md"):
        report.scores.write(path)
    for path in (tmp_path / "scores.json", tmp_path / "scores.parquet"):
        assert karat.Scores.read(path)['latency.mean(stage="rank, (late)")'] == 2.0


def test_speed_and_cost_are_present_if_the_run_has_them():
    line = {"query_id": "q1", "results": []}
    timed_only = evaluate_coverage(GOLD, [line | {"latency_ms": {"total": 5.0}}])
    assert timed_only.speed == {"total": dict.fromkeys(["average", "P50", "P90", "P99"], 5.0)}
    assert timed_only.cost is None
    priced_only = evaluate_coverage(GOLD, [line | {"calls": [{"price_per_call": 0.5}]}])
    assert (priced_only.speed, priced_only.cost) == (None, {"sum": 0.5, "per_query": 0.5})
    unknown = evaluate_coverage(GOLD, [line | {"calls": [{"model": "m"}]}])
    assert unknown.cost == {"sum": None, "per_query": None}
    assert unknown.scores.noted["unpriced"] == 1


words = st.sampled_from(["paid", "PAID", "within", "14", "days", "noon", "Noon", "é", "\u00a0"])
phrases = st.lists(words, max_size=6).map(" ".join)


@given(phrases, phrases, st.sampled_from([0.3, 0.5, 2 / 3, 0.7, 0.9, 1.0]))
def test_covers_agrees_with_difflib(chunk, evidence, threshold):
    normalized, text = text_oracle.normalize(evidence), text_oracle.normalize(chunk)
    assert normalize(evidence) == normalized
    expected = text_oracle.how(normalized, text, threshold=threshold) is not None
    assert covers(chunk, evidence, threshold) is expected


def test_covers_takes_the_chunk_first():
    assert covers("the refund is paid within 14 days of notice", "14 days")
    assert not covers("14 days", "the refund is paid within 14 days of notice")
    assert covers("abcdefg...", "abcdefgxyz")  # 2 · 7 / 20 is the default threshold
    assert not covers("abcdefg...", "abcdefgxyz", fuzzy_threshold=0.71)
    assert not covers("anything", " ")


def metrics_by_hand(gold, run, threshold, top_k, score_threshold):
    """Compute the ten measures for one query, one rank and one pair at a time."""
    rows = []
    for query, evidence in gold.items():
        distinct = list(dict.fromkeys(map(text_oracle.normalize, evidence)))
        distinct = [text for text in distinct if text]
        kept = [t for t, s in run[query] if score_threshold is None or s >= score_threshold]
        covered_at, covering = {}, []
        for rank, text in enumerate(kept[:top_k], 1):
            chunk = text_oracle.normalize(text)
            covered = [e for e in distinct if text_oracle.how(e, chunk, threshold=threshold)]
            covering += [rank] if covered else []
            for text in covered:
                covered_at.setdefault(text, rank)
        if not distinct:
            continue
        average = 0.0
        new_ranks = sorted(set(covered_at.values()))
        for at, rank in enumerate(new_ranks, 1):
            average += list(covered_at.values()).count(rank) * at / rank
        at_3, at_10 = (sum(r <= k for r in covered_at.values()) for k in (3, 10))
        rows.append(
            {
                "evidence_texts": len(distinct),
                "Precision@5": sum(rank <= 5 for rank in covering) / 5,
                "covered@3": at_3,
                "covered@10": at_10,
                "PerQueryCoverage@3": at_3 / len(distinct),
                "PerQueryCoverage@10": at_10 / len(distinct),
                "FullCoverageRate@3": float(at_3 == len(distinct)),
                "FullCoverageRate@10": float(at_10 == len(distinct)),
                "MAP": average / len(distinct),
                "MRR": 1 / covering[0] if covering else 0.0,
                "HitRate@10": float(any(rank <= 10 for rank in covering)),
            }
        )
    metrics = {}
    for name in NAMES:
        if name.startswith("EvidenceRecall"):
            parts = sum(row["covered" + name.removeprefix("EvidenceRecall")] for row in rows)
            metrics[name] = parts / sum(row["evidence_texts"] for row in rows) if rows else None
        else:
            metrics[name] = sum(row[name] for row in rows) / len(rows) if rows else None
    return metrics


texts = st.lists(words.filter(str.strip), min_size=1, max_size=4).map(" ".join)
queries = st.sampled_from(["q1", "q2", "q3"])


@examples(50, 500)
@given(
    st.dictionaries(queries, st.lists(texts, min_size=1, max_size=3), min_size=1),
    st.lists(st.lists(st.tuples(texts, st.integers(0, 9)), max_size=12), min_size=3, max_size=3),
    st.sampled_from([0.5, 0.7, 1.0]),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(0, 9),
)
def test_ten_measures_agree_with_plain_loops(gold, lists, threshold, top_k, score_threshold):
    run = {
        query: sorted(listed, key=lambda pair: -pair[1])
        for query, listed in zip(["q1", "q2", "q3"], lists, strict=True)
    }
    found = evaluate_coverage(
        [{"query_id": query, "evidence": evidence} for query, evidence in gold.items()],
        [{"query_id": q, "results": [result(*pair) for pair in rs]} for q, rs in run.items()],
        fuzzy_threshold=threshold,
        top_k=top_k,
        score_threshold=score_threshold,
    )
    expected = metrics_by_hand(gold, run, threshold, top_k, score_threshold)
    assert found.metrics == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("threshold", [0, 1.01, float("nan"), "0.7"])
def test_fuzzy_threshold_out_of_range_is_refused(threshold):
    for function in (
        lambda: covers("a", "a", threshold),
        lambda: evaluate_coverage(GOLD, RUN, fuzzy_threshold=threshold),
    ):
        with refused(path=None, field="fuzzy_threshold") as caught:
            function()
        assert str(threshold) in caught.value.problem


def test_input_that_cannot_be_scored_is_refused():
    with refused(path=None, field="evidence"):
        evaluate_coverage({"q1": ["a"]}, RUN)
    with refused(path=None, field="text"):
        evaluate_coverage(GOLD, {"q1": ["a"]})
    with refused(path=None, field="top_k"):
        evaluate_coverage(GOLD, RUN, top_k=0)


def test_presets_are_attributes_of_the_package():
    assert karat.presets.coverage is coverage
    assert "coverage" in dir(karat.presets)
    with pytest.raises(AttributeError) as caught:
        karat.presets.covers  # noqa: B018
    assert "covers" in str(caught.value)


def test_preset_reads_the_environment_and_the_function_does_not(monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "1")
    monkeypatch.setenv("RAG_SCORE_THRESHOLD", " 0.4 ")
    assert evaluate_coverage(GOLD, RUN).metrics["EvidenceRecall@10"] == 3 / 4
    scores = karat.evaluate(GOLD, RUN, preset="coverage")
    assert scores["EvidenceRecall@10"] == 1 / 4
    assert str(scores.settings) == "top_k=1 (RAG_TOP_K), score_threshold=0.4 (RAG_SCORE_THRESHOLD)"
    given = karat.evaluate(GOLD, RUN, preset="coverage", top_k=3)
    assert str(given.settings) == "top_k=3, score_threshold=0.4 (RAG_SCORE_THRESHOLD)"
    monkeypatch.setenv("RAG_TOP_K", "")
    monkeypatch.delenv("RAG_SCORE_THRESHOLD")
    assert not karat.evaluate(GOLD, RUN, preset="coverage").settings


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RAG_TOP_K", "five"),
        ("RAG_TOP_K", "2.5"),
        ("RAG_TOP_K", "0"),
        ("RAG_SCORE_THRESHOLD", "high"),
        ("RAG_SCORE_THRESHOLD", "nan"),
    ],
)
def test_invalid_environment_variable_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with refused(path=None, field=variable) as caught:
        karat.evaluate(GOLD, RUN, preset="coverage")
    assert value in caught.value.problem


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    """Run karat on gold.jsonl and run.jsonl; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name, lines in {"gold.jsonl": GOLD, "run.jsonl": RUN}.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return command


EVAL = ("eval", "gold.jsonl", "run.jsonl", "--preset", "coverage")


def test_command_line_accepts_the_preset(command):
    code, out, err = command(*EVAL, "--fuzzy-threshold", "0.7")
    assert code == 0
    assert "warning" not in err
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[3:13]] == NAMES
    assert not lines[13].startswith(("latency", "cost"))
    assert lines[5].split()[:2] == ["EvidenceRecall@10", "0.750"]
    assert not [line for line in lines if line.startswith("list:")]
    assert command(*EVAL, "--fuzzy-threshold", "1")[1].splitlines()[5].split()[1] == "0.500"


def test_settings_from_the_environment_are_printed_and_options_take_precedence(
    command, monkeypatch
):
    monkeypatch.setenv("RAG_TOP_K", "1")
    out = command(*EVAL)[1]
    assert "list: top_k=1 (RAG_TOP_K)\n" in out
    report = json.loads(command(*EVAL, "--json", "--score-threshold", "0.4")[1])
    assert report["settings"] == {
        "top_k": 1,
        "score_threshold": 0.4,
        "origin": {"top_k": "RAG_TOP_K"},
    }
    assert "list: top_k=2\n" in command(*EVAL, "--top-k", "2")[1]
    monkeypatch.setenv("RAG_TOP_K", "many")
    code, out, err = command(*EVAL)
    assert (code, out) == (2, "")
    assert err.startswith("error: RAG_TOP_K: ")
    assert "many" in err.splitlines()[0]


BOTH = [
    {"query_id": "q1", "evidence": ["paid within 14 days"], "relevant": ["d"]},
    {"query_id": "q2", "evidence": ["parcels leave at noon"], "relevant": ["d"]},
]
BOTH_RUN = [
    {
        "query_id": query,
        "results": [{"id": "x", "text": text}, {"id": "d", "text": "something else"}],
    }
    for query, text in (("q1", "Paid within 14 days."), ("q2", "Parcels leave at noon."))
]


def test_names_mean_evidence_inside_the_preset_only():
    asked = ["MRR", "MAP", "Precision@5", "HitRate@10", "precision_at_3", "EvidenceRecall@3"]
    inside = karat.evaluate(BOTH, BOTH_RUN, asked, preset="coverage")
    assert list(inside) == [
        "evidence.RR",
        "evidence.AP",
        "evidence.P@5",
        "evidence.Success@10",
        "evidence.P@3",
        "evidence.recall@3",
    ]
    assert inside["MRR"] == inside["evidence.RR"] == 1.0
    assert "MRR" in inside
    assert "RR" not in inside
    assert "MRR 1.000" in repr(inside)
    assert karat.evaluate(BOTH, BOTH_RUN, "MRR")["MRR"] == 0.5


def test_one_text_may_name_several_measures_inside_the_preset():
    scores = karat.evaluate(BOTH, BOTH_RUN, "MRR, HitRate@1,RR", preset="coverage")
    assert dict(scores) == {"evidence.RR": 1.0, "evidence.Success@1": 1.0, "RR": 0.5}


def test_a_gate_uses_the_names_of_the_preset():
    assert karat.gate(BOTH, BOTH_RUN, "MRR >= 0.9", preset="coverage").passed
    assert karat.gate(BOTH, BOTH_RUN, {"MRR": ">= 0.9"}, preset="coverage").passed
    assert not karat.gate(BOTH, BOTH_RUN, "MRR >= 0.9").passed


@pytest.fixture
def timed_run(tmp_path):
    """A run with latency and calls, next to gold.jsonl and run.jsonl."""
    usage = {"latency_ms": {"total": 50.0, "rerank": 20.0}, "calls": [{"price_per_call": 0.25}]}
    path = tmp_path / "timed.jsonl"
    path.write_text("".join(json.dumps(line | usage) + "\n" for line in RUN))
    return path


USAGE = ["latency.mean", "latency.p50", "latency.p90", "latency.p99", "cost.sum", "cost.mean"]
TIMED = ("eval", "gold.jsonl", "timed.jsonl", "--preset", "coverage")


def test_latency_and_cost_are_shown_where_the_run_has_them(command, timed_run, tmp_path):
    code, out, _ = command(*TIMED, "-o", "out.md", "-o", "out.csv")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[3:19]] == NAMES + USAGE
    table = (tmp_path / "out.md").read_text().splitlines()[2:]
    assert [line.split()[1] for line in table[2:18]] == NAMES + USAGE
    rows = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in rows] == NAMES + USAGE
    measures = json.loads(command(*TIMED, "--json")[1])["runs"][0]["measures"]
    assert list(measures) == NAMES + USAGE
    assert measures["latency.p90"]["value"] == 50.0
    assert measures["cost.sum"]["value"] == 0.75
    scores = karat.evaluate(tmp_path / "gold.jsonl", timed_run, preset="coverage")
    assert list(scores) == [*coverage.MEASURES, *USAGE]
    assert (scores["latency.mean"], scores["cost.mean"]) == (50.0, 0.25)


def test_latency_and_cost_are_not_added_to_named_measures(command, timed_run):
    assert timed_run.exists()
    measures = json.loads(command(*TIMED, "--json", "-m", "MRR")[1])["runs"][0]["measures"]
    assert list(measures) == ["MRR"]


def test_stages_are_shown_where_no_total_was_timed():
    line = {"query_id": "q1", "results": [], "latency_ms": {"rerank": 2.0, "search, (late)": 4.0}}
    scores = karat.evaluate(GOLD, [line], preset="coverage")
    assert scores["latency.mean(stage=rerank)"] == 2.0
    assert scores['latency.p99(stage="search, (late)")'] == 4.0
    assert "cost.sum" not in scores


def test_of_several_runs_latency_is_shown_if_all_have_it(command, timed_run):
    both = ("eval", "gold.jsonl", "timed.jsonl", "run.jsonl", "--preset", "coverage", "--json")
    runs = json.loads(command(*both)[1])["runs"]
    assert [list(run["measures"]) for run in runs] == [NAMES, NAMES]
    assert [len(run["notes"]) for run in runs] == [2, 2]  # that both are not shown, and why
    evaluator = karat.Evaluator(GOLD, preset="coverage")
    one, other = evaluator.all({"one": timed_run, "other": timed_run})
    assert list(one) == list(other) == [*coverage.MEASURES, *USAGE]
    assert not one.notes


def test_an_error_in_a_run_file_names_the_file(command, tmp_path):
    (tmp_path / "ids.jsonl").write_text('{"query_id": "q1", "results": [{"id": "a"}]}\n')
    code, _, err = command("eval", "gold.jsonl", "ids.jsonl", "--preset", "coverage")
    assert (code, err.startswith("error: ids.jsonl: ")) == (2, True)


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_saved_scores_keep_the_names_of_the_preset(command, timed_run, tmp_path, ending):
    path = tmp_path / f"scores.{ending}"
    karat.evaluate(tmp_path / "gold.jsonl", timed_run, preset="coverage").write(path)
    again = karat.Scores.read(path)
    assert again.preset == "coverage"
    assert list(again) == [*coverage.MEASURES, *USAGE]
    assert again["EvidenceRecall@10"] == 3 / 4
    again.write(tmp_path / "again.md")
    assert "| MRR | " in (tmp_path / "again.md").read_text()
    code, out, _ = command(
        "compare", "gold.jsonl", path, "run.jsonl", "--preset", "coverage", "--json"
    )
    assert code == 0
    assert [pair["measure"] for pair in json.loads(out)["pairs"]] == NAMES


def test_saved_scores_with_an_unknown_preset_are_refused(tmp_path):
    path = tmp_path / "scores.json"
    karat.evaluate(GOLD, RUN, preset="coverage").write(path)
    path.write_text(path.read_text().replace('"preset": "coverage"', '"preset": "cover"'))
    with refused(path=path, field="preset"):
        karat.Scores.read(path)


def test_a_comparison_prints_the_names_of_the_preset(command, tmp_path):
    (tmp_path / "other.jsonl").write_text((tmp_path / "run.jsonl").read_text().replace("14", "15"))
    words = ("compare", "gold.jsonl", "run.jsonl", "other.jsonl", "--preset", "coverage")
    code, out, _ = command(*words, "-o", "out.md", "-o", "out.csv", "-o", "out.tex")
    assert code == 0
    texts = [out, *((tmp_path / f"out.{ending}").read_text() for ending in ("md", "csv", "tex"))]
    for text in texts:
        assert all(name in text for name in NAMES)
        assert "evidence." not in text
    printed = json.loads(command(*words, "--json")[1])
    assert [pair["measure"] for pair in printed["pairs"]] == NAMES
    assert printed["moved"][0]["measure"] == "Precision@5"


def test_groups_and_queries_have_the_names_of_the_preset(command, tmp_path):
    lines = [line | {"category": "a"} for line in GOLD]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    printed = json.loads(command(*EVAL, "--by", "category", "--per-query", "--json")[1])
    (run,) = printed["runs"]
    assert list(run["groups"][0]["measures"]) == NAMES
    assert list(run["per_query"][0]) == ["query_id", *NAMES]
    assert set(run["weights"]) == {"EvidenceRecall@3", "EvidenceRecall@10"}
    assert "evidence." not in command(*EVAL, "--by", "category", "--per-query")[1]


def test_the_number_of_results_after_pruning_is_reported(command):
    scores = karat.evaluate(GOLD, RUN, preset="coverage", score_threshold=0.6)
    # Of q1's four results three are left, of q2's one none; q4 is not in the run.
    (note,) = scores.notes
    assert note.startswith("3 of 5 results are left")
    assert "1.0 per query" in note
    assert note in " ".join(command(*EVAL, "--score-threshold", "0.6")[1].split())
    printed = json.loads(command(*EVAL, "--score-threshold", "0.6", "--json")[1])
    assert printed["runs"][0]["notes"] == [note]
    assert evaluate_coverage(GOLD, RUN, top_k=1).scores.notes[0].startswith("2 of 5 results")
    assert karat.evaluate(GOLD, RUN, preset="coverage").notes == ()


def test_evaluate_coverage_runs_a_retriever():
    gold = [{"query_id": "q1", "query": "When?", "evidence": ["paid within 14 days"]}]
    asked = []

    def retriever(query):
        asked.append(query)
        return [{"text": "It is paid within 14 days."}]

    report = evaluate_coverage(gold, retriever)
    assert asked == ["When?"]
    assert report.metrics["MRR"] == 1.0
    assert report.speed["total"]["P50"] > 0


def test_evaluate_coverage_raises_if_a_retriever_fails():
    gold = [{"query_id": "q1", "query": "When?", "evidence": ["paid within 14 days"]}]

    def retriever(query):
        raise ValueError(query)

    with pytest.raises(karat.RetrieverError):
        evaluate_coverage(gold, retriever)
    with pytest.warns(karat.KaratWarning):
        assert evaluate_coverage(gold, retriever, fail_on_error=1).metrics["MRR"] == 0.0


def test_evaluate_coverage_takes_the_texts_of_ids_from_chunks():
    table = [{"id": "c1", "doc_id": "d", "start": 0, "end": 19, "text": "paid within 14 days"}]
    report = evaluate_coverage(GOLD, {"q1": ["c1"]}, chunks=karat.Chunks.of(pl.DataFrame(table)))
    assert report.per_query["MRR"][0] == 1.0


def test_evaluate_coverage_takes_the_whole_rule_of_matching():
    gold = [{"query_id": "q", "evidence": ["the refund is paid within 14 days of notice"]}]
    run = [{"query_id": "q", "results": [{"text": "14 days"}]}]
    assert evaluate_coverage(gold, run).metrics["MRR"] == 0.0
    either = karat.Matching(direction="either")
    assert evaluate_coverage(gold, run, matching=either).metrics["MRR"] == 1.0
    with refused(field="matching"):
        evaluate_coverage(gold, run, matching=either, fuzzy_threshold=0.5)


def test_medians_are_shown_on_request(command, tmp_path):
    without = command(*EVAL, "--no-intervals")[1].splitlines()
    assert without[2].split() == ["measure", "run", "0", "…", "1", "queries"]
    lines = command(*EVAL, "--no-intervals", "--median", "-o", "out.md")[1].splitlines()
    lines = [line.split() for line in lines]
    assert lines[2] == ["measure", "run", "0", "…", "1", "median", "queries"]
    # Per query 1/2, 1 and 0; over all 2 of 4 pieces.
    assert lines[4] == ["EvidenceRecall@3", "0.500", "●", "0.500", "3"]
    assert lines[11] == ["MRR", "0.500", "●", "0.500", "3"]
    assert lines[3] == ["Precision@5", "0.267", "●", "0.200", "3"]
    assert "| measure | run | median | queries |" in (tmp_path / "out.md").read_text()


def test_medians_of_several_runs_name_the_run(command, tmp_path):
    (tmp_path / "other.jsonl").write_text((tmp_path / "run.jsonl").read_text())
    words = ("eval", "gold.jsonl", "run.jsonl", "other.jsonl", "--preset", "coverage", "--median")
    assert command(*words, "--no-intervals", "-o", "out.md")[0] == 0
    table = (tmp_path / "out.md").read_text().splitlines()[2:]
    assert table[0] == "| measure | run | other | median of run | median of other | queries |"
    assert table[2] == "| Precision@5 | 0.267 | 0.267 | 0.200 | 0.200 | 3 |"
