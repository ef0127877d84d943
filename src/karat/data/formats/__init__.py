"""One module per file format, and the registry of all of them."""
