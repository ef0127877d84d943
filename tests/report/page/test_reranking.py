"""The section on reranking: its numbers, and the field by which queries are filtered."""

import karat
from karat.evaluation.candidate_comparer import NONE, STAGES
from karat.report.page.build import build_page
from karat.report.page.sections.reranking import reranking_view
from karat.report.page.templates import render
from support.markup import Reader

NAME = "<b>one</b>"
LINES = {
    "q1": {"candidates": ["x", "a"], "results": ["a", "x"]},
    "q2": {"candidates": ["a", "x"], "results": ["x", "a"]},
    "q3": {"candidates": ["x", "y"], "results": ["x", "y"]},
    "q4": {"candidates": ["y", "a"], "results": []},
    "q5": {"results": ["a"]},
}
GOLD = [{"query_id": query, "relevant": ["a"], "kind": "some"} for query in LINES]


def scores_of(*names):
    runs = {
        name: karat.Run.of([{"query_id": query, **line} for query, line in LINES.items()])
        for name in names
    }
    return karat.Evaluator(GOLD, ["nDCG@1"]).all(runs)


def test_every_number_is_that_of_the_result():
    (scores,) = scores_of(NAME)
    view = reranking_view(build_page([scores]))
    reranking = scores.reranking()
    (run,) = view.runs
    assert [cell.text for cell in run.stages] == ["1", "1", "1", "1"]
    assert view.stages == (*STAGES, NONE)
    assert (run.before, run.after, run.best) == ("0.250", "0.250", "0.750")
    assert run.queries == "4"
    depths = [(row.depth, *row.cells[0]) for row in view.depths]
    assert depths == [
        (f"{depth}", f"{recall:.3f}", f"{best:.3f}")
        for depth, recall, best in reranking.depths.iter_rows()
    ]


def test_a_field_shows_which_stage_lost_each_query():
    page = build_page(scores_of(NAME))
    assert page.queries.fields.columns == ["kind", "lost by"]
    lost = page.queries.fields["lost by"].to_list()
    assert lost == ["none", "rerank", "candidates", "cut", None]
    assert not any("lost by" in sheet.group_fields for sheet in page.groups)
    cells = reranking_view(page).runs[0].stages
    assert [cell.show["value"] for cell in cells] == ["candidates", "rerank", "cut", "none"]
    assert {cell.show["field"] for cell in cells} == {"lost by"}


def test_each_of_several_runs_has_a_field():
    page = build_page(scores_of("one", "two"))
    assert page.queries.fields.columns == ["kind", "lost by (one)", "lost by (two)"]


def test_names_are_escaped():
    markup = Reader(render("reranking.html", view=reranking_view(build_page(scores_of(NAME)))))
    assert NAME in markup.text
    assert "b" not in [name for name, _ in markup.elements]


def test_pages_of_runs_without_candidates_have_no_section():
    scores = karat.evaluate(GOLD, {"q1": ["a"]}, "nDCG@1")
    assert reranking_view(build_page([scores])) is None
