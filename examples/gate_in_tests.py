"""Fail a test suite when a retriever gets worse: assert_gate, and one test per query.

pytest examples/gate_in_tests.py --karat-report gates.html
"""

from importlib.resources import files

from karat.testing import assert_gate, per_query

FAQ = files("karat") / "docs" / "faq"
GOLD = str(FAQ / "support-faq.jsonl")
BASELINE = str(FAQ / "bm25.run")  # of the main branch: a run, or scores that were saved
RUN = str(FAQ / "hybrid.jsonl")  # or a function that searches


def test_quality_over_all_queries():
    """The mean must be high enough, and must not drop significantly below the main branch."""
    assert_gate(GOLD, RUN, ["nDCG@10 >= 0.8", "R@10 max_drop 0.02"], baseline=BASELINE)


# One test per query: every question must have a relevant answer among the first five.
test_answer_is_found = per_query(GOLD, RUN, "Success@5 >= 1")
