"""The jobs: which tools do which work, and what is wanted of karat there."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import live, retrieval, significance, spans, texts
from benchmarks.measure import BY_CHANCE, Measurement, Tool, largest_difference, measure
from benchmarks.peers import FIFTY, MEASURES
from benchmarks.work import DEEP, GROWTH, LARGE, UNTIDY, WIDE, Work

ROUNDS = 5

KARAT_COMMAND = str(Path(sys.executable).with_name("karat"))
TREC_EVAL = os.environ.get("TREC_EVAL") or shutil.which("trec_eval") or "trec_eval"

KARAT = Tool("karat.evaluate", "karat_files")
KARAT_INTERVALS = Tool("karat.evaluate, with intervals", "karat_files_intervals")
KARAT_FIFTY = Tool("karat.evaluate, 50 measures", "karat_files_fifty")
KARAT_DICTS = Tool("karat.evaluate, dicts", "karat_dicts")
KARAT_PYTREC_EVAL = Tool("karat.compat.pytrec_eval", "karat_pytrec_eval_dicts")
KARAT_EVAL = Tool(
    "karat eval --no-intervals",
    command=(KARAT_COMMAND, "eval", "--no-intervals", "-m", ",".join(MEASURES)),
)
KARAT_RANDOMIZATION = Tool("karat, sign-flip randomization", "karat_randomization")
SCIPY_RANDOMIZATION = Tool(
    "scipy.stats.permutation_test", "scipy_randomization", needs="scipy", rounds=1
)
RANX_RANDOMIZATION = Tool(
    "ranx, Fisher's test, compiled before", "ranx_randomization", needs="ranx", rounds=1
)
KARAT_HELP = Tool("karat --help", command=(KARAT_COMMAND, "--help"))
KARAT_SPANS = Tool("karat.evaluate, spans", "karat_spans")
MERGE_LOOP = Tool("a plain merge loop", "merge_loop_spans")
KARAT_TEXTS = Tool("karat, text evidence", "karat_texts")
KARAT_TEXTS_LARGE = Tool("karat, a million pairs", "karat_texts_large", rounds=1)
DIFFLIB = Tool(f"plain difflib, {texts.SAMPLE} pairs", "difflib_texts")
KARAT_TASKS = Tool("karat, tasks", "karat_tasks")
BARE_TASKS = Tool("asyncio.gather behind a semaphore", "bare_tasks")
KARAT_THREADS = Tool("karat, threads", "karat_threads")
BARE_THREADS = Tool("ThreadPoolExecutor.map", "bare_threads")
KARAT_IMPORT = Tool("import karat", "karat_import")
IR_MEASURES = Tool("ir_measures", "ir_measures_files", needs="ir_measures")
RANX = Tool("ranx", "ranx_files", needs="ranx", rounds=1)
RANX_COMPILED = Tool("ranx, compiled before", "ranx_files", needs="ranx", rounds=1)
PYTREC_EVAL = Tool("pytrec_eval-terrier", "pytrec_eval_dicts", needs="pytrec_eval")
TREC_EVAL_FLAGS = ("-mndcg_cut.10", "-mmap", "-mrecip_rank", "-mP.10", "-mrecall.100")
TREC_EVAL_C = Tool("trec_eval", command=(TREC_EVAL, *TREC_EVAL_FLAGS))
KARAT_TREC_EVAL = Tool("karat trec_eval", command=(KARAT_COMMAND, "trec_eval", *TREC_EVAL_FLAGS))


@dataclass(frozen=True)
class Claim:
    """What is wanted, and what was measured; None if it could not be."""

    text: str
    wanted: float
    measured: float | None
    unit: str = "×"
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted


@dataclass(frozen=True)
class Row:
    """One tool on one piece of work."""

    work: Work | None
    tool: Tool
    measured: Measurement | None
    ratio: float | None = None
    """How many times as long as karat it took."""
    apart: float | None = None
    """How far its values are from karat's."""


@dataclass(frozen=True)
class Job:
    """A table of rows and what is claimed from them."""

    title: str
    rows: list[Row]
    claims: list[Claim]


