"""Ready-made sets of measures and conventions, each with a small fixed API."""
