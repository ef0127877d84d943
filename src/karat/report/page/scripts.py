"""The scripts and styles of a page: its own, and the Vega bundle from vl-convert."""

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
    "state.js",
    "export.js",
    "run_colours.js",
    "rows.js",
    "dots.js",
    "columns.js",
    "ranking.js",
    "calculation.js",
    "documents.js",
    "evidence.js",
    "query.js",
    "filters.js",
    "controls.js",
    "query_export.js",
    "table.js",
    "charts.js",
    "main.js",
)
_STYLES = ("theme.css", "page.css", "queries.css", "query.css")
_IMPORTS = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export ", re.MULTILINE)


def check_installed() -> None:
    """Raise InputError if a package that draws the charts is not installed."""
    for package in ("altair", "vl_convert"):
        if find_spec(package) is None:
            raise InputError(
                f"an HTML report needs {package}, which is not installed",
                hint="pip install 'karat[report]'",
            )


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script.

    Bundling takes longer than the rest of a page, and the script only changes with the version of
    vl-convert, so it is kept in the user's cache folder if that is writable.
    """
    check_installed()
    folder = _cache_folder()
    cached = None if folder is None else folder / f"vega-{version('vl-convert-python')}.js"
    if cached is not None:
        with suppress(OSError, UnicodeDecodeError):
            return cached.read_bytes().decode()
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if cached is not None:
        with suppress(OSError, InputError):
            cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with writing(cached) as file:
                file.write(script.encode())
    return script


def _cache_folder() -> Path | None:
    """Return the cache folder of karat, or None if the user has no home folder."""
    chosen = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(chosen) if chosen else Path.home() / ".cache") / "karat"
    except RuntimeError:  # no home
        return None


@cache
def page_script() -> str:
    """Return the modules of the page as one script, in the order of their imports."""
    modules = "\n".join(map(_static, _MODULES))
    return _EXPORTS.sub("", _IMPORTS.sub("", modules))


@cache
def styles() -> str:
    """Return all style sheets of the page as one."""
    return "\n".join(map(_static, _STYLES))


def csp_hash(script: str) -> str:
    """Return the hash that allows a script in a Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")