def from_files(*, quick: bool) -> Job:
    """TREC files, five measures: libraries against `evaluate`, commands against the command."""
    libraries = (KARAT_INTERVALS, IR_MEASURES)
    libraries += () if quick else (RANX, RANX_COMPILED)
    tools = (KARAT, *libraries, KARAT_EVAL, KARAT_TREC_EVAL, TREC_EVAL_C)
    rows, claims = [], []
    for work in (DEEP, WIDE):
        # ranx compiles as it goes and keeps the result in this folder. A new one, so that its
        # first row has the compiling in it, as a person's first call has, and its second has not.
        with tempfile.TemporaryDirectory() as compiled:
            os.environ["NUMBA_CACHE_DIR"] = compiled
            best = measure(tools, work, rounds=_rounds(ROUNDS, quick))
        rows += _against(KARAT, libraries, best, work)
        # Values are compared with those of `evaluate`: two that are both printed with four
        # digits may differ by a whole last digit.
        rows += _against(KARAT_EVAL, (KARAT_TREC_EVAL, TREC_EVAL_C), best, work, exact=KARAT)
        claims.append(_faster(KARAT, IR_MEASURES, 7, best, work))
        if not quick:
            claims.append(_faster(KARAT, RANX, 50, best, work))
        claims.append(_faster(KARAT_EVAL, TREC_EVAL_C, 1, best, work))
        claims.append(_faster(KARAT_TREC_EVAL, TREC_EVAL_C, 1, best, work))
    return Job("TREC files, five measures", rows, claims)


def from_large_files() -> Job:
    """Ten million rows."""
    best = measure((KARAT, IR_MEASURES), LARGE, rounds=2)
    memory = Claim(
        f"{LARGE.name}: peak memory of {KARAT.name} ÷ {IR_MEASURES.name}",
        wanted=0.5,
        measured=_share(best, KARAT, IR_MEASURES, "megabytes"),
        at_least=False,
    )
    return Job(
        "TREC files, ten million rows, five measures",
        _against(KARAT, (IR_MEASURES,), best, LARGE),
        [_faster(KARAT, IR_MEASURES, 10, best, LARGE), memory],
    )


def from_untidy_files(*, quick: bool) -> Job:
    """What a short way may not hide; nothing is wanted here, but it should be known."""
    best = measure((KARAT, IR_MEASURES), UNTIDY, rounds=_rounds(3, quick))
    return Job(
        "TREC files with tabs, rows shuffled, under half of the relevant items found",
        _against(KARAT, (IR_MEASURES,), best, UNTIDY),
        [],
    )


def from_dicts(*, quick: bool) -> Job:
    """Dicts that are in memory before the clock starts."""
    others = (KARAT_PYTREC_EVAL, PYTREC_EVAL)
    rows, claims = [], []
    for work, wanted in ((DEEP, 2.5), (WIDE, 1.5)):
        best = measure((KARAT_DICTS, *others), work, rounds=_rounds(ROUNDS, quick))
        rows += _against(KARAT_DICTS, others, best, work)
        claims.append(_faster(KARAT_DICTS, PYTREC_EVAL, wanted, best, work))
        claims.append(_faster(KARAT_PYTREC_EVAL, PYTREC_EVAL, 1, best, work))
    return Job("Dicts, five measures", rows, claims)


def many_measures(*, quick: bool) -> Job:
    """What more measures cost."""
    best = measure((KARAT, KARAT_FIFTY), WIDE, rounds=_rounds(ROUNDS, quick))
    ratio = _share(best, KARAT_FIFTY, KARAT, "seconds")
    claim = Claim(
        f"{WIDE.name}: {len(FIFTY)} measures ÷ {len(MEASURES)} measures",
        wanted=2,
        measured=ratio,
        at_least=False,
    )
    rows = [
        Row(WIDE, KARAT, best[KARAT], 1.0),
        Row(WIDE, KARAT_FIFTY, best[KARAT_FIFTY], ratio),
    ]
    return Job("Fifty measures, TREC files", rows, [claim])


def growth(*, quick: bool) -> Job:
    """How the time grows with the rows: ten times the rows, at most about ten times the time."""
    sizes = GROWTH[:-1] if quick else GROWTH
    rows = []
    for work in sizes:
        best = measure((KARAT,), work, rounds=_rounds(3, quick))
        rows.append(Row(work, KARAT, best[KARAT]))
    last, before = (row.measured.seconds for row in (rows[-1], rows[-2]))
    claim = Claim(
        f"time for {sizes[-1].rows:,} rows ÷ for {sizes[-2].rows:,} (linear: 10)",
        wanted=12,
        measured=last / before,
        at_least=False,
    )
    return Job("Growth, TREC files, depth 100, five measures", rows, [claim])


