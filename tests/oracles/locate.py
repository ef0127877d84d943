"""Places of texts in documents, by plain loops over all places. No code is shared with karat."""

from __future__ import annotations


def exact_places(text, documents):
    return [
        (doc_id, start, start + len(text))
        for doc_id, document in documents.items()
        for start in range(len(document) - len(text) + 1)
        if document[start : start + len(text)] == text
    ]


def white_space_places(text, documents):
    letters = [character for character in text if not character.isspace()]
    found = []
    for doc_id, document in documents.items():
        candidates = [(at, c) for at, c in enumerate(document) if not c.isspace()]
        for first in range(len(candidates) - len(letters) + 1):
            part = candidates[first : first + len(letters)]
            if [character for _, character in part] == letters:
                found.append((doc_id, part[0][0], part[-1][0] + 1))
    return found


def folded(text):
    """Pairs (character, place) in lower case, white space collapsed to blanks and stripped."""
    pairs = []
    for at, character in enumerate(text):
        if not character.isspace():
            pairs.append(("i" if character == "İ" else character.lower(), at))
        elif pairs and pairs[-1][0] != " ":
            pairs.append((" ", at))
    return pairs[:-1] if pairs and pairs[-1][0] == " " else pairs


def common(one, two):
    """The length of the longest common subsequence of `one` and each beginning of `two`."""
    row = [0] * (len(one) + 1)
    lengths = [0]
    for b in two:
        new = [0]
        for at, a in enumerate(one):
            new.append(row[at] + 1 if a == b else max(row[at + 1], new[at]))
        row = new
        lengths.append(row[-1])
    return lengths


def similar_places(text, documents, threshold):
    letters = [character for character, _ in folded(text)]
    found = []
    for doc_id, document in documents.items():
        pairs = folded(document)
        characters = [character for character, _ in pairs]
        every = []
        for start in range(len(characters)):
            for length, shared in enumerate(common(letters, characters[start:])):
                end = start + length
                if length and " " not in (characters[start], characters[end - 1]):
                    ratio = 2 * shared / (len(letters) + length)
                    if ratio >= threshold:
                        every.append((-ratio, start, end))
        taken = []
        for ratio, start, end in sorted(every):
            if all(end <= begin or stop <= start for begin, stop in taken):
                taken.append((start, end))
                found.append((doc_id, pairs[start][1], pairs[end - 1][1] + 1, -ratio))
    return found


def located(text, documents, threshold):
    """The outcome of a text, and its places with their ratios."""
    if not text.strip():
        return "not found", []
    ways = {
        "exact": [(*place, 1.0) for place in exact_places(text, documents)],
        "white space": [(*place, 1.0) for place in white_space_places(text, documents)],
        "fuzzy": similar_places(text, documents, threshold),
    }
    for outcome, places in ways.items():
        if places:
            return (outcome if len(places) == 1 else "ambiguous"), sorted(places)
    return "not found", []
