"""What the scripts of the action share: requests to GitHub, outputs of a step, annotations."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

TIMEOUT = 30  # seconds
NO_PERMISSION = (401, 403, 404)  # GitHub answers 404 where a token may not even read


class ApiError(Exception):
    """A request that GitHub refused or did not answer. `status` is None without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def request(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request for the repository of the workflow, and return the decoded answer.

    `path` is relative to the repository, such as "issues/7/comments".
    """
    address = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}"
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ.get('GITHUB_TOKEN', '')}",
        "Content-Type": "application/json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(address, data, headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(made, timeout=TIMEOUT) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise ApiError(f"HTTP {error.code}: {_message(error)}", error.code) from None
    except (OSError, ValueError) as error:
        raise ApiError(str(error)) from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


def read_event() -> dict[str, Any]:
    """Return the event that started the workflow."""
    with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
        event: dict[str, Any] = json.load(file)
    return event


def set_output(name: str, value: str) -> None:
    """Set an output of this step; the value must be one line."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.write(f"{name}={value}\n")


def annotate(kind: str, message: str) -> None:
    """Print a notice or warning that GitHub shows on the page of the workflow run."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{kind} title=karat::{escaped}", flush=True)
