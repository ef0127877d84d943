"""Files of verdicts: JUnit XML, Markdown, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from karat.errors import printable
from karat.evaluation.gate_checks import Check
from karat.evaluation.verdict import GateEntry, Verdict, document
from karat.format import to_json
from karat.report.documents.verdict import entry_document, query_texts, reasons
from karat.report.renderers.markdown import markdown
from karat.report.writers import REPORT_HINT, Writers

ANSWERED = "every query was answered"


def junit(entries: Sequence[GateEntry]) -> bytes:
    """Return a report as JUnit XML.

    Queries without an answer are not a failure. A separate test case, marked as skipped, reports
    them.
    """
    root = Element("testsuites", name="karat")
    for entry in entries:
        suite = SubElement(root, "testsuite", name=_clean(entry.title))
        if entry.verdict is None:
            message = _clean(entry.error or "")
            case = SubElement(suite, "testcase", classname=_clean(entry.title), name="gate")
            element = SubElement(
                case, "error", message=message.partition("\n")[0], type="InputError"
            )
            element.text = message
        else:
            _fill(suite, entry.title, entry.verdict)
        _count(suite)
        _add_times(suite, entry.seconds)
    _count(root)
    indent(root)
    made: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _fill(suite: Element, title: str, verdict: Verdict) -> None:
    texts = query_texts(verdict)
    for check in verdict.checks:
        case = SubElement(suite, "testcase", classname=_clean(title), name=_clean(check.name))
        properties = SubElement(case, "properties")
        for name, value in _numbers(check):
            SubElement(properties, "property", name=name, value=value)
        if not check.passed:
            element = SubElement(
                case, "failure", message=_clean(check.reason), type=check.rule.kind
            )
            element.text = _clean("\n".join(reasons(check, texts)))
    case = SubElement(suite, "testcase", classname=_clean(title), name=ANSWERED)
    if verdict.unanswered is not None:
        SubElement(case, "skipped", message=_clean(verdict.unanswered))
    SubElement(suite, "system-out").text = _clean("\n".join([verdict.summary, *verdict.remarks]))


def _numbers(check: Check) -> Iterator[tuple[str, str]]:
    """Yield the numbers of a check, with all digits."""
    for name in ("value", "baseline", "difference", "bound", "p"):
        if (value := getattr(check, name)) is not None:
            yield name, repr(float(value))
    yield "queries", str(check.n)


def _add_times(suite: Element, seconds: float | None) -> None:
    """Add the time of a gate: each case gets an equal part, as all are computed together."""
    if seconds is None:
        return
    suite.set("time", f"{seconds:.3f}")
    cases = suite.findall("testcase")
    for case in cases:
        case.set("time", f"{seconds / len(cases):.3f}")


def _count(within: Element) -> None:
    for word, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        within.set(word, str(sum(1 for _ in within.iter(tag))))


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold, line by line."""
    return "\n".join(map(printable, text.split("\n")))


def _markdown(entries: Sequence[GateEntry]) -> str:
    return "\n".join(markdown(entry_document(entry)) for entry in entries)


_WRITERS: Writers[Sequence[GateEntry]] = Writers(
    "a verdict",
    {
        ".xml": lambda entries, file: file.write(junit(entries)),
        ".md": lambda entries, file: file.write(_markdown(entries).encode()),
        ".json": lambda entries, file: file.write(f"{to_json(document(entries))}\n".encode()),
    },
    hint=f"{REPORT_HINT}; .xml is JUnit",
)
write, check = _WRITERS.write, _WRITERS.check
