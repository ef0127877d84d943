"""When scores were computed, and from which commit of a Git repository."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]
_SERVER_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Where GitHub and GitLab state the commit, for jobs without a checkout."""


@dataclass(frozen=True)
class Provenance:
    """The time at which scores were computed or first saved, and the commit of that time."""

    saved: Time
    commit: str | None = None
    """The full id of the commit; None outside of a repository."""
    committed: Time | None = None
    """The time of the commit."""
    is_modified: bool = False
    """Whether files that Git tracks differed from the commit."""

    @classmethod
    def current(cls) -> Provenance:
        """Return the time, and the commit of the repository that contains the current folder."""
        now = datetime.now(UTC)
        saved = now.replace(microsecond=now.microsecond // 1000 * 1000)
        head = _git("log", "-1", "--format=%H %ct", "HEAD")
        if head is None:
            commits = [os.environ[name] for name in _SERVER_VARIABLES if os.environ.get(name)]
            return cls(saved, commits[0] if commits else None)
        commit, seconds = head.split()
        changes = _git("status", "--porcelain", "--untracked-files=no")
        return cls(saved, commit, datetime.fromtimestamp(int(seconds), UTC), bool(changes))

    def as_dict(self) -> dict[str, Any]:
        """Return the times and the commit as plain data; without a commit, only the time."""
        plain: dict[str, Any] = {"saved": _text(self.saved)}
        if self.commit is not None:
            plain["commit"] = self.commit
            if self.committed is not None:
                plain |= {"committed": _text(self.committed), "is_modified": self.is_modified}
        return plain


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _git(*arguments: str) -> str | None:
    """Return the output of a Git command; None if Git or the repository is missing."""
    # Without optional locks, `git status` cannot disturb another Git command.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        process = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
