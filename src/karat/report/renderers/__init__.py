"""Renderers of documents: terminal, Markdown, LaTeX and HTML for notebooks."""
