"""Engines score runs against gold. There is one so far, `local`, which scores in this process."""
