"""Preferences (-R prefs, -R qrels_prefs): which of two items should stand above the other.

The items of a topic are numbered: those retrieved by rank, then the others by id. A judgment
group with one subgroup ranks its items by level, with several it holds a partial order, closed
under 'a over b, b over c, so a over c'. A preference is fulfilled if the preferred item's number
is lower and it was retrieved at all.
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
class Counts:
    """How many preferences there are, by what was retrieved of the pair; and how many hold."""

    fulfilled_both: int
    both: int
    fulfilled_one: int
    one: int
    none: int

    def fulfilled(self, kind: str) -> int:
        """Count those fulfilled: `ret` asks for both items, `imp` and the plain kind for one."""
        return self.fulfilled_both + (0 if kind == "ret" else self.fulfilled_one)

    def possible(self, kind: str) -> int:
        """Count those there are: of pairs retrieved, half retrieved too (`imp`), or all."""
        return self.both + {"ret": 0, "imp": self.one}.get(kind, self.one + self.none)


@dataclass(frozen=True)
class Group:
    """One judge: `over[a, b]` says whether its row a is preferred to its row b."""

    item: Matrix
    """The number of the item in each row; a partial order has a row for every item."""
    level: Matrix
    """Level 0 and below is not relevant; nan stands for an item this judge does not know."""
    over: Matrix
    ordered: bool
    """Whether one subgroup orders all rows by level."""

    def counts(self, n_retrieved: int) -> Counts:
        """Count preferences by what was retrieved."""
        return _count(self.over, self.item, n_retrieved)


@dataclass(frozen=True)
class Judged:
    """The preferences of a topic against its ranking."""

    n_items: int
    n_retrieved: int
    groups: list[Group]

    @cached_property
    def counts(self) -> list[Counts]:
        """The counts of each group."""
        return [group.counts(self.n_retrieved) for group in self.groups]

    @cached_property
    def judges(self) -> Matrix:
        """How many judges prefer each item to each other."""
        total = np.zeros((self.n_items, self.n_items), np.int64)
        for group in self.groups:
            rows, columns = np.nonzero(group.over)
            np.add.at(total, (group.item[rows], group.item[columns]), 1)
        return total


def measured(judged: Judged) -> dict[str, float]:
    """Return trec_eval's fourteen measures of preferences for one topic."""
    counts = judged.counts
    found: dict[str, float] = {
        "prefs_num_prefs_poss": sum(each.possible("") for each in counts),
        "prefs_num_prefs_ful": sum(each.fulfilled("") for each in counts),
        "prefs_num_prefs_ful_ret": sum(each.fulfilled("ret") for each in counts),
        "prefs_avgjg_Rnonrel": _mean([_balanced(each, judged, "") for each in judged.groups]),
        "prefs_avgjg_Rnonrel_ret": _mean(
            [_balanced(each, judged, "ret") for each in judged.groups]
        ),
    }
    for kind, ending in (("", ""), ("ret", "_ret"), ("imp", "_imp")):
        fulfilled, possible = (
            [each.fulfilled(kind) for each in counts],
            [each.possible(kind) for each in counts],
        )
        shares = [_share(*pair) for pair in zip(fulfilled, possible, strict=True)]
        found[f"prefs_simp{ending}"] = _share(sum(fulfilled), sum(possible))
        found[f"prefs_pair{ending}"] = _over_pairs(judged, kind)
        found[f"prefs_avgjg{ending}"] = _mean(shares)
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(shares: list[float]) -> float:
    total = 0.0
    for share in shares:
        total += share
    return total / len(shares) if total > 0 else 0.0


def _over_pairs(judged: Judged, kind: str) -> float:
    """Average, over pairs of items that anyone compares, the share of judges who are fulfilled."""
    judges, n = judged.judges, judged.n_retrieved
    upper = np.triu(judges + judges.T, 1)
    blocks = [upper[:n, :n]] if kind == "ret" else [upper[:n, :n], upper[:n, n:]]
    shares = []
    for block, before in zip(blocks, (0, n), strict=False):
        rows, columns = np.nonzero(block)
        shares.append(judges[rows, columns + before] / block[rows, columns])
    every = np.concatenate(shares)
    pairs = every.size + (np.count_nonzero(upper[n:, n:]) if kind == "" else 0)
    return float(np.add.accumulate(every)[-1] / pairs) if every.size else 0.0


def _balanced(group: Group, judged: Judged, kind: str) -> float:
    """Return the share fulfilled with as many irrelevant items as relevant ones, R."""
    n = judged.n_retrieved
    counts = group.counts(n)
    there = group.item < n
    relevant = group.level > 0
    irrelevant = group.level <= 0 if group.ordered else group.level == 0
    asked = there if kind == "ret" else np.ones(there.size, np.bool_)
    n_relevant = int(np.count_nonzero(relevant & asked))
    n_irrelevant = int(np.count_nonzero(irrelevant & asked))
    if n_relevant >= n_irrelevant:
        more = n_relevant - n_irrelevant
        fulfilled = counts.fulfilled(kind) + int(np.count_nonzero(relevant & there)) * more
        possible = counts.possible(kind) + int(np.count_nonzero(relevant)) * more
    elif group.ordered:
        fulfilled, possible = _cut_levels(group, n, n_relevant, kind)
    else:
        fulfilled, possible = _cut_order(group, n, kind)
    return _divide(fulfilled, possible)


