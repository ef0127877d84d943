"""Preference measures (-R prefs, -R qrels_prefs): which of two items should be ranked higher.

The items of a topic are numbered: retrieved items by rank, then the other items by id. A judgment
group with one subgroup orders its items by level. A group with several subgroups is a partial
order, closed under transitivity: if a is over b and b over c, then a is over c. A preference is
fulfilled if the preferred item is retrieved and has the lower number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.compat.trec_eval.inputs import Preference
from karat.errors import InputError

Matrix = NDArray[Any]


@dataclass(frozen=True)
class PreferenceCounts:
    """Preferences and fulfilled preferences: both, one or none of the two items are retrieved."""

    fulfilled_both: int
    both: int
    fulfilled_one: int
    one: int
    none: int

    def fulfilled(self, kind: str) -> int:
        """Return the number of fulfilled preferences; for `ret`, both items must be retrieved."""
        return self.fulfilled_both + (0 if kind == "ret" else self.fulfilled_one)

    def possible(self, kind: str) -> int:
        """Return the number of preferences that count.

        For `ret`, both items must be retrieved, for `imp` at least one; otherwise, all count.
        """
        if kind == "ret":
            return self.both
        if kind == "imp":
            return self.both + self.one
        return self.both + self.one + self.none


@dataclass(frozen=True)
class JudgmentGroup:
    """The preferences of one judge: `over[a, b]` is whether row a is preferred to row b."""

    item: Matrix
    """The number of the item in each row; a partial order has a row for every item."""
    level: Matrix
    """The level of each row: 0 and below is not relevant, NaN is an item without a level."""
    over: Matrix
    ordered: bool
    """Whether all rows are ordered by level, in a single subgroup."""

    def counts(self, n_retrieved: int) -> PreferenceCounts:
        """Return the counts of this group for a ranking."""
        return _count(self.over, self.item, n_retrieved)


@dataclass(frozen=True)
class TopicPreferences:
    """The preferences of all judges of a topic, and its ranking."""

    n_items: int
    n_retrieved: int
    groups: list[JudgmentGroup]

    @cached_property
    def counts(self) -> list[PreferenceCounts]:
        """The counts of each group."""
        return [group.counts(self.n_retrieved) for group in self.groups]

    @cached_property
    def judges(self) -> Matrix:
        """Matrix of how many judges prefer each item to each other item."""
        total = np.zeros((self.n_items, self.n_items), np.int64)
        for group in self.groups:
            rows, columns = np.nonzero(group.over)
            np.add.at(total, (group.item[rows], group.item[columns]), 1)
        return total


def preference_values(topic: TopicPreferences) -> dict[str, float]:
    """Return the fourteen preference measures of trec_eval for one topic."""
    counts = topic.counts
    values: dict[str, float] = {
        "prefs_num_prefs_poss": sum(group.possible("") for group in counts),
        "prefs_num_prefs_ful": sum(group.fulfilled("") for group in counts),
        "prefs_num_prefs_ful_ret": sum(group.fulfilled("ret") for group in counts),
        "prefs_avgjg_Rnonrel": _mean([_balanced(group, topic, "") for group in topic.groups]),
        "prefs_avgjg_Rnonrel_ret": _mean(
            [_balanced(group, topic, "ret") for group in topic.groups]
        ),
    }
    for kind, ending in (("", ""), ("ret", "_ret"), ("imp", "_imp")):
        fulfilled = [group.fulfilled(kind) for group in counts]
        possible = [group.possible(kind) for group in counts]
        shares = [_share(*pair) for pair in zip(fulfilled, possible, strict=True)]
        values[f"prefs_simp{ending}"] = _share(sum(fulfilled), sum(possible))
        values[f"prefs_pair{ending}"] = _over_pairs(topic, kind)
        values[f"prefs_avgjg{ending}"] = _mean(shares)
    return values


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(shares: list[float]) -> float:
    total = 0.0
    for share in shares:
        total += share
    return total / len(shares) if total > 0 else 0.0


def _over_pairs(topic: TopicPreferences, kind: str) -> float:
    """Return the mean, over compared pairs of items, of the share of judges that are fulfilled."""
    judges, n = topic.judges, topic.n_retrieved
    upper = np.triu(judges + judges.T, 1)
    blocks = [upper[:n, :n]] if kind == "ret" else [upper[:n, :n], upper[:n, n:]]
    shares = []
    for block, before in zip(blocks, (0, n), strict=False):
        rows, columns = np.nonzero(block)
        shares.append(judges[rows, columns + before] / block[rows, columns])
    all_shares = np.concatenate(shares)
    n_pairs = int(all_shares.size)
    if kind == "":
        n_pairs += int(np.count_nonzero(upper[n:, n:]))
    # Added from left to right, as in trec_eval.
    return float(np.add.accumulate(all_shares)[-1] / n_pairs) if all_shares.size else 0.0


def _balanced(group: JudgmentGroup, topic: TopicPreferences, kind: str) -> float:
    """Return the share of fulfilled preferences, with as many irrelevant as relevant items."""
    n = topic.n_retrieved
    counts = group.counts(n)
    is_retrieved = group.item < n
    relevant = group.level > 0
    irrelevant = group.level <= 0 if group.ordered else group.level == 0
    is_counted = is_retrieved if kind == "ret" else np.ones(is_retrieved.size, np.bool_)
    n_relevant = int(np.count_nonzero(relevant & is_counted))
    n_irrelevant = int(np.count_nonzero(irrelevant & is_counted))
    if n_relevant >= n_irrelevant:
        n_added = n_relevant - n_irrelevant
        n_relevant_retrieved = int(np.count_nonzero(relevant & is_retrieved))
        fulfilled = counts.fulfilled(kind) + n_relevant_retrieved * n_added
        possible = counts.possible(kind) + int(np.count_nonzero(relevant)) * n_added
    elif group.ordered:
        fulfilled, possible = _cut_levels(group, n, n_relevant, kind)
    else:
        fulfilled, possible = _cut_order(group, n, kind)
    return _divide(fulfilled, possible)


def _cut_levels(group: JudgmentGroup, n: int, n_relevant: int, kind: str) -> tuple[int, int]:
    """Count preferences with only the first R items of the lowest level.

    As in trec_eval, the items of the lowest level are also compared with those R items.
    """
    lowest = group.level == group.level.min()
    is_included = np.zeros(lowest.size, np.bool_)
    is_included[np.flatnonzero(lowest)[:n_relevant]] = True
    pairs = group.over & ~lowest[None, :] & ~lowest[:, None] | is_included[None, :]
    if kind == "ret":
        pairs &= (group.item < n)[:, None] & (group.item < n)[None, :]
    is_fulfilled = (group.item[:, None] < group.item[None, :]) & (group.item < n)[:, None]
    return int(np.count_nonzero(pairs & is_fulfilled)), int(np.count_nonzero(pairs))


def _cut_order(group: JudgmentGroup, n: int, kind: str) -> tuple[int, int]:
    """Count preferences with only the first R irrelevant items, for R relevant items."""
    n_relevant = int(np.count_nonzero(group.level > 0))
    irrelevant = np.flatnonzero(group.level == 0)
    is_included = np.ones(group.level.size, np.bool_)
    is_included[irrelevant[n_relevant:]] = False
    pairs = group.over & is_included[:, None] & is_included[None, :]
    counts = _count(pairs, group.item, n)
    return counts.fulfilled(kind), counts.possible(kind)


def _divide(fulfilled: int, possible: int) -> float:
    # trec_eval divides 0 by 0 here; a sum that is NaN is not above 0, so that the mean is 0.
    return fulfilled / possible if possible else float("nan")


def _count(over: Matrix, item: Matrix, n: int) -> PreferenceCounts:
    is_retrieved = item < n
    both = over & is_retrieved[:, None] & is_retrieved[None, :]
    one = over & (is_retrieved[:, None] ^ is_retrieved[None, :])
    is_higher = item[:, None] < item[None, :]
    return PreferenceCounts(
        int(np.count_nonzero(both & is_higher)),
        int(np.count_nonzero(both)),
        int(np.count_nonzero(one & is_higher)),
        int(np.count_nonzero(one)),
        int(np.count_nonzero(over)) - int(np.count_nonzero(both)) - int(np.count_nonzero(one)),
    )


def judge(
    topic: str, preferences: list[Preference], listed: list[str], path: str
) -> TopicPreferences:
    """Return the preferences of all judges of a topic, with its items numbered.

    `path` is the file of the preferences, for errors.
    """
    judged_items = {preference.item for preference in preferences}
    retrieved = [item for item in listed if item in judged_items]
    not_retrieved = sorted(judged_items.difference(retrieved))
    number = {item: at for at, item in enumerate([*retrieved, *not_retrieved])}
    groups = []
    ordered = sorted(preferences, key=lambda p: (p.group, p.subgroup, -p.level, number[p.item]))
    for name, rows in groupby(ordered, key=lambda p: p.group):
        group = _GroupLines(path, topic, name, list(rows))
        if len({row.subgroup for row in group.rows}) == 1:
            groups.append(_by_level(group, number))
        else:
            groups.append(_partial_order(group, number))
    return TopicPreferences(len(number), len(retrieved), groups)


@dataclass(frozen=True)
class _GroupLines:
    """The lines of one judgment group, and their file."""

    path: str
    topic: str
    group: str
    rows: list[Preference]

    def contradiction(self, problem: str, items: set[str]) -> InputError:
        """Return the error for judgments that disagree about these items, with their last line."""
        return InputError(
            f"judgment group {self.group!r} of topic {self.topic!r} {problem}",
            path=self.path,
            line=max(row.line for row in self.rows if row.item in items),
            field="level",
            hint="put judgments that disagree into different groups",
        )


def _by_level(group: _GroupLines, number: dict[str, int]) -> JudgmentGroup:
    levels: dict[str, float] = {}
    for row in group.rows:
        if levels.setdefault(row.item, row.level) != row.level:
            raise group.contradiction(f"has two levels for item {row.item!r}", {row.item})
    item = np.array([number[row.item] for row in group.rows])
    level = np.array([row.level for row in group.rows])
    return JudgmentGroup(item, level, level[:, None] > level[None, :], ordered=True)


def _partial_order(group: _GroupLines, number: dict[str, int]) -> JudgmentGroup:
    level = np.full(len(number), np.nan)
    over = np.zeros((len(number), len(number)), np.bool_)
    for row in group.rows:
        at = number[row.item]
        if (level[at] > 0 and row.level == 0) or (level[at] == 0 and row.level > 0):
            problem = f"judges item {row.item!r} both relevant and irrelevant"
            raise group.contradiction(problem, {row.item})
        level[at] = row.level
    for _, subgroup in groupby(group.rows, key=lambda row: row.subgroup):
        rows = list(subgroup)
        at_row = np.array([number[row.item] for row in rows])
        levels = np.array([row.level for row in rows])
        above, below = np.nonzero(levels[:, None] > levels[None, :])
        over[at_row[above], at_row[below]] = True
    for middle in range(len(number)):  # transitive closure
        over |= over[:, middle, None] & over[None, middle, :]
    both = over & over.T
    if both.any():
        names = list(number)
        pairs = np.argwhere(np.triu(both, 1))
        if pairs.size:
            first, second = (names[at] for at in pairs[0])
            problem = f"prefers {first!r} to {second!r} and vice versa"
            raise group.contradiction(problem, {first, second})
        item = names[int(np.argmax(np.diagonal(both)))]
        raise group.contradiction(f"has two levels for item {item!r}", {item})
    return JudgmentGroup(np.arange(len(number)), level, over, ordered=False)
