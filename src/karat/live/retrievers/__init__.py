"""What can be run: one module per kind of retriever."""
