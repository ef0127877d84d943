"""Verdicts as text, Markdown, JUnit XML and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from karat.errors import printable
from karat.evaluation.gate_checks import BlamedQuery, Check
from karat.evaluation.verdict import GateEntry, Verdict, document
from karat.format import probability, to_json
from karat.report.markdown import escape, pipe_table
from karat.report.terminal import WIDTH, cell_width, plain_lines, shorten
from karat.report.writers import REPORT_HINT, Writers

_ID_WIDTH = 32


def text(verdict: Verdict) -> str:
    """Return a verdict as text of 80 columns."""
    heads, rows = check_rows(verdict)
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(cell_width, column)) + 2 for column in columns]
    room = max(WIDTH - sum(widths) + widths[1], len(heads[1]))
    for row in rows:
        row[1] = shorten(row[1], room)
    lines = plain_lines(heads, rows, 2)
    for check in verdict.failures:
        lines += ["", *_wrap(f"failed: {check.name}", "")]
        for sentence in failure_lines(check):
            lines += _wrap(sentence, "  ")
    if verdict.failures:
        lines.append("")
    for remark in [*verdict.remarks, verdict.summary]:
        lines += _wrap(remark, "")
    return "\n".join(lines)


def markdown(entries: Sequence[GateEntry]) -> str:
    """Return the verdicts of several gates as Markdown."""
    return "\n".join(part for entry in entries for part in _sections(entry))


def failure_lines(check: Check) -> Iterator[str]:
    """Yield by how much a check failed, and the queries that contributed most."""
    yield check.reason
    if check.blamed:
        queries = ", ".join(_format_blamed(query, check) for query in check.blamed)
        total = f" (of {check.to_blame:,})" if check.to_blame > len(check.blamed) else ""
        yield f"{check.guilt}{total}: {queries}"


def _format_blamed(query: BlamedQuery, check: Check) -> str:
    name, value = shorten(query.query_id, _ID_WIDTH), check.shown(query.value)
    before = "" if query.baseline is None else f"{check.shown(query.baseline)} → "
    return f"{name} {before}{value}"


def check_rows(verdict: Verdict) -> tuple[list[str], list[list[str]]]:
    """Return the column heads and one row per check: outcome, threshold and numbers."""
    compares = any(check.rule.compares for check in verdict.checks)
    heads = ["", "threshold", "value", *(["baseline", "bound", "p"] if compares else []), "n"]
    rows = []
    for check in verdict.checks:
        bound = "–" if check.bound is None else check.shown(check.bound)
        baseline = check.shown(check.baseline)
        comparison = [baseline, bound, probability(check.p)] if compares else []
        outcome = "passed" if check.passed else "FAILED"
        rows.append([outcome, check.name, check.shown(check.value), *comparison, f"{check.n:,}"])
    return heads, rows


def _sections(entry: GateEntry) -> Iterator[str]:
    verdict = entry.verdict
    title = "" if verdict is not None and entry.title == verdict.run else f"{entry.title}: "
    if verdict is None:
        yield f"### {escape(title)}could not be checked\n\n{_code_block(entry.error or '')}\n"
        return
    yield f"### {escape(title + verdict.summary)}\n"
    yield pipe_table(*check_rows(verdict), n_labels=2)
    for check in verdict.failures:
        sentences = "".join(f"- {escape(sentence)}\n" for sentence in failure_lines(check))
        yield f"**{escape(check.name)}**\n\n{sentences}"
    if verdict.remarks:
        if verdict.failures:
            yield "**remarks**\n"  # separates them from the list of the last failure
        yield "".join(f"- {escape(remark)}\n" for remark in verdict.remarks)


def _code_block(message: str) -> str:
    return "".join(f"    {printable(line)}\n" for line in message.splitlines())


def _wrap(sentence: str, indent: str) -> list[str]:
    return textwrap.wrap(
        printable(sentence),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


ANSWERED = "every query was answered"


def junit(entries: Sequence[GateEntry]) -> bytes:
    """Return a report as JUnit XML.

    Unanswered queries are not a failure but should be noticed, so they are reported as an extra
    test case that is skipped.
    """
    root = Element("testsuites", name="karat")
    for entry in entries:
        suite = SubElement(root, "testsuite", name=_printable_lines(entry.title))
        if entry.verdict is None:
            message = _printable_lines(entry.error or "")
            case = SubElement(
                suite, "testcase", classname=_printable_lines(entry.title), name="gate"
            )
            first_line = message.partition("\n")[0]
            error = SubElement(case, "error", message=first_line, type="InputError")
            error.text = message
        else:
            _add_cases(suite, entry.title, entry.verdict)
        _set_counts(suite)
    _set_counts(root)
    indent(root)
    xml: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _add_cases(suite: Element, title: str, verdict: Verdict) -> None:
    for check in verdict.checks:
        case = SubElement(
            suite, "testcase", classname=_printable_lines(title), name=_printable_lines(check.name)
        )
        if not check.passed:
            failure = SubElement(
                case, "failure", message=_printable_lines(check.reason), type=check.rule.kind
            )
            failure.text = _printable_lines("\n".join(failure_lines(check)))
    case = SubElement(suite, "testcase", classname=_printable_lines(title), name=ANSWERED)
    if verdict.unanswered is not None:
        SubElement(case, "skipped", message=_printable_lines(verdict.unanswered))
    SubElement(suite, "system-out").text = _printable_lines(
        "\n".join([verdict.summary, *verdict.remarks])
    )


def _set_counts(parent: Element) -> None:
    for word, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        parent.set(word, str(sum(1 for _ in parent.iter(tag))))


def _printable_lines(text: str) -> str:
    """Return a text without the characters that XML does not allow, line by line."""
    return "\n".join(map(printable, text.split("\n")))


_WRITERS: Writers[Sequence[GateEntry]] = Writers(
    "a verdict",
    {
        ".xml": lambda entries, file: file.write(junit(entries)),
        ".md": lambda entries, file: file.write(markdown(entries).encode()),
        ".json": lambda entries, file: file.write(f"{to_json(document(entries))}\n".encode()),
    },
    hint=f" (.xml is JUnit){REPORT_HINT}",
)
write, check = _WRITERS.write, _WRITERS.check
