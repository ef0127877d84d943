"""The queries of a page: the list, ranked lists, details and texts."""
