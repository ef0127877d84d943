"""Damaged and odd inputs: each is read right or refused, in every format."""

from collections import Counter

import pytest

from fuzz.checks import check, tally
from fuzz.inputs import FORMATS, build
from support.effort import FULL

COUNT = 4000 if FULL else 100
UNCHECKED = 0.03
"""The largest share of inputs that karat may read while the plain reader refuses them."""


@pytest.mark.parametrize("name", FORMATS)
def test_inputs_are_read_right_or_refused(name, tmp_path):
    counts = Counter()
    faults = []
    for seed in range(COUNT):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = check(build(name, seed), folder)
        tally(counts, outcome)
        faults += [(seed, *fault) for fault in outcome.faults]
    again = f"python -m fuzz --count 1 --format {name} --seed"
    assert not faults, "\n".join(f"{again} {seed}: {kind}: {what}" for seed, kind, what, _ in faults)
    # The check is only worth something if much is accepted, and most of that is compared.
    assert counts["accepted"] > 0.1 * COUNT
    assert counts["checked"] > 0.2 * COUNT
    assert counts["karat reads, plain refuses"] < UNCHECKED * COUNT
