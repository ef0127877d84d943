"""Groups whose mean differs from that of all other queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from karat.stats.groups import outlying_groups
from support.effort import examples

VALUES = st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=0, max_size=14)


@pytest.mark.filterwarnings("ignore:Precision loss occurred")  # SciPy, if one side is constant
@examples(60, 600)
@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=6))
def test_groups_are_compared_with_all_other_queries_by_welch_s_t(lists: dict[str, list[float]]):
    groups = {label: np.array(values, dtype=float) for label, values in lists.items()}
    large_enough = [label for label, values in groups.items() if len(values) >= 5]
    expected = {}
    for label in large_enough:
        rest = [value for other in groups if other != label for value in groups[other]]
        values = groups[label]
        if len(rest) < 5 or (values.std() == 0 and np.std(rest) == 0):
            continue
        p = ttest_ind(values, rest, equal_var=False).pvalue * len(large_enough)
        if p < 0.05:
            expected[label] = (np.mean(values) - np.mean(rest), p)
    found = outlying_groups(groups)
    assert {group.label for group in found} == set(expected)
    for group in found:
        assert (group.difference, group.p) == pytest.approx(expected[group.label])
    assert found == sorted(found, key=lambda group: group.difference)


def test_p_is_corrected_for_the_groups_that_are_large_enough():
    low, high = np.array([0.0, 0.25, 0.125, 0.0, 0.5]), np.array([0.75, 0.5, 1.0, 0.75, 1.0, 0.5])
    small = np.array([0.75, 0.5])
    first, second = outlying_groups({"low": low, "high": high, "small": small})
    assert (first.label, second.label) == ("low", "high")
    for group, values, others in ((first, low, high), (second, high, low)):
        rest = np.concatenate([others, small])
        expected = 2 * ttest_ind(values, rest, equal_var=False).pvalue
        assert group.p == pytest.approx(expected, rel=1e-12)
        assert (group.n, group.mean) == (len(values), pytest.approx(values.mean()))


def test_two_constant_groups_are_not_reported():
    assert outlying_groups({"a": np.zeros(5), "b": np.ones(5)}) == []


def test_small_groups_are_not_reported():
    low, high = np.array([0.0, 0.1, 0.0, 0.1]), np.array([0.9, 1.0] * 20)
    assert outlying_groups({"a": low}) == []
    assert [group.label for group in outlying_groups({"a": low, "b": high})] == []
