"""Fixtures for data that is read in parts: temporary files in a folder of the test, tiny parts."""

import random

import pytest

from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.formats import table_files
from karat.engines import scoring_options


@pytest.fixture
def spill_parent(tmp_path, monkeypatch):
    folder = tmp_path / "spill"
    monkeypatch.setattr(spill, "_parent", lambda: folder)
    return folder


@pytest.fixture
def tiny_batches(monkeypatch, request):
    """Read files in blocks, and runs in batches, of a few rows; a random number for each test."""
    chance = random.Random(request.node.name)
    monkeypatch.setattr(scoring_options, "LEAST_MEMORY", 1)
    monkeypatch.setattr(run_source, "_SMALLEST_BATCH", chance.randrange(1, 3000))
    monkeypatch.setattr(gold_source, "_SMALLEST_PART", chance.randrange(1000, 20_000))
    monkeypatch.setattr(files.Source.whole_lines, "__defaults__", (chance.randrange(50, 2000),))
    monkeypatch.setattr(table_files, "_MOST_ROWS", chance.randrange(1, 99))
