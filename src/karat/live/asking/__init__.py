"""Asking a retriever every question: the course of a run, from its first attempt to its lines."""

from karat.live.asking.background import ask_all
from karat.live.asking.course import RepeatedFailureError, Watch

__all__ = ["RepeatedFailureError", "Watch", "ask_all"]
