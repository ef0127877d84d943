"""How people see it: terminal, documents, tables in files."""
