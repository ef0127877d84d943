"""The help texts of all commands, compared with tests/golden/help.txt.

`make messages` (KARAT_UPDATE=1) rewrites the file after a text was changed.
"""

import pytest

from karat.cli.main import app
from support.golden import check_golden
from support.paths import GOLDEN


def test_help_has_the_wording_of_the_golden_file(capsys, monkeypatch):
    for name, value in {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    pages = []
    for name in ["", *app.commands]:
        words = [*name.split(), "--help"]
        with pytest.raises(SystemExit) as ended:
            app(words, prog_name="karat")
        assert not ended.value.code
        title = " ".join(["karat", *words])
        pages.append(f"{title}\n{'=' * len(title)}\n{capsys.readouterr().out}")
    check_golden(GOLDEN / "help.txt", "\n".join(pages))
