"""Names that ir_measures prints are read, and give the values of ir_measures."""

from __future__ import annotations

import math
import random
import shutil

import ir_measures
import pytest

import karat

# The names that ir_measures prints itself for measures with parameters.
SPELLINGS = [
    "nDCG@10",
    "nDCG(dcg='exp-log2')@10",
    "nDCG(gains={1:5,2:1,3:10})@10",
    "nDCG(gains={0:2,1:0})",
    "SetF",
    "SetF(beta=2.0)",
    "SetF(rel=2,beta=0.5)",
    "SetP(relative=True)",
    "SetP(rel=2,relative=True)",
    "SetP",
    "SetR(rel=2)",
    "SetAP(rel=2)",
    "P(rel=2)@5",
    "AP(rel=2)@100",
    "Rprec(rel=2)",
    "RR(rel=2)",
    "Success(rel=3)@5",
    "Bpref(rel=2)",
    "infAP(rel=2)",
    "NumRet(rel=2)",
    "NumRet",
]


def drawn(chance: random.Random) -> tuple[dict, dict]:
    """Draw judgments and lists; lists are longer than any cutoff or shorter."""
    items = [f"d{number}" for number in range(40)]
    gold, run = {}, {}
    for query in map(str, range(1, 31)):  # gdeval.pl takes only numbers
        judged = chance.sample(items, chance.randint(3, 30))
        gold[query] = {item: chance.choice([0, 0, 1, 2, 3]) for item in judged} | {"d0": 3}
        found = chance.sample(items, chance.randint(1, 40))
        scores = chance.sample(range(100), len(found))
        run[query] = dict(zip(found, map(float, scores), strict=True))
    return gold, run


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_name_that_ir_measures_prints_gives_the_values_of_ir_measures(spelling):
    theirs = ir_measures.parse_measure(spelling)
    assert str(theirs) == spelling
    exponential = "exp-log2" in spelling
    if exponential and shutil.which("perl") is None:
        pytest.skip("ir_measures needs perl for this measure")
    gold, run = drawn(random.Random(spelling))
    expected = {value.query_id: value.value for value in theirs.iter_calc(gold, run)}
    values = dict(karat.evaluate(gold, run, spelling).per_query.rows())
    assert values.keys() == expected.keys()
    tolerance = 0.000005001 if exponential else 1e-12  # gdeval.pl prints five decimals
    for query, value in expected.items():
        assert math.isclose(values[query], value, rel_tol=1e-12, abs_tol=tolerance), query


def test_judged_only_is_the_convention_that_the_error_names():
    gold, run = drawn(random.Random(3))
    measure = ir_measures.parse_measure("P(judged_only=True)@5")
    expected = {value.query_id: value.value for value in measure.iter_calc(gold, run)}
    with pytest.raises(karat.MeasureError, match="unjudged"):
        karat.evaluate(gold, run, str(measure))
    scores = karat.evaluate(gold, run, "P@5", conventions={"unjudged": "skip"})
    assert dict(scores.per_query.rows()) == expected
