"""What the parts of GitOps tell each other."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ChangedTarget", "Checkout", "CodeFinding", "CodeRisk", "Credentials"]


class Credentials(enum.StrEnum):
    """Which credentials a run gets: those that may only read, or those that may change."""

    PLAN = "plan"
    APPLY = "apply"
    # Of a pull request from a fork: no secret of ours.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The files of a commit, in a folder of their own.

    Attributes:
        folder: Where they are.
        commit: The commit.
        tree: Its tree, which alone decides what is planned.
        hold: A descriptor for programs that work there (`pass_fds`): the folder stays while one has it; -1
            where nobody removes it.
    """

    folder: Path
    commit: str
    tree: str
    hold: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTarget:
    """A target that a pull request changes.

    Attributes:
        target: Its name: `stack:onprem/web`, `env:dev`.
        reasons: Why it is selected, for a person.
        after: The changed targets that come before it.
        is_removed: Whether it is no longer there, so that what it made is to be destroyed.
    """

    target: str
    reasons: tuple[str, ...]
    after: tuple[str, ...] = ()
    is_removed: bool = False


class CodeRisk(enum.StrEnum):
    """What code of a pull request could do that a plan should not."""

    PROGRAM = "runs a program"
    SOURCE = "loads code that the base branch does not have"
    ENGINE = "changes how the engine works"
    PROVIDER = "changes which provider or endpoint is used"
    PATH = "reads outside the repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFinding:
    """Something in the code of a pull request that is run only once somebody with the right allows it.

    Attributes:
        risk: What it could do.
        path: The file, from the top of the repository.
        line: The line; 0 for the whole file.
        detail: What is there.
    """

    risk: CodeRisk
    path: str
    line: int
    detail: str
