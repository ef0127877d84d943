"""Converted from any format to any other, rankings and scores stay the same."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.data.formats.registry import NAMES
from karat.errors import KaratWarning
from support.effort import examples
from support.errors import refused

RUN_FORMATS = [name for name in NAMES if name != "beir"]
MEASURES = ["nDCG@3", "AP", "RR", "P@2", "R@5", "Bpref", "ERR@3", "Judged@2"]

# Ids that every format can hold: TREC's have no white space, and none of its lines starts with #.
IDS = st.text(min_size=1, max_size=4).filter(
    lambda text: (
        not any(c.isspace() or c == "\x00" for c in text) and not text.startswith(("#", "\ufeff"))
    )
)
QUERIES = st.lists(IDS, min_size=1, max_size=4, unique=True)
SCORES = st.sampled_from([0.5, 0.5, 1.0, -0.0, 0.0, 2.0]) | st.floats(
    allow_nan=False, allow_infinity=False
)


@st.composite
def cases(draw, grades: st.SearchStrategy[int]) -> tuple[dict, list]:
    """Gold, and a run of native records: scored or not, in the order of its scores or not."""
    items = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    some = st.lists(st.sampled_from(items), min_size=1, max_size=6, unique=True)
    gold, run = {}, []
    for query in draw(QUERIES):
        gold[query] = {item: draw(grades) for item in draw(some)}
        results = [{"id": item} for item in draw(some)]
        if draw(st.booleans()):
            results = [result | {"score": draw(SCORES)} for result in results]
        run.append({"query_id": query, "results": results})
    return gold, run


# Queries with and without scores, with ties, and in an order that the scores contradict.
GOLD = {
    "q1": {"a": 2, "é": 1, "😀": 0, "#b": -1},
    "2": {"a": 1, 'c"': 3},
    "ß,": {"007": 1},
}
RUN = [
    {"query_id": "q1", "results": [{"id": "é", "score": 0.5}, {"id": "😀", "score": 0.5}]},
    {"query_id": "2", "results": [{"id": 'c"', "score": -0.25}, {"id": "a", "score": 1e-300}]},
    {"query_id": "ß,", "results": [{"id": "a"}, {"id": "007"}, {"id": "#b"}]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return one folder for all examples, because making a folder for each takes long."""
    return tmp_path_factory.mktemp("round-trips")


def lists(run: Run) -> dict[str, list[str]]:
    return dict(run.results.group_by("query_id", maintain_order=True).agg("item_id").iter_rows())


def again(value: Gold | Run, folder: Path, name: str) -> Gold | Run:
    """Write a value in a format and read it."""
    path = folder / f"{name}-{type(value).__name__}"
    if path.is_dir():
        shutil.rmtree(path)
    value.write(path, format=name)
    return type(value).read(path, format=name)


def values(gold: Gold, run: Run) -> list[tuple]:
    return karat.evaluate(gold, run, MEASURES).per_query.rows()


def state(value: Gold | Run) -> str:
    """Return everything that scores depend on: dicts are scored without making tables of them."""
    if isinstance(value, Run):
        dicts, table, empty = value.lists, value.results, value.empty
    else:
        dicts, table, empty = value.mapping, value.judgments, value.empty_judgments
    return repr((dicts, table.schema, table.rows(), value.query_ids.to_list(), empty))


def assert_scores_stay(
    converted: dict[str, Gold | Run], score: Callable[[Gold | Run], list[tuple]], expected: object
) -> None:
    """Score each distinct value once, because most formats give back the same."""
    distinct = {state(value): (pair, value) for pair, value in converted.items()}
    for pair, value in distinct.values():
        assert score(value) == expected, pair


def assert_run_stays(case: tuple[dict, list], pairs: list[tuple[str, str]], folder: Path) -> None:
    gold, run = Gold.of(case[0]), Run.of(case[1])
    ranking = lists(run)
    once = {first: again(run, folder, first) for first in dict(pairs)}
    twice = {}
    for first, second in pairs:
        assert lists(once[first]) == ranking, first
        twice[f"{first} to {second}"] = again(once[first], folder, second)
        assert lists(twice[f"{first} to {second}"]) == ranking, (first, second)
    assert_scores_stay(twice, lambda value: values(gold, value), values(gold, run))


def assert_gold_stays(case: tuple[dict, list], pairs: list[tuple[str, str]], folder: Path) -> None:
    graded, run = Gold.of(case[0]), Run.of(case[1])
    # Ragas rows hold no grade but 1, and warn about others.
    binary = Gold.of({query: dict.fromkeys(items, 1) for query, items in case[0].items()})
    for gold, some in (
        (binary, [pair for pair in pairs if "ragas" in pair]),
        (graded, [pair for pair in pairs if "ragas" not in pair]),
    ):
        judgments = sorted(gold.judgments.rows())
        once = {first: again(gold, folder, first) for first in dict(some)}
        twice = {}
        for first, second in some:
            twice[f"{first} to {second}"] = again(once[first], folder, second)
            assert sorted(twice[f"{first} to {second}"].judgments.rows()) == judgments, (
                first,
                second,
            )
        assert_scores_stay(twice, lambda value: values(value, run), values(gold, run))


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_a_run_keeps_its_ranking_and_its_scores_through_every_pair_of_formats(folder):
    pairs = [(first, second) for first in RUN_FORMATS for second in RUN_FORMATS]
    assert_run_stays((GOLD, RUN), pairs, folder)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(12, 200)
