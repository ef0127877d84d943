"""Candidates and results: recall by depth, the best order, and which stage lost each query."""

import statistics

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError
from oracles import reranking as oracle
from support.effort import examples
from support.errors import refused

# Most of these lists contain only few of the relevant ids.
pytestmark = pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")

ITEMS = st.sampled_from("abcdefg")
GRADES = st.dictionaries(ITEMS, st.integers(-1, 3), max_size=5)
LIST = st.lists(ITEMS, max_size=5)
LINE = st.fixed_dictionaries({"results": LIST}, optional={"candidates": LIST})


def run_of(lines, depth=None):
    """Return a run; its header states how many candidates the reranker got, if that is known."""
    records = [{"query_id": query, **line} for query, line in lines.items()]
    run = karat.Run.of(records, name="reranked")
    if depth is not None:
        run.settings.update(rerank_top_n=depth, handed=["rerank_top_n"])
    return run


def reranking_of(gold, lines, measure="nDCG@2", depth=None, **options):
    return karat.evaluate(gold, run_of(lines, depth), measure, **options).reranking()


def stages_of(reranking):
    return dict(reranking.per_query.select("query_id", "stage").rows())


@examples(150, 3000)
@given(
    st.lists(st.tuples(GRADES, LINE), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(1, 2),
    st.none() | st.integers(1, 5),
)
def test_every_number_is_that_of_the_definition(cases, k, rel, depth):
    gold = {f"q{at}": grades for at, (grades, _) in enumerate(cases)}
    lines = {f"q{at}": line for at, (_, line) in enumerate(cases)}
    expected = {
        query: line
        for query, line in lines.items()
        if "candidates" in line and any(grade >= rel for grade in gold[query].values())
    }
    measures = [f"nDCG@{k}", f"R(rel={rel})@{k}"]
    if not any("candidates" in line for line in lines.values()) or not expected:
        with pytest.raises(InputError):
            reranking_of(gold, lines, measures, depth)
        return
    reranking = reranking_of(gold, lines, measures, depth)
    assert (reranking.cutoff, reranking.rel, reranking.rerank_depth) == (k, rel, depth)
    rows = {row["query_id"]: row for row in reranking.per_query.to_dicts()}
    assert set(rows) == set(expected)
    for query, line in expected.items():
        grades, row = gold[query], rows[query]
        lost = oracle.lost(grades, line, k, rel, depth)
        assert {stage: row[f"lost_{stage}"] for stage in lost} == lost
        assert row["stage"] == oracle.stage(lost)
        assert row["before"] == pytest.approx(oracle.ndcg(line["candidates"], grades, k))
        assert row["after"] == pytest.approx(oracle.ndcg(line["results"], grades, k))
        best = oracle.best_ndcg(line["candidates"], grades, k, depth)
        assert row["best"] == pytest.approx(best)
    recalls = [
        oracle.recall(gold[q], line["candidates"], rel, depth) for q, line in expected.items()
    ]
    assert reranking.recall == pytest.approx(statistics.mean(recalls))
    check_depths(reranking, gold, expected, k, rel)
    check_items(reranking, gold, expected, rel)


def check_depths(reranking, gold, lines, k, rel):
    longest = max(len(line["candidates"]) for line in lines.values())
    assert reranking.depths["depth"].to_list()[-1] == longest
    for depth, recall, best in reranking.depths.iter_rows():
        recalls, values = [], []
        for query, line in lines.items():
            recalls.append(oracle.recall(gold[query], line["candidates"], rel, depth))
            values.append(oracle.best_ndcg(line["candidates"], gold[query], k, depth))
        assert recall == pytest.approx(statistics.mean(recalls))
        assert best == pytest.approx(statistics.mean(values))


def check_items(reranking, gold, lines, rel):
    def rank(items, item):
        return items.index(item) + 1 if item in items else None

    expected = {
        (query, item): (rank(line["candidates"], item), rank(line["results"], item))
        for query, line in lines.items()
        for item, grade in gold[query].items()
        if grade >= rel
    }
    found = {(query, item): ranks for query, item, *ranks in reranking.items.iter_rows()}
    assert {key: tuple(ranks) for key, ranks in found.items()} == expected


@examples(60, 1000)
@given(
    st.lists(st.tuples(GRADES, LINE), min_size=1, max_size=4),
    st.sampled_from(["first", "count", "set", "error"]),
    st.sampled_from(["irrelevant", "skip"]),
    st.sampled_from(["item", "doc"]),
)
def test_lists_are_scored_like_any_run(cases, duplicates, unjudged, level):
    """The values equal those of the candidates and the results as two runs of their own."""
    gold = {f"q{at}": grades for at, (grades, _) in enumerate(cases)}

    def with_documents(items):
        return [{"id": f"{item}1", "doc_id": item} if level == "doc" else item for item in items]

    lines = {
        f"q{at}": {
            name: with_documents(dict.fromkeys(items) if duplicates == "error" else items)
            for name, items in line.items()
        }
        for at, (_, line) in enumerate(cases)
    }
    options = {"conventions": {"duplicates": duplicates, "unjudged": unjudged}, "level": level}
    try:
        reranking = reranking_of(gold, lines, "nDCG@3", **options)
    except InputError:
        return
    for column, name in (("before", "candidates"), ("after", "results")):
        run = run_of({q: {"results": line[name]} for q, line in lines.items() if name in line})
        values = karat.evaluate(gold, run, "nDCG@3", **options).per_query
        expected = dict(values.rows())
        for query, value in reranking.per_query.select("query_id", column).rows():
            assert value == expected[query]


def test_a_reranker_that_orders_by_grade_reaches_the_best_value():
    gold = {"q": {"a": 1, "b": 3, "c": 2}}
    line = {"candidates": ["x", "a", "b", "c"], "results": ["b", "c", "a", "x"]}
    (row,) = reranking_of(gold, {"q": line}, "nDCG@3").per_query.to_dicts()
    assert row["after"] == row["best"] == 1.0
    assert row["stage"] == "none"


def test_an_item_behind_the_reranked_ones_was_not_a_candidate():
    gold = {"q": ["d"]}
    line = {"candidates": ["a", "b", "c", "d"], "results": ["a", "b", "c", "d"]}
    assert stages_of(reranking_of(gold, {"q": line}, "nDCG@1"))["q"] == "rerank"
    assert stages_of(reranking_of(gold, {"q": line}, "nDCG@1", depth=2))["q"] == "candidates"


def test_a_query_counts_for_the_stage_that_lost_most():
    gold = {"q": ["a", "b", "c"], "r": ["a", "b"]}
    lines = {
        "q": {"candidates": ["x", "y", "z", "a", "b"], "results": ["x", "y", "z", "a", "b"]},
        "r": {"candidates": ["x", "y", "z", "a"], "results": ["x", "y", "z", "a"]},
    }
    reranking = reranking_of(gold, lines, "nDCG@3")
    assert stages_of(reranking) == {"q": "rerank", "r": "candidates"}
    assert reranking.stages.rows() == [
        ("candidates", 1, 2),
        ("rerank", 1, 3),
        ("cut", 0, 0),
        ("none", 0, None),
    ]


def test_no_stage_loses_what_does_not_fit_into_the_top():
    gold = {"q": [f"r{n}" for n in range(9)]}
    line = {"candidates": ["r0", "r1", "x"], "results": ["r0", "r1"]}
    assert stages_of(reranking_of(gold, {"q": line}, "nDCG@2"))["q"] == "none"


def test_top_k_and_threshold_of_the_evaluation_cut_results_and_not_candidates():
    line = {
        "candidates": [{"id": "b", "score": 0.1}, {"id": "a", "score": 0.1}],
        "results": [{"id": "b", "score": 0.9}, {"id": "a", "score": 0.5}],
    }
    for options in ({"top_k": 1}, {"score_threshold": 0.6}):
        reranking = reranking_of({"q": ["a"]}, {"q": line}, "nDCG@2", **options)
        assert stages_of(reranking) == {"q": "cut"}
        assert reranking.recall == 1.0


def test_failed_queries_and_queries_without_candidates_are_left_out_and_noted():
    lines = {
        "q1": {"candidates": ["a"], "results": ["a"]},
        "q2": {"results": ["a"]},
        "q3": {"candidates": ["a"], "results": [], "error": {"type": "Timeout"}},
        "q4": {"candidates": [], "results": []},
        "q5": {"candidates": ["x"], "results": ["a"]},
    }
    gold = {query: ["a"] for query in lines}
    scores = karat.evaluate(gold, run_of(lines), "nDCG@1", fail_on_error=1)
    reranking = scores.reranking()
    assert stages_of(reranking) == {"q1": "none", "q4": "candidates", "q5": "none"}
    assert len(reranking.notes) == 3
    assert scores["nDCG@1"] == 0.6  # the scores themselves do not change


def test_unanswerable_queries_are_left_out():
    gold = [{"query_id": "q1", "relevant": ["a"]}, {"query_id": "q2", "answerable": False}]
    line = {"candidates": ["a"], "results": ["a"]}
    reranking = reranking_of(gold, {"q1": line, "q2": line}, "nDCG@1")
    assert reranking.per_query["query_id"].to_list() == ["q1"]


def chunk(name, doc_id, start, end, text=""):
    return {"id": name, "doc_id": doc_id, "start": start, "end": end, "text": text or name}


A = chunk("A", "d", 0, 20, "well, hello there")
B = chunk("B", "e", 0, 9, "pay by card")
C = chunk("C", "f", 0, 9, "nothing of interest")
SPANS = [
    {
        "query_id": "q",
        "spans": [
            {"doc_id": "d", "start": 5, "end": 9},
            {"doc_id": "e", "start": 0, "end": 3},
            {"doc_id": "z", "start": 0, "end": 3},
        ],
        "evidence": ["hello there", "pay by card", "retrieved by none"],
    }
]


@pytest.mark.parametrize("measure", ["span.recall@2", "evidence.recall@2"])
@pytest.mark.parametrize(
    ("candidates", "results", "lost", "ranks"),
    [
        ([A, B, C], [C, A, B], (1, 1, 0), [(1, 2), (2, 3)]),
        ([C, B, A], [A, B], (1, 0, 0), [(3, 1), (2, 2)]),
        ([A, B, C], [B], (1, 0, 1), [(1, None), (2, 1)]),
        ([B, C], [B, C], (2, 0, 0), [(None, None), (1, 1)]),
    ],
)
def test_spans_and_evidence_are_counted_by_what_items_cover(
    measure, candidates, results, lost, ranks
):
    line = {"candidates": candidates, "results": results}
    reranking = reranking_of(SPANS, {"q": line}, measure)
    (row,) = reranking.per_query.to_dicts()
    found = (row["lost_candidates"], row["lost_rerank"], row["lost_cut"])
    assert (row["relevant"], found, row["best"]) == (3, lost, None)
    assert reranking.items.select("candidate_rank", "rank").rows()[:2] == ranks
    assert reranking.recall == pytest.approx(sum(rank is not None for rank, _ in ranks) / 3)


def test_spans_are_the_same_in_both_lists_whatever_documents_these_have():
    """The documents of a list are numbered in the order in which they occur."""
    results = [chunk("X", "a0", 0, 5), chunk("Y", "e", 0, 9), A]
    reranking = reranking_of(SPANS, {"q": {"candidates": [A], "results": results}}, "span.recall@5")
    ranks = {item: (before, after) for _, item, before, after in reranking.items.rows()}
    assert ranks == {"d[5:9]": (1, 3), "e[0:3]": (None, 2), "z[0:3]": (None, None)}


def test_min_overlap_of_the_measure_decides_what_covers_a_span():
    half = {"candidates": [chunk("A", "d", 0, 7)], "results": [chunk("A", "d", 0, 7)]}
    gold = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 5, "end": 9}]}]
    scores = karat.evaluate(gold, run_of({"q": half}), "span.recall@1")
    assert stages_of(scores.reranking()) == {"q": "none"}
    assert stages_of(scores.reranking("span.nDCG(min_overlap=1.0)@1")) == {"q": "candidates"}


