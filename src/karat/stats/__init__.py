"""Statistics over queries: summaries, confidence intervals, significance tests, power."""
