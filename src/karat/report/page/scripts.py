"""The scripts of a page: ours from the package, Vega's from the package that is installed."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec

from karat.errors import InputError

_MODULES = (
    "dom.js",
    "numbers.js",
    "data.js",
    "rows.js",
    "columns.js",
    "ranking.js",
    "calculation.js",
    "highlight.js",
    "evidence.js",
    "query.js",
    "filters.js",
    "controls.js",
    "table.js",
    "charts.js",
    "main.js",
)
_STYLES = ("page.css", "queries.css")
_IMPORTS = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export ", re.MULTILINE)


def check_installed() -> None:
    """Refuse to begin where what draws the charts is not installed."""
    for package in ("altair", "vl_convert"):
        if find_spec(package) is None:
            raise InputError(
                f"an HTML report needs {package}, which is not installed",
                hint="pip install 'karat[report]'",
            )


@cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    check_installed()
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


@cache
def own() -> str:
    """Return our modules as one script: what they import from each other stands above."""
    modules = "\n".join(map(_static, _MODULES))
    return _EXPORTS.sub("", _IMPORTS.sub("", modules))


@cache
def styles() -> str:
    """Return the style sheets as one."""
    return "\n".join(map(_static, _STYLES))


def digest(script: str) -> str:
    """Return how a Content-Security-Policy names a script that may run."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")
