"""Candidates of runs or gold larger than memory are compared as if all was read as a whole."""

import json
import random
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.frames import generated_id
from karat.data.gold_source import PartitionedGold, open_gold
from karat.data.run_source import RunSource
from karat.engines import scoring_options
from karat.errors import KaratError
from karat.evaluation.scores_json import document
from karat.report.page.build import build_page
from karat.report.page.sections.reranking import reranking_view
from support.effort import examples

# Hypothesis makes lists that contain few of the ids of gold.
pytestmark = pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")

QUERIES = ["q1", "q2", "Q2", "301", "ж", "😀", "q10", "q3"]
ITEMS = "abcdefg"
TEXTS = ["the refund is paid within 14 days", "pay by card", "PAY by  card", "call us"]


@contextmanager
def tiny_batches(folder, block, batch=1, part=1000):
    """Read files in blocks, runs in batches and gold in parts of few bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring_options, "LEAST_MEMORY", 1)
        patch.setattr(run_source, "_SMALLEST_BATCH", batch)
        patch.setattr(gold_source, "_SMALLEST_PART", part)
        patch.setattr(files.Source.whole_lines, "__defaults__", (block,))
        patch.setattr(spill, "_parent", lambda: folder / "spill")
        yield


def write_lines(path, lines, **header):
    kind = path.stem
    first = {"karat": 1, "kind": kind, **header}
    records = [{"query_id": query, **line} for query, line in lines.items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *records)))
    return path


def outcome(gold, run, measures, memory=None, **options):
    """Everything that a user sees of the view, and the warnings; None if nothing is scored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores = karat.evaluate(gold, run, measures, memory=memory, **options)
        except KaratError:
            return None
        shown = str(scores), document([scores])["runs"]
        try:
            seen = described(scores.reranking())
        except KaratError as error:
            seen = str(error)
    return (seen, shown), sorted(str(warning.message) for warning in caught)


def described(reranking):
    tables = (reranking.per_query, reranking.items, reranking.depths, reranking.stages)
    rows = [[[cell(v) for v in row] for row in table.iter_rows()] for table in tables]
    change = {key: cell(value) for key, value in reranking.change.items()}
    header = reranking.measure, reranking.gold, reranking.rel, reranking.rerank_depth
    means = cell(reranking.best), cell(reranking.recall)
    return [table.schema for table in tables], rows, change, header, means, reranking.notes


def cell(value):
    return value.hex() if isinstance(value, float) else value


spans = st.builds(
    lambda doc_id, start, length: {"doc_id": doc_id, "start": start, "end": start + length},
    st.sampled_from(["docs/a.md", "b.md", "c.md"]),
    st.integers(0, 9),
    st.integers(1, 9),
)
results = st.builds(
    lambda item, span, text, score: {"id": item, **span, "text": text, "score": score},
    st.sampled_from(ITEMS),
    spans,
    st.sampled_from(TEXTS),
    st.sampled_from([0.9, 0.5]),
)
lists = st.lists(results, max_size=7)
candidates = st.one_of(lists, lists, lists, st.lists(st.sampled_from(ITEMS), max_size=3))
run_lines = st.one_of(
    st.fixed_dictionaries({"results": lists, "candidates": candidates}),
    st.fixed_dictionaries({"results": lists}, optional={"candidates": candidates}),
    st.just({"error": {"type": "Timeout", "message": "too slow"}, "results": []}),
)
judgments = st.fixed_dictionaries(
    {"relevant": st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), max_size=5)}
)
gold_lines = st.fixed_dictionaries(
    {},
    optional={
        "relevant": st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), max_size=5),
        "spans": st.lists(spans, max_size=3),
        "evidence": st.lists(st.sampled_from([*TEXTS, " "]), max_size=3),
        "answerable": st.booleans(),
    },
)
conventions = st.fixed_dictionaries(
    {},
    optional={
        "missing": st.just("skip"),
        "duplicates": st.sampled_from(["count", "set", "error"]),
        "no_gold": st.sampled_from(["one", "skip"]),
        "unjudged": st.just("skip"),
    },
)
cuts = st.fixed_dictionaries(
    {"fail_on_error": st.just(1.0)},
    optional={"top_k": st.integers(1, 3), "score_threshold": st.just(0.6)},
)
headers = st.sampled_from(
    [{}, {"settings": {"rerank_top_n": 2, "handed": ["rerank_top_n"]}}, {"name": "reranked"}]
)


