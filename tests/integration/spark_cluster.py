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

MEASURES = ["nDCG@10", "AP"]


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


def main(folder):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    session = builder.config("spark.sql.shuffle.partitions", "6").getOrCreate()
    chance = random.Random(8)
    rows = [(f"q{at}", f"d{item}", chance.random()) for at in range(200) for item in range(12)]
    gold = {f"q{at}": {f"d{chance.randrange(12)}": 1} for at in range(210)}
    run = pl.DataFrame(rows, schema=["query_id", "item_id", "score"], orient="row")
    run.write_parquet(folder / "run.parquet")
    local = karat.evaluate(gold, run, MEASURES)
    whole_map, marker = engine.SparkRun.map, folder / "killed"
    engine.SparkRun.map = lambda self, function: whole_map(self, Fragile(function, marker))
    scores = karat.evaluate(gold, str(folder / "run.parquet"), MEASURES, engine="spark")
    assert marker.exists()
    assert scores.per_query.equals(local.per_query)
    assert scores.table.counts == local.table.counts
    print("equal after the loss of an executor")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