def of_spans(*, quick: bool) -> Job:
    """Character spans from tables that are in memory before the clock starts."""
    best = measure((KARAT_SPANS, MERGE_LOOP), rounds=_rounds(3, quick))
    apart = largest_difference(MERGE_LOOP, best[MERGE_LOOP], best[KARAT_SPANS])
    ratio = _share(best, MERGE_LOOP, KARAT_SPANS, "seconds")
    rows = [
        Row(None, KARAT_SPANS, best[KARAT_SPANS], 1.0, 0.0),
        Row(None, MERGE_LOOP, best[MERGE_LOOP], ratio, apart),
    ]
    claims = [
        Claim(
            f"{spans.NAME}: {KARAT_SPANS.name}", 2, best[KARAT_SPANS].seconds, "s", at_least=False
        ),
        Claim(f"{spans.NAME}: {KARAT_SPANS.name}, faster than {MERGE_LOOP.name}", 4, ratio),
    ]
    return Job(f"Spans: {spans.NAME}", rows, claims)


def of_texts(*, quick: bool) -> Job:
    """Text evidence that is in memory before the clock starts; difflib decides only a sample."""
    tools = (KARAT_TEXTS, DIFFLIB) if quick else (KARAT_TEXTS, DIFFLIB, KARAT_TEXTS_LARGE)
    best = measure(tools, rounds=_rounds(3, quick))
    ours, theirs = best[KARAT_TEXTS], best[DIFFLIB]
    pairs = texts.SMALL.pairs
    ratio = theirs.seconds * pairs / texts.SAMPLE / ours.seconds
    apart = largest_difference(DIFFLIB, theirs, ours)
    rows = [Row(None, KARAT_TEXTS, ours, 1.0, 0.0), Row(None, DIFFLIB, theirs, ratio, apart)]
    name = texts.SMALL.name
    faster = "faster than plain difflib, scaled from the sample"
    claims = [
        Claim(f"{name}: {KARAT_TEXTS.name}, {faster}", 300, ratio),
        Claim(f"{name}: a pair", 60, ours.seconds / pairs * 1e6, "µs", at_least=False),
    ]
    if not quick:
        large = best[KARAT_TEXTS_LARGE]
        rows.append(Row(None, KARAT_TEXTS_LARGE, large))
        text = f"{texts.LARGE.name}, {texts.LARGE.pairs:,} pairs"
        claims.append(Claim(text, 60, large.seconds, "s", at_least=False))
    return Job(f"Text evidence: {name}", rows, claims)


def of_differences(*, quick: bool) -> Job:
    """The randomization test of every pair of runs; p differ by chance, as draws do."""
    peers = (SCIPY_RANDOMIZATION,) if quick else (SCIPY_RANDOMIZATION, RANX_RANDOMIZATION)
    best = measure((KARAT_RANDOMIZATION, *peers), rounds=_rounds(3, quick))
    rows, claims = [Row(None, KARAT_RANDOMIZATION, best[KARAT_RANDOMIZATION], 1.0, 0.0)], []
    for tool, wanted in zip(peers, (20, 10), strict=False):
        ratio = _share(best, tool, KARAT_RANDOMIZATION, "seconds")
        apart = (
            largest_difference(tool, best[tool], best[KARAT_RANDOMIZATION], allowed=BY_CHANCE)
            if tool in best
            else None
        )
        rows.append(Row(None, tool, best.get(tool), ratio, apart))
        claims.append(Claim(f"{significance.NAME}: karat, faster than {tool.name}", wanted, ratio))
    return Job(f"Randomization test: {significance.NAME}", rows, claims)


