"""Changes to valid inputs: values, rows, columns, keys, the way text is written, bytes.

Every function draws from a seeded `random.Random`, so that a seed gives the same input again.
"""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import random
import sys
from collections.abc import Callable
from typing import Any

from fuzz.samples import Record, Row

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HUGE = "<a number of 5000 digits>"
DEEP = "<a list in a list, 100000 deep>"
DEEPER_THAN_CALLS = "<a list in a list, 700 deep>"  # Python reads it, recursive functions do not
UNREADABLE = (HUGE, DEEP, DEEPER_THAN_CALLS)

TEXT_VALUES = (
    *("", " ", "  x ", "a b", "a\tb", "a\nb", "a\r\nb", "a\rb", 'a"b', '"', "a,b", "'", "\\", "#q"),
    *("0", "1", "-1", "+1", "-0", "007", "1.0", "2.0", "1.5", "1e0", "1e2", "1E400", "-1e400"),
    *("nan", "NaN", "inf", "-inf", "Infinity", "1_000", "1,5", "0x10", "٣", "１", ".5", "5.", "."),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "2147483648"),
    *("4294967296", "4294967297", "9007199254740993", "0.1000000000000000055511151231257827"),
    *("5e-324", "1.7976931348623157e308", "true", "True", "null", "None", "[]", "{}", '["d1"]'),
    *("é", "e\u0301", "\u202edoc", "😀", "\ufeff", "\u2028", "\x85", "\xa0", "\u200b", "İ", "ß"),
    *("\x1b]0;x\x07", "\x1b[2J", "\x00", "d\x001", "\x7f", "\ud7ff", "\U0010ffff", "d1", "d2"),
    *("q0", "q1", "query_id", "9" * 5000, "0" * 5000 + "1", "0." + "3" * 400, "x" * 3000),
)
JSON_VALUES = (
    *(None, True, False, 0, 1, -1, 2, 1.0, 2.0, 1.5, -0.0, 1e300, 5e-324, 2**31, 2**53 + 1, 2**63),
    *(2**64, -(2**63) - 1, HUGE, HUGE, float("nan"), float("inf"), -float("inf")),
    *([], {}, [[]], [{}], {"": ""}, {"a": {}}, [1, "a", None], {"d1": 1}, ["d1", "d2"], ["d1"] * 3),
    *([{"chunk_id": "d1", "grade": 1}], [{"text": "x"}], [["d1", 0.5]], {"d1": {"d2": 1}}),
)
COLUMN_NAMES = (
    *("query_id", "qid", "topic", "id", "item_id", "doc_id", "docno", "chunk_id", "grade", "rel"),
    *("score", "rank", "start", "end", "text", "tokens", "evidence", "query", "label", "Score"),
    *(
        " score ",
        "x",
        "",
        "\x1b[2J",
        "a\nb",
        "__proto__",
        "retrieved_contexts",
        "reference_contexts",
    ),
)
RECORD_KEYS = (
    *("query_id", "qid", "id", "_id", "query", "text", "relevant", "expected", "spans", "evidence"),
    *(
        "results",
        "candidates",
        "latency_ms",
        "calls",
        "error",
        "attempts",
        "varied",
        "any_of",
        "doc_id",
        "start",
    ),
    *(
        "end",
        "score",
        "tokens",
        "grade",
        "karat",
        "kind",
        "offsets",
        "settings",
        "x",
        "",
        "\x1b[2J",
    ),
    *("relevent", "retrieved_contexts", "reference_contexts", "user_input", "metadata", "title"),
)
ODD_BYTES = (
    *(b"\x00", b"\r", b"\n", b"\r\n", b"\x1b", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80"),
    *(b"\t", b" ", b",", b'"', b"#", b"\\", b"0", b"-", b"e", b"\xe2\x80\xa8", b"\x1c", b"\x0b"),
)


def text_value(draw: random.Random) -> str:
    return draw.choice(TEXT_VALUES)


def json_value(draw: random.Random) -> Any:
    if draw.random() < 0.4:
        return text_value(draw)
    if draw.random() < 0.03:
        return draw.choice([nested(5), nested(40), DEEP, DEEPER_THAN_CALLS])
    return copy.deepcopy(draw.choice(JSON_VALUES))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def change_table(draw: random.Random, names: list[str], rows: list[Row]) -> str:
    """Change one thing in a table in place; return what was done."""

    def replace_value() -> None:
        row = draw.choice(rows)
        row[draw.randrange(len(row))] = text_value(draw)

    def replace_column() -> None:
        value, at = text_value(draw), draw.randrange(len(names))
        for row in rows:
            row[at : at + 1] = [value]

    def quote_numbers() -> None:
        at = draw.randrange(len(names))
        for row in rows:
            row[at : at + 1] = [
                f" {value}" if draw.random() < 0.5 else value for value in row[at:][:1]
            ]

    def rename() -> None:
        at = draw.randrange(len(names))
        names[at] = draw.choice(
            [draw.choice(COLUMN_NAMES), names[at].upper(), f'{names[at]} "', f"{names[at]} "]
        )

    def drop_column() -> None:
        at = draw.randrange(len(names))
        del names[at]
        for row in rows:
            del row[at : at + 1]

    def duplicate_column() -> None:
        at = draw.randrange(len(names))
        names.append(names[at] if draw.random() < 0.5 else draw.choice(COLUMN_NAMES))
        for row in rows:
            row += row[at : at + 1]

    def swap_columns() -> None:
        one, other = draw.randrange(len(names)), draw.randrange(len(names))
        names[one], names[other] = names[other], names[one]

    def move_column() -> None:
        at, to = draw.randrange(len(names)), draw.randrange(len(names))
        for row in [names, *rows]:
            row.insert(to, row.pop(at) if at < len(row) else "")

    def cut_row() -> None:
        row = draw.choice(rows)
        del row[draw.randrange(len(row)) :]

    def widen_row() -> None:
        draw.choice(rows).append(text_value(draw))

    def move_value() -> None:  # one row is too long and another one too short
        value = draw.choice(rows).pop()
        row = draw.choice(rows)
        row.insert(draw.randrange(len(row) + 1), value)

    def duplicate_row() -> None:
        rows.insert(draw.randrange(len(rows) + 1), list(draw.choice(rows)))

    def same_item_again() -> None:
        row = list(draw.choice(rows))
        row[-1] = draw.choice([0, 1, 2.5, "3"])
        rows.append(row)

    def drop_row() -> None:
        del rows[draw.randrange(len(rows))]

    def shuffle() -> None:
        draw.shuffle(rows)

    if not names or not rows or not all(rows):
        return "nothing left to change"
    change = draw.choice(
        [replace_value] * 6
        + [replace_column, quote_numbers, rename, rename, drop_column, duplicate_column]
        + [
            swap_columns,
            move_column,
            cut_row,
            widen_row,
            move_value,
            duplicate_row,
            same_item_again,
        ]
        + [drop_row, shuffle, shuffle]
    )
    change()
    return change.__name__


def change_records(draw: random.Random, records: list[Any]) -> str:
    """Change one thing in records, at any depth, in place; return what was done."""
    objects: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, (dict, list)):
            objects.append(value)
            for inner in value.values() if isinstance(value, dict) else value:
                collect(inner)

    collect(records)
    holder = draw.choice([value for value in objects if value] or [records])
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return "nothing left to change"
    key = draw.choice(keys)

    def replace() -> None:
        holder[key] = json_value(draw)

    def drop() -> None:
        del holder[key]

    def duplicate() -> None:
        value = copy.deepcopy(holder[key])
        if isinstance(holder, dict):
            holder[draw.choice(RECORD_KEYS)] = value
        else:
            holder.insert(draw.randrange(len(holder) + 1), value)

    def rename() -> None:
        if isinstance(holder, dict):
            name = text_value(draw) if draw.random() < 0.3 else draw.choice(RECORD_KEYS)
            holder[name] = holder.pop(key)

    def add() -> None:
        if isinstance(holder, dict):
            holder[draw.choice(RECORD_KEYS)] = json_value(draw)
        else:
            holder.append(json_value(draw))

    def wrap() -> None:
        value = holder[key]
        holder[key] = draw.choice([[value], {"id": value}, {"text": value}, str(value)])

    def retype() -> None:
        value = holder[key]
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            holder[key] = json_value(draw)
        elif isinstance(value, str):
            holder[key] = draw.choice([len(value), float(len(value)), value.upper(), value + " "])
        else:
            holder[key] = draw.choice([str(value), -value, value * 1.0, value + 0.5, value * 10**9])

    def shuffle() -> None:
        if isinstance(holder, list):
            draw.shuffle(holder)
        else:
            pairs = list(holder.items())
            draw.shuffle(pairs)
            holder.clear()
            holder.update(pairs)

    change = draw.choice(
        [replace, replace, replace, drop, duplicate, rename, add, wrap, retype] * 2 + [shuffle]
    )
    change()
    return change.__name__


