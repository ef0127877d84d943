"""What trec_eval prints follows from the definitions, and is what pytrec_eval finds."""

from __future__ import annotations

import io
from fractions import Fraction
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.compat.trec_eval import trec_eval
from karat.errors import InputError
from oracles.preferences import (
    ContradictionError,
    Row,
    Topic,
    averaged,
    group_measures,
    preference_measures,
    read_judges,
)
from support.effort import FULL

examples = settings(max_examples=20_000 if FULL else 200, deadline=None)

ITEMS = ["a", "b", "c", "d", "e", "F", "é", "文"]
TOPICS = ["1", "10", "2", "é"]

Scores = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One folder for all examples of a property: making thousands is what takes the time."""
    return tmp_path_factory.mktemp("trec_eval")


def printed(folder: Path, judgments: list[str], scores: Scores, *flags: str) -> dict:
    """Return what is printed, by measure and topic."""
    run = [
        f"{topic} Q0 {item} 1 {score} tag"
        for topic, items in scores.items()
        for item, score in items.items()
    ]
    for name, lines in {"judgments": judgments, "run": run}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out = io.StringIO()
    trec_eval(["-q", *flags, str(folder / "judgments"), str(folder / "run")], out)
    rows = (line.split("\t") for line in out.getvalue().splitlines())
    return {(name.strip(), topic): value for name, topic, value in rows}


def ranking(scores: dict[str, int], *, ascending: bool) -> list[str]:
    """Return items by score, ties by id as bytes."""
    by_id = sorted(scores, key=str.encode, reverse=not ascending)
    return sorted(by_id, key=lambda item: -scores[item])


def check(table: dict, expected: dict[str, dict[str, Fraction]], summed: set[str]) -> None:
    """Compare to the four decimals that are printed: each topic, and the mean or the sum."""
    for name in next(iter(expected.values())):
        values = {topic: of_topic[name] for topic, of_topic in expected.items()}
        total = sum(values.values(), Fraction())
        values["all"] = total if name in summed else total / len(values)
        for topic, value in values.items():
            assert abs(float(table[name, topic]) - value) < 0.000050001, (name, topic)


def scores_of(topics: list[str]) -> st.SearchStrategy[Scores]:
    """Lists for some topics, with ties; the first topic always has one."""
    listed = st.dictionaries(st.sampled_from([*ITEMS, "x", "y"]), st.integers(0, 4), min_size=1)
    optional = dict.fromkeys(topics[1:], listed)
    return st.fixed_dictionaries({topics[0]: listed}, optional=optional)


MOST = st.sampled_from([None, None, 0, 1, 3, 100])


def most_flags(most: int | None) -> list[str]:
    return [] if most is None else ["-M", str(most)]


# Preferences


@st.composite
def preference_rows(draw) -> list[Row]:
    """What a few judges say, most of them without contradicting themselves."""
    rows = []
    for judge in draw(st.lists(st.sampled_from("uvw"), min_size=1, max_size=3, unique=True)):
        levels = {item: draw(st.sampled_from([0, 0, 1, 2, 3.5])) for item in ITEMS}
        for subgroup in range(draw(st.integers(1, 3))):
            items = draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=6, unique=True))
            other = draw(st.integers(0, 9)) == 0
            for item in items:
                level = draw(st.sampled_from([0, 1, 2])) if other else levels[item]
                rows.append((judge, f"s{subgroup}", item, level))
    return rows


@examples
@given(data=st.data(), most=MOST)
def test_preferences_are_counted_as_they_are_defined(folder, data, most):
    topics = sorted(data.draw(st.sets(st.sampled_from(TOPICS), min_size=1)), key=str.encode)
    rows = {topic: data.draw(preference_rows()) for topic in topics}
    scores = data.draw(scores_of(topics))
    lines = [" ".join([topic, *map(str, row)]) for topic in topics for row in rows[topic]]
    lines = data.draw(st.permutations(lines))
    flags = ["-c", "-R", "prefs", "-m", "all_prefs", *most_flags(most)]
    try:
        judges = {topic: read_judges(rows[topic]) for topic in topics}
    except ContradictionError:
        with pytest.raises(InputError, match="judgment group"):
            printed(folder, lines, scores, *flags)
        return
    table = printed(folder, lines, scores, *flags)
    expected = {}
    for topic in topics:
        listed = ranking(scores.get(topic, {}), ascending=True)[:most]
        expected[topic] = preference_measures(Topic(listed, judges[topic]))
    assert {name for name, _ in table} == {"runid", "num_q", *expected[topics[0]]}
    check(table, expected, summed={name for name in expected[topics[0]] if "_num_" in name})


@examples
@given(data=st.data())
def test_qrels_are_preferences_with_one_subgroup(folder, data):
    grades = st.dictionaries(st.sampled_from(ITEMS), st.sampled_from([0, 0, 1, 2.5]), min_size=1)
    judges = data.draw(st.dictionaries(st.sampled_from("uvw"), grades, min_size=1))
    rows = [(judge, "0", *row) for judge, items in judges.items() for row in items.items()]
    scores = data.draw(scores_of(["1"]))
    lines = [f"1 {judge} {item} {level}" for judge, _, item, level in rows]
    table = printed(folder, lines, scores, "-R", "qrels_prefs", "-m", "all_prefs")
    topic = Topic(ranking(scores["1"], ascending=True), read_judges(rows))
    expected = preference_measures(topic)
    check(table, {"1": expected}, summed={name for name in expected if "_num_" in name})


# Judgment groups

GRADES = st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), min_size=1)


@examples
@given(data=st.data(), most=MOST, level=st.integers(1, 3), judged_only=st.booleans())
def test_judgment_groups_are_averaged_as_they_are_defined(folder, data, most, level, judged_only):
    topics = sorted(data.draw(st.sets(st.sampled_from(TOPICS), min_size=1)), key=str.encode)
    groups = {
        topic: data.draw(st.dictionaries(st.sampled_from("uvw"), GRADES, min_size=1))
        for topic in topics
    }
    lines = [
        f"{topic} {group} {item} {grade}"
        for topic, of_topic in groups.items()
        for group, grades in of_topic.items()
        for item, grade in grades.items()
    ]
    scores = data.draw(scores_of(topics))
    cutoffs, multiples = [1, 2, 5], [Fraction(1, 2), Fraction(1), Fraction(9, 4)]
    flags = ["-c", "-R", "qrels_jg", "-l", str(level), *most_flags(most)]
    flags += ["-m", "map_avgjg", "-m", "P_avgjg.5,1,2", "-m", "Rprec_mult_avgjg.0.5,1,2.25"]
    flags += ["-J"] if judged_only else []
    table = printed(folder, data.draw(st.permutations(lines)), scores, *flags)
    expected = {}
    for topic in topics:
        listed = ranking(scores.get(topic, {}), ascending=False)[:most]
        by_group = []
        for grades in groups[topic].values():
            seen = [item for item in listed if not judged_only or grades.get(item, -1) >= 0]
            by_group.append(group_measures(seen, grades, level, cutoffs, multiples))
        expected[topic] = averaged(by_group)
    check(table, expected, summed=set())


# Qrels, by way of pytrec_eval

# It rounds recall points as trec_eval 9 did, keeps scores with 32 bits (those here are whole
# numbers), and knows none of the measures that came with trec_eval 10.
OTHERWISE = {"iprec_at_recall", "11pt_avg"}
NOT_OF_A_TOPIC = {"runid", "num_q", "gm_map", "gm_bpref", "relstring"}
THEIRS = sorted(pytrec_eval.supported_measures - OTHERWISE - NOT_OF_A_TOPIC)


@examples
@given(data=st.data(), level=st.integers(1, 3))
def test_topics_get_what_pytrec_eval_finds(folder, data, level):
    topics = data.draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
    # It reads past its arrays where every grade is negative.
    grades = st.builds(lambda grades, a: {**grades, "a": a}, GRADES, st.integers(0, 3))
    qrels = {topic: data.draw(grades) for topic in topics}
    scores = {topic: data.draw(scores_of([topic]))[topic] for topic in topics}
    lines = [f"{topic} 0 {item} {grade}" for topic in qrels for item, grade in qrels[topic].items()]
    asked = [word for name in THEIRS for word in ("-m", name)]
    table = printed(folder, lines, scores, "-n", "-l", str(level), *asked)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(THEIRS), relevance_level=level)
    lists = {t: {item: float(score) for item, score in scores[t].items()} for t in topics}
    for topic, values in evaluator.evaluate(lists).items():
        assert {name: value for (name, of), value in table.items() if of == topic} == {
            name: str(int(value)) if name.startswith("num_") else f"{value:6.4f}"
            for name, value in values.items()
        }
