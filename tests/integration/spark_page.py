"""Run the examples of docs/spark.md, then start workers that lack karat: run by test_spark.py."""

import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import karat
import test_docs


def main(page):
    """Run all examples in one process; rewrite their output if KARAT_UPDATE is set."""
    names, source = {}, page.read_text(encoding="utf-8")
    for block in test_docs.BLOCK.finditer(source):
        language, _, text, shown = block.groups()
        if language != "python":
            continue
        with redirect_stdout(StringIO()) as output:
            exec(compile(text, page.name, "exec"), names)
        printed = (
            "\n".join(line.rstrip() for line in output.getvalue().rstrip().splitlines()) + "\n"
        )
        if os.environ.get("KARAT_UPDATE"):
            updated = f"```python\n{text}```\n\n```text\n{printed}```"
            source = source.replace(block[0], updated)
        else:
            assert printed == (shown or ""), f"{text}\nprints:\n{printed}"
    page.write_text(source, encoding="utf-8")
    print("the page is up to date")
    names["spark"].stop()


def without_karat():
    """Start a session whose workers have another Python, as without PYSPARK_PYTHON."""
    from pyspark.sql import SparkSession

    folder = Path("bin")
    folder.mkdir()
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (folder / "python3").chmod(0o755)
    os.environ["PYSPARK_PYTHON"] = str((folder / "python3").resolve())
    session = SparkSession.builder.master("local[1]").getOrCreate()
    run = session.createDataFrame(
        [("q1", "a", 1.0)], "query_id string, item_id string, score double"
    )
    try:
        karat.evaluate({"q1": ["a"]}, run, "RR", engine="spark")
    except karat.InputError as error:
        print("workers cannot import" if "cannot import" in str(error) else error)
    session.stop()


if __name__ == "__main__":
    main(Path(__file__).parents[2] / "docs" / "spark.md")
    without_karat()
