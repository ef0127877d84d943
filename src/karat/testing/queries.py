"""One test per query: `test_search = per_query("gold.jsonl", search, "RR >= 0.5")`.

Other modules are imported only when needed, since pytest loads this package in every test run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.data.gold import Gold
    from karat.data.run import Run
    from karat.errors import KaratError
    from karat.evaluation.gate_checks import Check
    from karat.evaluation.scores import Scores
    from karat.evaluation.thresholds import Rule


def per_query(gold: Any, run: Any, thresholds: Any, **options: Any) -> Callable[..., None]:
    """Return a test for pytest that checks every query of gold on its own.

    Assign it to a name that starts with `test_`. pytest shows one test per query, named after the
    id of the query. All queries are scored once, when the first of these tests starts. A test fails
    with the calculation of the value that misses its threshold, and is skipped if the query has no
    value. With `--junitxml`, the values are properties of each test.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found.
    run : path, table, dict, records, Run or retriever
        What was found.
    thresholds : str, list of str or mapping
        Texts such as "RR >= 0.5", or a mapping such as {"RR": {"min": 0.5}}. Each is compared with
        the value of the query, so max_drop, max_rise and groups are errors.
    **options
        All other options of `karat.evaluate`, such as `conventions` or `top_k`.

    Returns
    -------
    function
        The test, with one parameter set per query.

    Examples
    --------
    >>> gold, run = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}
    >>> test_search = per_query(gold, run, "RR >= 0.5")
    """
    import pytest

    from karat.data.gold import Gold
    from karat.evaluation.thresholds import rules_of
    from karat.measures.presets import preset_named

    rules = rules_of(thresholds, preset_named(options.get("preset")))
    for rule in rules:
        if rule.compares or rule.group is not None:
            raise rule.error(
                f"the threshold {rule} is not about a single query",
                hint="use assert_gate for max_drop, max_rise and groups of queries",
            )
    queries = _Queries(Gold.open(gold), run, rules, options)

    @pytest.mark.parametrize("query_id", queries.gold.query_ids.to_list())
    def test_query(query_id: str, request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        # The fixture record_property would warn about the default format of --junitxml.
        queries.check(query_id, request.node.user_properties)

    return test_query


class _Queries:
    """The values of all queries, which are computed when they are first needed."""

    def __init__(self, gold: Gold, run: Any, rules: list[Rule], options: Mapping[str, Any]) -> None:
        self.gold, self.run, self.rules, self.options = gold, run, rules, options

    def check(self, query_id: str, properties: list[tuple[str, object]]) -> None:
        """Fail the test of a query if a value misses its threshold; record the values."""
        __tracebackhide__ = True
        import pytest

        from karat.errors import KaratError
        from karat.evaluation.gate_checks import Check

        try:
            values = self._values[query_id]
        except KaratError as error:
            raise error.with_traceback(None) from None  # the traceback inside karat does not help
        properties += [(name, value) for name, value in values.items() if value is not None]
        if all(value is None for value in values.values()):
            pytest.skip(f"query {query_id} has no value of {', '.join(values)}")
        checks = [
            Check(rule, rule.holds(value), value, 1)
            for rule in self.rules
            if (value := values[rule.measure]) is not None
        ]
        missed = [check for check in checks if not check.passed]
        if missed:
            # The first line is what pytest shows in its list of failures.
            raise AssertionError("\n".join(self._message(query_id, missed)))

    def _message(self, query_id: str, missed: list[Check]) -> Iterator[str]:
        from karat.evaluation.explanation import explain

        yield f"{query_id}: " + "; ".join(check.reason for check in missed)
        if text := self._texts.get(query_id):
            yield text
        calculation = explain(
            missed[0].rule.measure, gold=self.gold, run=self._run, query=query_id, **self.options
        )
        yield f"\n{calculation}"

    @cached_property
    def _texts(self) -> dict[str, str | None]:
        queries = self.gold.queries
        if "text" not in queries.columns:
            return {}
        return dict(queries.select("query_id", "text").iter_rows())

    @cached_property
    def _scores(self) -> Scores | KaratError:
        """The scores, or the error that prevented them: a retriever is not run once per test."""
        from karat.errors import KaratError
        from karat.evaluation.evaluator import evaluate

        measures = list(dict.fromkeys(rule.measure for rule in self.rules))
        try:
            return evaluate(self.gold, self.run, measures, **self.options)
        except KaratError as error:
            return error

    @cached_property
    def _values(self) -> dict[str, dict[str, float | None]]:
        """The values of each query, by query id and measure."""
        from karat.errors import KaratError

        scores = self._scores
        if isinstance(scores, KaratError):
            raise scores.with_traceback(None)
        rows = scores.per_query.iter_rows(named=True)
        return {row["query_id"]: {name: row[name] for name in scores} for row in rows}

    @cached_property
    def _run(self) -> Run:
        scores = self._scores
        assert not isinstance(scores, Exception)
        assert scores.scored_run is not None
        return scores.scored_run.source.read()
