"""Asking a live retriever, and what that took."""
