"""The wording of every message, compared with tests/golden/messages.txt and nowhere else.

`make messages` (KARAT_UPDATE=1) rewrites the file after a message was changed.
"""

from importlib import import_module

import pytest

from messages.cases import recorded_sites, result
from messages.sites import KINDS, found_sites, source_line
from support.golden import check_golden
from support.paths import GOLDEN

MODULES = (
    "batches",
    "data_files",
    "data_formats",
    "data_python",
    "fusion",
    "history",
    "measures",
    "match",
    "evaluation",
    "gate",
    "stats",
    "report",
    "saved_scores",
    "presets",
    "chunk",
    "config",
    "compat",
    "live_retrievers",
    "live_built_in",
    "search_engines",
    "live_runs",
    "cli",
)
SECTIONS = [import_module(f"messages.{name}").SECTION for name in MODULES]

UNREACHABLE: dict[str, str] = dict.fromkeys(
    (
        "engines/spark_session.py:session",
        "engines/spark_session.py:spark_errors",
        "engines/spark_session.py:_check_master",
        "engines/spark_session.py:_require_parquet",
        "engines/spark.py:SparkRun._check_columns",
        "engines/spark.py:SparkRun._check_reading",
        "engines/spark.py:_wrong_type",
        "engines/spark_tasks.py:Locate.__call__",
    ),
    "they need Java and pyspark; tests/integration/test_spark.py checks them",
)
"""Calls that no case can reach on every machine, by file and function, with the reason."""


@pytest.fixture(scope="module")
def provoked():
    """The text of all messages, and the lines of karat at which they were made."""
    with recorded_sites(KINDS) as sites:
        parts = []
        for section in SECTIONS:
            parts.append(f"{section.package}\n{'=' * len(section.package)}")
            parts += [f"{case.name}\n{result(case)}" for case in section.cases]
    return "\n\n".join(parts) + "\n", sites


def test_messages_have_the_wording_of_the_golden_file(provoked):
    check_golden(GOLDEN / "messages.txt", provoked[0])


def test_every_message_is_provoked_by_a_case(provoked):
    unreached = [site for site in found_sites() if site.end not in provoked[1]]
    missed = [site for site in unreached if not site.is_named(set(UNREACHABLE))]
    assert not missed, "no case in tests/messages/ reaches:\n" + "\n".join(
        f"{site}  {source_line(site)}" for site in missed
    )
    reached = [name for name in UNREACHABLE if not any(s.is_named({name}) for s in unreached)]
    assert not reached, f"these are reached, or not in the source any more: {reached}"
