"""Families and reasons: what is declared of them fits together."""

import pytest

from karat import Conventions
from karat.measures import REGISTRY, parse_all
from karat.measures.families import BY_GOLD, FAMILIES, REASONS
from karat.measures.reading import READ

OF_GOLD = list(BY_GOLD.values())


def test_every_family_can_be_read_and_has_measures():
    assert set(READ) == set(FAMILIES) == {each.family for each in REGISTRY.values()}


@pytest.mark.parametrize("family", OF_GOLD, ids=lambda family: family.name)
def test_family_of_gold_has_default_measures_of_its_own(family):
    measures = parse_all([*family.defaults, family.example])
    assert {measure.declaration.reads for measure in measures} == {family}
    assert family.nothing in REASONS


def test_most_specific_kind_of_gold_comes_first():
    assert list(BY_GOLD) == ["spans", "evidence", "judgments"]


@pytest.mark.parametrize("reason", REASONS.values(), ids=lambda reason: reason.key)
def test_reason_excludes_queries_or_states_what_happens_to_them(reason):
    families = [FAMILIES["rank"], FAMILIES["cost"]]
    assert reason.excluded(Conventions()) or reason.outcome(Conventions(), families)
    assert reason.text.count("{}") == 1
