"""What karat makes of an input, held against the plain readers and the oracles of measures."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import karat
from fuzz import plain_readers as plain
from fuzz.inputs import PAIRED, Input
from fuzz.plain_readers import PlainGold, PlainItem, PlainRun, RefusedError, UncheckedError
from karat.cli import main as karat_main
from karat.cli.project import check_settings
from karat.config import Config
from karat.data.data_file import DataFile
from karat.data.formats.registry import detect, sources
from karat.data.queries import read_queries
from karat.errors import KaratError, KaratWarning
from oracles import evidence as evidence_oracle
from oracles import rank as rank_oracle
from oracles import spans as span_oracle

MEASURES = {"RR": ("RR", None), "P@2": ("P", 2), "R@3": ("R", 3), "AP": ("AP", None)}
MEASURES |= {"nDCG@5": ("nDCG", 5)}
SPAN_MEASURES = ("span.recall", "span.precision", "span.iou")
EVIDENCE_MEASURES = ("evidence.coverage", "evidence.RR")
LONGEST_MESSAGE = 2000
COMMAND_SHARE = 0.15

Values = dict[str, dict[str, float | None]]
"""The values of the queries, by measure."""


@dataclass
class Outcome:
    """What happened to one input."""

    accepted: bool = False
    checked: int = 0
    """How many numbers were compared."""
    commands: int = 0
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    """The class of a fault, what identifies it, and the details."""
    disagreement: tuple[str, str] | None = None
    """Who reads the input while the other refuses it, and why."""
    refusal: str = ""
    """Where karat refused the input."""

    def fault(self, kind: str, what: str, detail: Any = "") -> None:
        self.faults.append((kind, what, str(detail)[:2000]))

    def same(self, what: str, got: Any, expected: Any) -> None:
        """Compare something that was read."""
        self.checked += 1
        if got != expected:
            self.fault("wrong", what, f"karat: {str(got)[:900]}\nplain: {str(expected)[:900]}")

    def close(self, what: str, got: float | None, expected: float | None) -> None:
        """Compare a value of a measure."""
        self.checked += 1
        if got is None or expected is None:
            equal = got is expected
        else:
            equal = math.isclose(got, expected, rel_tol=1e-12, abs_tol=1e-12)
        if not equal:
            self.fault("wrong", what, f"karat: {got!r}\nplain: {expected!r}")


def check(made: Input, folder: Path, stage: Callable[[str], None] = lambda name: None) -> Outcome:
    """Read an input with karat and plainly, and compare; `stage` is told what comes next."""
    outcome = Outcome()
    path = made.write(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checker = paired if made.format in PAIRED else CHECKERS[made.format]
        checker(made, path, outcome, stage)
    for warning in caught:
        if not issubclass(warning.category, KaratWarning):
            outcome.fault("warning", f"{warning.category.__name__}: {warning.message}")
        else:
            readable(outcome, "a warning", str(warning.message))
    return outcome


def guarded(outcome: Outcome, call: Callable[[], Any]) -> Any:
    """Return what a call gives, or None if it is refused; anything but a KaratError is a fault."""
    try:
        return call()
    except KaratError as error:
        outcome.refusal = outcome.refusal or signature(error)
        readable(outcome, signature(error), str(error))
        return None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of Polars are no Exception
        outcome.fault("traceback", signature(error), traceback.format_exc()[-1500:])
        return None


def signature(error: BaseException) -> str:
    """Return the type of an exception and the last place in karat that it passed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/karat/" in f.filename]
    place = frames[-1] if frames else None
    name = f"{Path(place.filename).name}:{place.lineno} {place.name}" if place else "outside"
    return f"{type(error).__name__} at {name}"


