"""The jobs: which tools do which work, and the goals for karat."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import live, retrieval, significance, spans, texts
from benchmarks.goal import Goal
from benchmarks.measure import (
    TOLERANCE_OF_DRAWS,
    Measurement,
    Tool,
    largest_difference,
    measure,
)
from benchmarks.peers import FIFTY, MEASURES
from benchmarks.work import DEEP, GROWTH, LARGE, SHUFFLED_ROWS, WIDE, Work

ROUNDS = 5

KARAT_COMMAND = str(Path(sys.executable).with_name("karat"))
# The C program; CONTRIBUTING.md describes how to get it.
TREC_EVAL = os.environ.get("TREC_EVAL") or shutil.which("trec_eval") or "trec_eval"

KARAT = Tool("karat.evaluate", "karat_files")
KARAT_INTERVALS = Tool("karat.evaluate with intervals", "karat_files_intervals")
KARAT_FIFTY = Tool("karat.evaluate, 50 measures", "karat_files_fifty")
KARAT_DICTS = Tool("karat.evaluate", "karat_dicts")
KARAT_PYTREC_EVAL = Tool("karat.compat.pytrec_eval", "karat_pytrec_eval_dicts")
KARAT_EVAL = Tool(
    "karat eval --no-intervals",
    command=(KARAT_COMMAND, "eval", "--no-intervals", "--digits", "4", "-m", ",".join(MEASURES)),
)
KARAT_RANDOMIZATION = Tool("karat", "karat_randomization")
SCIPY_RANDOMIZATION = Tool(
    "scipy.stats.permutation_test", "scipy_randomization", needs="scipy", rounds=1
)
RANX_RANDOMIZATION = Tool(
    "Fisher's test of ranx, already compiled", "ranx_randomization", needs="ranx", rounds=1
)
KARAT_HELP = Tool("karat --help", command=(KARAT_COMMAND, "--help"))
KARAT_SPANS = Tool("karat.evaluate", "karat_spans")
PLAIN_LOOP = Tool("a plain loop in Python", "plain_loop_spans")
KARAT_TEXTS = Tool("karat", "karat_texts")
KARAT_TEXTS_LARGE = Tool(f"karat, {texts.LARGE.pairs:,} pairs", "karat_texts_large", rounds=1)
DIFFLIB = Tool(f"difflib, {texts.SAMPLE} of the pairs", "difflib_texts")
KARAT_TASKS = Tool("karat, async function", "karat_tasks")
PLAIN_TASKS = Tool("asyncio.gather with a semaphore", "plain_tasks")
KARAT_THREADS = Tool("karat, function in threads", "karat_threads")
PLAIN_THREADS = Tool("ThreadPoolExecutor.map", "plain_threads")
KARAT_IMPORT = Tool("import karat", "karat_import")
IR_MEASURES = Tool("ir_measures", "ir_measures_files", needs="ir_measures")
RANX = Tool("ranx, first call", "ranx_files", needs="ranx", rounds=1)
RANX_COMPILED = Tool("ranx, already compiled", "ranx_files", needs="ranx", rounds=1)
PYTREC_EVAL = Tool("pytrec_eval-terrier", "pytrec_eval_dicts", needs="pytrec_eval")
TREC_EVAL_FLAGS = ("-mndcg_cut.10", "-mmap", "-mrecip_rank", "-mP.10", "-mrecall.100")
TREC_EVAL_C = Tool("trec_eval (C)", command=(TREC_EVAL, *TREC_EVAL_FLAGS))
KARAT_TREC_EVAL = Tool("karat trec_eval", command=(KARAT_COMMAND, "trec_eval", *TREC_EVAL_FLAGS))

Best = dict[Tool, Measurement]


@dataclass(frozen=True)
class Row:
    """One tool and its measurement; None if it is not installed."""

    work: Work | None
    tool: Tool
    measured: Measurement | None
    ratio: float | None = None
    """Its time ÷ karat's."""
    difference: float | None = None
    """The largest difference of its values from karat's."""


@dataclass(frozen=True)
class Job:
    """A section of the page: a table of tools, goals, and notes on both."""

    title: str
    rows: list[Row]
    goals: list[Goal]
    notes: str = ""


