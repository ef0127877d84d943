"""The demo: some retrievers over the handbook of karat, scored, compared and reported.

It needs no network and no keys. Everything that it computes is written to one folder: a copy of the
pages, gold, the runs, their scores and the report. The folder also has the example files of the
documentation, `faq/`, and a list of the files that the demo wrote. Files that are not on this list,
or were changed since, are never replaced.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

import polars as pl

from karat.config import KARAT
from karat.data.gold import Gold
from karat.errors import InputError
from karat.evaluation.comparison import Comparison, compare
from karat.evaluation.scores import Scores
from karat.files import writing
from karat.live.protocol import JournalLine, Query
from karat.live.retrieve import retrieve
from karat.live.retrievers import BM25, Dense, Hybrid
from karat.live.retrievers.embedders import WORDLLAMA
from karat.live.runner import Progress
from karat.measures.scoring import UNANSWERABLE_RETURNED
from karat.report import score_files
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    Section,
    Table,
    TextLines,
)
from karat.report.page.scripts import REQUIRED
from karat.report.sheet import Sheet
from karat.stats.power import ALPHA
from karat.steps import watched

ANSWER_TEXT, PAGES, TIME = "span.recall@2000c", "R@5", "latency.p50"
MEASURES = (ANSWER_TEXT, "evidence.coverage@5", PAGES, "nDCG@10", TIME)
"""The first one decides. At equal k, larger chunks would win; equal characters are fair."""
TOP_K = 20
_WARMUP = 5  # queries before latencies count
_OWN_RUN = "mine.jsonl"
"""The run of the reader: no file of the demo."""
_OWN_FILES = ".karat-demo.json"
_RETRIEVERS = {"bm25": BM25, "dense": Dense, "hybrid": Hybrid}


class Watch(Progress, Protocol):
    """Shows the progress of the demo."""

    def began(self, activity: str) -> None:
        """Show what is done after the last query."""


@dataclass(frozen=True)
class Setup:
    """One retriever of the demo."""

    kind: Literal["bm25", "dense", "hybrid"]
    chunker: str
    chunk_size: int
    words: str
    """How it searches and splits pages, for readers who know neither."""

    @property
    def name(self) -> str:
        """The name of the run."""
        return f"bm25-{self.chunker}" if self.kind == "bm25" else self.kind

    def retriever(self, pages: Path) -> Any:
        """Build the index over a folder of pages."""
        options = {"chunker": self.chunker, "chunk_size": self.chunk_size, "cache": False}
        return _RETRIEVERS[self.kind](str(pages), **options)


# Three ways to split pages with the same search, and three searches over the same chunks.
SETUPS = (
    Setup("bm25", "fixed", 1600, "words; cut every 1,600"),
    Setup("bm25", "markdown", 800, "words; headings ≤ 800"),
    Setup("bm25", "recursive", 400, "words; paragraphs ≤ 400"),
    Setup("dense", "recursive", 400, "meaning; paragraphs ≤ 400"),
    Setup("hybrid", "recursive", 400, "words + meaning; paragraphs ≤ 400"),
)


@dataclass(frozen=True)
class Demo:
    """What the demo computed and wrote."""

    folder: Path
    n_pages: int
    comparison: Comparison
    report: Path | None
    """The HTML page; None if the extra `report` is not installed."""

    @property
    def ranking(self) -> list[Scores]:
        """The scores of the runs, the best first."""
        return sorted(self.comparison.scores, key=lambda scores: -(scores[ANSWER_TEXT] or 0))

    def p_of(self, one: Scores, other: Scores) -> float:
        """Return the corrected p of the difference of two runs in the deciding measure."""
        names = [one.name, other.name]
        row = self.comparison.pairs.filter(
            pl.col("measure") == ANSWER_TEXT, pl.col("a").is_in(names), pl.col("b").is_in(names)
        )
        return float(row["p_corrected"].item())

    @property
    def clearly_worse(self) -> list[Scores]:
        """The runs that are significantly worse than the best one."""
        best, *others = self.ranking
        return [other for other in others if self.p_of(best, other) < ALPHA]

    @property
    def too_close(self) -> list[Scores]:
        """The other runs, for which the difference from the best one may be chance."""
        worse = {scores.name for scores in self.clearly_worse}
        return [other for other in self.ranking[1:] if other.name not in worse]

    def commands(self) -> list[str]:
        """Return three commands to try next; each works in the folder, as often as it is run."""
        leader, chunk_size = self.ranking[0].name, _setup(self.ranking[0].name).chunk_size // 2
        run = _run_file(leader)
        return [
            f"karat eval {run} --by difficulty",
            f"karat explain {ANSWER_TEXT} --run {run} --query {self._partial_query()}",
            f"karat run --chunk-size {chunk_size} --overwrite && karat compare {_OWN_RUN}",
        ]

    def _partial_query(self) -> str:
        """Return the query that the best run answers only in part, as close to half as possible."""
        values = self.ranking[0].per_query.select("query_id", ANSWER_TEXT).drop_nulls()
        by_distance = values.sort((pl.col(ANSWER_TEXT) - 0.5).abs(), "query_id")
        return str(by_distance["query_id"][0])

    def document(self) -> Document:
        """Return what is printed: what was compared, what won, how certain that is, what next."""
        n_questions = self.ranking[0].per_query[ANSWER_TEXT].count()
        headline = (
            f"Compared {len(self.ranking)} ways to search karat's handbook: "
            f"{n_questions} questions, {self.n_pages} pages."
        )
        sections = [Section([TextLines([*self._verdicts()])], headline), Section([self._table()])]
        return Document("Demo", sections=sections)

    def _verdicts(self) -> Iterator[str]:
        best = _name_and_share(self.ranking[0])
        if self.clearly_worse:
            name, share = self.ranking[0].name, _percent(self.ranking[0][ANSWER_TEXT])
            worse = ", ".join(
                f"{other.name} {_percent(other[ANSWER_TEXT])}" for other in self.clearly_worse
            )
            p = max(self.p_of(self.ranking[0], other) for other in self.clearly_worse)
            shown = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
            yield f"Clear: {name} finds {share} of answer text, {worse}; {shown}."
        else:
            yield f"No clear winner: the lead of {best} may be chance."
        if self.too_close:
            close = _joined([best, *map(_name_and_share, self.too_close)])
            yield f"Too close to call: {close}."

    def next_steps(self, before: Sequence[str] = ()) -> list[str]:
        """Return the lines below the table, which must not be wrapped: an address and commands.

        `before` are shell commands without which a shell does not find karat.
        """
        purpose = "Try next: scores by difficulty, how one score is computed, chunks half as long"
        enter = " && ".join([*before, shlex.join(["cd", str(self.folder)])])
        return [self._report_line(), purpose, *(f"  {line}" for line in [enter, *self.commands()])]

    def _table(self) -> Table:
        words = {setup.name: setup.words for setup in SETUPS}
        columns = [
            Column("retriever", "left"),
            Column("searches by; chunks (characters)", "left", priority=1),
            Column("answer text"),
            Column("pages"),
            Column("time"),
        ]
        rows = [
            [
                Cell(scores.name),
                Cell(words[scores.name]),
                Cell(_percent(scores[ANSWER_TEXT])),
                Cell(_percent(scores[PAGES])),
                Cell(f"{scores[TIME]:.1f} ms"),
            ]
            for scores in self.ranking
        ]
        notes = ["answer text within 2,000 characters, relevant pages in the first 5, median time"]
        return Table(columns, rows, notes=[*notes, *self._unanswerable_notes(), *_missing_dense()])

    def _unanswerable_notes(self) -> Iterator[str]:
        counts = [scores.table.counts for scores in self.ranking]
        if total := counts[0]["unanswerable"]:
            returned = [count[UNANSWERABLE_RETURNED] for count in counts]
            least, most = min(returned), max(returned)
            number = f"{most}" if least == most else f"{least} to {most}"
            if least == total:
                number = f"all {total}"
            yield (
                f"not scored: {total} questions without an answer; "
                f"text returned for {number} (ideal: 0)"
            )

    def _report_line(self) -> str:
        if self.report is None:
            return "For a report to open: pip install 'karat[report]', then karat demo again"
        return f"Open {self.report.resolve().as_uri()}"


def _name_and_share(scores: Scores) -> str:
    return f"{scores.name} ({_percent(scores[ANSWER_TEXT])})"


def _joined(names: Iterable[str]) -> str:
    """Return names as in a sentence: `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _missing_dense() -> Iterator[str]:
    if find_spec(WORDLLAMA) is None:
        yield "search by meaning needs: pip install 'karat[dense]'"


def build_demo(folder: Path, watch: Watch | None = None) -> Demo:
    """Run the demo and write its files to a folder.

    `watch` gets the progress over all runs. Raises an InputError before anything is written if the
    folder has a file that the demo would replace but did not write itself.
    """
    setups = [s for s in SETUPS if s.kind == "bm25" or find_spec(WORDLLAMA) is not None]
    has_report = all(map(find_spec, REQUIRED))
    shipped = files("karat").joinpath("docs")
    contents = {f"handbook/{page.name}": page.read_bytes() for page in _pages(shipped)}
    n_pages = len(contents)
    contents["gold.jsonl"] = shipped.joinpath("handbook", "gold.jsonl").read_bytes()
    contents |= {f"faq/{one.name}": one.read_bytes() for one in shipped.joinpath("faq").iterdir()}
    names = [*contents, *(_run_file(setup.name) for setup in setups), "scores.json", KARAT]
    names += ["report.html"] if has_report else []
    with _OwnFiles(folder, names):
        for name, content in contents.items():
            with writing(folder / name) as file:
                file.write(content)
        _run_all(folder, setups, watch)
        report = folder / "report.html" if has_report else None
        with watched(None):  # the display shows what is done
            comparison = _compare_all(folder, setups, watch)
            _write_results(folder, comparison, report, watch)
        demo = Demo(folder, n_pages, comparison, report)
        with writing(folder / KARAT) as file:
            file.write(_project(setups, _setup(demo.ranking[0].name)).encode())
    return demo


def _pages(shipped: Traversable) -> list[Traversable]:
    """Return the pages of the handbook, sorted by name."""
    handbook = shipped.joinpath("handbook").iterdir()
    return sorted((page for page in handbook if page.name.endswith(".md")), key=lambda p: p.name)


def _compare_all(folder: Path, setups: Sequence[Setup], watch: Watch | None) -> Comparison:
    if watch is not None:
        watch.began("comparing")
    return compare(
        str(folder / "gold.jsonl"),
        [str(folder / _run_file(setup.name)) for setup in setups],
        MEASURES,
        level="doc",
        corpus=str(folder / "handbook"),
    )


def _write_results(
    folder: Path, comparison: Comparison, report: Path | None, watch: Watch | None
) -> None:
    if watch is not None:
        watch.began("writing the report")
    sheets = [Sheet(scores, show_queries=True) for scores in comparison.scores]
    score_files.write(sheets, folder / "scores.json")
    if report is not None:
        comparison.report(report, title="Which retriever finds the answers in the handbook?")


def _run_file(run: str) -> str:
    return f"runs/{run}.jsonl"


def _setup(run: str) -> Setup:
    return next(setup for setup in SETUPS if setup.name == run)


def _project(setups: Sequence[Setup], best: Setup) -> str:
    """Return a karat.toml with what the demo did, and with the best retriever to change."""
    runs = ",\n".join(f'    "{_run_file(setup.name)}"' for setup in setups)
    measures = ", ".join(f'"{measure}"' for measure in MEASURES)
    return f"""\
# The project of `karat demo`: in its folder, commands need no arguments.
gold = "gold.jsonl"
corpus = "handbook"
measures = [{measures}]
level = "doc"

runs = [
{runs},
]
baseline = "{_run_file(best.name)}"   # what `karat compare` compares all others with

# The best retriever: change it, then `karat run --overwrite && karat compare {_OWN_RUN}`.
[retriever]
spec = "{best.kind}:handbook"
chunker = "{best.chunker}"
chunk_size = {best.chunk_size}
top_k = {TOP_K}
jobs = 1       # latencies without other queries at the same time
warmup = {_WARMUP}
output = "{_OWN_RUN}"
"""


def _run_all(folder: Path, setups: Sequence[Setup], watch: Watch | None) -> None:
    gold = Gold.read(folder / "gold.jsonl")
    if watch is not None:
        watch.begun(len(setups) * gold.query_ids.len(), 0, 0)
    for setup in setups:
        retrieve(
            setup.retriever(folder / "handbook"),
            gold,
            top_k=TOP_K,
            jobs=1,  # latencies without other queries at the same time
            warmup=_WARMUP,
            name=setup.name,
            output=folder / _run_file(setup.name),
            overwrite=True,
            watch=None if watch is None else _PartOfRuns(watch),
        )


@dataclass(frozen=True)
class _PartOfRuns:
    """Passes the progress of one run on to a display that counts the queries of all runs."""

    watch: Progress

    def begun(self, total: int, done: int, failed: int) -> None:
        """Ignore the start of a run: the display has begun."""

    def finished(self, line: JournalLine) -> None:
        self.watch.finished(line)

    def retried(self, query: Query, error: Any) -> None:
        self.watch.retried(query, error)


class _OwnFiles:
    """The list of the files that the demo wrote, with their hashes.

    While files are written, their hash is null: a demo that was interrupted can be started again.
    """

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._folder, self._names = folder, list(names)

    def __enter__(self) -> None:
        if self._folder.exists() and not self._folder.is_dir():
            raise InputError("expected a folder, got a file", path=self._folder)
        known = self._read()
        for name in self._names:
            self._refuse_foreign(name, known)
        try:
            for part in ("handbook", "faq", "runs"):
                (self._folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be created ({error.strerror})", path=self._folder
            ) from error
        for name in set(known) - set(self._names):
            # A run of an earlier demo, such as one that needs an extra; a changed file is kept.
            if known[name] is not None and self._hash(name) == known[name]:
                (self._folder / name).unlink()
        self._write(dict.fromkeys(self._names))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write({name: self._hash(name) for name in self._names})

    def _refuse_foreign(self, name: str, known: Mapping[str, str | None]) -> None:
        path = self._folder / name
        if not path.exists():
            return
        if name not in known:
            problem = "the file exists and was not written by karat demo"
        elif known[name] is not None and self._hash(name) != known[name]:
            problem = "the file was changed after karat demo wrote it"
        else:
            return
        raise InputError(
            problem, path=path, hint="choose another folder: karat demo FOLDER; or move the file"
        )

    def _hash(self, name: str) -> str | None:
        try:
            return hashlib.sha256((self._folder / name).read_bytes()).hexdigest()
        except OSError:
            return None

    def _read(self) -> dict[str, str | None]:
        """Return the list; a list that cannot be read is empty, so that nothing is replaced."""
        try:
            content = json.loads((self._folder / _OWN_FILES).read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, hashes: Mapping[str, str | None]) -> None:
        with writing(self._folder / _OWN_FILES) as file:
            file.write(f"{json.dumps(hashes, indent=1)}\n".encode())
