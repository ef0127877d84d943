"""The sample of queries that a page lists if there are very many, or if a run is very large."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.data.run_source import RunSource
from karat.report.page import build, html
from karat.report.page.model import Page
from karat.report.page.pack import pack_queries
from karat.report.page.queries import query_sample
from karat.report.page.queries.query_sample import QuerySample

N, LISTED = 60, 20
IDS = [f"q{at:03}" for at in range(N)]
GOLD = [
    {"query_id": query, "relevant": {"a": 1}, "kind": ["even", "odd"][at % 2]}
    for at, query in enumerate(IDS)
]
# The first queries are the worst: nothing is found.
OLD = {query: ["x", "a"] if at > 5 else ["x"] for at, query in enumerate(IDS)}
NEW = {query: ["a", "x"] if at > 5 else ["y"] for at, query in enumerate(IDS)}


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_sample, "MOST_LISTED", 40)
    monkeypatch.setattr(query_sample, "SAMPLE_SIZE", LISTED)


@pytest.fixture
def in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return two runs that are larger than the memory limit."""
    monkeypatch.setattr(RunSource, "is_large", True)
    monkeypatch.setattr(RunSource, "share_in_memory", 0.9)
    monkeypatch.setattr(query_sample, "_SMALLEST_SAMPLE", 1)
    paths = []
    for name, run in (("old", OLD), ("new", NEW)):
        paths.append(tmp_path / f"{name}.jsonl")
        karat.Run.of(run).write(paths[-1])
    return paths


def page_of(runs: object) -> Page:
    comparison = karat.compare(GOLD, runs, "RR,nDCG@10")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", karat.KaratWarning)
        return build.build_page(comparison.scores, comparison=comparison)


def test_sample_without_informative_queries_is_described_as_random() -> None:
    rows = np.array([1, 3])
    sample = QuerySample(rows, rows, N)
    assert sample.selection == sample.of_charts


def test_few_queries_are_all_listed() -> None:
    page = page_of({"old": OLD, "new": NEW})
    assert page.queries.sample is None
    assert page.queries.ids.to_list() == IDS


@pytest.mark.usefixtures("small_limits")
def test_the_sample_has_informative_queries_and_others() -> None:
    scores = [karat.evaluate(GOLD, run, "RR") for run in (OLD, NEW)]
    sample = QuerySample.of(scores)
    assert sample is not None
    assert sample.random_rows.size == LISTED // 2
    assert set(range(5)) <= set(sample.rows.tolist())  # the worst
    assert set(sample.random_rows.tolist()) <= set(sample.rows.tolist())
    again = QuerySample.of(scores)
    assert again is not None
    assert (again.rows == sample.rows).all()


@pytest.mark.usefixtures("small_limits")
def test_listed_queries_have_their_own_values_and_lists() -> None:
    whole = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR,nDCG@10")
    page = page_of({"old": OLD, "new": NEW})
    queries = page.queries
    assert queries.sample is not None
    packed = pack_queries(page)
    assert packed.data.n == queries.ids.len() == queries.sample.rows.size < N
    for at, query in enumerate(queries.ids):
        assert queries.lists[at].n == [len(OLD[query]), len(NEW[query])]
        detail = queries.details[at]
        value = detail.runs[1].calculations["RR"].value
        rows = whole["new"].per_query.rows_by_key("query_id")
        assert value == rows[query][0][0]


@pytest.mark.usefixtures("small_limits")
def test_values_tests_and_groups_are_over_all_queries() -> None:
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR,nDCG@10")
    page = page_of({"old": OLD, "new": NEW})
    assert page.comparison is not None
    assert page.comparison.pairs.equals(comparison.pairs)
    assert [sheet.summary["n"].to_list() for sheet in page.sheets] == [[N, N]] * 2
    assert sum(int(part["n"][0]) for _, part in page.groups[0].group_parts) == N


