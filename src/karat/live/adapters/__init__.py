"""Retrievers of any kind, made ready to be asked."""