def trec_files(quick: bool) -> Job:
    """Five measures from TREC files: libraries and `evaluate`, commands and `karat eval`."""
    libraries = (KARAT_INTERVALS, IR_MEASURES)
    libraries += () if quick else (RANX, RANX_COMPILED)
    tools = (KARAT, *libraries, KARAT_EVAL, KARAT_TREC_EVAL, TREC_EVAL_C)
    rows, goals = [], []
    for work in (DEEP, WIDE):
        # ranx compiles in its first call and caches the code in this folder. The folder is new, so
        # that its first row includes this, as the first call of a user does.
        with tempfile.TemporaryDirectory() as compiled:
            os.environ["NUMBA_CACHE_DIR"] = compiled
            best = measure(tools, work, rounds=_rounds(ROUNDS, quick))
            del os.environ["NUMBA_CACHE_DIR"]
        rows += _rows(KARAT, libraries, best, work)
        # The reference is `evaluate`: two values with four printed digits each may differ by a
        # whole last digit.
        rows += _rows(KARAT_EVAL, (KARAT_TREC_EVAL, TREC_EVAL_C), best, work, reference=KARAT)
        goals.append(_faster(KARAT, IR_MEASURES, 7, best, work.name))
        if not quick:
            goals.append(_faster(KARAT, RANX, 50, best, work.name))
        goals.append(_faster(KARAT_EVAL, TREC_EVAL_C, 1, best, work.name))
        goals.append(_faster(KARAT_TREC_EVAL, TREC_EVAL_C, 1, best, work.name))
    notes = """\
- Libraries are compared with `karat.evaluate`. Commands are compared with
  `karat eval --no-intervals`, because the other commands compute no intervals.
- Generated data: grades 0 to 3; 50 judged items per query with 1,000 results, 10 with 100
  results. 60% of the judged items are retrieved, most of them at the top ranks.
- ranx compiles its functions in the first call and caches them for later processes."""
    return Job("TREC files, five measures", rows, goals, notes)


def dicts(quick: bool) -> Job:
    """Dicts that are in memory before the clock starts."""
    others = (KARAT_PYTREC_EVAL, PYTREC_EVAL)
    rows, goals = [], []
    for work, bound in ((DEEP, 2.5), (WIDE, 1.5)):
        best = measure((KARAT_DICTS, *others), work, rounds=_rounds(ROUNDS, quick))
        rows += _rows(KARAT_DICTS, others, best, work)
        goals.append(_faster(KARAT_DICTS, PYTREC_EVAL, bound, best, work.name))
        goals.append(_faster(KARAT_PYTREC_EVAL, PYTREC_EVAL, 1, best, work.name))
    return Job("Dicts, five measures", rows, goals)


def fifty_measures(quick: bool) -> Job:
    """How much more measures cost."""
    best = measure((KARAT, KARAT_FIFTY), WIDE, rounds=_rounds(ROUNDS, quick))
    ratio = _ratio(best, KARAT_FIFTY, KARAT)
    goal = Goal(
        f"{WIDE.name}: time of {len(FIFTY)} measures ÷ {len(MEASURES)} measures",
        bound=2,
        measured=ratio,
        at_least=False,
    )
    rows = [Row(WIDE, KARAT, best[KARAT], 1.0), Row(WIDE, KARAT_FIFTY, best[KARAT_FIFTY], ratio)]
    return Job("TREC files, fifty measures", rows, [goal])


def large_trec_files(quick: bool) -> Job:
    """Ten million rows, or fewer in a quick run."""
    work = WIDE if quick else LARGE
    best = measure((KARAT, IR_MEASURES), work, rounds=2)
    memory = Goal(
        f"{work.name}: peak memory of {KARAT.name} ÷ {IR_MEASURES.name}",
        bound=0.5,
        measured=_ratio(best, KARAT, IR_MEASURES, "megabytes"),
        at_least=False,
    )
    rows = _rows(KARAT, (IR_MEASURES,), best, work)
    goals = [_faster(KARAT, IR_MEASURES, 10, best, work.name), memory]
    return Job(f"TREC files, {work.rows:,} rows, five measures", rows, goals)


def shuffled_trec_files(quick: bool) -> Job:
    """The slowest case; there is no goal for it, but it should be known."""
    best = measure((KARAT, IR_MEASURES), SHUFFLED_ROWS, rounds=_rounds(3, quick))
    return Job(
        "TREC files with tabs and shuffled rows, five measures",
        _rows(KARAT, (IR_MEASURES,), best, SHUFFLED_ROWS),
        [],
        "- Only 40% of the judged items are retrieved, so karat also checks whether gold and run "
        "spell\n  their ids in the same way.",
    )


def growth(quick: bool) -> Job:
    """How the time grows with the number of rows."""
    sizes = GROWTH[:-1] if quick else GROWTH
    rows = []
    for work in sizes:
        best = measure((KARAT,), work, rounds=_rounds(3, quick))
        rows.append(Row(work, KARAT, best[KARAT]))
    last, previous = (row.measured.seconds for row in (rows[-1], rows[-2]))
    goal = Goal(
        f"time of {sizes[-1].rows:,} rows ÷ {sizes[-2].rows:,} rows",
        bound=12,
        measured=last / previous,
        at_least=False,
    )
    return Job("Growth with the number of rows, TREC files, five measures", rows, [goal])


