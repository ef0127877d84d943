"""The kinds of retrievers that karat can run, one module per kind."""