def _cut_levels(group: Group, n: int, n_relevant: int, kind: str) -> tuple[int, int]:
    """Count with the first R items of the lowest level only.

    As trec_eval does it, that level's own items are compared with those R as well.
    """
    lowest = group.level == group.level.min()
    kept = np.zeros(lowest.size, np.bool_)
    kept[np.flatnonzero(lowest)[:n_relevant]] = True
    pairs = group.over & ~lowest[None, :] & ~lowest[:, None] | kept[None, :]
    if kind == "ret":
        pairs &= (group.item < n)[:, None] & (group.item < n)[None, :]
    holds = (group.item[:, None] < group.item[None, :]) & (group.item < n)[:, None]
    return int(np.count_nonzero(pairs & holds)), int(np.count_nonzero(pairs))


def _cut_order(group: Group, n: int, kind: str) -> tuple[int, int]:
    """Count without the irrelevant items after the first R, R being all relevant items."""
    n_relevant = int(np.count_nonzero(group.level > 0))
    irrelevant = np.flatnonzero(group.level == 0)
    kept = np.ones(group.level.size, np.bool_)
    kept[irrelevant[n_relevant:]] = False
    counts = _count(group.over & kept[:, None] & kept[None, :], group.item, n)
    return counts.fulfilled(kind), counts.possible(kind)


def _divide(fulfilled: int, possible: int) -> float:
    # trec_eval divides 0 by 0 here, and then finds that the sum is not above 0.
    return fulfilled / possible if possible else float("nan")


def _count(over: Matrix, item: Matrix, n: int) -> Counts:
    there = item < n
    both = over & there[:, None] & there[None, :]
    one = over & (there[:, None] ^ there[None, :])
    first = item[:, None] < item[None, :]
    return Counts(
        int(np.count_nonzero(both & first)),
        int(np.count_nonzero(both)),
        int(np.count_nonzero(one & first)),
        int(np.count_nonzero(one)),
        int(np.count_nonzero(over)) - int(np.count_nonzero(both)) - int(np.count_nonzero(one)),
    )


def judge(topic: str, preferences: list[Preference], listed: list[str], path: str) -> Judged:
    """Give the items of a topic numbers, and collect what each judge prefers.

    Errors name `path`, the file of the preferences.
    """
    known = {preference.item for preference in preferences}
    retrieved = [item for item in listed if item in known]
    others = sorted(known.difference(retrieved))
    number = {item: at for at, item in enumerate([*retrieved, *others])}
    groups = []
    ordered = sorted(preferences, key=lambda p: (p.group, p.subgroup, -p.level, number[p.item]))
    for name, rows in groupby(ordered, key=lambda p: p.group):
        group = _Rows(path, topic, name, list(rows))
        if len({row.subgroup for row in group.rows}) == 1:
            groups.append(_by_level(group, number))
        else:
            groups.append(_partial_order(group, number))
    return Judged(len(number), len(retrieved), groups)


@dataclass(frozen=True)
class _Rows:
    """The lines of one judgment group, and where they come from."""

    path: str
    topic: str
    group: str
    rows: list[Preference]

    def contradiction(self, problem: str, items: set[str]) -> InputError:
        """Make the error for judgments that disagree about items; it names the last line."""
        return InputError(
            f"judgment group {self.group!r} of topic {self.topic!r} {problem}",
            path=self.path,
            line=max(row.line for row in self.rows if row.item in items),
            field="level",
            hint="put judgments that disagree into different groups",
        )


def _by_level(group: _Rows, number: dict[str, int]) -> Group:
    levels: dict[str, float] = {}
    for row in group.rows:
        if levels.setdefault(row.item, row.level) != row.level:
            raise group.contradiction(f"gives {row.item!r} two levels", {row.item})
    item = np.array([number[row.item] for row in group.rows])
    level = np.array([row.level for row in group.rows])
    return Group(item, level, level[:, None] > level[None, :], ordered=True)


def _partial_order(group: _Rows, number: dict[str, int]) -> Group:
    level = np.full(len(number), np.nan)
    over = np.zeros((len(number), len(number)), np.bool_)
    for row in group.rows:
        at = number[row.item]
        if (level[at] > 0 and row.level == 0) or (level[at] == 0 and row.level > 0):
            problem = f"calls {row.item!r} relevant and irrelevant"
            raise group.contradiction(problem, {row.item})
        level[at] = row.level
    for _, subgroup in groupby(group.rows, key=lambda row: row.subgroup):
        rows = list(subgroup)
        at_row = np.array([number[row.item] for row in rows])
        levels = np.array([row.level for row in rows])
        above, below = np.nonzero(levels[:, None] > levels[None, :])
        over[at_row[above], at_row[below]] = True
    for middle in range(len(number)):  # if a is over b and b over c, a is over c
        over |= over[:, middle, None] & over[None, middle, :]
    both = over & over.T
    if both.any():
        names = list(number)
        pairs = np.argwhere(np.triu(both, 1))
        if pairs.size:
            first, second = (names[at] for at in pairs[0])
            problem = f"prefers {first!r} and {second!r} to each other"
            raise group.contradiction(problem, {first, second})
        item = names[int(np.argmax(np.diagonal(both)))]
        raise group.contradiction(f"gives {item!r} two levels", {item})
    return Group(np.arange(len(number)), level, over, ordered=False)