@given(case=cases(st.integers(-1, 3)), seconds=st.permutations(RUN_FORMATS))
@example(
    case=({"q": {"a": 1}}, [{"query_id": "q", "results": [{"id": "a"}]}]), seconds=RUN_FORMATS[::-1]
)
def test_any_run_keeps_its_ranking_and_its_scores(folder, case, seconds):
    assert_run_stays(case, list(zip(RUN_FORMATS, seconds, strict=True)), folder)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_gold_keeps_its_scores_through_every_pair_of_formats(folder):
    assert_gold_stays((GOLD, RUN), [(first, second) for first in NAMES for second in NAMES], folder)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(12, 200)
@given(case=cases(st.integers(-1, 3)), seconds=st.permutations(NAMES))
def test_any_gold_keeps_its_scores(folder, case, seconds):
    assert_gold_stays(case, list(zip(NAMES, seconds, strict=True)), folder)


@pytest.mark.parametrize("name", RUN_FORMATS)
def test_an_order_that_scores_contradict_is_kept_and_lost_scores_are_reported(tmp_path, name):
    results = [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}]
    with pytest.warns(KaratWarning, match="1"):
        run = Run.of([{"query_id": "q", "results": results}])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.write(tmp_path / "run", format=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        back = Run.read(tmp_path / "run", format=name)
    assert lists(back) == {"q": ["a", "b"]}
    kept = "score" in back.results.columns and back.results["score"].to_list() == [0.1, 0.9]
    assert kept == (not any("scores" in str(warning.message) for warning in caught))


@pytest.mark.parametrize("name", RUN_FORMATS)
def test_a_repeated_item_stays_repeated(tmp_path, name):
    run = Run.of({"q": ["a", "b", "a"]})
    run.write(tmp_path / "run", format=name)
    assert lists(Run.read(tmp_path / "run", format=name)) == {"q": ["a", "b", "a"]}


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_format_of_gold_is_detected_without_an_ending(tmp_path, name):
    gold = Gold.of([{"query_id": "q", "query": "how?", "relevant": {"a": 1, "b": 1}}])
    gold.write(tmp_path / "gold", format=name)
    back = Gold.read(tmp_path / "gold")
    if name == "ir_datasets":  # four fields, as in TREC qrels
        assert back.judgments.rows() == [("q", "1", 0), ("q", "1", 0)]
    else:
        assert back.judgments.rows() == gold.judgments.rows()


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("name", RUN_FORMATS)
def test_the_format_of_a_run_is_detected_without_an_ending(tmp_path, name):
    Run.of({"q": {"a": 1.5, "b": 2.5}}).write(tmp_path / "run", format=name)
    assert lists(Run.read(tmp_path / "run")) == {"q": ["b", "a"]}


@pytest.mark.parametrize("name", ["r.run", "r.csv", "r.tsv", "r.parquet", "r.arrow"])
def test_infinite_scores_are_read_back_as_they_were_written(tmp_path, name):
    run = Run.of({"q1": {"a": math.inf, "b": 0.5, "c": -math.inf, "b2": -math.inf}})
    run.write(tmp_path / name)
    columns = ["query_id", "item_id", "score"]
    again = Run.read(tmp_path / name).results.select(columns)
    assert again.rows() == run.results.select(columns).rows()


@pytest.mark.parametrize("name", ["r.jsonl", "r.json"])
def test_infinite_scores_are_not_written_as_json(tmp_path, name):
    with refused(field="score"):
        Run.of({"q1": {"a": 1.0}, "q2": {"a": -math.inf}}).write(tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.qrels", "q1 0 a 1.0\nq1 0 b 0\nq2 0 c -1.\n"),
        ("g.csv", "query_id,item_id,grade\nq1,a,1.0\nq1,b, 0 \nq2,c,-1.\n"),
        ("g.tsv", "query_id\titem_id\tgrade\nq1\ta\t1.0\nq1\tb\t0\nq2\tc\t-1.00\n"),
        ("g2.tsv", "q1\ta\t1.0\trun\nq1\tb\t0\trun\nq2\tc\t-1.00\trun\n"),
        (
            "g.jsonl",
            '{"query_id":"q1","relevant":{"a":1.0,"b":0}}\n'
            '{"query_id":"q2","relevant":{"c":-1.0}}\n',
        ),
        ("g.json", '{"q1":{"a":1.0,"b":0},"q2":{"c":-1.0}}'),
    ],
)
def test_integral_grades_may_be_written_as_decimals(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    gold = Gold.read(tmp_path / name)
    assert gold.judgments.rows() == [("q1", "a", 1), ("q1", "b", 0), ("q2", "c", -1)]
    assert gold.judgments["grade"].dtype == pl.Int64


def test_the_grade_of_a_span_may_be_written_as_a_decimal(tmp_path):
    line = '{"query_id":"q1","spans":[{"doc_id":"d","start":0,"end":3,"grade":2.0}]}'
    (tmp_path / "g.jsonl").write_text(line)
    assert Gold.read(tmp_path / "g.jsonl").spans["grade"].to_list() == [2]
