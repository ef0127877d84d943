"""Plain functions for one query."""

import pytest

import karat
from support.errors import refused


def test_functions_are_exported_by_the_package():
    assert karat.precision_at_k(["a", "b"], ["a"], 5) == 1 / 5
    assert karat.recall_at_k(["a", "x"], ["a", "b"], 2) == 0.5
    assert karat.mrr(["x", "a"], {"a"}) == 0.5
    assert karat.mrr(["x", "a"], {"a"}, k=1) == 0.0
    assert karat.average_precision(["a", "x", "b"], ["a", "b"]) == (1 + 2 / 3) / 2
    assert karat.average_precision(["a", "x", "b"], ["a", "b"], k=2) == 0.5
    assert karat.hit_rate(["x", "a"], ["a"], 1) == 0.0
    assert round(karat.ndcg_at_k(["a", "c", "b"], {"a": 2, "b": 1, "c": 0}, 3), 3) == 0.950


def test_functions_agree_with_evaluate():
    retrieved, grades = ["x", "b", "b", "a"], {"a": 3, "b": 1, "z": 2}
    scores = karat.evaluate({"q": grades}, {"q": retrieved}, ["nDCG@4", "P@4", "R@4", "AP", "RR"])
    assert scores["nDCG@4"] == karat.ndcg_at_k(retrieved, grades, 4)
    assert scores["P@4"] == karat.precision_at_k(retrieved, grades, 4)
    assert scores["R@4"] == karat.recall_at_k(retrieved, grades, 4)
    assert scores["AP"] == karat.average_precision(retrieved, grades)
    assert scores["RR"] == karat.mrr(retrieved, grades)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True])
def test_a_cutoff_that_is_no_whole_number_is_refused(k):
    with refused(field="k") as error:
        karat.precision_at_k(["a"], ["a"], k)
    assert repr(k) in error.value.problem


def test_one_text_is_not_a_list_of_ids():
    with refused(field="retrieved"):
        karat.hit_rate("abc", ["a"], 3)
    with refused(field="relevant"):
        karat.hit_rate(["abc"], "abc", 3)


def test_ids_are_text_and_whole_numbers_become_text():
    assert karat.precision_at_k([1, "2"], {"1": 1, 2: 1}, 2) == 1.0
    for wrong in (1.0, None, True, ["a"], ""):
        with refused(field="retrieved"):
            karat.mrr(["a", wrong], ["a"])
        with refused(field="relevant"):
            karat.mrr(["a"], ["a", wrong])
    with refused(field="retrieved"):
        karat.mrr(7, ["a"])


def test_a_grade_that_is_no_whole_number_is_refused_and_not_cut():
    with refused(field="grade") as error:
        karat.ndcg_at_k(["a", "b"], {"a": 1, "b": 1.9}, 2)
    assert "'b'" in str(error.value)
    assert "1.9" in str(error.value)


def test_submodules_are_attributes_of_the_package():
    assert karat.functional.mrr is karat.mrr
    assert karat.presets.graded.MEASURES
