"""How Hypothesis runs: never by the clock; in CI always on the same examples."""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_ignore_collect(collection_path, config):
    """Leave tests that need further packages to `make test-integration`, which names them."""
    named = any("integration" in argument for argument in config.args)
    return True if collection_path.name == "integration" and not named else None
