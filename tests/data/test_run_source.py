"""Where a run comes from: it is read once, kept while there is room, and cut by whole queries."""

from __future__ import annotations

import gc

import polars as pl
import pytest

import karat
from karat.data import run_source
from karat.data.run_source import RunSource
from karat.measures import Plan, score

LISTS = {"q1": ["a", "b", "c"], "q2": ["d"], "q3": ["e", "f"], "q4": ["g"]}


@pytest.fixture
def path(tmp_path):
    karat.Run.of(LISTS).write(tmp_path / "run.jsonl")
    return tmp_path / "run.jsonl"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(run_source, "_cached_runs", type(run_source._cached_runs)())


def test_run_is_read_once(path):
    source = RunSource(path)
    run = source.read()
    path.unlink()
    assert source.read() is run


def test_run_that_is_too_large_is_read_again(path, monkeypatch):
    monkeypatch.setattr(run_source, "CACHE_BYTES", 10)
    source = RunSource(path)
    assert source.read() is not source.read()
    assert not source.is_kept


def test_run_is_not_kept_when_others_take_the_room(path, monkeypatch):
    first, second = RunSource(path), RunSource(path)
    monkeypatch.setattr(run_source, "CACHE_BYTES", run_source._size(karat.Run.read(path)))
    first.read()
    second.read()
    assert first.is_kept
    assert not second.is_kept
    del first
    gc.collect()
    second.read()
    assert second.is_kept


def test_run_given_in_memory_is_itself():
    run = karat.Run.of(LISTS)
    assert RunSource(run).read() is run


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("given", [LISTS, pl.DataFrame(karat.Run.of(LISTS).results)])
def test_batches_hold_whole_queries_and_score_the_same(given, rows):
    gold = {"q1": ["a", "c"], "q2": ["x"], "q3": ["f"], "q4": ["g"]}
    source, plan = RunSource(given), Plan.of(["nDCG@10", "RR"])
    batches = list(source.batches(rows))
    assert [q for batch in batches for q in batch.query_ids] == list(LISTS)
    assert all(batch.results.height <= rows or batch.query_ids.len() == 1 for batch in batches)
    parts = [score({q: gold[q] for q in batch.query_ids}, batch, plan).frame for batch in batches]
    assert pl.concat(parts).equals(score(gold, source.read(), plan).frame)


def test_one_batch_is_the_run_itself(path):
    source = RunSource(path)
    (batch,) = source.batches()
    assert batch is source.read()


def test_query_that_retrieved_nothing_is_in_a_batch(tmp_path):
    run = tmp_path / "run.jsonl"
    run.write_text('{"query_id":"q1","results":["a"]}\n{"query_id":"q2","results":[]}\n')
    batches = list(RunSource(run).batches(1))
    assert [q for batch in batches for q in batch.query_ids] == ["q1", "q2"]