def test_candidates_are_renamed_and_converted_like_results():
    gold = [{"query_id": "q", "spans": [{"doc_id": "docs/a.md", "start": 1, "end": 2}]}]
    item = {"doc_id": "a.md", "start": 2, "end": 3}
    run = karat.Run.of([{"query_id": "q", "candidates": [item], "results": [item]}])
    reranking = karat.evaluate(
        gold, run.counted_in("utf16"), "span.recall@1", corpus={"docs/a.md": "😀bc", "a.md": "😀bc"}
    ).reranking()
    assert reranking.items.select("candidate_rank", "rank").rows() == [(1, 1)]


def test_candidates_without_ids_get_ids_from_their_texts():
    text = {"text": "pay by card"}
    gold = karat.Gold.of(
        [
            {
                "query_id": "q",
                "relevant": [
                    karat.Run.of([{"query_id": "q", "results": [text]}])
                    .with_item_ids()
                    .results["item_id"][0]
                ],
            }
        ]
    )
    with pytest.warns(karat.KaratWarning):
        scores = karat.evaluate(
            gold, karat.Run.of([{"query_id": "q", "results": [text], "candidates": [text]}]), "RR@1"
        )
    assert scores.reranking().items["candidate_rank"].to_list() == [1]


def test_the_measure_is_the_first_ndcg_or_has_the_first_cutoff():
    line = {"candidates": ["a"], "results": ["a"]}
    for measures, chosen in {
        "RR": "nDCG@10",
        "R@3 P@5": "nDCG@3",
        "R@3 nDCG(gain=exp2)@7": "nDCG(gain=exp2)@7",
        "nDCG P@5": "nDCG@5",
    }.items():
        reranking = reranking_of({"q": ["a"]}, {"q": line}, measures.split())
        assert reranking.measure.name == chosen
    scores = karat.evaluate({"q": ["a"]}, run_of({"q": line}), "RR")
    assert scores.reranking("nDCG@20").cutoff == 20
    for wrong in ("RR@10", "nDCG", "span.recall@5"):
        with refused(field="measure"):
            scores.reranking(wrong)


