"""The verbs (evaluate, compare, explain, gate, validate) and their results, one module each.

Nothing is imported here: a command that evaluates does not load what compares.
"""
