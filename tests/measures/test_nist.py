"""karat reproduces the values that NIST published for passage runs of TREC 2019 Deep Learning.

NIST ran trec_eval twice: as it is, and ("passages-eval") with grades of 2 and up as relevant for
every measure but nDCG, which keeps the grades: 962 values to four decimals. The only one that
differs is map of TUA1-1: .4723 with the 32-bit scores used then, .472356 with 64 bits, which
break ties.
"""

from __future__ import annotations

import json

import pytest

from karat.data import Gold, Run
from karat.measures import Plan, parse, score
from support.paths import SHARED_DATA

DATA = SHARED_DATA / "trec-dl19-passage"
LEVELS = {"trec_eval": 1, "passages-eval": 2}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the runs that NIST scored are not in {DATA}"
)


def at_level(measure: str, level: int) -> str:
    """Write NIST's name, such as P_10, for karat, such as P(rel=2)@10."""
    return measure if "ndcg" in measure else f"{measure}(rel={level})"


def test_961_of_962_published_values_agree_to_four_decimals():
    gold = Gold.read(DATA / "qrels.txt")
    published = json.loads((DATA / "nist_published.json").read_text())
    compared, different = 0, []
    for name, blocks in published.items():
        run = Run.read(DATA / "runs" / f"{name}.gz")
        for block, values in blocks.items():
            measures = {theirs: parse(at_level(theirs, LEVELS[block])) for theirs in values}
            table = score(gold, run, Plan.of(measures.values()))
            for theirs, value in values.items():
                compared += 1
                if f"{table.value(measures[theirs]):.4f}" != f"{value:.4f}":
                    different.append((name, block, theirs))
    assert compared == 962
    assert different == [("TUA1-1", "trec_eval", "map")]
