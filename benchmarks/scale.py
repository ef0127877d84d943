"""`python -m benchmarks.scale [--only NAME] [--rows N]`: runs larger than memory, and Spark.

The results are saved as benchmarks/SCALE.md. The full size needs 11 GB for files in a temporary
folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine, processes, spark, table
from benchmarks.goal import Goal
from benchmarks.jobs import KARAT_COMMAND
from benchmarks.measure import Tool, largest_difference, measure
from benchmarks.peers import MEASURES
from benchmarks.work import PARQUET, Work

RESULTS = Path(__file__).parent / "SCALE.md"
HEAD = """\
# Runs larger than memory, comparisons of a million queries, and Apache Spark

`make bench-scale` writes this page. `python -m benchmarks.scale --only NAME` measures one section
again; the names are {names}.
"""
LIMIT = "2G"
MEGABYTES = 2_000
_SMALL_LIMITS = ("256M", "1G")
_UNTIDY = ("TREC with tabs", "TREC with mixed white space", "TREC with shuffled rows")
_DEPTH, _DEPTH_OF_PAIR = 100, 10  # as in scale_data
_ROUNDS = 3


@dataclass(frozen=True)
class Command:
    """A command that was measured once."""

    name: str
    rows: int
    finished: processes.Finished

    @property
    def seconds(self) -> float:
        return self.finished.seconds

    @property
    def megabytes(self) -> float:
        return self.finished.megabytes


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    title: str
    goals: list[Goal]
    columns: Sequence[str]
    rows: list[list[str]]
    notes: str
    packages: Sequence[str]
    """Packages whose versions are shown."""

    def text(self, measured_on: str) -> str:
        return "\n\n".join(
            [
                f"## {self.title}",
                f"{measured_on} {machine.versions(self.packages)}.",
                table.goals_table(self.goals),
                table.markdown(self.columns, self.rows),
                self.notes,
            ]
        )


def large_runs(rows: int, folder: Path) -> Section:
    """Measure `karat eval` on a run, and on one with a tenth of its rows."""
    small, names = rows // 10, ("TREC", "Parquet")
    files = _generate("large", folder, small)
    with_limit = {name: _karat_eval(name, files, small, LIMIT) for name in names}
    files |= _generate("untidy", folder)
    commands, goals = [], []
    for name, bound in (("TREC", 12), *((name, 5) for name in _UNTIDY)):
        rounds = [
            (_karat_eval(name, files, small), _ir_measures(name, files, small))
            for _ in range(_ROUNDS)
        ]
        karat, peer = (min(tool, key=_seconds) for tool in zip(*rounds, strict=True))
        commands += [karat, peer]
        goals.append(_faster(name, karat, peer, bound))
    commands += [_karat_eval(_UNTIDY[-1], files, small, limit) for limit in _SMALL_LIMITS]
    for file in set(files.values()):
        file.unlink()
    files = _generate("large", folder, rows)
    large = {name: _karat_eval(name, files, rows, LIMIT) for name in names}

    for name in names:
        growth = (large[name].seconds / rows) / (with_limit[name].seconds / small)
        text = f"{name}: time per row, {rows:,} ÷ {small:,} rows"
        goals.append(Goal(text, 1.3, growth, at_least=False))
        goals.append(_memory(f"{name}, {rows:,} rows", large[name]))
    commands = [*commands, *with_limit.values()]
    notes = f"""\
- {_DEPTH} results and 10 judgments per query; {", ".join(MEASURES)}. `karat eval` runs with
  `--no-intervals`.
- `{_UNTIDY[0]}` has a tab between fields, `{_UNTIDY[1]}` tabs and several spaces, and
  `{_UNTIDY[2]}` the same, with shuffled rows."""
    return _section_of_commands(
        f"Large runs: {rows:,} rows", goals, [*commands, *large.values()], notes
    )


def compare_and_gate(rows: int, folder: Path) -> Section:
    """Measure `karat compare` and `karat gate` with two runs and one measure."""
    queries = rows // _DEPTH_OF_PAIR
    files = _generate("pair", folder, queries)
    gold, a, b = (str(files[name]) for name in ("gold", "a", "b"))
    measure_name, limit = "nDCG@10", ["--memory", LIMIT]
    compare = _run(
        f"karat compare --memory {LIMIT}",
        2 * rows,
        [KARAT_COMMAND, "compare", gold, a, b, *limit, "-m", measure_name],
    )
    threshold = f"{measure_name} max_drop 0.01"
    gate = _run(
        f"karat gate --memory {LIMIT}",
        2 * rows,
        [KARAT_COMMAND, "gate", gold, b, "--baseline", a, *limit, "--require", threshold],
    )
    goals = []
    for command in (compare, gate):
        text = f"{command.name}: time per measure"
        goals.append(Goal(text, 60, command.seconds, "s", at_least=False))
        goals.append(_memory(command.name, command))
    notes = f"""\
