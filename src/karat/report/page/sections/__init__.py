"""The sections of a page: what each shows, as values for its template."""
