"""`python -m benchmarks.scale [--rows N]`: runs that are larger than memory, saved as SCALE.md.

Data are written to a temporary folder: 10 GB for the full size. Every timing is a process of its
own, `karat eval --no-intervals` with five measures and a memory limit of 2 GB. Peak memory is the
largest resident size of the process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import machine
from benchmarks.peers import MEASURES

RESULTS = Path(__file__).parent / "SCALE.md"
KARAT = str(Path(sys.executable).with_name("karat"))
DEPTH, JUDGED = 100, 10
LIMIT = "2G"
_BLOCK = 10_000  # queries


def blocks(n_queries: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield judgments and results; 60% of the judged items are retrieved, scores are distinct."""
    random = np.random.default_rng(1)
    for first in range(0, n_queries, _BLOCK):
        n = min(_BLOCK, n_queries - first)
        ids = pl.Series([f"q{query:07}" for query in range(first, first + n)])
        base = random.integers(0, 9_000_000, n)
        ranks = np.arange(DEPTH)
        items = pl.Series((base[:, None] + ranks * 7919 % 1009).ravel()).cast(pl.String)
        results = pl.DataFrame(
            {
                "query_id": ids.gather(np.repeat(np.arange(n), DEPTH)),
                "item_id": "d" + items,
                "score": np.tile(100.0 - ranks, n) + np.repeat(random.random(n), DEPTH),
            }
        )
        judged = np.sort(random.random((n, DEPTH)).argsort(axis=1)[:, :JUDGED], axis=1)
        offsets = judged * 7919 % 1009 + 2000 * (random.random(judged.shape) > 0.6)
        judgments = pl.DataFrame(
            {
                "query_id": ids.gather(np.repeat(np.arange(n), JUDGED)),
                "item_id": "d" + pl.Series((base[:, None] + offsets).ravel()).cast(pl.String),
                "grade": random.integers(0, 4, n * JUDGED),
            }
        )
        yield judgments, results


def write(folder: Path, rows: int) -> dict[str, Path]:
    """Write gold and the run as Parquet (a folder of parts would do, too) and as TREC text."""
    paths = {
        name: folder / f"{rows}{end}"
        for name, end in (("gold", ".qrels"), ("TREC", ".run"), ("Parquet", ".parquet"))
    }
    parts = folder / f"parts-{rows}"
    parts.mkdir()
    with paths["gold"].open("wb") as gold, paths["TREC"].open("wb") as run:
        for number, (judgments, results) in enumerate(blocks(rows // DEPTH)):
            judgments.select("query_id", pl.lit("0").alias("i"), "item_id", "grade").write_csv(
                gold, separator=" ", include_header=False
            )
            results.select(
                "query_id",
                pl.lit("Q0").alias("q0"),
                "item_id",
                pl.lit(1).alias("rank"),
                "score",
                pl.lit("t").alias("tag"),
            ).write_csv(run, separator=" ", include_header=False)
            results.write_parquet(parts / f"{number:05}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(paths["Parquet"])
    for part in parts.iterdir():
        part.unlink()
    return paths


def write_untidy(paths: dict[str, Path], rows: int) -> Path:
    """Write the run with shuffled rows, and tabs and several spaces between the fields."""
    target = paths["TREC"].with_suffix(".untidy.run")
    results = pl.read_parquet(paths["Parquet"]).sample(fraction=1.0, shuffle=True, seed=1)
    gap = pl.Series(["\t", "  ", " \t"]).gather(np.arange(rows) % 3)
    lines = results.select(
        pl.concat_str(
            "query_id", gap, pl.lit("Q0 "), "item_id", gap, pl.lit("1 "), "score", pl.lit(" t")
        )
    )
    lines.write_csv(target, include_header=False, quote_style="never")
    return target


def timed(command: list[str]) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a command."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    if status:
        assert process.stderr is not None
        raise RuntimeError(process.stderr.read().decode())
    return seconds, usage.ru_maxrss / 1024


def karat(gold: Path, run: Path, memory: str | None = LIMIT) -> tuple[float, float]:
    limit = [] if memory is None else ["--memory", memory]
    return timed(
        [KARAT, "eval", str(gold), str(run), "--no-intervals", *limit, "-m", ",".join(MEASURES)]
    )


def ir_measures(gold: Path, run: Path) -> tuple[float, float]:
    names = ["nDCG@10", "AP", "RR", "P@10", "R@100"]
    return timed([sys.executable, "-m", "ir_measures", str(gold), str(run), *names])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", help="where to write the data; default: a temporary folder")
    arguments = parser.parse_args()
    large, small = arguments.rows, arguments.rows // 10
    busy = machine.load()
    lines = []

    def row(name: str, rows: int, result: tuple[float, float]) -> float:
        seconds, megabytes = result
        lines.append(
            f"| {name} | {rows:,} | {seconds:.1f} | {megabytes:,.0f} "
            f"| {seconds / rows * 1e9:,.0f} |"
        )
        print(lines[-1], flush=True)
        return seconds

    claims = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        paths = write(Path(name), small)
        seconds: dict[tuple[str, int], float] = {}
        for kind in ("TREC", "Parquet"):
            result = karat(paths["gold"], paths[kind])
            seconds[kind, small] = row(f"karat eval --memory 2G, {kind}", small, result)
        whole = row("karat eval, TREC", small, karat(paths["gold"], paths["TREC"], None))
        peer = row("ir_measures, TREC", small, ir_measures(paths["gold"], paths["TREC"]))
        claims.append(
            ("TREC: karat eval, faster than ir_measures", "≥ 12 ×", f"{peer / whole:.1f} ×")
        )
        untidy = write_untidy(paths, small)
        whole = row("karat eval, tabs and shuffled rows", small, karat(paths["gold"], untidy, None))
        batches = karat(paths["gold"], untidy, "1G")
        row("karat eval --memory 1G, tabs and shuffled rows", small, batches)
        peer = row("ir_measures, tabs and shuffled rows", small, ir_measures(paths["gold"], untidy))
        claims.append(
            (
                "tabs and shuffled rows: karat eval, faster than ir_measures",
                "≥ 5 ×",
                f"{peer / whole:.1f} ×",
            )
        )
        for path in (*paths.values(), untidy):
            path.unlink()
        paths = write(Path(name), large)
        for kind in ("TREC", "Parquet"):
            result = karat(paths["gold"], paths[kind])
            seconds[kind, large] = row(f"karat eval --memory 2G, {kind}", large, result)
            growth = seconds[kind, large] / seconds[kind, small] / 10
            claims.append(
                (
                    f"{kind}: time per row, {large:,} ÷ {small:,} rows",
                    "≤ 1.3 ×",
                    f"{growth:.2f} ×",
                )
            )
            claims.append(
                (f"{kind}: peak memory of {large:,} rows", "≤ 2,000 MB", f"{result[1]:,.0f} MB")
            )
    text = "\n".join(
        [
            "# Runs larger than memory",
            "",
            "`make bench-scale` writes this page.",
            "",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine.machine()}; load by others at the "
            f"start {busy}. One run each, whole processes; the machine was shared with others.",
            "",
            f"{DEPTH} results and {JUDGED} judgments per query, five measures.",
            "",
            "| wanted of karat | wanted | measured |",
            "| --- | --- | --- |",
            *(f"| {' | '.join(claim)} |" for claim in claims),
            "",
            "| command | rows | seconds | peak MB | ns per row |",
            "| --- | --- | --- | --- | --- |",
            *lines,
            "",
        ]
    )
    print(text)
    if arguments.rows == 100_000_000:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
