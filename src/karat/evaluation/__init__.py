"""The verbs (evaluate, compare, explain, gate, validate, locate) and their results.

This package imports nothing itself, so that a command loads only the modules it needs.
"""