def of_asking(*, quick: bool) -> Job:
    """A retriever that only waits: what is over is the time of whoever asks it."""
    pairs = ((KARAT_TASKS, BARE_TASKS), (KARAT_THREADS, BARE_THREADS))
    best = measure([tool for pair in pairs for tool in pair], rounds=_rounds(3, quick))
    rows, claims = [], []
    for ours, bare in pairs:
        apart = largest_difference(bare, best[bare], best[ours])
        rows.append(Row(None, ours, best[ours], 1.0, 0.0))
        rows.append(Row(None, bare, best[bare], _share(best, bare, ours, "seconds"), apart))
        own = (best[ours].seconds - live.IDEAL) / live.QUERIES * 1000
        claims.append(
            Claim(f"{live.NAME}: {ours.name}, own a query", 0.3, own, "ms", at_least=False)
        )
    return Job(f"Asking a retriever: {live.NAME}", rows, claims)


def of_retrieval(*, quick: bool) -> Job:
    """BM25 over a corpus that is in memory: build the index, load it, search it."""
    rows, claims = [], []
    for size in retrieval.SIZES:
        if size.absent:
            continue
        for verb in ("index", "search"):
            ours = _bm25_tool("karat", verb, size)
            peers = [_bm25_tool("bm25s", verb, size), _bm25_tool("rank_bm25", verb, size)]
            others = [_bm25_tool("karat", "load", size)] if verb == "index" else []
            others.append(_bm25_tool("karat_tantivy", verb, size))
            best = measure([ours, *others, *peers], rounds=_rounds(3, quick))
            for tool in (ours, *others, *peers):
                ratio = _share(best, tool, ours, "seconds")
                rows.append(Row(None, tool, best.get(tool), ratio))
            claims.append(
                Claim(
                    f"{size.name}, {verb}: karat ÷ bm25s alone",
                    wanted=2,
                    measured=_share(best, ours, peers[0], "seconds"),
                    at_least=False,
                )
            )
    return Job(f"BM25: index, and {retrieval.QUERIES} queries one by one", rows, claims)


def _bm25_tool(package: str, verb: str, size: retrieval.Size) -> Tool:
    name = package.replace("karat_tantivy", "karat with tantivy")
    return Tool(
        f"{name}, {verb}, {size.name}",
        f"{package}_{verb}_{size.label}",
        needs=package.removeprefix("karat_"),
        rounds=1 if package == "rank_bm25" else None,
    )


def start() -> Job:
    """What a person waits for before anything happens."""
    best = measure((KARAT_IMPORT, KARAT_HELP), rounds=2 * ROUNDS)
    claims = [
        Claim(tool.name, limit, best[tool].seconds, "s", at_least=False)
        for tool, limit in ((KARAT_IMPORT, 0.1), (KARAT_HELP, 0.3))
    ]
    return Job("Start", [Row(None, tool, best[tool]) for tool in best], claims)


def every(*, quick: bool) -> list[Job]:
    """Do all jobs."""
    jobs = [from_files(quick=quick), from_dicts(quick=quick), many_measures(quick=quick)]
    if not quick:
        jobs.append(from_large_files())
    jobs += [from_untidy_files(quick=quick), growth(quick=quick), of_spans(quick=quick)]
    jobs += [of_texts(quick=quick), of_differences(quick=quick), of_asking(quick=quick)]
    jobs.append(of_retrieval(quick=quick))
    return [*jobs, start()]


def _rounds(rounds: int, quick: bool) -> int:
    return 2 if quick else rounds


def _against(
    ours: Tool,
    others: tuple[Tool, ...],
    best: dict[Tool, Measurement],
    work: Work,
    exact: Tool | None = None,
) -> list[Row]:
    """Set tools beside ours; their values must agree with those of `exact`, or else with ours."""
    rows = []
    for tool in (ours, *others):
        measured = best.get(tool)
        if measured is None:
            rows.append(Row(work, tool, None))
            continue
        ratio = _share(best, tool, ours, "seconds")
        apart = largest_difference(tool, measured, best[exact or ours])
        rows.append(Row(work, tool, measured, ratio, apart))
    return rows


def _faster(
    ours: Tool, other: Tool, wanted: float, best: dict[Tool, Measurement], work: Work
) -> Claim:
    text = f"{work.name}: {ours.name}, faster than {other.name}"
    return Claim(text, wanted, _share(best, other, ours, "seconds"))


def _share(best: dict[Tool, Measurement], one: Tool, other: Tool, what: str) -> float | None:
    if one not in best or other not in best:
        return None
    return getattr(best[one], what) / getattr(best[other], what)
