"""Slow, obvious, independent versions of what karat calculates."""