def change_columns(draw: random.Random, columns: dict[str, list[Any]]) -> str:
    """Change one thing in columns of typed values in place; return what was done."""

    def retype() -> None:
        name = draw.choice(list(columns))
        kinds: list[Callable[[Any], Any]] = [
            str,
            bool,
            lambda value: float(len(str(value))),
            lambda value: len(str(value)),
            lambda value: [value],
            lambda value: {"a": value},
            lambda value: str(value).encode(),
            lambda value: None,
            lambda value: [str(value), "x"],
        ]
        kind = draw.choice(kinds)
        columns[name] = [kind(value) for value in columns[name]]

    def replace() -> None:
        values = columns[draw.choice(list(columns))]
        like = next((value for value in values if value is not None), "")
        pool: list[Any] = [None, None]
        if isinstance(like, str):
            pool += [text_value(draw)] * 4
        elif isinstance(like, (int, float)):
            pool += [-1, 0, 1, 2**31, 2**62, -(2**62), 2**40]
        if isinstance(like, float):
            pool += [float("nan"), float("inf"), -float("inf"), 0.5, 1e300, -0.0, 5e-324]
        values[draw.randrange(len(values))] = draw.choice(pool)

    def rename() -> None:
        names = list(columns)
        at = draw.randrange(len(names))
        names[at] = draw.choice(COLUMN_NAMES)
        values = list(columns.values())
        columns.clear()
        columns.update(zip(names, values, strict=True))

    def drop() -> None:
        del columns[draw.choice(list(columns))]

    def duplicate() -> None:
        columns[draw.choice(COLUMN_NAMES)] = list(columns[draw.choice(list(columns))])

    def swap() -> None:
        one, other = draw.choice(list(columns)), draw.choice(list(columns))
        columns[one], columns[other] = columns[other], columns[one]

    def duplicate_row() -> None:
        at = draw.randrange(len(next(iter(columns.values()))))
        for values in columns.values():
            values.append(values[at])

    def shuffle() -> None:
        order = list(range(len(next(iter(columns.values())))))
        draw.shuffle(order)
        for name, values in columns.items():
            columns[name] = [values[at] for at in order]

    def no_rows() -> None:
        for name in columns:
            columns[name] = []

    if not columns or not next(iter(columns.values())):
        return "nothing left to change"
    change = draw.choice(
        [retype, retype, rename, drop, duplicate, swap, duplicate_row, shuffle, shuffle]
        + [replace] * 5
        + ([no_rows] if draw.random() < 0.2 else [])
    )
    change()
    return change.__name__


