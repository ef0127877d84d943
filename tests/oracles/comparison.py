"""Queries and items that moved from one run to another, by plain loops."""


def moved(values_a, values_b, n):
    """Return (query, a, b) of the n queries that rose most, then of the n that fell most."""
    both = [(q, values_a[q], values_b[q]) for q in values_a if q in values_b]
    both = [(q, a, b) for q, a, b in both if a is not None and b is not None]
    rose = sorted((row for row in both if row[2] > row[1]), key=lambda r: (-(r[2] - r[1]), r[0]))
    fell = sorted((row for row in both if row[2] < row[1]), key=lambda r: (r[2] - r[1], r[0]))
    return rose[:n] + fell[:n]


def changes(grades, list_a, list_b, k):
    """Return {item: [grade, rank in a, rank in b]} of relevant items whose rank changed."""

    def rank(items, item):
        top = items[:k]
        return top.index(item) + 1 if item in top else None

    changed = {}
    for item, grade in grades.items():
        ranks = rank(list_a, item), rank(list_b, item)
        if grade > 0 and ranks[0] != ranks[1]:
            changed[item] = [grade, *ranks]
    return changed