def by_query(lines):
    return st.dictionaries(st.sampled_from(QUERIES), lines, min_size=1)


@given(
    gold=by_query(gold_lines),
    run=by_query(run_lines),
    header=headers,
    measure=st.sampled_from(["nDCG@2", "R(rel=2)@3", "span.recall@2", "evidence.recall@2"]),
    conventions=conventions,
    cut=cuts,
    block=st.integers(1, 600),
)
@examples(100, 3000)
def test_view_of_a_run_in_batches_is_that_of_the_whole_run(
    gold, run, header, measure, conventions, cut, block
):
    with TemporaryDirectory() as name:
        path = write_lines(Path(name, "run.jsonl"), run, **header)
        lines = [{"query_id": query, **line} for query, line in gold.items()]
        options = {"conventions": conventions, **cut}
        whole = outcome(lines, path, measure, **options)
        with tiny_batches(Path(name), block):
            assert RunSource(path, 1).is_large
            assert outcome(lines, path, measure, memory=1, **options) == whole
        assert not Path(name, "spill").exists()


@given(
    gold=by_query(judgments),
    run=by_query(run_lines),
    header=headers,
    level=st.sampled_from(["item", "doc"]),
    conventions=conventions,
    block=st.integers(1, 600),
    is_large=st.booleans(),
)
@examples(60, 2000)
def test_view_with_gold_in_parts_is_that_of_the_whole_gold(
    gold, run, header, level, conventions, block, is_large
):
    with TemporaryDirectory() as name:
        folder = Path(name)
        gold_path = write_lines(folder / "gold.jsonl", gold)
        path = write_lines(folder / "run.jsonl", run, **header)
        options = {"conventions": conventions, "level": level, "fail_on_error": 1.0}
        source = path if is_large else karat.Run.read(path)
        whole = outcome(gold_path, source, "nDCG@2", **options)
        with tiny_batches(folder, block, part=300):
            assert isinstance(open_gold(gold_path, 1)[0], PartitionedGold)
            assert outcome(gold_path, source, "nDCG@2", memory=1, **options) == whole


def test_means_over_queries_are_the_same_for_all_sizes_of_batches(tmp_path):
    chance = random.Random(3)
    gold, lines = {}, {}
    for number in range(300):
        items = chance.sample("abcdefghijklmnopqrstuvwxyz", 20)
        gold[f"q{number}"] = dict.fromkeys(items[: chance.randrange(1, 12)], 1)
        candidates = chance.sample(items, 20)
        lines[f"q{number}"] = {"candidates": candidates, "results": sorted(candidates)[:9]}
    path = write_lines(tmp_path / "run.jsonl", lines)
    whole = outcome(gold, path, "nDCG@10")
    for block in (100, 5000, 20_000):
        with tiny_batches(tmp_path, block):
            assert outcome(gold, path, "nDCG@10", memory=1) == whole


def test_candidates_with_texts_only_get_ids_in_every_batch(tmp_path):
    text = {"text": "pay by card"}
    lines = {
        "q1": {"results": [], "candidates": []},
        "q2": {"results": [text], "candidates": [{"text": "call us"}, text]},
        "q3": {"results": [text]},
    }
    path = write_lines(tmp_path / "run.jsonl", lines)
    gold = {query: [generated_id("pay by card")] for query in lines}
    whole = outcome(gold, path, "nDCG@1")
    with tiny_batches(tmp_path, block=1):
        assert outcome(gold, path, "nDCG@1", memory=1) == whole
        reranking = karat.evaluate(gold, path, "nDCG@1", memory=1).reranking()
    assert reranking.items["candidate_rank"].to_list() == [None, 2]