- Two TREC runs with {_DEPTH_OF_PAIR} results per query, 10 judgments per query; {measure_name}.
- `karat gate` checks `{threshold}`, with the other run as the baseline.
- The time is that of the whole command, including reading both runs."""
    return _section_of_commands(
        f"Comparing two runs: {queries:,} queries", goals, [compare, gate], notes
    )


LOCAL = Tool("karat, local engine", "karat_local")
SPARK = Tool("karat, engine spark", "karat_spark", needs="pyspark", has_children=True)
RANKING_METRICS = Tool("RankingMetrics", "ranking_metrics", needs="pyspark", has_children=True)


def spark_engine(rows: int, _: Path) -> Section:
    """Measure the engine for Spark, the local engine and RankingMetrics on the same files."""
    work = Work(rows // _DEPTH, _DEPTH, judged=10, retrieved=6, layout=PARQUET)
    tools = (LOCAL, SPARK, RANKING_METRICS)
    best = measure(tools, work, rounds=_ROUNDS)
    cells, goals = [], []
    for tool in tools:
        if tool not in best:
            cells.append([tool.name, tool.reason_to_skip, *[""] * 9])
            continue
        measured = best[tool]
        # Both engines of karat must return the same bits.
        tolerance = 1e-9 if tool is RANKING_METRICS else 0.0
        difference = largest_difference(tool, measured, best[LOCAL], tolerance=tolerance)
        cells.append(
            [
                tool.name,
                f"{measured.seconds:.2f}",
                f"{measured.slowest:.2f}",
                f"{measured.second_call:.2f}",
                f"{measured.setup:.2f}",
                f"{measured.process_seconds:.2f}",
                f"{measured.megabytes:,.0f}",
                f"{rows / measured.seconds / spark.CORES:,.0f}",
                f"{best[LOCAL].seconds / measured.seconds:.2f}",
                f"{best[LOCAL].second_call / measured.second_call:.2f}",
                f"{difference:.0e}",
            ]
        )
    text = "rows per second and core: engine spark ÷ local engine"
    ratios = (None, None)
    if SPARK in best:
        local, remote = best[LOCAL], best[SPARK]
        ratios = (local.seconds / remote.seconds, local.second_call / remote.second_call)
    goals = [
        Goal(f"{text}, first call", 0.25, ratios[0]),
        Goal(f"{text}, second call", 0.25, ratios[1]),
    ]
    columns = [
        "tool",
        "seconds",
        "slowest",
        "second call, s",
        "setup, s",
        "process, s",
        "peak MB",
        "rows per second and core",
        "÷ local engine",
        "second call ÷ local engine",
        "difference",
    ]
    notes = f"""\
- {work.queries:,} queries with {_DEPTH} results and 10 judgments each, with grades 0 and 1, from
  Parquet: {", ".join(spark.MEASURES)}. Spark runs as `local[{spark.CORES}]`, and all processes use
  {spark.CORES} cores.
- Each timing is a process of its own, the best of {_ROUNDS} rounds. `seconds` is the time from the
  start of reading to the values of the measures. `second call, s` is the same once more in the same
  session, in which the JVM has compiled its code and the Python workers are running. `setup, s` is
  the time before: imports and, with Spark, the start of the JVM and the session. `process, s` is
  the time of the whole process, with both calls.
- `÷ local engine` is the ratio of the rows per second and core, of the first and the second call.
- `peak MB` is the sum of the resident sizes of the process, the JVM and the Python workers.
- `difference` is the largest difference of a mean from that of the local engine.
- RankingMetrics needs two lists per query, so its time includes grouping and sorting the rows; the
  lists are cached, because each of its measures is a job of its own. karat also returns the values
  of each query.
