"""The source of a run: it is read once, and cached while there is room."""

from __future__ import annotations

import gc

import pytest

import karat
from karat.data import run_source
from karat.data.run_source import RunSource

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
    assert not source.is_in_memory


def test_run_is_not_kept_when_others_take_the_room(path, monkeypatch):
    first, second = RunSource(path), RunSource(path)
    monkeypatch.setattr(run_source, "CACHE_BYTES", run_source._size(karat.Run.read(path)))
    first.read()
    second.read()
    assert first.is_in_memory
    assert not second.is_in_memory
    del first
    gc.collect()
    second.read()
    assert second.is_in_memory


def test_cached_runs_take_a_share_of_the_memory_limit(path):
    size = run_source._size(karat.Run.read(path))
    for memory, is_cached in ((4 * size, True), (4 * size - 4, False)):
        source = RunSource(path, memory)
        source.__dict__["is_large"] = False
        source.read()
        assert source.is_in_memory == is_cached
        del source
        gc.collect()


def test_run_given_in_memory_is_itself():
    run = karat.Run.of(LISTS)
    assert RunSource(run).read() is run
