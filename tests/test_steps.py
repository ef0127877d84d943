"""Long work reports its steps, so that the command line can show bars."""

import pytest

import karat
from karat.demo import build_demo
from karat.steps import step, tracked, watched

GOLD = {f"q{n}": [f"d{n}"] for n in range(6)}


class Recorder:
    """Notes the label and the size of each step, and how much of it was done."""

    def __init__(self):
        self.steps = {}

    def begun(self, label, total):
        self.steps[label] = [total, 0]
        return label

    def moved(self, label, done):
        self.steps[label][1] = done

    def ended(self, label):
        self.steps[label] = tuple(self.steps[label])


@pytest.fixture
def steps():
    recorder = Recorder()
    with watched(recorder):
        yield recorder.steps


def test_items_are_counted_by_their_size(steps):
    assert list(tracked(["ab", "c"], "reading", 3, size=len)) == ["ab", "c"]
    with step("writing"):
        assert steps == {"reading": (3, 3), "writing": [1, 0]}
    assert steps["writing"] == (1, 1)


def test_step_ends_with_an_error(steps):
    with pytest.raises(ValueError, match="wrong"), step("writing"):
        raise ValueError("wrong")
    assert steps == {"writing": (1, 0)}


def test_search_for_similar_texts_counts_texts(steps):
    gold = [{"query_id": "q", "evidence": ["paid in 14 dayz", "sent by pozt"]}]
    karat.locate(gold, {"faq": "It is paid in 14 days. It is sent by post."}, 0.8)
    assert steps["searching for similar texts"] == (2, 2)


def test_reading_and_scoring_count_runs(steps):
    karat.compare(GOLD, {"a": GOLD, "b": GOLD}, "RR")
    assert steps["scoring runs"] == (2, 2)
    two_kinds = [{"query_id": f"q{n}", "relevant": [f"d{n}"], "evidence": ["x"]} for n in range(6)]
    karat.compare(two_kinds, {"a": GOLD, "b": GOLD})
    assert steps["reading runs"] == (2, 2)


def test_report_has_two_steps(steps, tmp_path):
    karat.evaluate(GOLD, GOLD).report(tmp_path / "report.html")
    assert steps["building the report"] == (1, 1)
    assert steps["writing the report"] == (1, 1)


def test_demo_shows_what_it_does_after_the_last_query(tmp_path, monkeypatch):
    monkeypatch.setattr("karat.demo.find_spec", lambda _: None)
    shown = []

    class Watch:
        def begun(self, *_):
            shown.append("queries")

        finished = retried = lambda *_: None

        def began(self, activity):
            shown.append(activity)

    build_demo(tmp_path, Watch())
    assert shown == ["queries", "comparing", "writing the report"]
