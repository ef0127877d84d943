"""Score on a cluster of two executors, one of which is killed: run by test_spark.py."""

import os
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import karat
from karat.engines import spark as engine

MEASURES = ["nDCG@10", "AP", "span.recall@5", "evidence.recall@3"]
TEXTS = ["the refund is paid within 14 days", "pay by card", "call us"]


@dataclass
class Fragile:
    """A function that kills its executor the first time that it is called."""

    function: object
    marker: Path

    def __call__(self, part):
        if not self.marker.exists():
            self.marker.touch()
            # The parent of a worker is its daemon, whose parent is the executor.
            stat = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        return self.function(part)


def gold_and_run():
    """Return gold of all three kinds, and a run that is sorted by query."""
    chance = random.Random(8)
    gold = [
        {"query_id": f"q{at:03}", "relevant": {f"d{chance.randrange(12)}": 1}}
        | {"spans": [{"doc_id": f"d{chance.randrange(12)}", "start": 5, "end": 40}]}
        | {"evidence": [chance.choice(TEXTS)]}
        for at in range(210)
    ]
    rows = [
        {"query_id": f"q{at:03}", "item_id": f"d{item}", "doc_id": f"d{item}"}
        | {"start": 10, "end": 30, "text": chance.choice(TEXTS), "score": chance.random()}
        for at in range(200)
        for item in range(12)
    ]
    return gold, pl.DataFrame(rows)


def main(folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    session = builder.config("spark.sql.shuffle.partitions", "6").getOrCreate()
    gold, run = gold_and_run()
    other = run.with_columns(pl.col("score").reverse()).sample(fraction=1, shuffle=True, seed=1)
    for name, table in (("run", run), ("other", other)):
        (folder / name).mkdir()
        for part in range(3):
            table[part * 800 : part * 800 + 800].write_parquet(folder / name / f"{part}.parquet")
    local = karat.compare(gold, {"run": run, "other": other}, MEASURES)
    whole_map, marker = engine.SparkRun.map, folder / "killed"
    engine.SparkRun.map = lambda self, function: whole_map(self, Fragile(function, marker))
    paths = [str(folder / name) for name in ("run", "other")]
    remote = karat.compare(gold, paths, MEASURES, engine="spark")
    assert marker.exists()
    for here, there in zip(local.scores, remote.scores, strict=True):
        assert there.per_query.equals(here.per_query)
        assert there.table.counts == here.table.counts
    assert remote.pairs.equals(local.pairs)
    print("equal after the loss of an executor")
    frame = session.read.parquet(paths[0])
    session.stop()
    try:
        karat.evaluate(gold, frame, "RR", engine="spark")
    except karat.InputError as error:
        print(error.problem)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
