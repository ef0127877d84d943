"""How Hypothesis runs, never by the clock, in CI always on the same examples; and the command."""

import os
import signal
import sys

import pytest
from hypothesis import settings

from karat.cli.main import main

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A shell that starts us in the background has interrupts ignored, by us and all that we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Leave tests that need further packages to `make test-integration`, which names them."""
    named = any("integration" in argument for argument in config.args)
    return True if collection_path.name == "integration" and not named else None


@pytest.fixture
def command(monkeypatch, capsys):
    """Run karat in this process; return exit code, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["karat", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run
