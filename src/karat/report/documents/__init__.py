"""From results to documents: one module per kind of result."""
