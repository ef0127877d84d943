"""The interface of pytrec_eval on the kernels of karat; to use it, change one import.

    from karat.compat import pytrec_eval

Names, keys and values are those of pytrec_eval-terrier, which contains trec_eval 9: scores are
compared as 32-bit numbers, and recall levels are computed as in that version. With
`trec_eval_version=10`, the values are those of trec_eval 10.0. An invalid measure or invalid data
raises an InputError, even if the original raises a TypeError, accepts it, or ends the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np

from karat.arrays import Floats, Ints
from karat.compat.trec_eval.catalogue import ENTRIES, NICKNAMES, ParsedMeasure
from karat.compat.trec_eval.topics import Topics
from karat.compat.trec_eval.values import Compute
from karat.conventions import Conventions
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
    """Evaluates runs against judgments, which are prepared once for any number of runs.

    Parameters
    ----------
    query_relevance : mapping of str to mapping of str to int
        The judgments: `{query: {item: grade}}`.
    measures : iterable of str
        The names of measures in pytrec_eval, such as `map`, `ndcg_cut_5`, `P.1,3` or `official`.
    relevance_level : int, default 1
        The lowest grade that counts as relevant.
    judged_docs_only_flag : bool, default False
        Whether to drop unjudged items.
    trec_eval_version : {9, 10}, default 9
        9 gives the values of pytrec_eval, which contains trec_eval 9. 10 gives those of trec_eval
        10.0, which compares scores as 64-bit numbers, and rounds the recall levels of
        `iprec_at_recall` and `11pt_avg`.

    Examples
    --------
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
                f"must be an integer of at least 1, got {relevance_level!r}",
                field="relevance_level",
                hint="set it to the lowest grade that counts as relevant",
            )
        if trec_eval_version not in (9, 10):
            raise InputError(
                f"must be 9 or 10, got {trec_eval_version!r}",
                field="trec_eval_version",
                hint="use 9, the version in pytrec_eval, if you are not sure",
            )
        _check_query_ids(query_relevance)
        judged = {query: dict(grades) for query, grades in query_relevance.items() if grades}
        self._gold = prepare(Gold.of(judged)) if judged else None
        self._measures = _parse_measures(measures)
        self._level = relevance_level
        self._as_in_9 = trec_eval_version == 9
        self._conventions = Conventions(unjudged="skip" if judged_docs_only_flag else "irrelevant")

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Return the value of each measure for each query that has judgments.

        Parameters
        ----------
        scores : mapping of str to mapping of str to float
            The run: `{query: {item: score}}`.

        Returns
        -------
        dict of str to dict of str to float
            `{query: {measure: value}}`.

        Examples
        --------
        >>> evaluator = RelevanceEvaluator({"q1": {"d1": 1}}, {"recip_rank"})
        >>> evaluator.evaluate({"q1": {"d1": 0.5, "d2": 0.7}})
        {'q1': {'recip_rank': 0.5}}
        """
        if not scores or self._gold is None:
            return {}
        _check_query_ids(scores)
        run = _with_32_bit_scores(scores) if self._as_in_9 else Run.of(scores)
        match = match_ids(self._gold, run, self._conventions)
        names = [name for measure in self._measures for name in _keys(measure)]
        topics = Topics(self._gold.query_ids.to_list(), ~match.present, self._level, 0, match.hits)
        columns = [values for measure in self._measures for values in self._values(measure, topics)]
        rows = np.column_stack(columns).tolist() if columns else [()] * len(topics.ids)
        by_query = dict(zip(topics.ids, rows, strict=True))
        return {
            query: dict(zip(names, by_query[query], strict=True))
            for query in scores
            if query in by_query
        }

    def _values(self, measure: ParsedMeasure, topics: Topics) -> list[Floats]:
        """Return the values as pytrec_eval does: 1 for num_q, 0 for measures with text values."""
        if measure.entry.over == "text":
            return [np.zeros(len(topics.ids))]
        if self._as_in_9 and measure.entry.name in _IN_9:
            return _IN_9[measure.entry.name](topics, measure.params)
        return measure.compute(topics)


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Parse the lines of a run.

    Parameters
    ----------
    f_run : iterable of str
        An open file, or lines of six fields: query, Q0, item, rank, score, tag.

    Returns
    -------
    dict of str to dict of str to float
        `{query: {item: score}}`.

    Examples
    --------
    >>> parse_run(["q1 Q0 d1 1 0.5 tag"])
    {'q1': {'d1': 0.5}}
    """
    run: dict[str, dict[str, float]] = {}
    for number, line in enumerate(f_run, 1):
        query, _, item, _, score, _ = _fields(line, number, 6)
        _add(run, query, item, _number(float, score, number), number)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Parse the lines of qrels.

    Parameters
    ----------
    f_qrel : iterable of str
        An open file, or lines of four fields: query, 0, item, grade.

    Returns
    -------
    dict of str to dict of str to int
        `{query: {item: grade}}`.

    Examples
    --------
    >>> parse_qrel(["q1 0 d1 2"])
    {'q1': {'d1': 2}}
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(f_qrel, 1):
        query, _, item, grade = _fields(line, number, 4)
        _add(qrels, query, item, _number(int, grade, number), number)
    return qrels


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Combine the values of queries.

    Parameters
    ----------
    measure : str
        The name of the measure. Values of `num_` measures are added, values of `gm_` measures are
        combined by exp of the mean, all others by the mean.
    values : list of float
        The values of the queries.

    Examples
    --------
    >>> compute_aggregated_measure("map", [0.5, 1.0])
    0.75
    """
    if measure.startswith("num_"):
        return math.fsum(values)
    mean = math.fsum(values) / len(values) if len(values) else math.nan
    return math.exp(mean) if measure.startswith("gm_") else mean


def _parse_measures(measures: Iterable[str]) -> list[ParsedMeasure]:
    """Parse names as pytrec_eval does: the cutoffs of one measure are collected."""
    parameters: dict[str, set[str]] = {}
    for name in [measures] if isinstance(measures, str) else measures:
        if name in supported_nicknames:
            for measure in supported_nicknames[name]:
                parameters.setdefault(measure, set())
        elif name in supported_measures:
            parameters.setdefault(name, set())
        else:
            base, tail = _split(name)
            parameters.setdefault(base, set()).update(tail.split(","))
    unknown = sorted(parameters.keys() - supported_measures)
    if unknown:
        raise _unsupported(unknown[0])
    parsed = []
    for entry in ENTRIES:
        if entry.name in parameters:
            joined = ",".join(sorted(parameters[entry.name]))
            parsed.append(ParsedMeasure(entry, joined if joined and entry.read else None))
    return parsed


def _split(name: str) -> tuple[str, str]:
    number = r"[0-9]+(?:\.[0-9]+)?"
    parts = re.fullmatch(rf"(\w+?)[._]({number}(?:,{number})*)", name)
    if parts is None or parts[1] not in supported_measures:
        raise _unsupported(name)
    return parts[1], parts[2]


def _unsupported(name: str) -> MeasureError:
    return MeasureError(
        f"unsupported measure {name}",  # the message of pytrec_eval
        hint=f"use one of {', '.join(sorted(supported_measures))}",
    )


def _check_query_ids(by_query: Mapping[str, Any]) -> None:
    for query in by_query:
        if not isinstance(query, str):
            raise InputError(
                f"the id must be text, got {query!r}",
                field="query",
                hint="convert it with str()",
            )


def _keys(measure: ParsedMeasure) -> list[str]:
    """Return the keys of a measure; pytrec_eval shows only parameters that have their own line."""
    return measure.names if measure.entry.line_format is not None else [measure.entry.name]


def _with_32_bit_scores(scores: Mapping[str, Mapping[str, float]]) -> Run:
    """Return a run with scores rounded to 32 bits, so that close scores tie as in trec_eval 9."""
    run = Run.of(scores)
    assert run.lists is not None
    return Run(run.lists.with_32_bit_scores())


def _truncated(hits: Hits, point: float, rel: int) -> Ints:
    """Return how many relevant items reach a recall level, as trec_eval 9 computes it."""
    needed: Ints = (point * hits.n_relevant(rel) + 0.9).astype(np.int64)
    return needed


def _interpolated(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    return [at_recall(topics.hits, point, topics.level, _truncated) for point in points]


def _eleven_points(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    return [average_at_recall(topics.hits, points, topics.level, _truncated)]


_IN_9: dict[str, Compute] = {"iprec_at_recall": _interpolated, "11pt_avg": _eleven_points}
"""The measures that trec_eval 9 computes differently from trec_eval 10."""


def _fields(line: str, number: int, count: int) -> list[str]:
    fields = line.split()
    if len(fields) != count:
        raise InputError(f"expected {count} fields, got {len(fields)}", line=number)
    return fields


def _number(kind: Callable[[str], Number], text: str, line: int) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"expected a number, got {text!r}", line=line) from None


def _add(
    table: dict[str, dict[str, Number]], query: str, item: str, value: Number, line: int
) -> None:
    if item in table.setdefault(query, {}):
        raise InputError(f"{item!r} is listed twice for query {query!r}", line=line, field="item")
    table[query][item] = value