def test_what_is_missing_is_stated(tmp_path):
    line = {"candidates": ["a"], "results": ["a"]}
    with refused(field="candidates"):
        reranking_of({"q": ["a"]}, {"q": {"results": ["a"]}})
    with refused(field="candidates"):
        reranking_of({"q": ["a"]}, {"q": line, "r": {"results": ["a"]}} | {"q": {"results": ["a"]}})
    scores = karat.evaluate({"q": ["a"]}, run_of({"q": line}), "RR")
    scores.write(tmp_path / "scores.json")
    with refused(field="candidates"):
        karat.Scores.read(tmp_path / "scores.json").reranking()
    with refused(field="stage"):
        scores.reranking().lost_by("retrieval")
    timed = {"q": line | {"latency_ms": 3}}
    with refused(field="measure"):
        reranking_of({"q": ["a"]}, timed, "latency.mean")


def test_candidates_that_lack_what_is_compared_do_not_stop_the_evaluation():
    line = {"candidates": ["A"], "results": [A]}
    scores = karat.evaluate(SPANS, run_of({"q": line}), "evidence.recall@1")
    with refused(field="candidates.text"):
        scores.reranking()
    assert "reranking is not shown" in str(scores)


def test_the_change_is_that_of_a_comparison():
    lines = {
        f"q{at}": {"candidates": ["x", "a", "y"], "results": ["a", "x"] if at % 3 else ["y", "x"]}
        for at in range(30)
    }
    gold = {query: ["a"] for query in lines}
    run = run_of(lines)
    reranking = karat.evaluate(gold, run, "nDCG@3").reranking()
    pair = karat.compare(gold, {"before": run.candidates, "after": run}, "nDCG@3").pairs
    row = pair.row(0, named=True)
    for name in ("value_a", "value_b", "difference", "low", "high", "p", "wins", "losses"):
        assert reranking.change[name] == row[name]


