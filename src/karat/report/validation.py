"""The result of `validate` as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from karat.errors import printable
from karat.evaluation.validation import Validation
from karat.evaluation.validation_checks import Example
from karat.report.terminal import WIDTH, plain_lines, shorten

_ID_WIDTH = 32


def text(validation: Validation) -> str:
    """Return the findings with examples, most severe first, and a summary in one line."""
    return "\n".join(_lines(validation))


def _lines(validation: Validation) -> Iterator[str]:
    if validation.findings:
        rows = [
            [
                finding.severity,
                finding.kind,
                shorten(finding.source, _ID_WIDTH),
                f"{finding.count:,}",
            ]
            for finding in validation.findings
        ]
        yield from plain_lines(["", "finding", "in", "count"], rows, 3)
        yield ""
    for finding in validation.findings:
        where = "" if finding.source == "gold" else f" in {shorten(finding.source, _ID_WIDTH)}"
        yield from _wrap(f"{finding.kind}{where}: {finding.meaning}", "")
        for example in finding.examples:
            yield from _wrap(_example_text(example), "  ")
            if example.hint:
                yield from _wrap(f"hint: {printable(example.hint)}", "    ")
        if finding.examples and (more := finding.count - len(finding.examples)):
            yield f"  and {more:,} more"
        if finding.hint:
            yield from _wrap(f"hint: {printable(finding.hint)}", "  ")
        yield ""
    for source, names in validation.recognised.items():
        if any(ours != theirs for ours, theirs in names.items()):
            yield from _wrap(printable(_recognised(source, names, validation.fields)), "")
    yield from _wrap(validation.verdict, "")


def _recognised(source: str, names: dict[str, str], fields: tuple[str, ...]) -> str:
    """Return a sentence with the columns or keys that were read, and as what."""
    pairs = (ours if ours == theirs else f"{ours} from {theirs}" for ours, theirs in names.items())
    also = f"; fields: {', '.join(fields)}" if fields and source == "gold" else ""
    return f"read {shorten(source, _ID_WIDTH)}: {', '.join(pairs)}{also}"


def _example_text(example: Example) -> str:
    words = [
        f"{word} {shorten(name, _ID_WIDTH)}"
        for word, name in (
            ("query", example.query_id),
            ("item", example.item_id),
            ("document", example.doc_id),
        )
        if name is not None
    ]
    if example.start is not None:
        words.append(f"[{example.start}, {example.end})")
    file = None if example.line is None else f"{printable(example.path or 'line')}:{example.line}"
    return ": ".join(part for part in (file, ", ".join(words), printable(example.problem)) if part)


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