def span_measures(quick: bool) -> Job:
    """Spans from tables that are in memory before the clock starts."""
    best = measure((KARAT_SPANS, PLAIN_LOOP), rounds=_rounds(3, quick))
    rows = _rows(KARAT_SPANS, (PLAIN_LOOP,), best)
    seconds = best[KARAT_SPANS].seconds
    goals = [
        Goal("time of karat.evaluate", 2, seconds, "s", at_least=False),
        _faster(KARAT_SPANS, PLAIN_LOOP, 4, best),
    ]
    notes = "- Generated spans per query, retrieved and gold; recall, precision and IoU."
    return Job(f"Spans: {spans.NAME}", rows, goals, notes)


def evidence_texts(quick: bool) -> Job:
    """Evidence texts that are in memory before the clock starts; difflib compares a sample."""
    tools = (KARAT_TEXTS, DIFFLIB) if quick else (KARAT_TEXTS, DIFFLIB, KARAT_TEXTS_LARGE)
    best = measure(tools, rounds=_rounds(3, quick))
    karat, difflib = best[KARAT_TEXTS], best[DIFFLIB]
    pairs = texts.SMALL.pairs
    ratio = (difflib.seconds / texts.SAMPLE) / (karat.seconds / pairs)
    difference = largest_difference(DIFFLIB, difflib, karat)
    rows = [
        Row(None, KARAT_TEXTS, karat, 1.0, 0.0),
        Row(None, DIFFLIB, difflib, ratio, difference),
    ]
    goals = [
        Goal("time per pair of difflib ÷ karat", 300, ratio),
        Goal("time per pair of karat", 60, karat.seconds / pairs * 1e6, "µs", at_least=False),
    ]
    if not quick:
        large = best[KARAT_TEXTS_LARGE]
        rows.append(Row(None, KARAT_TEXTS_LARGE, large))
        text = f"{texts.LARGE.pairs:,} pairs: time of karat"
        goals.append(Goal(text, 60, large.seconds, "s", at_least=False))
    notes = """\
- A pair is an evidence text and a chunk of the same query. `× karat` is the ratio of the times per
  pair.
- Chunks have 1,000 characters of made-up words whose frequencies follow Zipf's law. Evidence texts
  have 200, 500 or 1,000 characters; a retrieved chunk contains a quarter of them unchanged, and
  another tenth with a tenth of the words replaced."""
    return Job(f"Evidence texts: {texts.SMALL.name}", rows, goals, notes)


def significance_tests(quick: bool) -> Job:
    """The randomization test of every pair of runs; p-values differ as random draws do."""
    others = (SCIPY_RANDOMIZATION,) if quick else (SCIPY_RANDOMIZATION, RANX_RANDOMIZATION)
    best = measure((KARAT_RANDOMIZATION, *others), rounds=_rounds(3, quick))
    rows = _rows(KARAT_RANDOMIZATION, others, best, tolerance=TOLERANCE_OF_DRAWS)
    goals = [
        _faster(KARAT_RANDOMIZATION, tool, bound, best)
        for tool, bound in zip(others, (20, 10), strict=False)
    ]
    notes = """\
- karat also computes the 95% intervals of the differences.
- p-values differ because each tool draws its own random numbers."""
    return Job(f"Randomization test: {significance.NAME}", rows, goals, notes)


def running_a_retriever(quick: bool) -> Job:
    """A retriever that only waits: all further time is overhead."""
    pairs = ((KARAT_TASKS, PLAIN_TASKS), (KARAT_THREADS, PLAIN_THREADS))
    best = measure([tool for pair in pairs for tool in pair], rounds=_rounds(3, quick))
    rows, goals = [], []
    for karat, plain in pairs:
        rows += _rows(karat, (plain,), best)
        overhead = (best[karat].seconds - live.SHORTEST) / live.QUERIES * 1000
        goals.append(Goal(f"{karat.name}: overhead per query", 0.3, overhead, "ms", at_least=False))
    notes = f"""\
- karat measures the time of each query, enforces timeouts and retries, and writes each result to
  disk. The plain loops only call the function.
- Overhead is the time beyond the {live.SHORTEST:.2f} s that the waiting alone takes."""
    return Job(f"Running a retriever: {live.NAME}", rows, goals, notes)