def test_candidates_of_which_some_have_no_text_are_reported(tmp_path):
    gold = [{"query_id": f"q{at}", "relevant": [{"text": f"text {at}"}]} for at in range(2)]
    lines = [
        {"query_id": f"q{at}", "results": [{"text": f"text {at}"}], "candidates": [candidate]}
        for at, candidate in enumerate([{"text": "text 0"}, {"id": "a"}])
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with tiny_batches(tmp_path, block=1):
        for memory in (None, 1):
            scores = karat.evaluate(gold, path, "nDCG@3", memory=memory)
            assert scores["nDCG@3"] == 1
            with pytest.raises(karat.InputError, match="some candidates have no"):
                scores.reranking()


def test_chunks_that_are_unknown_are_reported_for_the_same_item(tmp_path):
    """The plan reads texts from the table of chunks, which has those of the results only."""
    span = {"doc_id": ["d"], "start": [0], "end": [11]}
    chunks = pl.DataFrame({"item_id": ["a"], **span, "text": ["pay by card"]})
    lines = {query: {"results": ["a"], "candidates": [f"x-{query}", "a"]} for query in "321"}
    path = write_lines(tmp_path / "run.jsonl", lines)
    gold = [{"query_id": query, "evidence": ["pay by card"]} for query in lines]
    whole = outcome(gold, path, "evidence.nDCG@1", chunks=chunks)
    assert "'x-1'" in whole[0][0]
    with tiny_batches(tmp_path, block=1):
        assert outcome(gold, path, "evidence.nDCG@1", memory=1, chunks=chunks) == whole


def test_queries_of_a_large_run_are_read_with_everything_about_them(tmp_path):
    lines = {
        f"q{number}": {
            "results": [{"id": "a", "score": 0.5}],
            "candidates": [] if number % 3 else [{"id": "b", "text": "pay by card"}, {"id": "a"}],
            "latency_ms": {"total": number},
            "calls": [{"model": "reranker", "price_per_call": 0.002}],
            "attempts": 2,
            "answer": f"answer {number}",
        }
        for number in range(9)
    }
    lines["q4"] |= {"error": {"type": "Timeout", "message": "too slow"}}
    del lines["q5"]["candidates"]
    path = write_lines(tmp_path / "run.jsonl", lines, name="reranked", settings={"top_k": 1})
    selected = ["q3", "q4", "q5", "q6"]
    whole = karat.Run.read(path).only(selected)
    with tiny_batches(tmp_path, block=1):
        source = RunSource(path, 1)
        assert source.is_large
        some = source.read_only(selected)
    assert (some.name, some.settings, some.empty) == (whole.name, whole.settings, whole.empty)
    for name in ("results", "errors", "timings", "calls", "attempts", "responses"):
        assert getattr(some, name).equals(getattr(whole, name)), name
    assert some.candidates.results.equals(whole.candidates.results)
    assert sorted(some.candidates.empty) == sorted(whole.candidates.empty)


def test_report_lists_the_stage_of_sampled_queries(tmp_path):
    lines = {
        f"q{number}": {"candidates": ["x", "a"], "results": ["a", "x"] if number % 2 else ["x"]}
        for number in range(40)
    }
    path = write_lines(tmp_path / "run.jsonl", lines)
    with tiny_batches(tmp_path, block=1):
        scores = karat.evaluate({query: ["a"] for query in lines}, path, "nDCG@1", memory=1)
        page = build_page([scores])
    view = reranking_view(page)
    (run,) = view.runs
    assert [cell.text for cell in run.stages] == ["0", "20", "0", "20"]
    assert page.queries.sample is not None
    listed = dict(zip(page.queries.ids, page.queries.fields["lost by"], strict=True))
    stages = dict(scores.reranking().per_query.select("query_id", "stage").rows())
    assert listed == {query: stages[query] for query in listed}
    for stage, cell in zip(view.stages, run.stages, strict=True):
        assert (cell.show is not None) == (stage in listed.values())


def test_temporary_files_of_the_run_are_removed_after_each_reading(tmp_path):
    lines = {f"q{number}": {"results": ["a"], "candidates": ["b", "a"]} for number in range(9)}
    run = write_lines(tmp_path / "run.jsonl", lines)
    gold = write_lines(tmp_path / "gold.jsonl", {query: {"relevant": ["a"]} for query in lines})
    with tiny_batches(tmp_path, block=1, part=300):
        scores = karat.evaluate(gold, run, "nDCG@1", memory=1)
        of_gold = set(tmp_path.glob("spill/*"))
        assert scores.reranking().items["candidate_rank"].to_list() == [2] * 9
        assert set(tmp_path.glob("spill/*")) == of_gold


def test_warnings_of_the_scores_are_not_repeated(tmp_path):
    items = [{"text": "call us", "score": 0.5}, {"text": "pay by card", "score": 0.9}]
    lines = {query: {"results": items, "candidates": items} for query in ("q1", "q2")}
    run = write_lines(tmp_path / "run.jsonl", lines)
    gold = [{"query_id": query, "evidence": ["pay by card", " "]} for query in lines]
    _, messages = outcome(gold, run, "evidence.recall@1")
    assert len(messages) == 2
    with tiny_batches(tmp_path, block=1):
        assert outcome(gold, run, "evidence.recall@1", memory=1)[1] == messages
