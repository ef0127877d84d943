"""How much work a test does: a reduced amount by default, the full amount in `make test-slow`."""

import os

from hypothesis import settings

FULL = bool(os.environ.get("KARAT_SLOW"))


def examples(reduced: int, full: int) -> settings:
    """Return Hypothesis settings with this many examples."""
    return settings(max_examples=full if FULL else reduced, deadline=None)
