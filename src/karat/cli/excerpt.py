"""The line of a file that an error is about, with carets below the wrong value."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from pathlib import Path

from karat.data.formats.json_text import Extent, Mistake, after_space, value_extent
from karat.errors import InputError, printable, readable
from karat.files import Source

_LARGEST_FILE = 1 << 30  # reading up to the line takes about a second
_LONGEST_LINE = 1 << 20
_SECRET_FIELDS = {"--header-file", "template"}  # files with headers and requests
_JSON_LINES = {".jsonl", ".ndjson"}
# The positions of fields in a line, by the number of its fields.
_TREC_FIELDS = {
    4: {"query_id": 0, "item_id": 2, "grade": 3},
    6: {"query_id": 0, "item_id": 2, "rank": 3, "score": 4},
}
_QUOTED = re.compile("'([^']+)'")
_GOT = re.compile(", got (.+)$")
_WORD = re.compile(r"\S+")
_TOML_NAME = re.compile(r""""([^"]*)"|'([^']*)'|([^."'\s]+)""")
_TOML_TABLE = re.compile(r"\s*\[+([^\[\]]+)\]")
_TOML_VALUE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#])*""")
_TOML_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=""")


def with_excerpt(error: InputError) -> str:
    """Return the message of an error with the line that it is about, if that can be shown.

    Lines of compressed files, of pipes and of files with secrets are not shown.
    """
    excerpt = None
    if error.path is not None and error.field not in _SECRET_FIELDS:
        try:
            excerpt = _excerpt(Path(error.path), error)
        except (OSError, ValueError, LookupError, RecursionError):
            excerpt = None  # the message says what is wrong even without its line
    if excerpt is None:
        return str(error)
    hint = f"\n  hint: {readable(error.hint)}" if error.hint else ""
    return f"{str(error).removesuffix(hint)}\n{excerpt}{hint}"


def _excerpt(path: Path, error: InputError) -> str | None:
    if not path.is_file() or Source(path).compression or path.stat().st_size > _LARGEST_FILE:
        return None
    if path.suffix == ".toml":
        return _toml_excerpt(path.read_text(encoding="utf-8"), error)
    if error.line is None:
        return None
    with path.open("rb") as file:
        line = next(islice(file, error.line - 1, None), b"").rstrip(b"\r\n")
    if not line or len(line) > _LONGEST_LINE or line.count(0) > len(line) // 4:
        return None  # the last is UTF-16, or not text
    if error.line == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.decode()
    except UnicodeDecodeError as wrong:
        start = len(line[: wrong.start].decode())
        extent = (start, start + 1) if error.field == "encoding" else None
        return _drawn(line.decode(errors="replace"), error.line, extent)
    return _drawn(text, error.line, _extent(text, path, error))


def _extent(text: str, path: Path, error: InputError) -> Extent | None:
    """Return where the wrong value is in its line, or None if that is not certain."""
    field = error.field or ""
    if text.startswith("{") and path.suffix in _JSON_LINES:
        extent = _json_mistake(text) or value_extent(text, field)
    else:
        extent = _table_value(text, path, field) or _trec_value(text, field)
    return extent or _quoted_value(text, error.problem)


def _quoted_value(text: str, problem: str) -> Extent | None:
    """Return where a value that the message quotes occurs, if it occurs once."""
    for value in (*_QUOTED.findall(problem), *_GOT.findall(problem)):
        extents = [found.span() for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text)]
        if len(extents) == 1:
            return extents[0]
    return None


def _trec_value(text: str, field: str) -> Extent | None:
    words = [word.span() for word in _WORD.finditer(text)]
    position = _TREC_FIELDS.get(len(words), {}).get(field)
    return None if position is None else words[position]


def _table_value(text: str, path: Path, field: str) -> Extent | None:
    """Return where the value of a column is, if the first line of the file names the column."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline(_LONGEST_LINE)
    for separator in ("\t", ",", ";") if field else ():
        names = [header[slice(*cell)].strip('" \n').lower() for cell in _cells(header, separator)]
        if len(names) > 1 and field.lower() in names:
            return list(_cells(text, separator))[names.index(field.lower())]
    return None


