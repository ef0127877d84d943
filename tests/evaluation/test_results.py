"""Results in Python: by name, as pandas tables, printed, and their short representations."""

import sys
from types import ModuleType

import pytest

import karat
from support.errors import refused

GOLD = [
    {"query_id": "q1", "relevant": {"a": 1, "b": 0}, "evidence": ["some text"]},
    {"query_id": "q2", "spans": [{"doc_id": "d", "start": 0, "end": 9}]},
]
RUNS = {"one": {"q1": ["a"], "q2": ["x"]}, "two": {"q1": ["x", "a"], "q2": ["x"]}}


@pytest.fixture
def comparison():
    gold = {"q1": {"a": 1}, "q2": {"b": 0}}
    return karat.compare(gold, RUNS, ["RR", "P@1"], conventions={"no_gold": "skip"})


def assert_same(pandas, frame):
    assert list(pandas.columns) == frame.columns
    assert len(pandas) == frame.height
    for name in frame.columns:
        for ours, theirs in zip(frame[name].to_list(), pandas[name].tolist(), strict=True):
            is_null = theirs is None or theirs != theirs
            assert is_null if ours is None else ours == theirs


def test_a_comparison_returns_a_run_by_name(comparison):
    assert comparison["two"].name == "two"
    assert comparison["two"]["RR"] == 0.5


def test_an_unknown_run_of_a_comparison_is_refused(comparison):
    with refused() as error:
        comparison["three"]
    assert "'three'" in str(error.value)
    assert "one" in str(error.value)


def test_tables_for_pandas_have_the_values_and_nulls_of_the_polars_tables(comparison):
    pytest.importorskip("pandas")
    scores = comparison["one"]
    assert scores.per_query["RR"].null_count() == 1
    assert_same(scores.to_pandas(), scores.per_query)
    assert comparison.pairs.null_count().sum_horizontal()[0] > 0
    assert_same(comparison.to_pandas(), comparison.pairs)
    validation = karat.validate([{"query_id": "q1"}])
    assert validation.frame.height == 1
    assert_same(validation.to_pandas(), validation.frame)


def test_without_pandas_the_error_says_how_to_install_it(comparison, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for result in (comparison, comparison["one"], karat.validate({"q1": {"a": 1}})):
        with refused(field="to_pandas") as error:
            result.to_pandas()
        assert "pip install pandas" in str(error.value)


def test_scores_are_printed_as_a_table(capsys):
    print(karat.evaluate({"q1": {"a": 1}}, {"q1": ["x", "a"]}, "RR"))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["run:", "RR", "0.500", "over", "1", "query"] in rows
    assert ["measure", "run", "0", "…", "1", "queries"] in rows
    assert ["RR", "0.500", "–", "●", "1"] in rows


def test_gold_counts_judgments_spans_and_evidence_texts():
    gold = karat.Gold.of(GOLD)
    assert repr(gold) == "<Gold: 2 queries, 2 judgments, 1 span, 1 evidence text>"


def test_dir_lists_the_submodules():
    names = set(dir(karat))
    assert set(karat.__all__) <= names
    submodules = names - set(karat.__all__)
    assert submodules >= {"functional", "testing"}
    assert all(isinstance(getattr(karat, name), ModuleType) for name in submodules)
