"""From any format into any other and on: rankings and scores stay what they were."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.data.formats import NAMES
from karat.errors import KaratWarning
from support.effort import FULL

examples = settings(
    max_examples=200 if FULL else 8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
RUN_FORMATS = [name for name in NAMES if name != "beir"]
MEASURES = ["nDCG@3", "AP", "RR", "P@2", "R@5", "Bpref", "ERR@3", "Judged@2"]

# Ids that every format holds: TREC's hold no white space, and none of its lines opens with #.
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


def lists(run: Run) -> dict[str, list[str]]:
    return dict(run.results.group_by("query_id", maintain_order=True).agg("item_id").iter_rows())


def again(value: Gold | Run, folder: Path, name: str) -> Gold | Run:
    """What comes back after a value was written in a format and read."""
    path = folder / f"{name}-{type(value).__name__}"
    if path.is_dir():
        shutil.rmtree(path)
    value.write(path, format=name)
    return type(value).read(path, format=name)


def values(gold: Gold, run: Run) -> list[tuple]:
    return karat.evaluate(gold, run, MEASURES).per_query.rows()


def opened(gold: dict, run: list) -> tuple[Gold, Run]:
    return Gold.of(gold), Run.of(run)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("first", RUN_FORMATS)
@examples
@given(case=cases(st.integers(-1, 3)))
@example(case=({"q": {"a": 1}}, [{"query_id": "q", "results": [{"id": "a"}]}]))
@example(
    case=(
        {"q": {"é": 1, "😀": 2}},
        [{"query_id": "q", "results": [{"id": "é", "score": 0.1}, {"id": "😀", "score": 0.1}]}],
    )
)
def test_a_run_keeps_its_ranking_and_its_scores_through_every_pair(tmp_path, first, case):
    gold, run = opened(*case)
    expected, ranking = values(gold, run), lists(run)
    once = again(run, tmp_path, first)
    assert lists(once) == ranking
    for second in RUN_FORMATS:
        twice = again(once, tmp_path, second)
        assert lists(twice) == ranking, second
        assert values(gold, twice) == expected, second


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("first", NAMES)
@examples
@given(data=st.data())
def test_gold_keeps_its_scores_through_every_pair(tmp_path, first, data):
    # Ragas rows know no grades but 1, and say so of others.
    graded = data.draw(cases(st.integers(-1, 3)))
    binary = ({query: dict.fromkeys(items, 1) for query, items in graded[0].items()}, graded[1])
    for second in NAMES:
        gold, run = opened(*(binary if "ragas" in (first, second) else graded))
        twice = again(again(gold, tmp_path, first), tmp_path, second)
        assert sorted(twice.judgments.rows()) == sorted(gold.judgments.rows()), second
        assert values(twice, run) == values(gold, run), second


@pytest.mark.parametrize("name", RUN_FORMATS)
def test_an_order_that_scores_contradict_is_kept_and_a_loss_of_scores_is_said(tmp_path, name):
    results = [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.9}]
    with pytest.warns(KaratWarning, match="score higher"):
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
def test_an_item_that_stands_there_twice_stands_there_twice_afterwards(tmp_path, name):
    run = Run.of({"q": ["a", "b", "a"]})
    run.write(tmp_path / "run", format=name)
    assert lists(Run.read(tmp_path / "run", format=name)) == {"q": ["a", "b", "a"]}


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_known_again_without_its_name(tmp_path, name):
    gold = Gold.of([{"query_id": "q", "query": "how?", "relevant": {"a": 1, "b": 1}}])
    gold.write(tmp_path / "gold", format=name)
    back = Gold.read(tmp_path / "gold")
    if name == "ir_datasets":  # four fields, which TREC has as well
        assert back.judgments.rows() == [("q", "1", 0), ("q", "1", 0)]
    else:
        assert back.judgments.rows() == gold.judgments.rows()


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@pytest.mark.parametrize("name", RUN_FORMATS)
def test_a_run_that_is_written_is_known_again_without_its_name(tmp_path, name):
    Run.of({"q": {"a": 1.5, "b": 2.5}}).write(tmp_path / "run", format=name)
    assert lists(Run.read(tmp_path / "run")) == {"q": ["b", "a"]}
