"""Write the result of the gate into the job summary, and into one comment of the pull request.

The comment is created by the first run and updated by the later ones. Without the right to comment,
as in pull requests from forks, there is only the summary: that never fails the job.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from github_api import NO_PERMISSION, ApiError, annotate, read_event, request

MAX_COMMENT = 65_536  # characters; GitHub refuses longer comments
MAX_SUMMARY = 2**20 // 4  # characters of at most four bytes; GitHub drops more than 1 MiB
_MENTION = re.compile(r"(?<![\w/])@(?=[A-Za-z0-9])")
_ISSUE = re.compile(r"#(?=\d)")
_NOTHING = "\u200b"  # a zero-width space


def without_references(text: str) -> str:
    """Return a text in which query texts cannot notify people or link to issues.

    >>> without_references("ask @maria about #12, nDCG@10").replace(_NOTHING, "~")
    'ask @~maria about #~12, nDCG@10'
    """
    return _ISSUE.sub(f"#{_NOTHING}", _MENTION.sub(f"@{_NOTHING}", text))


def marker(name: str) -> str:
    """Return the invisible first line of the comment, by which the next run finds it."""
    return f"<!-- karat gate: {name.replace('--', '- -')} -->"


def shorten(text: str, most: int, notice: str) -> str:
    """Return a text of at most `most` characters; if it is cut, between lines and with a notice."""
    if len(text) <= most:
        return text
    longest_fence = 100
    kept = text[: most - len(notice) - longest_fence]
    kept = kept[: kept.rfind("\n") + 1]
    return f"{kept}{open_fence(kept)}\n{notice}"


def open_fence(text: str) -> str:
    """Return the fence of a block of code that a text opens and does not close, or nothing."""
    fence = ""
    for line in text.splitlines():
        if not fence and line.startswith("```"):
            fence = line
        elif fence and line == fence:
            fence = ""
    return fence


def result_text(folder: Path, name: str, report_url: str, job_url: str) -> str:
    """Return the verdict with its tables, and the links below it."""
    gate, note = folder / "gate.md", folder / "note.md"
    text = gate.read_text(encoding="utf-8") if gate.exists() else "**❌ The gate was not run**\n"
    notes = note.read_text(encoding="utf-8") if note.exists() else ""
    links = [f"[Full report, as a file to download]({report_url})"] if report_url else []
    links.append(f"[log of this job]({job_url})")
    parts = [f"## {name}", without_references(text), notes, " · ".join(links)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def write_comment(number: int, name: str, text: str) -> str:
    """Create the comment of a pull request or update it; return which of the two."""
    first_line = marker(name)
    cut = "*Shortened: the job summary has the whole text.*"
    body = {"body": f"{first_line}\n{shorten(text, MAX_COMMENT - len(first_line) - 1, cut)}"}
    earlier = find_comment(number, first_line)
    if earlier is None:
        request("POST", f"issues/{number}/comments", body)
        return "created"
    request("PATCH", f"issues/comments/{earlier['id']}", body)
    return "updated"


def find_comment(number: int, first_line: str) -> dict[str, Any] | None:
    """Return the comment that starts with a line, or None."""
    page = 1
    while True:
        comments: list[dict[str, Any]] = request(
            "GET", f"issues/{number}/comments?per_page=100&page={page}"
        )
        for comment in comments:
            if (comment.get("body") or "").startswith(first_line):
                return comment
        if len(comments) < 100:
            return None
        page += 1


def main() -> None:
    """Write the summary, then the comment if the event is about a pull request."""
    name = os.environ["NAME"]
    job_url = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(
        os.environ
    )
    text = result_text(Path(os.environ["FOLDER"]), name, os.environ.get("REPORT_URL", ""), job_url)
    with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
        file.write(shorten(text, MAX_SUMMARY, "*Shortened: the report has the whole text.*"))
    pull_request = read_event().get("pull_request")
    if pull_request is None or os.environ.get("COMMENT") == "false":
        print("wrote the job summary")
        return
    try:
        print(f"{write_comment(pull_request['number'], name, text)} the comment")
    except ApiError as error:
        hint = (
            "; pull requests from forks cannot have one, others need permissions: "
            "pull-requests: write"
            if error.status in NO_PERMISSION
            else ""
        )
        annotate("notice", f"no comment: {error}{hint}. The result is in the job summary.")


if __name__ == "__main__":
    main()