def _cells(line: str, separator: str) -> Iterator[Extent]:
    cell = re.compile(rf'(?:^|{separator})("(?:[^"]|"")*"|[^{separator}]*)')
    return (found.span(1) for found in cell.finditer(line))


def _json_mistake(text: str) -> Extent | None:
    """Return where a line is not JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        position = Mistake.of(text, "line", error).position
        return position, position + 1
    return None


def _toml_excerpt(text: str, error: InputError) -> str | None:
    """Return the line of a setting, without the values of settings that may be secret."""
    from karat.live.redaction import looks_secret

    settings, lines = list(_toml_settings(text)), text.split("\n")
    number = error.line or _toml_line(settings, lines, error)
    if number is None or number > len(settings):
        return None
    line, (names, extent) = lines[number - 1].rstrip("\r"), settings[number - 1]
    if any(looks_secret(word) or "header" in word.lower() for word in (*names, line)):
        return None
    return _drawn(line, number, _quoted_value(line, error.problem) or extent)


def _toml_settings(text: str) -> Iterator[tuple[list[str], Extent | None]]:
    """Yield for each line the table and the key that it sets, and where its value is.

    The further lines of a value, such as those of a list, have the same table and key.
    """
    table: list[str] = []
    names: list[str] = []
    for line in io.StringIO(text):
        if header := _TOML_TABLE.match(line):
            table = names = _toml_names(header[1])
            yield table, header.span(1)
            continue
        setting = _TOML_KEY.match(line)
        if setting is not None:
            names = [*table, *_toml_names(setting[1])]
        start = after_space(line, 0 if setting is None else setting.end())
        value = _TOML_VALUE.match(line, start)
        end = start if value is None else start + len(value[0].rstrip())
        yield names, (start, end) if end > start else None


def _toml_line(
    settings: Sequence[tuple[list[str], Extent | None]], lines: Sequence[str], error: InputError
) -> int | None:
    """Return the number of the line of a setting, and of a list the one with the quoted value."""
    names = _toml_names(error.field or "")
    for wanted in ([*names, *_QUOTED.findall(error.problem)[:1]], names, names[:-1]):
        numbers = [
            number
            for number, (setting, extent) in enumerate(settings, 1)
            if extent is not None and setting == wanted and wanted
        ]
        quoting = [n for n in numbers if _quoted_value(lines[n - 1], error.problem)]
        if numbers:
            return (quoting or numbers)[0]
    return None


def _toml_names(path: str) -> list[str]:
    return ["".join(found.groups(default="")) for found in _TOML_NAME.finditer(path)]


def _drawn(text: str, number: int, extent: Extent | None) -> str:
    """Return the line with its number, cut around the value, and carets below the value."""
    from rich.cells import cell_len

    gutter = f"  {number:,} | "
    room = max(30, min(shutil.get_terminal_size().columns, 120) - len(gutter))
    text = printable(text.replace("\t", "→"))
    start, end = extent or (0, 0)
    first, last = _window(text, start, room - 2)
    left, right = "…" if first else "", "…" if last < len(text) else ""
    lines = [f"{gutter}{left}{text[first:last]}{right}"]
    if extent is not None:
        before = cell_len(left + text[first:start])
        width = max(1, cell_len(text[start : min(end, last)]))
        lines.append(f"{' ' * (len(gutter) - 2)}| {' ' * before}{'^' * width}")
    return "\n".join(lines)


def _window(text: str, start: int, room: int) -> Extent:
    """Return the part of a line to show: a value and the text before it, within a width."""
    from rich.cells import cell_len

    def count(characters: Iterable[str], columns: int) -> int:
        # Characters without a width count, too: a long line may consist of them.
        widths = accumulate(max(1, cell_len(character)) for character in characters)
        return sum(1 for _ in takewhile(lambda width: width <= columns, widths))

    first = start - count(reversed(text[:start]), room // 3)
    last = first + count(islice(text, first, None), room)
    if last == len(text):
        first = last - count(reversed(text), room)
    return first, last