- On these data, all definitions agree: grades are binary, no list contains an item twice, every
  query has a relevant item and results. Otherwise they differ: with graded judgments,
  RankingMetrics computes nDCG with the gain 2^grade − 1 (karat: the grade, or `gain=exp2`), and it
  counts an item that is retrieved twice as two relevant items (karat: once)."""
    packages = ("polars", "pyarrow", "pyspark")
    return Section(f"Apache Spark: {rows:,} rows", goals, columns, cells, notes, packages)


SECTIONS: dict[str, tuple[Callable[[int, Path], Section], int]] = {
    "large": (large_runs, 100_000_000),
    "compare": (compare_and_gate, 10_000_000),
    "spark": (spark_engine, 10_000_000),
}
"""What measures each section, and the number of rows of a run."""


def _generate(kind: str, folder: Path, *number: int) -> dict[str, Path]:
    """Write files in a process of their own, so that this one stays small."""
    arguments = [kind, str(folder), *map(str, number)]
    subprocess.run([sys.executable, "-m", "benchmarks.scale_data", *arguments], check=True)
    names = {
        "gold.qrels": "gold",
        "large.run": "TREC",
        "large.parquet": "Parquet",
        **dict(zip(("tabs.run", "mixed.run", "shuffled.run"), _UNTIDY, strict=True)),
        "a.run": "a",
        "b.run": "b",
    }
    return {names[file.name]: file for file in folder.iterdir()}


def _run(name: str, rows: int, command: list[str]) -> Command:
    result = Command(name, rows, processes.run(command, children=True))
    print(f"  {name:<50}{result.seconds:9.1f} s{result.megabytes:9,.0f} MB", file=sys.stderr)
    return result


def _karat_eval(run: str, files: dict[str, Path], rows: int, memory: str | None = None) -> Command:
    limit = ["--memory", memory] if memory else []
    options = ["--no-intervals", *limit, "-m", ",".join(MEASURES)]
    name = " ".join(["karat eval", *limit])
    command = [KARAT_COMMAND, "eval", str(files["gold"]), str(files[run]), *options]
    return _run(f"{name}, {run}", rows, command)


def _ir_measures(run: str, files: dict[str, Path], rows: int) -> Command:
    arguments = [str(files["gold"]), str(files[run]), *MEASURES]
    return _run(f"ir_measures, {run}", rows, [sys.executable, "-m", "ir_measures", *arguments])


def _seconds(command: Command) -> float:
    return command.seconds


def _faster(run: str, karat: Command, other: Command, bound: float) -> Goal:
    text = f"{run}, {karat.rows:,} rows: time of ir_measures ÷ karat eval"
    return Goal(text, bound, other.seconds / karat.seconds)


def _memory(text: str, command: Command) -> Goal:
    return Goal(f"{text}: peak memory", MEGABYTES, command.megabytes, "MB", at_least=False)


def _section_of_commands(
    title: str, goals: list[Goal], commands: list[Command], notes: str
) -> Section:
    rows = [
        [
            command.name,
            f"{command.rows:,}",
            f"{command.seconds:.1f}",
            f"{command.megabytes:,.0f}",
            f"{command.seconds / command.rows * 1e9:,.0f}",
        ]
        for command in commands
    ]
    general = f"""\
- Each command ran in a process of its own: once, or {_ROUNDS} times where karat and
  ir_measures are compared, by turns; then the fastest is shown. `seconds` is the time of the whole
  process, and `peak MB` the largest resident size of the process and those that it started."""
    columns = ("command", "rows", "seconds", "peak MB", "ns per row")
    return Section(title, goals, columns, rows, f"{general}\n{notes}", ("polars", "ir_measures"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument(
        "--only", choices=SECTIONS, help="measure only this section, and replace it on the page"
    )
    parser.add_argument(
        "--rows", type=int, help="use runs with this number of rows; prints only, saves nothing"
    )
    parser.add_argument("--folder", help="where to write files; default: a temporary folder")
    options = parser.parse_args()
    processes.compile_karat()
    names = [options.only] if options.only else list(SECTIONS)
    page = HEAD.format(names=", ".join(SECTIONS))
    if options.only and RESULTS.exists():
        page = RESULTS.read_text(encoding="utf-8")
    for name in names:
        measure_section, rows = SECTIONS[name]
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measured_on = machine.description()
            text = measure_section(options.rows or rows, Path(folder)).text(measured_on)
        print(f"{text}\n", flush=True)
        page = table.replace_section(page, text)
    if options.rows is None:
        RESULTS.write_text(page, encoding="utf-8")
        print(f"saved as {RESULTS}")


if __name__ == "__main__":
    main()
