"""Find the workflow run whose baseline a gate compares with, and set the output `run-id`.

The baseline is the newest artifact of this name from the base branch of the pull request, or
from the branch itself for a push. Artifacts of forks do not count: a fork may have a branch of the
same name.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from github_api import NO_PERMISSION, ApiError, annotate, read_event, request, set_output


def base_branch() -> str:
    """Return the branch that a pull request or a merge queue targets, or the pushed branch."""
    queue = read_event().get("merge_group") or {}
    queued = str(queue.get("base_ref", "")).removeprefix("refs/heads/")
    return os.environ.get("GITHUB_BASE_REF") or queued or os.environ["GITHUB_REF_NAME"]


def newest_run(artifacts: list[dict[str, Any]], branch: str) -> int | None:
    """Return the id of the newest run on a branch that has an artifact, or None."""
    usable = [
        artifact
        for artifact in artifacts
        if not artifact["expired"]
        and artifact["workflow_run"]["head_branch"] == branch
        and artifact["workflow_run"]["head_repository_id"]
        == artifact["workflow_run"]["repository_id"]
    ]
    newest = max(usable, key=lambda artifact: int(artifact["id"]), default=None)
    return None if newest is None else int(newest["workflow_run"]["id"])


def main() -> None:
    """Look for the artifact; a missing one is a notice, and never fails the job."""
    name, branch = os.environ["ARTIFACT"], base_branch()
    try:
        listed = request("GET", f"actions/artifacts?name={quote(name)}&per_page=100")
        run = newest_run(listed["artifacts"], branch)
    except ApiError as error:
        hint = " (permissions: actions: read)" if error.status in NO_PERMISSION else ""
        annotate("warning", f"the artifacts of this repository could not be listed{hint}: {error}")
        run = None
    if run is None:
        annotate("notice", f"no baseline: branch {branch} has no artifact {name}")
    set_output("branch", branch)
    set_output("run-id", "" if run is None else str(run))


if __name__ == "__main__":
    main()
