"""`explain`: what a measure means, and how its value is calculated for a query."""

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
from karat.match.spans import relevant_spans
from karat.match.text import Matching
from karat.measures import Measure, Plan, parse, score
from karat.measures.name_parser import AnyMeasure
from karat.measures.plan import UsageNames, check_usage
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
    """Explain a measure; with gold, run and query, show how the value of the query is calculated.

    Parameters
    ----------
    measure : str or Measure
        The measure, such as "nDCG@10".
    gold : path, table, dict, records or Gold, default None
        What should be found. Without gold, run and query, an example is shown.
    run : path, table, dict, records or Run, default None
        What was found.
    query : str or int, default None
        The id of the query to show the calculation for, or its whole text.
    other : path, table, dict, records or Run, default None
        A second run, to show side by side with the first and with the items that changed.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}. Unset conventions keep the
        default of the preset, or of `Conventions`.
    preset : str, default None
        Name of a preset: measures and conventions that belong together. In the preset "coverage",
        MRR, MAP, Precision@5 and HitRate@10 are measures of evidence.
    level : "item" or "doc", default "item"
        Whether the retrieved items are scored, or the documents that they come from.
    chunks : path, table or {run name: table}, default None
        All chunks that the run retrieves from. They provide the offsets and texts for runs that
        contain only ids. Required by `span.precision_omega`.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and their offsets are converted if gold or
        the run counts in UTF-16 or UTF-8.
    matching : Matching, default None
        The rule for when a text covers an evidence text. None requires a similarity of at least
        0.7.
    top_k : int, default None
        Show only the first `top_k` items of each list. None shows all. With the preset
        "coverage", the environment variable RAG_TOP_K sets it too.
    score_threshold : float, default None
        Remove items with a lower score, before `top_k` applies. With the preset "coverage", the
        environment variable RAG_SCORE_THRESHOLD sets it too.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
        Failed queries are scored as if nothing was retrieved, and excluded from latency and cost.

    Returns
    -------
    Explanation
        Print it, or use `as_dict`.

    Examples
    --------
    >>> gold, run = {"q1": {"a": 1, "b": 1}}, {"q1": ["a", "x", "b"]}
    >>> print(explain("AP", gold=gold, run=run, query="q1"))
    AP of query q1 = 0.8333
    <BLANKLINE>
    Measure  Average precision
    Formula  (Σ precision at the rank of each relevant item in the top k) / all
             relevant items
    <BLANKLINE>
    run
    rank  item  grade  precision
       1  a         1     1.0000
       2  x         –          –
       3  b         1     0.6667
    <BLANKLINE>
    sum of precisions = 1.6667
    divided by = 2
    AP = 0.8333
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
    _require_data({"gold": gold, "run": run, "query": query})
    return _explain_query(measure, gold, [run] if other is None else [run, other], query, options)


def _require_data(arguments: dict[str, Any]) -> None:
    missing = [name for name, value in arguments.items() if value is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"{' and '.join(missing)} {verb} missing",
            hint="pass gold, run and query to show a calculation, or none of them",
        )


def _explain_in_words(measure: AnyMeasure, options: ScoringOptions) -> Explanation:
    """Explain a measure by an example."""
    if options.top_k is not None or options.score_threshold is not None:
        field = "score_threshold" if options.top_k is None else "top_k"
        raise InputError(
            "requires gold, run and query",
            field=field,
            hint=f"pass gold, run and query, or remove {field}",
        )
    if options.level != "item":
        raise InputError(
            f"{options.level!r} requires gold, run and query",
            field="level",
            hint="pass gold, run and query, or remove level",
        )
    declaration = declared(measure) if isinstance(measure, str) else None
    if declaration is not None and declaration.cutoff == "share":  # any recall level will do
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
    opened_gold = Gold.open(gold)
    checked_share(options.fail_on_error)
    opened_runs = [_open_run(run, options) for run in runs]
    if options.corpus is not None:
        documents = Corpus.open(options.corpus)
        opened_gold = opened_gold.in_code_points(documents)
        opened_runs = [run.in_code_points(documents) for run in opened_runs]
    query_id = _query_id(query, opened_gold)
    parsed = parse(measure)
    plans = [_plan(parsed, opened_gold, options, run.name) for run in opened_runs]
    if parsed.declaration.reads.compares_documents:
        ids = DocumentIds.of(relevant_spans(opened_gold)["doc_id"])
        opened_runs = [
            run.with_results(with_renamed_documents(run.results, ids.renamed(document_ids(run))))
            if "start" in run.results.columns
            else run
            for run in opened_runs
        ]
    for run, plan in zip(opened_runs, plans, strict=True):
        check_usage(UsageNames.of(run), plan)
        _apply_error_conventions(opened_gold, run, plan)
    query_gold = prepare(opened_gold.only(query_id))
    calculations = [
        calculation(query_gold, run, plan) for run, plan in zip(opened_runs, plans, strict=True)
    ]
    if settings := options.list_settings():
        calculations = [
            replace(shown, remarks=[*shown.remarks, f"list: {settings}"]) for shown in calculations
        ]
    return _explanation(plans[0], query_id, calculations, _text(opened_gold, query_id))


def _apply_error_conventions(gold: Gold, run: Run, plan: Plan) -> None:
    """Score all queries if a convention is "error", so that errors are raised as in `evaluate`."""
    conventions = plan.conventions
    if "error" in (conventions.missing, conventions.unknown, conventions.duplicates):
        score(prepare(gold), run, plan)


def _open_run(source: Any, options: ScoringOptions) -> Run:
    """Open a run with its lists as they are scored; raise an error if too many queries failed."""
    settings = options.list_settings()
    run = Run.open(source).shaped(settings.top_k, settings.score_threshold)
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


def _explanation(
    plan: Plan, query: str | None, calculations: list[Calculation], text: str | None = None
) -> Explanation:
    (measure,) = plan.measures
    return Explanation(measure, query, calculations, plan.conventions, plan.level, plan.rule, text)


def _text(gold: Gold, query_id: str) -> str | None:
    """Return the text of a query, if gold has it."""
    queries = gold.queries
    if "text" not in queries.columns:
        return None
    text: str | None = queries.row(by_predicate=pl.col("query_id") == query_id, named=True)["text"]
    return text


def _query_id(query: str | int | None, gold: Gold) -> str:
    query_id = str(query) if isinstance(query, int) and not isinstance(query, bool) else query
    if isinstance(query_id, str) and "text" in gold.queries.columns:
        same = gold.queries.filter(pl.col("text") == query_id)["query_id"]
        if same.len() == 1 and query_id not in gold.query_ids:
            return str(same.item())
    if not isinstance(query_id, str) or query_id not in gold.query_ids:
        examples = ", ".join(map(repr, gold.query_ids.head(3)))
        raise InputError(
            f"gold has no query {query!r}", field="query", hint=f"its queries are {examples}, …"
        )
    return query_id


@dataclass(frozen=True)
class Explanation(Result):
    """The result of `explain`. Print it, or use `as_dict`.

    Parameters
    ----------
    measure : Measure
        The measure that is explained.
    query : str or None
        The id of the query. None if the calculation uses the built-in example.
    calculations : list of Calculation
        The calculation of each run, one or two: ranks, ideal list, missed items and numbers.
    conventions : Conventions
        How corner cases are scored.
    level : "item" or "doc"
        Whether items or their documents are scored.
    matching : str, default None
        When a text covers an evidence text, in words. None if evidence is not measured.
    text : str, default None
        The text of the query. None if gold has none.

    Examples
    --------
    >>> gold, run = {"q1": ["a"]}, {"q1": ["x", "a"]}
    >>> explanation = explain("RR", gold=gold, run=run, query="q1")
    >>> explanation.calculations[0].value
    0.5
    """

    measure: Measure
    query: str | None
    calculations: list[Calculation]
    conventions: Conventions
    level: str
    matching: str | None = None
    text: str | None = None

    @property
    def difference(self) -> float | None:
        """The value of the second run minus the value of the first; None for a single run."""
        if len(self.calculations) < 2:
            return None
        first, second = (calculation.value for calculation in self.calculations)
        return None if first is None or second is None else second - first

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        declaration = self.measure.declaration
        plain: dict[str, Any] = {
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
            "text": self.text,
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
            plain["difference"] = self.difference
        return plain
