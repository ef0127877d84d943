"""Ready-made sets of measures and conventions, each with a small fixed API."""

from karat.presets import benchmark, graded

__all__ = ["benchmark", "graded"]
