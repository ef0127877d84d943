"""Groups that lie apart from the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.stats.apart import apart

VALUES = st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=0, max_size=14)


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=6))
def test_groups_are_held_against_all_others_as_scipy_does(given_groups: dict[str, list[float]]):
    from scipy.stats import ttest_ind

    groups = {label: np.array(values, dtype=float) for label, values in given_groups.items()}
    looked_at = [label for label, values in groups.items() if len(values) >= 5]
    expected = {}
    for label in looked_at:
        rest = [value for other in groups if other != label for value in groups[other]]
        own = groups[label]
        if len(rest) < 5 or (own.std() == 0 and np.std(rest) == 0):
            continue
        p = ttest_ind(own, rest, equal_var=False).pvalue * len(looked_at)
        if p < 0.05:
            expected[label] = (np.mean(own) - np.mean(rest), p)
    found = apart(groups)
    assert {group.label for group in found} == set(expected)
    for group in found:
        assert (group.difference, group.p) == pytest.approx(expected[group.label])
    assert found == sorted(found, key=lambda group: group.difference)


def test_a_group_far_below_has_the_p_of_scipy():
    from scipy.stats import ttest_ind

    low, high = np.array([0.0, 0.25, 0.125, 0.0, 0.5]), np.array([0.75, 0.5, 1.0, 0.75, 1.0, 0.5])
    first, second = apart({"low": low, "high": high})
    assert (first.label, second.label) == ("low", "high")
    assert first.p == pytest.approx(2 * ttest_ind(low, high, equal_var=False).pvalue, rel=1e-12)


def test_two_constants_say_nothing():
    assert apart({"a": np.zeros(5), "b": np.ones(5)}) == []


def test_small_groups_say_nothing():
    low, high = np.array([0.0, 0.1, 0.0, 0.1]), np.array([0.9, 1.0] * 20)
    assert apart({"a": low}) == []
    assert [group.label for group in apart({"a": low, "b": high})] == []
