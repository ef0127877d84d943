"""The help texts of all commands, compared with tests/golden/help.txt.

`make messages` (KARAT_UPDATE=1) rewrites the file after a text was changed.
"""

import typer
from click.testing import CliRunner

from karat.cli.main import app
from support.golden import check_golden
from support.paths import GOLDEN

WIDTH = 100


def test_help_has_the_wording_of_the_golden_file(monkeypatch):
    for name, value in {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    group = typer.main.get_command(app)
    pages = []
    for name in ["", *group.commands]:
        words = [*name.split(), "--help"]
        shown = CliRunner().invoke(group, words, prog_name="karat", terminal_width=WIDTH)
        assert shown.exit_code == 0, shown.output
        title = " ".join(["karat", *words])
        pages.append(f"{title}\n{'=' * len(title)}\n{shown.output}")
    check_golden(GOLDEN / "help.txt", "\n".join(pages))
