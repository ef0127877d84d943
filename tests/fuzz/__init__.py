"""Damaged and odd inputs for every reader, checked against plain readers.

`PYTHONPATH=src:tests python -m fuzz --count 10000` runs them; see `--help`.
"""
