"""The lists of queries as a page shows them, computed query by query and rank by rank."""


def label_of(item, level):
    if level == "doc":
        return item["doc_id"]
    if "id" in item:
        return item["id"]
    if "start" in item:
        return f"{item['doc_id']}[{item['start']}:{item['end']}]"
    return " ".join(item["text"].split())[:60]


def key_of(item, level):
    return item["text"] if level == "item" and set(item) == {"text"} else label_of(item, level)


def scored_list(gold, items, words, level):
    """Return the list that rank measures read."""
    if level == "doc":
        documents = [item["doc_id"] for item in items]
        items = [item for at, item in enumerate(items) if item["doc_id"] not in documents[:at]]
    if words.get("unjudged") == "skip":
        judged = gold.get("relevant", {})
        items = [item for item in items if judged.get(label_of(item, level), -1) >= 0]
    return items


def hits_of(gold, items, families, words, level):
    """Return the hits at each rank: grade, number of new gold characters, evidence."""
    grades = gold.get("relevant", {}) if "rank" in families else {}
    evidence = sorted(set(gold.get("evidence", []))) if "evidence" in families else []
    spans = gold.get("spans", []) if "span" in families else []
    wanted = {(s["doc_id"], at) for s in spans for at in range(s["start"], s["end"])}
    seen, covered, hits = set(), set(), []
    for rank, item in enumerate(items, 1):
        grade = grades.get(label_of(item, level)) if grades else None
        if grade is not None and label_of(item, level) in seen:
            grade = grade if words.get("duplicates") == "count" and grade >= 0 else None
        if grades:
            seen.add(label_of(item, level))
        characters = None
        if wanted:
            own = {(item["doc_id"], at) for at in range(item["start"], item["end"])}
            characters = len((own & wanted) - covered) or None
            covered |= own
        holds = [at for at, text in enumerate(evidence) if text in item["text"]] or None
        if (grade, characters, holds) != (None, None, None):
            hits.append([rank, grade, characters, holds])
    return hits


def listed(gold, runs, family, families, words, level, top, most_below, most_wanted, rel=1):
    """Return the lists of one query; each run is given as its list of items."""
    anew = level == "doc" or words.get("unjudged") == "skip"
    own = family == "rank" and anew
    families = {"rank"} if own else families - ({"rank"} if anew else set())
    level = level if own else "item"
    items = [scored_list(gold, run, words, level) if own else run for run in runs]
    hits = [hits_of(gold, run, families, words, level) for run in items]
    keys, labels, lists, belows = [], [], [], []
    for run, found in zip(items, hits, strict=True):
        below = [
            rank
            for rank, grade, characters, evidence in found
            if rank > top and ((grade or 0) >= rel or characters or evidence)
        ][:most_below]
        places = []
        for rank, item in enumerate(run, 1):
            if rank > top and rank not in below:
                continue
            if key_of(item, level) not in keys:
                keys.append(key_of(item, level))
                labels.append(label_of(item, level))
            places.append((rank, keys.index(key_of(item, level))))
        lists.append([number for rank, number in places if rank <= top])
        belows.append([[rank, number] for rank, number in places if rank > top])
    relevant = [[item, g] for item, g in gold.get("relevant", {}).items() if g >= rel]
    relevant = sorted(relevant, key=lambda one: (-one[1], one[0])) if "rank" in families else []
    spans = {tuple(s.values()) for s in gold.get("spans", []) if s["start"] < s["end"]}
    counts = {
        "rank": len(relevant),
        "span": len(spans),
        "evidence": len(set(gold.get("evidence", []))),
    }
    names = {
        "rank": ("items", "relevant"),
        "span": ("spans", "spans"),
        "evidence": ("evidence",) * 2,
    }
    return {
        "items": labels,
        "lists": lists,
        "below": belows,
        "n": [len(run) for run in items],
        "hits": hits,
        "wanted": relevant[:most_wanted],
        "n_wanted": {
            names[kind][0]: counts[kind]
            for kind in ("rank", "span", "evidence")
            if kind in families and names[kind][1] in gold
        },
    }


def found_of(gold, items, family, words, level):
    """Return how much of one kind of gold there is, how much is retrieved, and the first rank."""
    if family == "rank":
        items = scored_list(gold, items, words, level)
        wanted = {item for item, grade in gold.get("relevant", {}).items() if grade >= 1}
        hits = [{label_of(item, level)} & wanted for item in items]
    elif family == "span":
        wanted = {tuple(s.values()) for s in gold.get("spans", []) if s["start"] < s["end"]}
        hits = [
            {
                span
                for span in wanted
                if span[0] == item["doc_id"]
                and span[1] < item["end"]
                and item["start"] < span[2]
                and item["start"] < item["end"]
            }
            for item in items
        ]
    else:
        wanted = set(gold.get("evidence", []))
        hits = [{text for text in wanted if text in item["text"]} for item in items]
    ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
    return len(wanted), len(set().union(*hits)), min(ranks, default=0)


def telling(values, failed, n, higher):
    """Return the most informative queries; values has one list of numbers or None per run."""
    numbers = range(len(failed))
    if n >= len(failed):
        return list(numbers)
    known = {q: [run[q] for run in values if run[q] is not None] for q in numbers}
    best = {q: (max if higher else min)(known[q]) for q in numbers if known[q]}
    worst = sorted(best, key=lambda q: (best[q] if higher else -best[q], q))
    worst += [q for q in numbers if q not in best]
    spread = {q: max(known[q]) - min(known[q]) for q in best}
    moved = sorted((q for q in best if spread[q] > 0), key=lambda q: (-spread[q], q))
    chosen = [q for q in numbers if failed[q]]
    for turn in numbers:
        chosen += [order[turn] for order in (worst, moved) if turn < len(order)]
    return sorted(list(dict.fromkeys(chosen))[:n])