def written_lines(draw: random.Random, lines: list[str], odd: bool) -> bytes:
    """Join lines; `odd` varies line ends and adds blank lines, comments and a byte order mark."""
    if not odd:
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    end = draw.choice(["\n", "\r\n", "\r\n", "\r", "mixed"])
    lines = list(lines)
    for _ in range(draw.randint(0, 2)):
        blank = draw.choice(["", " ", "\t", "# comment", "#", "\ufeff", ","])
        lines.insert(draw.randrange(len(lines) + 1), blank)
    text = "".join(
        line + (draw.choice(["\n", "\r\n", "\n", "\r"]) if end == "mixed" else end)
        for line in lines
    )
    if draw.random() < 0.3:
        text = text.rstrip("\r\n")
    if draw.random() < 0.2:
        text = "\ufeff" + text
    return text.encode("utf-8", "surrogatepass")


def separated(draw: random.Random, rows: list[Row], odd: bool, separator: str | None) -> bytes:
    """Write rows with a separator, or with mixed white space if it is None."""
    lines = []
    for row in rows:
        gaps = [separator or (draw.choice(["\t", "  ", " \t ", " "]) if odd else " ") for _ in row]
        line = "".join(f"{value}{gap}" for value, gap in zip(row, gaps, strict=True))
        lines.append(line if odd and draw.random() < 0.1 else line[: -len(gaps[-1])] if row else "")
    return written_lines(draw, lines, odd)