@pytest.mark.usefixtures("small_limits")
def test_curves_and_findings_about_lists_are_those_of_the_random_queries() -> None:
    page = page_of({"old": OLD, "new": NEW})
    sample = page.queries.sample
    assert sample is not None
    chosen = [IDS[row] for row in sample.random_rows]
    gold = [row for row in GOLD if row["query_id"] in chosen]
    curves = page.chart_data.curves
    assert curves is not None
    expected = karat.evaluate(gold, {query: NEW[query] for query in chosen}, "R@1")
    (value,) = curves.filter(run="new", measure="R", k=1)["value"]
    assert value == expected["R@1"]
    n_worst = int(np.count_nonzero(sample.random_rows <= 5))
    nothing = [one for one in page.findings if one.kind == "nothing"]
    assert [one.number for one in nothing] == ([str(n_worst)] if n_worst else [])
    assert all(one.text.startswith("In 10 of 60 queries, chosen at random: ") for one in nothing)


@pytest.mark.usefixtures("small_limits")
def test_the_sample_is_stated_as_a_warning_and_on_the_page(tmp_path: Path) -> None:
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR")
    with pytest.warns(karat.KaratWarning, match=r"lists \d+ of 60 queries: .* at random; values"):
        comparison.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert text.count("of 60 queries, chosen at random") >= 1
    assert "Values, intervals and tests are over all queries." in text


def test_a_large_run_has_lists_of_a_sample(in_batches: list[Path]) -> None:
    page = page_of(in_batches)
    sample = page.queries.sample
    assert sample is not None
    assert page.queries.ids.len() < N
    assert [sheet.summary["n"].to_list() for sheet in page.sheets] == [[N, N]] * 2
    for at, query in enumerate(page.queries.ids):
        assert page.queries.lists[at].n == [len(OLD[query]), len(NEW[query])]
    assert page.chart_data.curves is not None


def test_a_large_run_is_sampled_alike_in_memory_and_in_batches(
    in_batches: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_sample, "SAMPLE_SIZE", 4)
    batches = page_of(in_batches)
    monkeypatch.setattr(RunSource, "is_large", False)
    monkeypatch.setattr(RunSource, "share_in_memory", 1.0)
    monkeypatch.setattr(query_sample, "MOST_LISTED", 40)
    whole = page_of(in_batches)
    assert batches.queries.ids.equals(whole.queries.ids)
    assert pack_queries(batches).blocks == pack_queries(whole).blocks


def test_runs_that_fit_only_alone_have_lists_of_a_sample(
    in_batches: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunSource, "is_large", False)
    size = sum(path.stat().st_size for path in in_batches)
    limit = RunSource(in_batches[0]).memory
    for share, is_sampled in ((0.5, False), (2, True)):
        monkeypatch.setattr(query_sample, "_EXPANSION", share * limit / size)
        assert (page_of(in_batches).queries.sample is not None) == is_sampled


def test_page_of_cached_runs_does_not_need_their_files(
    in_batches: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunSource, "is_large", False)
    comparison = karat.compare(GOLD, in_batches, "RR")
    for path in in_batches:
        path.unlink()
    assert build.build_page(comparison.scores, comparison=comparison).queries.sample is None


def test_a_chart_of_a_large_run_states_its_sample(in_batches: list[Path]) -> None:
    scores = karat.evaluate(GOLD, in_batches[0], "RR")
    with pytest.warns(karat.KaratWarning, match="the chart shows .* chosen at random"):
        assert scores.plot("curves") is not None


def test_saved_scores_of_many_queries_are_sampled(tmp_path: Path, small_limits: None) -> None:
    karat.evaluate(GOLD, NEW, "RR").write(tmp_path / "new.parquet")
    scores = karat.Scores.read(tmp_path / "new.parquet")
    with pytest.warns(karat.KaratWarning, match="of 60 queries"):
        page = build.build_page([scores])
    assert pack_queries(page).data.n == page.queries.ids.len() < N
    with (tmp_path / "page.html").open("wb") as file:
        html.write(page, file)
