"""Checks of option values, and suggestions for misspelled names."""

import math

import numpy as np
import pytest

from karat import checks
from support.errors import refused


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_integer_is_returned_as_an_int_of_python(value):
    checked = checks.integer(value, "k", least=1)
    assert checked == value
    assert type(checked) is int


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None, math.nan, np.int64(0), 11])
def test_integer_outside_its_limits_or_of_another_type_is_refused(value):
    with refused(path=None, line=None, field="k") as caught:
        checks.integer(value, "k", least=1, most=10)
    assert repr(value) in caught.value.problem


@pytest.mark.parametrize("check", [checks.finite, checks.positive, checks.share])
@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, -math.inf, 10**400])
def test_number_that_is_not_finite_is_refused(check, value):
    with refused(path=None, line=None, field="x"):
        check(value, "x")


@pytest.mark.parametrize(
    ("check", "accepted", "rejected"),
    [
        (checks.finite, [-5, 0, 0.5], []),
        (checks.positive, [1e-300, 3, np.float32(0.5)], [0, -1]),
        (checks.share, [0, 0.29, 1, np.float64(0.5)], [-0.01, 1.01]),
    ],
)
def test_number_outside_its_limits_is_refused(check, accepted, rejected):
    for value in accepted:
        checked = check(value, "x")
        assert checked == value
        assert type(checked) in (int, float)
    for value in rejected:
        with refused(path=None, line=None, field="x"):
            check(value, "x")


def test_word_must_be_one_of_several():
    assert checks.one_of("GET", "method", ("POST", "GET")) == "GET"
    with refused(path=None, line=None, field="method") as caught:
        checks.one_of("GTE", "method", ("POST", "GET"))
    assert "GET" in caught.value.hint


def test_nothing_is_suggested_for_a_word_unlike_all_others():
    assert checks.did_you_mean("nothing", ["billing", "post"]) is None
    assert checks.did_you_mean(7, ["billing"]) is None