def readable(outcome: Outcome, what: str, message: str) -> None:
    """Check that a message is short and holds nothing that moves the cursor."""
    if len(message) > LONGEST_MESSAGE:
        outcome.fault("message", f"too long: {what}", f"{len(message)} characters")
    odd = {c for c in message if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
    if odd:
        outcome.fault("message", f"control characters: {what}", repr(message[:500]))


def plainly(outcome: Outcome, accepted: bool, read: Callable[[], Any]) -> Any:
    """Return what a plain reader gives; note where karat and the plain reader disagree."""
    try:
        result = read()
    except UncheckedError:
        return None
    except RefusedError as error:
        if accepted:
            outcome.disagreement = ("karat reads, plain refuses", str(error)[:80])
        return None
    if not accepted:
        outcome.disagreement = ("plain reads, karat refuses", outcome.refusal)
    return result


# Gold and runs.


def paired(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    read: Any = karat.Gold.read if made.kind == "gold" else karat.Run.read
    stage("read")
    result = guarded(outcome, lambda: touched(read(path, format=made.named)))
    outcome.accepted = result is not None
    name, file = made.named, path
    with contextlib.suppress(KaratError):
        file = sources(path)[0].path
        name = name or detect(DataFile(file)).name
    stage("plain")
    expected = None
    if name is not None and not outcome.faults:
        reader: Any = plain.read_gold if made.kind == "gold" else plain.read_run
        expected = plainly(outcome, outcome.accepted, lambda: reader(file, name))
    if result is not None and expected is None and made.undamaged and outcome.disagreement:
        same_size(made, name, outcome, result)
    values: Values | None = None
    if result is not None and expected is not None:
        compare: Any = compare_gold if made.kind == "gold" else compare_run
        compare(outcome, result, expected)
        gold = expected if made.kind == "gold" else gold_of(made.data.grades)
        run = expected if made.kind == "run" else run_of(made.data.scores)
        stage("evaluate")
        other: Any = made.data.scores if made.kind == "gold" else made.data.grades
        values = evaluated(outcome, result, other, made.kind, gold, run)
    if made.draw.random() < COMMAND_SHARE:
        stage("command")
        commands(made, path, outcome, result, values)


def same_size(made: Input, name: str | None, outcome: Outcome, result: Any) -> None:
    """Check that no row is lost from a damaged file that PyArrow refuses and Polars reads."""
    with contextlib.suppress(RefusedError):
        table = plain.arrow_table(made.undamaged or b"", str(name))
        if {*plain.CONTEXTS, "contexts", *plain.LISTS, *plain.RESULTS} & set(table.names):
            return  # one row per query, and not per result
        if made.kind == "gold":
            sizes = (result.judgments, result.spans, result.evidence)
            rows = sum(0 if frame is None else frame.height for frame in sizes)
        else:
            rows = result.results.height
        outcome.same("rows of a damaged file", rows, len(table.rows))


def touched(result: Any) -> Any:
    """Build the tables that are built when they are first needed."""
    if isinstance(result, karat.Gold):
        _ = result.judgments, result.queries
    else:
        _ = result.results, result.query_ids
    return result


def gold_of(grades: dict[str, dict[str, int]]) -> PlainGold:
    rows = [(query, item, grade) for query in grades for item, grade in grades[query].items()]
    return PlainGold(rows, set(grades), queries=set(grades))


def run_of(scores: dict[str, dict[str, float]]) -> PlainRun:
    lists = {
        query: plain.by_score([PlainItem(item, score) for item, score in items.items()])
        for query, items in scores.items()
    }
    return PlainRun(lists)


def compare_gold(outcome: Outcome, gold: karat.Gold, expected: PlainGold) -> None:
    judgments = gold.judgments.select("query_id", "item_id", "grade").rows()
    outcome.same("judgments", sorted(judgments), sorted(expected.judgments))
    outcome.same("judged queries", set(gold.query_ids_judged), expected.judged)
    outcome.same("queries", set(gold.query_ids), expected.queries)
    spans = (
        [] if gold.spans is None else gold.spans.select("query_id", "doc_id", "start", "end").rows()
    )
    outcome.same("spans", sorted(spans), sorted(expected.spans))
    evidence = [] if gold.evidence is None else gold.evidence.rows()
    outcome.same("evidence", evidence, expected.evidence)
    if expected.texts is not None:
        known = gold.queries.to_dicts()
        texts = {row["query_id"]: row.get("text") for row in known}
        given = {query: text for query, text in expected.texts.items() if text is not None}
        outcome.same("texts of queries", {q: texts.get(q) for q in given}, given)


def compare_run(outcome: Outcome, run: karat.Run, expected: PlainRun) -> None:
    compare_lists(outcome, "results", run, expected.lists)
    if run.candidates is None:
        outcome.same("candidates", {}, expected.candidates)
    else:
        compare_lists(outcome, "candidates", run.candidates, expected.candidates)
    timings = [] if run.timings is None else run.timings.rows()
    outcome.same("timings", timings, expected.timings)
    failed = set() if run.errors is None else set(run.errors["query_id"])
    outcome.same("failed queries", failed, expected.failed)


def compare_lists(
    outcome: Outcome, name: str, run: karat.Run, expected: dict[str, list[PlainItem]]
) -> None:
    lists: dict[str, list[tuple[Any, ...]]] = {query: [] for query in run.query_ids}
    for row in run.results.to_dicts():
        place = (row.get("doc_id") or None,) if row.get("start") is not None else (None,)
        places = (*place, row.get("start"), row.get("end"))
        details = (row.get("score"), *places, row.get("text") or None)  # CSV has no null
        lists[row["query_id"]].append((row.get("item_id"), *details))
    wanted = {
        query: [
            (
                i.id,
                i.score,
                (i.start is not None and i.doc_id) or None,
                i.start,
                i.end,
                i.text or None,
            )
            for i in items
        ]
        for query, items in expected.items()
    }
    for query, items in wanted.items():
        if all(item[3] is None for item in items):  # an end without a start means nothing
            wanted[query] = [(*item[:4], None, item[5]) for item in items]
            lists[query] = [(*item[:4], None, item[5]) for item in lists.get(query, [])]
    outcome.same(name, lists, wanted)


def evaluated(
    outcome: Outcome, result: Any, other: Any, kind: str, gold: PlainGold, run: PlainRun
) -> Values | None:
    """Evaluate, and compare every value; return the plain values of the rank measures."""
    inputs = (result, other) if kind == "gold" else (other, result)
    identified = all(item.id is not None for items in run.lists.values() for item in items)
    values = None
    if gold.judged and identified and any(run.lists.values()):
        values = rank_values(gold, run)
        compare_scores(outcome, inputs, list(MEASURES), values)
    if gold.spans and any(i.start is not None for items in run.lists.values() for i in items):
        expected = span_values(gold, run)
        if expected:
            compare_scores(outcome, inputs, list(expected), expected)
    if gold.evidence and any(i.text is not None for items in run.lists.values() for i in items):
        expected = evidence_values(gold, run)
        if expected:
            compare_scores(outcome, inputs, list(expected), expected)
    return values


def compare_scores(outcome: Outcome, inputs: Any, measures: list[str], expected: Values) -> None:
    scores = guarded(outcome, lambda: karat.evaluate(*inputs, measures, fail_on_error=1.0))
    if scores is None:
        return
    per_query = {row["query_id"]: row for row in scores.per_query.to_dicts()}
    for name in measures:
        known = {query: value for query, value in expected[name].items() if value is not None}
        for query, value in known.items():
            outcome.close(name, per_query.get(query, {}).get(name), value)
        mean = math.fsum(known.values()) / len(known) if known else None
        outcome.close(f"mean of {name}", scores[name], mean)


def rank_values(
    gold: PlainGold, run: PlainRun, conventions: dict[str, str] | None = None
) -> Values:
    grades: dict[str, dict[str, int]] = {query: {} for query in gold.judged}
    for query, item, grade in gold.judgments:
        grades[query][item] = max(grade, grades[query].get(item, grade))
    values: Values = {}
    for name, (measure, k) in MEASURES.items():
        values[name] = {}
        for query, judged in grades.items():
            items = run.lists.get(query)
            listed = None if items is None else [str(item.id) for item in items]
            values[name][query] = rank_oracle.value(
                measure, listed, judged, k, conventions=conventions
            )
    return values


def span_values(gold: PlainGold, run: PlainRun) -> Values | None:
    """Return the values of span measures, if the spans are short and their documents plain."""
    listed = {
        query: [(i.doc_id, i.start, i.end) for i in items] for query, items in run.lists.items()
    }
    every = [span for spans in listed.values() for span in spans]
    every += [span[1:] for span in gold.spans]
    if any(None in span or "/" in span[0] or span[2] - span[1] > 3000 for span in every):
        return None
    wanted: dict[str, list[Any]] = {}
    for query, *span in gold.spans:
        wanted.setdefault(query, []).append(tuple(span))
    return {
        f"{name}@3": {
            query: span_oracle.value(name, listed.get(query), spans, 3)
            for query, spans in wanted.items()
        }
        for name in SPAN_MEASURES
    }


def evidence_values(gold: PlainGold, run: PlainRun) -> Values | None:
    """Return the values of evidence measures, if all texts are short."""
    listed = {query: [item.text for item in items] for query, items in run.lists.items()}
    every = [text for texts in listed.values() for text in texts]
    if None in every or any(len(text or "") > 500 for text in every):
        return None
    if any(len(text) > 500 for _, text in gold.evidence):
        return None
    wanted: dict[str, list[str]] = {}
    for query, text in gold.evidence:
        wanted.setdefault(query, []).append(text)
    return {
        f"{name}@3": {
            query: evidence_oracle.value(name, listed.get(query), texts, 3)
            for query, texts in wanted.items()
        }
        for name in EVIDENCE_MEASURES
    }


# Commands, in this process.


def command(outcome: Outcome, *words: Any, codes: tuple[int, ...] = (0, 2)) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed.

    Exit code 1 means "no" for validate and gate, and nothing for any other command.
    """
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    argv = sys.argv
    sys.argv = ["karat", *map(str, words)]
    code: Any = 0
    outcome.commands += 1
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            karat_main.main()
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException as error:
        outcome.fault(
            "traceback", f"{words[0]}: {signature(error)}", traceback.format_exc()[-1500:]
        )
        return -1, ""
    finally:
        sys.argv = argv
    out.flush()
    printed = out.buffer.getvalue().decode("utf-8", "replace")
    if "Traceback" in err.getvalue():
        outcome.fault("traceback", f"{words[0]}: on stderr", err.getvalue()[-1500:])
    elif code not in codes:
        outcome.fault("exit code", f"{words[0]}: {code}", err.getvalue()[:500])
    for line in err.getvalue().split("\n"):
        readable(outcome, f"{words[0]}, stderr", line)
        if line.startswith("error: ") and not outcome.refusal:
            outcome.refusal = line.rpartition(": ")[2][:80]
    return code, printed


def commands(made: Input, path: Path, outcome: Outcome, result: Any, values: Values | None) -> None:
    """Give the input to one command, and compare what it prints."""
    other = path.parent / "partner.json"
    content = made.data.scores if made.kind == "gold" else made.data.grades
    other.write_text(json.dumps(content))
    gold, run = (path, other) if made.kind == "gold" else (other, path)
    flag = "--gold-format" if made.kind == "gold" else "--format"
    named = [] if made.named is None else [flag, made.named]
    chosen = made.draw.choice(["eval", "eval", "convert", "validate", "gate", "explain", "compare"])
    if chosen == "eval":
        words = [
            "eval",
            gold,
            run,
            "-m",
            ",".join(MEASURES),
            "--json",
            "--fail-on-error",
            1,
            *named,
        ]
        code, printed = command(outcome, *words)
        if code == 0 and values is not None:
            compare_printed(outcome, printed, values)
    elif chosen == "convert":
        convert(made, path, outcome, result)
    elif chosen == "validate":
        command(outcome, "validate", gold, *(named if made.kind == "gold" else []), codes=(0, 1, 2))
    elif chosen == "gate":
        words = ["gate", gold, run, "--require", "RR >= 0.5", "--fail-on-error", 1, *named]
        code, _ = command(outcome, *words, codes=(0, 1, 2))
        known = [value for value in (values or {}).get("RR", {}).values() if value is not None]
        if known and code in (0, 1):
            outcome.same("verdict", code == 0, math.fsum(known) / len(known) >= 0.5)
    elif chosen == "explain":
        query = next(iter(made.data.queries))
        command(outcome, "explain", "RR", "--gold", gold, "--run", run, "--query", query, *named)
    else:
        words = ["compare", gold, run, other if made.kind == "gold" else run, "-m", "RR", "--json"]
        command(outcome, *words, "--fail-on-error", 1, *named)
    if result is None and chosen == "eval" and outcome.faults == [] and code != 2:
        outcome.fault("exit code", f"eval: {code} for what Python refuses")


def compare_printed(outcome: Outcome, printed: str, values: Values) -> None:
    measures = json.loads(printed)["runs"][0]["measures"]
    for name, by_query in values.items():
        known = [value for value in by_query.values() if value is not None]
        mean = math.fsum(known) / len(known) if known else None
        outcome.close(f"printed {name}", measures[name]["value"], mean)


def convert(made: Input, path: Path, outcome: Outcome, result: Any) -> None:
    """Convert to another format, read that, and compare."""
    name = made.draw.choice(["jsonl", "jsonl", *(other for other in PAIRED if other != "jsonl")])
    target = path.parent / "converted"
    named = [] if made.named is None else ["--from", made.named]
    words = ["convert", path, target, "--kind", made.kind, "--to", name, *named]
    code, _ = command(outcome, *words)
    if code != 0 or result is None:
        return
    if made.kind == "gold" and too_large(result):
        return
    read: Any = karat.Gold.read if made.kind == "gold" else karat.Run.read
    again = guarded(outcome, lambda: read(target, format=None if name == "beir" else name))
    content = judgments_of if made.kind == "gold" else ids_of
    before: Any = content(result)
    if again is None:
        if before:
            outcome.fault("wrong", f"what convert wrote as {name} cannot be read", outcome.refusal)
        return
    after: Any = content(again)
    if name == "ragas" and made.kind == "gold":  # which has no grades, and judges evidence texts
        if not before:
            return
        before, after = ({k for k, grade in d.items() if grade > 0} for d in (before, after))
    outcome.same(f"converted to {name}", after, before)
    if name == "jsonl" and made.kind == "gold":
        for table in ("spans", "evidence"):
            rows = [getattr(gold, table) for gold in (again, result)]
            held = [[] if frame is None else sorted(frame.rows(), key=repr) for frame in rows]
            outcome.same(f"{table} converted to {name}", *held)


def too_large(gold: karat.Gold) -> bool:
    """Return whether a grade is so large that JSON and every measure refuse it."""
    grades = gold.judgments["grade"].to_list()
    grades += [] if gold.spans is None else gold.spans["grade"].to_list()
    return any(abs(grade) >= plain.LARGEST_GRADE for grade in grades)


def judgments_of(gold: karat.Gold) -> dict[tuple[str, str], int]:
    highest: dict[tuple[str, str], int] = {}
    for query, item, grade in gold.judgments.select("query_id", "item_id", "grade").rows():
        highest[query, item] = max(grade, highest.get((query, item), grade))
    return highest


def ids_of(run: karat.Run) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for row in run.results.to_dicts():
        lists.setdefault(row["query_id"], []).append(row.get("item_id"))
    return lists


# Everything else.


def trec_eval(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    valid = path.parent / ("run-valid" if made.kind == "gold" else "gold-valid")
    gold, run = (path, valid) if made.kind == "gold" else (valid, path)
    names = {
        "recip_rank": "RR",
        "P_2": "P@2",
        "recall_3": "R@3",
        "map": "AP",
        "ndcg_cut_5": "nDCG@5",
    }
    flags = ["-m", "recip_rank", "-m", "P.2", "-m", "recall.3", "-m", "map", "-m", "ndcg_cut.5"]
    stage("command")
    code, printed = command(outcome, "trec_eval", "-q", "-c", *flags, gold, run)
    outcome.accepted = code == 0
    stage("plain")

    def both() -> tuple[PlainGold, PlainRun]:
        judgments, lists = plain.read_gold(gold, "trec"), plain.read_run(run, "trec")
        if len({row[:2] for row in judgments.judgments}) < len(judgments.judgments):
            plain.refuse("an item is judged twice")
        for query in judgments.judged & set(lists.lists):
            if len({item.id for item in lists.lists[query]}) < len(lists.lists[query]):
                plain.refuse("an item is twice in a list")
        return judgments, lists

    read = plainly(outcome, outcome.accepted, both)
    if read is None or not outcome.accepted:
        return
    values = rank_values(read[0], read[1])
    common = read[0].judged & set(read[1].lists)
    lines = [line.split("\t") for line in printed.splitlines()]
    found = {(f[0].strip(), f[1]): f[2] for f in lines if len(f) == 3}
    for printed_name, name in names.items():
        for query in common:
            got = found.get((printed_name, query), "nan")
            outcome.checked += 1
            if not abs(float(got) - (values[name][query] or 0.0)) < 5.1e-5:
                outcome.fault("wrong", f"trec_eval {name}", f"{got}, plain: {values[name][query]}")


def scores(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    stage("read")
    result = guarded(outcome, lambda: karat.Scores.read(path))
    outcome.accepted = result is not None
    stage("plain")
    if result is not None:  # much that is in the file is checked by karat alone
        expected = plainly(outcome, True, lambda: plain.read_saved_scores(path))
        if expected is not None:
            compare_saved(outcome, result, expected)
    if made.draw.random() < 0.3:
        stage("command")
        gold, run = path.parent / "gold.json", path.parent / "run.json"
        gold.write_text(json.dumps(made.data.grades))
        run.write_text(json.dumps(made.data.scores))
        words = ["gate", gold, run, "--require", "RR max_drop 0.1", "--baseline", path]
        code, _ = command(outcome, *words, codes=(0, 1, 2))
        if result is None and code in (0, 1):
            outcome.fault("exit code", f"gate: {code} with scores that Python refuses")


def compare_saved(outcome: Outcome, result: Any, expected: Values) -> None:
    per_query = {row["query_id"]: row for row in result.per_query.to_dicts()}
    outcome.same("saved queries", sorted(result.per_query["query_id"]), sorted(expected))
    names = {name for row in expected.values() for name in row}
    for name in names:
        if name not in result.per_query.columns:  # written under another of its names
            continue
        known = [row[name] for row in expected.values() if row[name] is not None]
        for query, row in expected.items():
            outcome.close(f"saved {name}", per_query.get(query, {}).get(name), row[name])
        mean = math.fsum(known) / len(known) if known else None
        outcome.close(f"mean of saved {name}", result[name], mean)


def chunks(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    stage("read")
    result = guarded(outcome, lambda: karat.Chunks.read(path))
    outcome.accepted = result is not None
    stage("plain")
    expected = plainly(outcome, outcome.accepted, lambda: plain.read_chunks(path))
    if result is not None and expected is not None:
        names = [name for name in ("item_id", "doc_id", "start", "end") if name in result.frame]
        outcome.same("chunks", result.frame.select(names).rows(), [chunk[:4] for chunk in expected])
        if "text" in result.frame:
            texts = [text or None for text in result.frame["text"]]  # CSV has no null
            outcome.same("texts", texts, [chunk[4] or None for chunk in expected])


def corpus(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    stage("read")
    result = guarded(outcome, lambda: karat.Corpus.read(path))
    outcome.accepted = result is not None
    stage("plain")
    expected = plainly(outcome, outcome.accepted, lambda: plain.read_corpus(path))
    if result is not None and expected is not None:
        outcome.same("documents", result.documents.select("doc_id", "text").rows(), expected)


def queries(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    stage("read")
    result = guarded(outcome, lambda: read_queries(path))
    outcome.accepted = result is not None
    stage("plain")
    expected = plainly(outcome, outcome.accepted, lambda: plain.read_queries(path))
    if result is not None and expected is not None:
        texts = {row["query_id"]: row.get("text") or None for row in result.to_dicts()}
        wanted = {query: text or None for query, text in expected.items()}  # CSV has no null
        outcome.same("queries", texts, wanted)


def toml(made: Input, path: Path, outcome: Outcome, stage: Callable[[str], None]) -> None:
    def read() -> Config:
        config = Config.read(path)
        check_settings(config)
        return config

    stage("read")
    result = guarded(outcome, read)
    outcome.accepted = result is not None
    stage("plain")
    expected = plainly(outcome, outcome.accepted, lambda: plain.read_settings(path))
    if result is not None and expected is not None:
        outcome.same("conventions", dict(result.conventions), expected.get("conventions", {}))
        outcome.same("thresholds", repr(result.gate), repr(expected.get("gate", {})))
    if made.draw.random() > 0.5:
        return
    stage("command")
    gold, run = path.parent / "gold.json", path.parent / "run.json"
    gold.write_text(json.dumps(made.data.grades))
    run.write_text(json.dumps(made.data.scores))
    code, _ = command(outcome, "gate", gold, run, "-c", path, codes=(0, 1, 2))
    if result is None and code in (0, 1):
        outcome.fault("exit code", f"gate: {code} with settings that Python refuses")
    elif expected is not None and code in (0, 1):
        passed = verdict(made, expected)
        if passed is not None:
            outcome.same("verdict", code == 0, passed)


def verdict(made: Input, settings: dict[str, Any]) -> bool | None:
    """Return whether a run passes; None if the thresholds are not of the simplest kinds."""
    words = settings.get("conventions", {})
    values = rank_values(gold_of(made.data.grades), run_of(made.data.scores), words)
    kept = []
    for name, threshold in settings.get("gate", {}).items():
        known = [value for value in values.get(name, {}).values() if value is not None]
        if isinstance(threshold, str):
            sign, _, limit = threshold.partition(" ")
        elif isinstance(threshold, dict) and list(threshold) == ["min"]:
            sign, limit = ">=", str(threshold["min"])
        else:
            return None
        if not known or sign not in (">=", "<=") or not plain.DECIMAL.fullmatch(limit):
            return None
        mean, least = math.fsum(known) / len(known), float(limit)
        kept.append(mean >= least if sign == ">=" else mean <= least)
    return all(kept) if kept else None


CHECKERS: dict[str, Callable[[Input, Path, Outcome, Callable[[str], None]], None]] = {
    "scores": scores,
    "chunks": chunks,
    "corpus": corpus,
    "toml": toml,
    "queries": queries,
    "trec_eval": trec_eval,
}


def tally(counts: Counter[str], outcome: Outcome) -> None:
    """Add an outcome to the counts of its format."""
    counts["tried"] += 1
    counts["accepted" if outcome.accepted else "refused"] += 1
    counts["checked"] += outcome.checked
    counts["commands"] += outcome.commands
    for kind in {kind for kind, _, _ in outcome.faults}:
        counts[kind] += 1
    if outcome.disagreement is not None:
        damaged = outcome.disagreement[1].startswith("PyArrow")
        counts["karat reads, PyArrow refuses" if damaged else outcome.disagreement[0]] += 1
