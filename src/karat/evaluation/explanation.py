"""Explanations of a measure: in words, and step by step on a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.corpus import Corpus
from karat.data.gold import Gold
from karat.data.run import Run
from karat.engines.local import chunks_of_run
from karat.engines.scoring_options import ScoringOptions
from karat.errors import InputError, RetrieverError
from karat.evaluation.calculation import Calculation, calculation
from karat.evaluation.result import Result
from karat.live.failures import MAX_FAILED, checked_share, too_many_failed
from karat.match.gold_index import PreparedGold, prepare
from karat.match.id_overlap import DocumentIds, document_ids, with_renamed_documents
from karat.match.spans import distinct_gold_spans
from karat.match.text import Matching
from karat.measures import Measure, Plan, parse, score
from karat.measures.name_parser import AnyMeasure
from karat.measures.plan import check_run
from karat.measures.presets import preset_named
from karat.measures.registry import declared

EXAMPLE_GOLD: dict[str, Any] = {
    "query_id": "q",
    "relevant": {"a": 3, "b": 2, "c": 1, "d": 0, "e": 1},
    "spans": [{"doc_id": "d1", "start": 120, "end": 310}, {"doc_id": "d2", "start": 0, "end": 50}],
    "evidence": ["Refunds are paid within 14 days", "to the card you paid with", "in euros"],
}
_PLACES = ("d1", 0), ("d3", 0), ("d1", 150), ("d2", 0), ("d1", 300), ("d3", 150)
_TEXTS = (
    "Orders may be returned within 30 days.",
    "We ship to all of Europe.",
    "Refunds are paid within fourteen days.",
    "Money goes back to the card you paid with.",
    "Refunds are paid within 14 days, to the card you paid with.",
    "We pay in euros.",
)
EXAMPLE_RUN: dict[str, Any] = {
    "query_id": "q",
    "results": [
        {"id": item, "doc_id": document, "start": start, "end": start + 200, "text": text}
        | {"tokens": len(text.split())}
        for item, (document, start), text in zip("bxadcy", _PLACES, _TEXTS, strict=True)
    ],
    "latency_ms": {"total": 123.4, "retrieval": 80.1, "rerank": 43.0},
    "calls": [
        {"stage": "retrieval", "model": "embedder", "prompt_tokens": 12, "price_in": 0.00002},
        {"stage": "rerank", "model": "reranker", "price_per_call": 0.002},
    ],
}
EXAMPLE_CHUNKS = pl.DataFrame(EXAMPLE_RUN["results"])


def explain(
    measure: AnyMeasure,
    *,
    gold: Any = None,
    run: Any = None,
    query: str | int | None = None,
    other: Any = None,
    conventions: Conventions | dict[str, Any] | None = None,
    preset: str | None = None,
    level: str = "item",
    chunks: Any = None,
    corpus: Any = None,
    matching: Matching | None = None,
    top_k: int | None = None,
    score_threshold: float | None = None,
    fail_on_error: float = MAX_FAILED,
) -> Explanation:
    """Say what a measure means; with gold, run and query, how its value comes about there.

    Parameters
    ----------
    measure : str or Measure
        The measure, such as "nDCG@10".
    gold : path, table, dict, records or Gold, default None
        What should be found. Without gold, run and query, the measure is explained by an example.
    run : path, table, dict, records or Run, default None
        What was found.
    query : str or int, default None
        The id of the query whose calculation is shown.
    other : path, table, dict, records or Run, default None
        A second run, shown side by side with what made the difference.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}. What is not given keeps the
        default of the preset, or of `Conventions`.
    preset : str, default None
        Name of a preset: measures and conventions that belong together. In the preset "coverage",
        MRR, MAP, Precision@5 and HitRate@10 are measures of evidence.
    level : "item" or "doc", default "item"
        Score the retrieved items, or the documents that they come from.
    chunks : path, table or {run name: table}, default None
        All chunks the run was made with. They give offsets and texts to runs that have only ids;
        `span.precision_omega` needs them.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and converted if gold or the run count in
        UTF-16 or UTF-8.
    matching : Matching, default None
        When a text covers an evidence text. None means a similarity of at least 0.7.
    top_k : int, default None
        Show only the first `top_k` items of each list. None shows all. With the preset
        "coverage", the environment variable RAG_TOP_K sets it too.
    score_threshold : float, default None
        Remove items with a lower score, before `top_k` applies. With the preset "coverage", the
        environment variable RAG_SCORE_THRESHOLD sets it too.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
        Failed queries are scored as nothing retrieved, and are excluded from latency and cost.

    Examples
    --------
    >>> gold, run = {"q1": {"a": 1, "b": 1}}, {"q1": ["a", "x", "b"]}
    >>> print(explain("AP", gold=gold, run=run, query="q1"))
    AP: Average precision, for query 'q1'
    Formula      (Σ precision at the rank of each relevant item in the top k) / all
                 relevant items
    <BLANKLINE>
    run
    rank  item  grade  precision
    1     a         1     1.0000
    2     x         –          –
    3     b         1     0.6667
    <BLANKLINE>
    sum of precisions = 1.6666666666666665
    divided by = 2
    AP = 0.8333333333333333
    """
    options = ScoringOptions(
        conventions,
        preset,
        level,
        chunks,
        corpus,
        matching,
        top_k,
        score_threshold,
        fail_on_error,
    )
    options.check()
    if preset is not None:
        measure = preset_named(preset).parse(measure)
    if gold is None and run is None and query is None and other is None:
        return _explain_in_words(measure, options)
    needed = {"gold": gold, "run": run, "query": query}
    if lacking := [name for name, part in needed.items() if part is None]:
        raise InputError(
            f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} needed as well",
            hint="a calculation needs gold, run and query",
        )
    return _explain_query(measure, gold, [run] if other is None else [run, other], query, options)


def _explain_in_words(measure: AnyMeasure, options: ScoringOptions) -> Explanation:
    """Explain a measure by an example."""
    if options.top_k is not None or options.score_threshold is not None:
        raise InputError(
            "top_k and score_threshold need data to show",
            field="list",
            hint="give gold, run and query as well",
        )
    if options.level != "item":
        raise InputError(
            "a level needs data to show", field="level", hint="give gold, run and query as well"
        )
    known = declared(measure) if isinstance(measure, str) else None
    if known is not None and known.cutoff == "share":  # words alone need no point of recall
        measure = f"{measure}@0.5"
    gold = Gold.of([EXAMPLE_GOLD])
    plan = _plan(parse(measure), gold, replace(options, chunks=EXAMPLE_CHUNKS), None)
    example = calculation(prepare(gold), Run.of([EXAMPLE_RUN]), plan)
    return _explanation(plan, None, [example])


def _explain_query(
    measure: AnyMeasure,
    gold: Any,
    runs: Sequence[Any],
    query: str | int | None,
    options: ScoringOptions,
) -> Explanation:
    """Explain the values of a query in one run or two."""
    judged = Gold.open(gold)
    checked_share(options.fail_on_error)
    listed = [_lists(run, options) for run in runs]
    if options.corpus is not None:
        documents = Corpus.open(options.corpus)
        judged = judged.in_code_points(documents)
        listed = [run.in_code_points(documents) for run in listed]
    query_id = _known(query, judged)
    parsed = parse(measure)
    plans = [_plan(parsed, judged, options, run.name) for run in listed]
    if parsed.declaration.reads.compares_documents:
        ids = DocumentIds.of(distinct_gold_spans(judged)["doc_id"])
        listed = [
            run.with_results(with_renamed_documents(run.results, ids.renamed(document_ids(run))))
            for run in listed
        ]
    words = plans[0].conventions
    for run, plan in zip(listed, plans, strict=True):
        check_run(run, plan)
        # Such a convention concerns all queries, as it does in evaluate.
        if "error" in (words.missing, words.unknown, words.duplicates):
            score(prepare(judged), run, plan)
    only = prepare(judged.only(query_id))
    calculations = [calculation(only, run, plan) for run, plan in zip(listed, plans, strict=True)]
    if settings := options.list_settings():
        calculations = [
            replace(each, remarks=[*each.remarks, f"list: {settings}"]) for each in calculations
        ]
    return _explanation(plans[0], query_id, calculations)


def _lists(given: Any, options: ScoringOptions) -> Run:
    """Return a run with the lists that are scored; raise an error if too many queries failed."""
    settings = options.list_settings()
    run = Run.open(given).shaped(settings.top_k, settings.score_threshold)
    if problem := too_many_failed(run, options.fail_on_error, run.name):
        raise RetrieverError(problem)
    removes_repeats = options.effective_conventions().duplicates == "set"
    return run.distinct("item_id") if removes_repeats else run


def _plan(measure: Measure, gold: Gold, options: ScoringOptions, run: str | None) -> Plan:
    return Plan.of(
        measure,
        conventions=options.effective_conventions(),
        level=options.level,
        largest_grade=PreparedGold(gold).largest_grade if measure.needs_largest_grade else None,
        chunks=chunks_of_run(options.chunks, run),
        matching=options.matching,
    )


def _explanation(plan: Plan, query: str | None, calculations: list[Calculation]) -> Explanation:
    (measure,) = plan.measures
    return Explanation(measure, query, calculations, plan.conventions, plan.level, plan.rule)


def _known(query: str | int | None, gold: Gold) -> str:
    name = str(query) if isinstance(query, int) and not isinstance(query, bool) else query
    if not isinstance(name, str) or name not in gold.query_ids:
        first = ", ".join(map(repr, gold.query_ids.head(3)))
        raise InputError(f"gold has no query {query!r}", field="query", hint=f"it has {first}, …")
    return name


@dataclass(frozen=True)
class Explanation(Result):
    """What a measure means, with calculations on an example or on data; print it."""

    measure: Measure
    query: str | None
    calculations: list[Calculation]
    conventions: Conventions
    level: str
    matching: str | None = None

    @property
    def difference(self) -> float | None:
        """The second run's value less the first's, where there are two."""
        if len(self.calculations) < 2:
            return None
        first, second = (calculation.value for calculation in self.calculations)
        return None if first is None or second is None else second - first

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        declaration = self.measure.declaration
        whole: dict[str, Any] = {
            "measure": self.measure.name,
            "title": declaration.title,
            "formula": declaration.formula,
            "parameters": {param.name: param.help for param in declaration.params},
            "edges": declaration.edges,
            "differs": declaration.differs,
            "cites": list(declaration.cites),
            "over_queries": declaration.combine,
            "conventions": self.conventions.as_dict(),
            "level": self.level,
            "matching": self.matching,
            "query": self.query,
            "calculations": [
                {
                    "run": calculation.run,
                    "value": calculation.value,
                    "list": calculation.rows,
                    "ideal": calculation.ideal,
                    "missed": calculation.missed,
                    "matches": calculation.matches,
                    "numbers": calculation.numbers,
                    "remarks": calculation.remarks,
                }
                for calculation in self.calculations
            ],
        }
        if len(self.calculations) == 2:
            whole["difference"] = self.difference
        return whole
