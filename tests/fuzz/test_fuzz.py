"""Damaged and odd inputs: each is read right or refused, in every format."""

from collections import Counter

import pytest

from fuzz.__main__ import supervise
from fuzz.checks import check, tally
from fuzz.inputs import FORMATS, build

REDUCED, FULL = 100, 2000
UNCHECKED = 0.03
"""The largest share of inputs that karat may read while the plain reader refuses them."""


def assess(name, tried, counts, faults):
    again = f"PYTHONPATH=src:tests python -m fuzz --count 1 --format {name} --seed"
    assert not faults, "\n".join(f"{again} {seed}: {kind}: {what}" for seed, kind, what in faults)
    # The check is only worth something if much is accepted, and most of that is compared.
    assert counts["accepted"] > 0.1 * tried
    assert counts["checked"] > 0.2 * tried
    assert counts["karat reads, plain refuses"] <= UNCHECKED * tried


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_are_read_right_or_refused(name, tmp_path):
    counts = Counter()
    faults = []
    for seed in range(REDUCED):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = check(build(name, seed), folder)
        tally(counts, outcome)
        faults += [(seed, kind, what) for kind, what, _ in outcome.faults]
    assess(name, REDUCED, counts, faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_inputs_do_not_end_a_process(name, tmp_path):
    """Many more inputs, in processes whose memory is limited: also no abort, hang or panic text."""
    counts, rows = supervise(name, REDUCED, FULL, tmp_path)
    faults = [(row["seed"], row["kind"], row["what"]) for row in rows if row["kind"][0] != "~"]
    assess(name, FULL, counts, faults)
