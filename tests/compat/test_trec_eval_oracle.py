"""What trec_eval prints follows from the definitions and agrees with pytrec_eval.

Hypothesis draws a seed, and the seed draws a file with many topics: the topics are small, so what
fails is easy to read, and most of the time goes into evaluating them, not into drawing or opening.
"""

from __future__ import annotations

import io
import random
from fractions import Fraction
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from karat.compat.trec_eval import trec_eval
from oracles.preferences import (
    ContradictionError,
    Row,
    Topic,
    averaged,
    group_measures,
    preference_measures,
    read_judges,
)
from support.effort import examples
from support.errors import refused

ITEMS = ["a", "b", "c", "d", "e", "F", "é", "文"]
TOPICS = sorted(["é", "文", *map(str, range(1, 19))], key=str.encode)
MOST_RETRIEVED = [None, None, 0, 1, 3, 100]

Scores = dict[str, dict[str, int]]

random_input = st.randoms(use_true_random=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One folder for all examples: making one per example would take most of the time."""
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


def some(chance: random.Random, values: list[str], least: int, most: int) -> list[str]:
    """Return some of the values, in any order."""
    return chance.sample(values, chance.randint(least, most))


def drawn_scores(chance: random.Random) -> dict[str, int]:
    """Draw the list of one topic, with ties and items that nobody judged."""
    return {item: chance.randint(0, 4) for item in some(chance, [*ITEMS, "x", "y"], 1, 8)}


def drawn_topics(chance: random.Random) -> list[str]:
    """Return all topics or a single one."""
    return TOPICS if chance.randrange(4) else [chance.choice(TOPICS)]


def drawn_run(chance: random.Random, topics: list[str]) -> Scores:
    """Draw lists for the first topic and most of the others."""
    listed = [topic for topic in topics if topic == topics[0] or chance.randrange(6)]
    return {topic: drawn_scores(chance) for topic in listed}


def shuffled(chance: random.Random, lines: list[str]) -> list[str]:
    return chance.sample(lines, len(lines))


def most_flags(most: int | None) -> list[str]:
    return [] if most is None else ["-M", str(most)]


# Preferences


def drawn_preferences(chance: random.Random) -> list[Row]:
    """Draw what a few judges say, most of them without contradicting themselves."""
    rows = []
    for judge in some(chance, ["u", "v", "w"], 1, 3):
        levels = {item: chance.choice([0, 0, 1, 2, 3.5]) for item in ITEMS}
        for subgroup in range(chance.randint(1, 3)):
            contradicts = chance.randrange(50) == 0
            for item in some(chance, ITEMS, 1, 6):
                level = chance.choice([0, 1, 2]) if contradicts else levels[item]
                rows.append((judge, f"s{subgroup}", item, level))
    return rows


@examples(25, 500)
@given(chance=random_input)
def test_preferences_are_counted_as_defined(folder, chance):
    topics = drawn_topics(chance)
    rows = {topic: drawn_preferences(chance) for topic in topics}
    scores = drawn_run(chance, topics)
    most = chance.choice(MOST_RETRIEVED)
    flags = ["-c", "-R", "prefs", "-m", "all_prefs", *most_flags(most)]
    expected, contradictory = {}, []
    for topic in topics:
        listed = ranking(scores.get(topic, {}), ascending=True)[:most]
        try:
            expected[topic] = preference_measures(Topic(listed, read_judges(rows[topic])))
        except ContradictionError:
            contradictory.append(topic)

    def lines(topics: list[str]) -> list[str]:
        of_topics = [" ".join([topic, *map(str, row)]) for topic in topics for row in rows[topic]]
        return shuffled(chance, of_topics)

    if contradictory:
        with refused(field="level") as error:
            printed(folder, lines(topics), scores, *flags)
        assert repr(contradictory[0]) in str(error.value)
    if not expected:
        return
    table = printed(folder, lines(list(expected)), scores, *flags)
    names = set(next(iter(expected.values())))
    assert {name for name, _ in table} == {"runid", "num_q", *names}
    check(table, expected, summed={name for name in names if "_num_" in name})


@examples(15, 300)
@given(chance=random_input)
def test_qrels_are_read_as_preferences_with_one_subgroup(folder, chance):
    topics = drawn_topics(chance)
    rows, scores, expected = {}, {}, {}
    for topic in topics:
        rows[topic] = [
            (judge, "0", item, chance.choice([0, 0, 1, 2.5]))
            for judge in some(chance, ["u", "v", "w"], 1, 3)
            for item in some(chance, ITEMS, 1, 8)
        ]
        scores[topic] = drawn_scores(chance)
        listed = ranking(scores[topic], ascending=True)
        expected[topic] = preference_measures(Topic(listed, read_judges(rows[topic])))
    lines = [
        f"{topic} {judge} {item} {level}"
        for topic in topics
        for judge, _, item, level in rows[topic]
    ]
    flags = ["-R", "qrels_prefs", "-m", "all_prefs"]
    table = printed(folder, shuffled(chance, lines), scores, *flags)
    check(table, expected, summed={name for name in expected[topics[0]] if "_num_" in name})


# Judgment groups


def drawn_grades(chance: random.Random) -> dict[str, int]:
    return {item: chance.randint(-1, 3) for item in some(chance, ITEMS, 1, 8)}


@examples(25, 500)
@given(chance=random_input)
def test_judgment_groups_are_averaged_as_defined(folder, chance):
    topics = drawn_topics(chance)
    groups = {
        topic: {group: drawn_grades(chance) for group in some(chance, ["u", "v", "w"], 1, 3)}
        for topic in topics
    }
    lines = [
        f"{topic} {group} {item} {grade}"
        for topic, of_topic in groups.items()
        for group, grades in of_topic.items()
        for item, grade in grades.items()
    ]
    scores = drawn_run(chance, topics)
    most, level, judged_only = (
        chance.choice(MOST_RETRIEVED),
        chance.randint(1, 3),
        chance.random() < 0.5,
    )
    cutoffs, multiples = [1, 2, 5], [Fraction(1, 2), Fraction(1), Fraction(9, 4)]
    flags = ["-c", "-R", "qrels_jg", "-l", str(level), *most_flags(most)]
    flags += ["-m", "map_avgjg", "-m", "P_avgjg.5,1,2", "-m", "Rprec_mult_avgjg.0.5,1,2.25"]
    flags += ["-J"] if judged_only else []
    table = printed(folder, shuffled(chance, lines), scores, *flags)
    expected = {}
    for topic in topics:
        listed = ranking(scores.get(topic, {}), ascending=False)[:most]
        by_group = []
        for grades in groups[topic].values():
            seen = [item for item in listed if not judged_only or grades.get(item, -1) >= 0]
            by_group.append(group_measures(seen, grades, level, cutoffs, multiples))
        expected[topic] = averaged(by_group)
    check(table, expected, summed=set())


# Qrels, compared with pytrec_eval

# It rounds recall points as trec_eval 9 did, keeps scores with 32 bits (those here are whole
# numbers), and has none of the measures that came with trec_eval 10.
OTHERWISE = {"iprec_at_recall", "11pt_avg"}
NOT_OF_A_TOPIC = {"runid", "num_q", "gm_map", "gm_bpref", "relstring"}
SHARED_MEASURES = sorted(pytrec_eval.supported_measures - OTHERWISE - NOT_OF_A_TOPIC)


@examples(25, 500)
@given(chance=random_input)
def test_values_of_topics_agree_with_pytrec_eval(folder, chance):
    level = chance.randint(1, 3)
    topics = drawn_topics(chance)
    # It reads past its arrays where every grade is negative.
    qrels = {topic: {**drawn_grades(chance), "a": chance.randint(0, 3)} for topic in topics}
    scores = {topic: drawn_scores(chance) for topic in topics}
    lines = [f"{topic} 0 {item} {grade}" for topic in qrels for item, grade in qrels[topic].items()]
    flags = [word for name in SHARED_MEASURES for word in ("-m", name)]
    table = printed(folder, shuffled(chance, lines), scores, "-n", "-l", str(level), *flags)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(SHARED_MEASURES), relevance_level=level)
    lists = {
        topic: {item: float(score) for item, score in items.items()}
        for topic, items in scores.items()
    }
    expected = {
        (name, topic): str(int(value)) if name.startswith("num_") else f"{value:6.4f}"
        for topic, values in evaluator.evaluate(lists).items()
        for name, value in values.items()
    }
    assert table == expected
