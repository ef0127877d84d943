"""Settings of Hypothesis, which tests run by default, and the `command` fixture."""

import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from karat.cli.main import main
from karat.measures import REGISTRY
from karat.measures.registry import unregister
from support.effort import FULL

# No test fails because the machine is busy.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("here", **PATIENT)
settings.register_profile("ci", **PATIENT, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# A shell that starts pytest in the background makes it and its children ignore interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Leave tests that need further packages to `make test-integration`, which names them."""
    named = any("integration" in argument for argument in config.args)
    return True if collection_path.name == "integration" and not named else None


def pytest_collection_modifyitems(config, items):
    """Leave tests marked `slow` to `make test-slow`."""
    if FULL:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(autouse=True)
def no_measures_left():
    """Remove the measures that a test declared."""
    yield
    for declaration in [each for each in REGISTRY.values() if each.function is not None]:
        unregister(declaration)


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
