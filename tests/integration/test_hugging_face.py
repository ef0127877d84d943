"""Datasets of Hugging Face are accepted directly."""

import subprocess
import sys

import datasets
import pytest

import karat
from support.errors import refused

JUDGED = {"query-id": [1, 1, 2], "corpus-id": ["a", "b", "c"], "score": [2, 0, 1]}
RANKED = {"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "x"], "score": [0.9, 0.8, 0.5]}
ROWS = [{"id": "1", "retrieved_context_ids": ["b", "a"], "reference_context_ids": ["a"]}]


def test_dataset_of_judgments_is_gold():
    gold = karat.Gold.of(datasets.Dataset.from_dict(JUDGED))
    assert gold.judgments.rows() == [("1", "a", 2), ("1", "b", 0), ("2", "c", 1)]


def test_dataset_of_results_is_a_run():
    run = karat.Run.of(datasets.Dataset.from_dict(RANKED))
    assert run.results["item_id"].to_list() == ["a", "b", "x"]


def test_evaluate_accepts_datasets():
    gold, run = map(datasets.Dataset.from_dict, (JUDGED, RANKED))
    assert karat.evaluate(gold, run, ["RR"])["RR"] == 0.5


def test_queries_may_be_a_dataset():
    queries = datasets.Dataset.from_dict({"query_id": [1], "text": ["how?"]})
    gold = karat.Gold.of({"1": ["a"]}, queries=queries)
    assert gold.queries.rows() == [("1", "how?")]


def test_dataset_of_ragas_rows_is_gold_and_run():
    rows = datasets.Dataset.from_list(ROWS)
    assert karat.evaluate(rows, rows, ["RR"])["RR"] == 0.5


@pytest.mark.parametrize("form", [None, "numpy", "pandas", "arrow"])
def test_selected_rows_are_read_in_any_format(form):
    dataset = datasets.Dataset.from_dict(JUDGED).with_format(form).select([2, 0])
    assert karat.Gold.of(dataset).judgments["item_id"].to_list() == ["c", "a"]


def test_arrow_files_of_a_saved_dataset_are_read(tmp_path):
    datasets.Dataset.from_dict(JUDGED).save_to_disk(tmp_path / "saved")
    assert karat.Gold.read(tmp_path / "saved" / "*.arrow").judgments.height == 3


def test_splits_are_refused_with_the_name_of_one():
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_dict(JUDGED)})
    with refused() as error:
        karat.Gold.of(splits)
    assert "'train'" in error.value.hint
    with refused() as error:
        karat.evaluate({"1": ["a"]}, splits)
    assert "train" in str(error.value)


def test_stream_is_refused_with_a_hint():
    stream = datasets.Dataset.from_dict(JUDGED).to_iterable_dataset()
    with refused() as error:
        karat.Gold.of(stream)
    assert error.value.hint


def test_karat_does_not_import_datasets():
    words = "import sys, karat; karat.evaluate({'q': ['a']}, {'q': ['a']}, ['RR']); "
    words += "print('datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