def delimited(
    draw: random.Random, names: list[str], rows: list[Row], odd: bool, separator: str
) -> bytes:
    """Write CSV or TSV; `odd` varies quotes, line ends, separator and header."""
    file = io.StringIO(newline="")
    ends = draw.choice(["\n", "\r\n"]) if odd else "\n"
    quoting = draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]) if odd else 0
    if odd and draw.random() < 0.1:
        separator = draw.choice([",", "\t", ";", " "])
    writer = csv.writer(file, delimiter=separator, lineterminator=ends, quoting=quoting)
    writer.writerows(rows if odd and draw.random() < 0.1 else [names, *rows])
    if not odd or draw.random() < 0.6:
        return file.getvalue().encode("utf-8", "surrogatepass")
    if draw.random() < 0.3:  # no quotes at all, however necessary
        lines = [separator.join(map(str, row)) for row in [names, *rows]]
    else:
        lines = file.getvalue().split(ends)[:-1]
    return written_lines(draw, lines, odd=True)


def json_lines(draw: random.Random, records: list[Any], odd: bool) -> bytes:
    """Write JSON Lines; `odd` varies spaces, escapes, the order of keys and line ends."""
    lines = []
    for record in records:
        if odd and isinstance(record, dict) and draw.random() < 0.2:
            record = dict(reversed(record.items()))
        gaps = draw.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")]) if odd else None
        line = json_text(record, ensure_ascii=not odd or draw.random() < 0.5, separators=gaps)
        if odd and draw.random() < 0.1 and line.endswith("}") and len(line) > 2:
            line = line[:-1] + "," + line[1:]  # every key twice
        if odd and draw.random() < 0.1:
            line = draw.choice([" ", "\t", ""]) + line + draw.choice([" ", "\t", ",", "}"])
        lines.append(line)
    return written_lines(draw, lines, odd and draw.random() < 0.6)


def toml(draw: random.Random, settings: Record, odd: bool) -> bytes:
    """Write karat.toml."""
    lines = []
    for section, table in settings.items():
        if not isinstance(table, dict):
            lines.insert(0, f"{toml_key(section)} = {toml_value(table)}")
            continue
        lines.append(f"[{toml_key(section)}]")
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items()]
    return written_lines(draw, lines, odd)


def json_text(value: Any, **options: Any) -> str:
    """Write JSON, with numbers and nesting that Python refuses to write."""
    text = json.dumps(value, **options)
    text = text.replace(json.dumps(HUGE), "9" * 5000)
    text = text.replace(json.dumps(DEEPER_THAN_CALLS), "[" * 700 + '"d1\\u0000"' + "]" * 700)
    return text.replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)


def toml_key(key: Any) -> str:
    return json.dumps(str(key))


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return '""' if value is None else json_text(value)


def change_bytes(draw: random.Random, data: bytes, tail: bool = False) -> bytes:
    """Flip, delete, repeat, cut or insert bytes; `tail` prefers the end, where footers are."""
    if not data:
        return draw.choice(ODD_BYTES)
    least = max(0, len(data) - 400) if tail and draw.random() < 0.6 else 0
    at = draw.randrange(least, len(data))
    end = min(len(data), at + draw.choice([1, 1, 2, 8, 40]))
    kind = draw.choice(
        ["flip", "flip", "insert", "insert", "delete", "repeat", "cut", "move", "set"]
    )
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if kind == "set":
        return (
            data[:at]
            + bytes([draw.choice([0, 255, 127, 128, draw.randrange(256)])])
            + data[at + 1 :]
        )
    if kind == "insert":
        return data[:at] + draw.choice(ODD_BYTES) + data[at:]
    if kind == "delete":
        return data[:at] + data[end:]
    if kind == "repeat":
        return data[:end] + data[at:]
    if kind == "cut":
        return data[:at]
    to = draw.randrange(len(data))
    return data[:to] + data[at:end] + data[to:]


def compress(draw: random.Random, data: bytes) -> tuple[str, bytes]:
    """Compress, and sometimes damage what comes out; return the ending and the bytes."""
    ending = draw.choice([".gz", ".zst"])
    packed = gzip.compress(data, mtime=0) if ending == ".gz" else zstd.compress(data)
    if draw.random() < 0.3:
        packed = change_bytes(draw, packed)
    return ending, packed
