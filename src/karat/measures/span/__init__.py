"""Measures of character spans: importing this declares them."""

from karat.measures.span import characters, pieces

__all__ = ["characters", "pieces"]
