"""Simulated error rates against their limits."""

from scipy.stats import binom

from support.effort import FULL


def within(share, low, high, experiments):
    """Return whether a true rate between the limits explains the observed share.

    With the full number of experiments the share itself is within the limits. With fewer it may be
    outside by chance: only a share that a rate at the limit has in one of 1,000 simulations is
    rejected.
    """
    if FULL:
        return low <= share <= high
    least = binom.ppf(0.001, experiments, low)
    most = binom.ppf(0.999, experiments, high)
    return least <= round(share * experiments) <= most