def test_json_lists_the_first_of_very_many_lost_queries(monkeypatch):
    lines = {f"q{at}": {"candidates": ["a", "x"], "results": ["x"]} for at in range(5)}
    reranking = reranking_of({query: ["a"] for query in lines}, lines, "nDCG@1")
    assert reranking.as_dict()["lost"]["rerank"] == list(lines)
    monkeypatch.setattr("karat.evaluation.reranking._MAX_LISTED_IDS", 2)
    document = reranking.as_dict()
    assert document["lost"]["rerank"] == ["q0", "q1"] == reranking.lost_by("rerank")[:2]
    assert document["stages"]["rerank"]["queries"] == 5
    (note,) = document["notes"]
    assert note.startswith("lost: ")


def test_ten_thousand_queries_take_no_loop(monkeypatch):
    """The work per query is done in arrays: nothing reads single rows of a table."""
    lines = {f"q{at}": {"results": ["a"], "candidates": ["a", "x"]} for at in range(10_000)}
    scores = karat.evaluate({query: ["a"] for query in lines}, run_of(lines), "nDCG@10")
    calls = []
    monkeypatch.setattr(pl.DataFrame, "iter_rows", lambda *_, **__: calls.append(1) or iter(()))
    assert scores.reranking().stages["queries"].to_list() == [0, 0, 0, 10_000]
    assert len(calls) < 10
