"""Measures of character spans: importing this declares them."""

from karat.measures.span import characters

__all__ = ["characters"]
