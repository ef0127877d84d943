"""pytrec_eval's interface over karat's kernels: changing one import is enough.

    from karat.compat import pytrec_eval

Names, keys and values of queries are those of pytrec_eval-terrier, which contains trec_eval 9:
scores are compared as 32-bit numbers, and points of recall are calculated as in that version.
`trec_eval_version=10` gives the values of trec_eval 10.0 instead. A wrong measure or wrong data is
an InputError, also where the original raises TypeError, accepts it or ends the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np

from karat.arrays import Floats, Ints
from karat.compat.trec_eval.catalogue import ENTRIES, NICKNAMES, Asked
from karat.compat.trec_eval.topics import Topics
from karat.compat.trec_eval.values import Compute
from karat.conventions import Conventions
from karat.data.dict_runs import DictRun
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, MeasureError
from karat.match.gold_index import prepare
from karat.match.hits import Hits
from karat.match.ids import match_ids
from karat.measures.kernels.interpolated import at_recall, average_at_recall

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

Number = TypeVar("Number", int, float)

_SINCE_10 = {"dcg", "ideal_dcg", "yaap", "rbp", "rbp_resid", "unj"}

supported_measures = {
    entry.name
    for entry in ENTRIES
    if entry.judgments in ((), ("qrels",)) and entry.name not in _SINCE_10
}
supported_nicknames = {
    nickname: set(names.split()) - _SINCE_10 for nickname, names in NICKNAMES.items()
}


class RelevanceEvaluator:
    """Judgments prepared for any number of runs.

    Parameters
    ----------
    query_relevance
        `{query: {item: grade}}`.
    measures
        Names as pytrec_eval spells them, such as `map`, `ndcg_cut_5`, `P.1,3` or `official`.
    relevance_level
        The lowest grade that counts as relevant.
    judged_docs_only_flag
        Whether to drop items that are not judged.
    trec_eval_version
        9: the values of pytrec_eval, which contains trec_eval 9. 10: those of trec_eval 10.0, which
        compares scores as 64-bit numbers and rounds the points of recall of `iprec_at_recall`
        and `11pt_avg`.

    >>> evaluator = RelevanceEvaluator({"q1": {"d1": 0, "d2": 1}}, {"map", "ndcg_cut_5"})
    >>> evaluator.evaluate({"q1": {"d1": 1.0, "d2": 0.5}})
    {'q1': {'map': 0.5, 'ndcg_cut_5': 0.6309297535714575}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
        *,
        trec_eval_version: Literal[9, 10] = 9,
    ) -> None:
        if not isinstance(relevance_level, int) or relevance_level < 1:
            raise InputError(
                f"{relevance_level!r} is no level",
                field="relevance_level",
                hint="give the lowest grade that counts as relevant, a whole number from 1 up",
            )
        if trec_eval_version not in (9, 10):
            raise InputError(
                f"{trec_eval_version!r} is not a version of trec_eval known here",
                field="trec_eval_version",
                hint="give 9, which is what pytrec_eval contains, or 10",
            )
        _refuse_other_ids(query_relevance)
        judged = {query: dict(grades) for query, grades in query_relevance.items() if grades}
        self._gold = prepare(Gold.of(judged)) if judged else None
        self._asked = _asked(measures)
        self._level = relevance_level
        self._as_in_9 = trec_eval_version == 9
        self._conventions = Conventions(unjudged="skip" if judged_docs_only_flag else "irrelevant")

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Return the value of each measure for each query that has judgments."""
        if not scores or self._gold is None:
            return {}
        _refuse_other_ids(scores)
        run = _with_32_bit_scores(scores) if self._as_in_9 else Run.of(scores)
        match = match_ids(self._gold, run, self._conventions)
        names = [name for one in self._asked for name in _keys(one)]
        topics = Topics(self._gold.query_ids.to_list(), ~match.present, self._level, 0, match.hits)
        columns = [values for one in self._asked for values in self._values(one, topics)]
        rows = np.column_stack(columns).tolist() if columns else [()] * len(topics.ids)
        by_query = dict(zip(topics.ids, rows, strict=True))
        return {
            query: dict(zip(names, by_query[query], strict=True))
            for query in scores
            if query in by_query
        }

    def _values(self, one: Asked, topics: Topics) -> list[Floats]:
        """Return what the original returns: 1 for num_q, 0 for text."""
        if one.entry.over == "text":
            return [np.zeros(len(topics.ids))]
        if self._as_in_9 and one.entry.name in _IN_9:
            return _IN_9[one.entry.name](topics, one.params)
        return one.compute(topics)


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a run: query Q0 item rank score tag."""
    run: dict[str, dict[str, float]] = {}
    for number, line in enumerate(f_run, 1):
        query, _, item, _, score, _ = _fields(line, number, 6)
        _add(run, query, item, _number(float, score, number), number)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read the lines of qrels: query 0 item grade."""
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(f_qrel, 1):
        query, _, item, grade = _fields(line, number, 4)
        _add(qrels, query, item, _number(int, grade, number), number)
    return qrels


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Combine the values of queries: num_ measures by sum, gm_ by exp of the mean, others by mean.

    >>> compute_aggregated_measure("map", [0.5, 1.0])
    0.75
    """
    if measure.startswith("num_"):
        return math.fsum(values)
    mean = math.fsum(values) / len(values) if len(values) else math.nan
    return math.exp(mean) if measure.startswith("gm_") else mean