def built_in_retrievers(quick: bool) -> Job:
    """A corpus that is in memory: build the index, load it, search it."""
    rows, goals = [], []
    for collection in retrieval.COLLECTIONS[:1] if quick else retrieval.COLLECTIONS:
        if collection.is_missing:
            continue
        for verb in ("index", "search"):
            karat = _retrieval_tool("karat", verb, collection)
            bm25s = _retrieval_tool("bm25s", verb, collection)
            kinds = ["karat_tantivy", "rank_bm25"]
            if collection is retrieval.ABSTRACTS:  # embedding the generated texts takes minutes
                kinds += ["karat_dense", "karat_hybrid"]
            others = [bm25s, *(_retrieval_tool(kind, verb, collection) for kind in kinds)]
            if verb == "index":
                others.append(_retrieval_tool("karat", "load", collection))
            best = measure([karat, *others], rounds=_rounds(3, quick))
            rows += [
                Row(None, tool, best.get(tool), _ratio(best, tool, karat))
                for tool in (karat, *others)
            ]
            goals.append(
                Goal(
                    f"{collection.name}, {verb}: time of karat ÷ bm25s alone",
                    bound=2,
                    measured=_ratio(best, karat, bm25s),
                    at_least=False,
                )
            )
    notes = f"""\
- `abstracts` are those of SciFact; `generated` are texts of 50 to 250 words. `karat` without an
  addition is BM25 with bm25s. `load` reads an index from karat's cache: it hashes the corpus and
  checks the stored files.
- `search` runs {retrieval.QUERIES} queries one after the other, {retrieval.TOP_K} results each.
- The corpus is in memory before the clock starts; for `search`, the index too.
- karat and bm25s stem words and remove stop words. rank_bm25 only splits at spaces, as its
  documentation shows. karat also sorts by id, breaks ties by id and returns the texts.
- Peak memory includes the corpus; for `search`, also building the index."""
    return Job("Built-in retrievers: index and search", rows, goals, notes)


_LABELS = {
    "karat_tantivy": "karat with tantivy",
    "karat_dense": "karat dense (wordllama)",
    "karat_hybrid": "karat hybrid (wordllama)",
}
_REQUIRED = {"karat_dense": "wordllama", "karat_hybrid": "wordllama"}


def _retrieval_tool(kind: str, verb: str, collection: retrieval.Collection) -> Tool:
    return Tool(
        f"{_LABELS.get(kind, kind)}: {verb}, {collection.name}",
        f"{kind}_{verb}_{collection.label}",
        needs=_REQUIRED.get(kind, kind.removeprefix("karat_")),
        rounds=1 if kind == "rank_bm25" else None,
    )


def start(quick: bool) -> Job:
    """What users wait for before anything happens."""
    best = measure((KARAT_IMPORT, KARAT_HELP), rounds=_rounds(2 * ROUNDS, quick))
    goals = [
        Goal(tool.name, bound, best[tool].seconds, "s", at_least=False)
        for tool, bound in ((KARAT_IMPORT, 0.1), (KARAT_HELP, 0.3))
    ]
    return Job("Start", [Row(None, tool, best[tool]) for tool in best], goals)


JOBS: dict[str, Callable[[bool], Job]] = {
    "trec": trec_files,
    "dicts": dicts,
    "fifty": fifty_measures,
    "large": large_trec_files,
    "shuffled": shuffled_trec_files,
    "growth": growth,
    "spans": span_measures,
    "texts": evidence_texts,
    "significance": significance_tests,
    "live": running_a_retriever,
    "retrieval": built_in_retrievers,
    "start": start,
}
"""The jobs by the name that `--only` takes, in the order of the page."""


def _rounds(rounds: int, quick: bool) -> int:
    return 2 if quick else rounds


def _rows(
    karat: Tool,
    others: Sequence[Tool],
    best: Best,
    work: Work | None = None,
    *,
    reference: Tool | None = None,
    tolerance: float | None = None,
) -> list[Row]:
    """Return the rows of karat and others; their values must agree with those of `reference`."""
    rows = []
    for tool in (karat, *others):
        measured = best.get(tool)
        if measured is None:
            rows.append(Row(work, tool, None))
            continue
        difference = largest_difference(
            tool, measured, best[reference or karat], tolerance=tolerance
        )
        rows.append(Row(work, tool, measured, _ratio(best, tool, karat), difference))
    return rows


def _faster(karat: Tool, other: Tool, bound: float, best: Best, work: str = "") -> Goal:
    text = f"{work}: " if work else ""
    return Goal(f"{text}time of {other.name} ÷ {karat.name}", bound, _ratio(best, other, karat))


def _ratio(best: Best, tool: Tool, other: Tool, what: str = "seconds") -> float | None:
    if tool not in best or other not in best:
        return None
    return getattr(best[tool], what) / getattr(best[other], what)
