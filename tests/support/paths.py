"""Where the project, the golden files and the shared data are."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
SHARED_DATA = ROOT.parent / "shared" / "data"
