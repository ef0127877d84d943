"""The scripts of a page: ours from the package, Vega's from the package that is installed."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from karat.errors import InputError
from karat.files import writing

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
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script.

    Bundling takes longer than the rest of a page, and the script changes only with the version of
    vl-convert: so it is kept in the user's cache folder, if that can be written.
    """
    check_installed()
    folder = _cache_folder()
    kept = None if folder is None else folder / f"vega-{version('vl-convert-python')}.js"
    if kept is not None:
        with suppress(OSError, UnicodeDecodeError):
            return kept.read_bytes().decode()
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if kept is not None:
        with suppress(OSError, InputError):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with writing(kept) as file:
                file.write(script.encode())
    return script


def _cache_folder() -> Path | None:
    """Return where karat may keep files that it can make again; None if there is no such place."""
    chosen = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(chosen) if chosen else Path.home() / ".cache") / "karat"
    except RuntimeError:  # no home
        return None


@cache
def page_script() -> str:
    """Return our modules as one script: what they import from each other stands above."""
    modules = "\n".join(map(_static, _MODULES))
    return _EXPORTS.sub("", _IMPORTS.sub("", modules))


@cache
def styles() -> str:
    """Return the style sheets as one."""
    return "\n".join(map(_static, _STYLES))


def csp_hash(script: str) -> str:
    """Return how a Content-Security-Policy names a script that may run."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")
