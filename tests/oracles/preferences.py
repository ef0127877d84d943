"""trec_eval's preference and judgment-group measures: slow, literal, pair by pair.

Written from the explanations that trec_eval prints with -h and the comments in its sources,
without any code of karat. A topic is a list of items in rank order and the levels of each judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Row = tuple[str, str, str, float]
"""Judge, subgroup, item and level."""
Pair = tuple[str, str]
"""The item preferred, and the other."""


class ContradictionError(Exception):
    """The judgments of one judge contradict each other."""


@dataclass
class Judge:
    """The judgments of one judge: the level of each item, and which of two should be above."""

    levels: dict[str, float]
    pairs: set[Pair]
    has_one_subgroup: bool


@dataclass
class Topic:
    """The retrieved items of a topic in order, and its judges."""

    listed: list[str]
    judges: list[Judge]

    def retrieved(self, item: str) -> bool:
        return item in self.listed

    def fulfilled(self, pair: Pair) -> bool:
        """Whether the preferred item was retrieved, and above the other if that was too."""
        better, worse = pair
        if not self.retrieved(better):
            return False
        return not self.retrieved(worse) or self.listed.index(better) < self.listed.index(worse)

    def counts(self, pair: Pair, kind: str) -> bool:
        """Whether a pair counts: `ret` needs both retrieved, `imp` at least one."""
        there = [self.retrieved(item) for item in pair]
        return {"ret": all(there), "imp": any(there), "": True}[kind]

    def in_rank_order(self, items: list[str]) -> list[str]:
        """Those retrieved first, by rank; then the others, by id."""
        found = [item for item in self.listed if item in items]
        return found + sorted(set(items) - set(found), key=str.encode)


def read_judges(rows: list[Row]) -> list[Judge]:
    return [read_judge([row for row in rows if row[0] == name]) for name in judges_of(rows)]


def judges_of(rows: list[Row]) -> list[str]:
    return sorted({row[0] for row in rows})


def read_judge(rows: list[Row]) -> Judge:
    levels: dict[str, float] = {}
    subgroups = {row[1] for row in rows}
    pairs = set()
    for _, subgroup, item, level in rows:
        if item in levels and (levels[item] == 0) != (level == 0):
            raise ContradictionError
        levels[item] = level
        for _, other_subgroup, other, other_level in rows:
            if subgroup == other_subgroup and level > other_level:
                pairs.add((item, other))
    while True:
        follows = {(a, d) for a, b in pairs for c, d in pairs if b == c}
        if follows <= pairs:
            break
        pairs |= follows
    if any((b, a) in pairs for a, b in pairs):
        raise ContradictionError
    return Judge(levels, pairs, len(subgroups) == 1)


def preference_measures(topic: Topic) -> dict[str, Fraction]:
    """Return all of prefs_*: by name, the value for one topic."""
    everything = [pair for judge in topic.judges for pair in judge.pairs]
    fulfilled = [pair for pair in everything if topic.fulfilled(pair)]
    values = {
        "prefs_num_prefs_poss": Fraction(len(everything)),
        "prefs_num_prefs_ful": Fraction(len(fulfilled)),
        "prefs_num_prefs_ful_ret": Fraction(sum(topic.counts(pair, "ret") for pair in fulfilled)),
    }
    for kind in ("", "ret", "imp"):
        ending = f"_{kind}" if kind else ""
        values[f"prefs_simp{ending}"] = share_held(topic, everything, kind)
        values[f"prefs_pair{ending}"] = over_pairs(topic, everything, kind)
        shares = [share_held(topic, list(judge.pairs), kind) for judge in topic.judges]
        values[f"prefs_avgjg{ending}"] = sum(shares, Fraction()) / len(shares)
        if kind != "imp":
            values[f"prefs_avgjg_Rnonrel{ending}"] = balanced(topic, kind)
    return values


def share_held(topic: Topic, pairs: list[Pair], kind: str) -> Fraction:
    looked_at = [pair for pair in pairs if topic.counts(pair, kind)]
    if not looked_at:
        return Fraction()
    return Fraction(sum(topic.fulfilled(pair) for pair in looked_at), len(looked_at))


def over_pairs(topic: Topic, pairs: list[Pair], kind: str) -> Fraction:
    """Average, over pairs of items that a judge compares, the share of satisfied judges."""
    compared = {frozenset(pair) for pair in pairs if topic.counts(pair, kind)}
    shares = []
    for two in compared:
        compared_by = [pair for pair in pairs if frozenset(pair) == two]
        shares.append(
            Fraction(sum(topic.fulfilled(pair) for pair in compared_by), len(compared_by))
        )
    return sum(shares, Fraction()) / len(shares) if shares else Fraction()


def balanced(topic: Topic, kind: str) -> Fraction:
    """Average over judges, each with as many irrelevant items as relevant ones."""
    shares = []
    for judge in topic.judges:
        fulfilled, possible = balanced_judge(topic, judge, kind)
        if not possible:  # trec_eval divides by zero, and one such judge makes the mean 0
            return Fraction()
        shares.append(Fraction(fulfilled, possible))
    return sum(shares, Fraction()) / len(shares)


def balanced_judge(topic: Topic, judge: Judge, kind: str) -> tuple[int, int]:
    """Count the preferences fulfilled and possible, with irrelevant items added or removed."""
    relevant = [item for item, level in judge.levels.items() if level > 0]
    irrelevant = topic.in_rank_order([item for item, level in judge.levels.items() if level == 0])
    relevant_there = [item for item in relevant if topic.retrieved(item)]
    irrelevant_there = [item for item in irrelevant if topic.retrieved(item)]
    n_relevant = len(relevant_there if kind == "ret" else relevant)
    n_irrelevant = len(irrelevant_there if kind == "ret" else irrelevant)
    if n_relevant >= n_irrelevant:
        # Irrelevant items that were not retrieved are added: every relevant one retrieved wins.
        more = n_relevant - n_irrelevant
        pairs = [pair for pair in judge.pairs if topic.counts(pair, kind)]
        fulfilled = sum(topic.fulfilled(pair) for pair in pairs) + len(relevant_there) * more
        return fulfilled, len(pairs) + len(relevant) * more
    if judge.has_one_subgroup:
        # As in trec_eval, irrelevant items are compared with those that are kept, too.
        kept = irrelevant[:n_relevant]
        looked_at = [(a, b) for a, b in judge.pairs if b not in irrelevant]
        looked_at += [(item, other) for item in judge.levels for other in kept]
    else:
        # As in trec_eval, as many are kept as there are relevant items, retrieved or not.
        dropped = irrelevant[len(relevant) :]
        looked_at = [(a, b) for a, b in judge.pairs if a not in dropped and b not in dropped]
    looked_at = [pair for pair in looked_at if topic.counts(pair, kind)]
    return sum(topic.fulfilled(pair) for pair in looked_at), len(looked_at)


def group_measures(
    listed: list[str],
    grades: dict[str, int],
    level: int,
    cutoffs: list[int],
    multiples: list[Fraction],
) -> dict[str, Fraction]:
    """Return map, P and Rprec_mult of one group of judgments."""
    n_relevant = sum(grade >= level for grade in grades.values())
    hits = [grades.get(item, -1) >= level for item in listed]
    precisions = [Fraction(sum(hits[: at + 1]), at + 1) for at, hit in enumerate(hits) if hit]
    values = {"map_avgjg": sum(precisions, Fraction()) / max(n_relevant, 1)}
    for k in cutoffs:
        values[f"P_avgjg_{k}"] = Fraction(sum(hits[:k]), k)
    for multiple in multiples:
        k = int(multiple * n_relevant + Fraction(9, 10))
        name = f"Rprec_mult_avgjg_{float(multiple):.2f}"
        values[name] = Fraction(sum(hits[:k]), k) if k else Fraction()
    return values


def averaged(groups: list[dict[str, Fraction]]) -> dict[str, Fraction]:
    """Average each measure over the groups of a topic."""
    return {
        name: sum((values[name] for values in groups), Fraction()) / len(groups)
        for name in groups[0]
    }
