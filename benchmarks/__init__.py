"""Benchmarks: time and memory of karat and of other tools for the same work, with equal values."""