def _asked(measures: Iterable[str]) -> list[Asked]:
    """Read names as the original does: the cutoffs of one measure come together."""
    given = [measures] if isinstance(measures, str) else list(measures)
    parameters: dict[str, set[str]] = {}
    for name in given:
        if name in supported_nicknames:
            for each in supported_nicknames[name]:
                parameters.setdefault(each, set())
        elif name in supported_measures:
            parameters.setdefault(name, set())
        else:
            base, tail = _split(name)
            parameters.setdefault(base, set()).update(tail.split(","))
    unknown = sorted(parameters.keys() - supported_measures)
    if unknown:
        raise _unsupported(unknown[0])
    asked = []
    for entry in ENTRIES:
        if entry.name in parameters:
            given_here = ",".join(sorted(parameters[entry.name]))
            asked.append(Asked(entry, given_here if given_here and entry.read else None))
    return asked


def _split(name: str) -> tuple[str, str]:
    number = r"[0-9]+(?:\.[0-9]+)?"
    parts = re.fullmatch(rf"(\w+?)[._]({number}(?:,{number})*)", name)
    if parts is None or parts[1] not in supported_measures:
        raise _unsupported(name)
    return parts[1], parts[2]


def _unsupported(name: str) -> MeasureError:
    return MeasureError(
        f"unsupported measure {name}", hint=f"supported: {', '.join(sorted(supported_measures))}"
    )


def _refuse_other_ids(by_query: Mapping[str, Any]) -> None:
    other = next((query for query in by_query if not isinstance(query, str)), None)
    if other is not None:
        raise InputError(f"the query id {other!r} is no text", field="query", hint="give str(id)")


def _keys(one: Asked) -> list[str]:
    """Return the names of lines; the original shows only parameters that have a line each."""
    return one.names if one.entry.several is not None else [one.entry.name]


def _with_32_bit_scores(scores: Mapping[str, Mapping[str, float]]) -> Run:
    """Make a run in which scores tie that are the same 32-bit number."""
    run = Run.of(scores)
    assert run.lists is not None
    given = run.lists.scores
    if given is None:
        return run
    with np.errstate(over="ignore"):
        rounded = given.astype(np.float32).astype(np.float64)
    if np.array_equal(rounded, given):
        return run
    values = iter(rounded.tolist())
    by_query = {
        query: dict(zip(items, values, strict=False))  # takes as many values as there are items
        for query, items in run.lists.by_query.items()
    }
    return Run(DictRun(by_query, rounded))


def _truncated(hits: Hits, point: float, rel: int) -> Ints:
    """Return how many relevant items reach a point of recall, as trec_eval 9 calculates it."""
    needed: Ints = (point * hits.n_relevant(rel) + 0.9).astype(np.int64)
    return needed


def _interpolated(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    return [at_recall(topics.hits, point, topics.level, _truncated) for point in points]


def _eleven_points(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    return [average_at_recall(topics.hits, points, topics.level, _truncated)]


_IN_9: dict[str, Compute] = {"iprec_at_recall": _interpolated, "11pt_avg": _eleven_points}
"""What trec_eval 9 calculates in another way than trec_eval 10."""


def _fields(line: str, number: int, count: int) -> list[str]:
    fields = line.split()
    if len(fields) != count:
        raise InputError(f"{len(fields)} fields where {count} are needed", line=number)
    return fields


def _number(kind: Callable[[str], Number], text: str, line: int) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{text!r} is no number", line=line) from None


def _add(
    table: dict[str, dict[str, Number]], query: str, item: str, value: Number, line: int
) -> None:
    if item in table.setdefault(query, {}):
        raise InputError(f"query {query!r} has {item!r} twice", line=line, field="item")
    table[query][item] = value
