"""What the parts of GitOps tell each other."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "ChangedTarget",
    "Checkout",
    "CodeFinding",
    "CodeRisk",
    "Credentials",
    "PullPlan",
    "TargetPlan",
    "TargetState",
]


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
        host: The node that a manifest is applied to; empty for all others.
    """

    target: str
    reasons: tuple[str, ...]
    after: tuple[str, ...] = ()
    is_removed: bool = False
    host: str = ""


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


class TargetState(enum.StrEnum):
    """How far a target of a pull request is."""

    # Planned, and there is something to apply.
    CHANGES = "changes"
    # Planned, and there is nothing to apply.
    UNCHANGED = "unchanged"
    # Planned, and the guard refuses to apply it as it is.
    REFUSED = "refused"
    # Not planned: it needs the outputs of a target that is applied first.
    WAITING = "waiting"
    # Not planned: its code could do more than plan, and nobody with the right allowed this commit.
    BLOCKED = "blocked"
    # The plan or the apply failed.
    FAILED = "failed"
    APPLYING = "applying"
    APPLIED = "applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """What is known of one target of a pull request.

    Attributes:
        target: Its name: `stack:onprem/web`, `env:dev`.
        state: How far it is.
        reasons: Why it is selected, for a person.
        after: The targets of this pull request that come before it.
        is_removed: Whether it is no longer there, so that what it made is to be destroyed.
        document: What `plan --json` printed of it, secrets masked; empty where it is not planned.
        plan: The saved plan in the store (`store:ID`); empty where nothing was saved.
        drift: What `plan --json` says of differences that the plan would overwrite.
        waits_for: Which targets it waits for.
        findings: What in its code has to be allowed first.
        allowed: The names that somebody with the right allowed to be destroyed.
        error: The object that `--json` prints of an error; empty where there was none.
        outcome: What `apply --json` printed of it; empty where it is not applied.
        host: The node that a manifest is applied to; empty for all others.
    """

    target: str
    state: TargetState
    reasons: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_removed: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)
    plan: str = ""
    drift: tuple[Mapping[str, Any], ...] = ()
    waits_for: tuple[str, ...] = ()
    findings: tuple[CodeFinding, ...] = ()
    allowed: tuple[str, ...] = ()
    error: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPlan:
    """The plan of a pull request: what its one comment shows, and what an approval counts for.

    Attributes:
        repository: `owner/name`.
        number: The pull request.
        head: The commit that is to be merged.
        base_branch: The branch that it is to be merged into.
        base: The last commit of that branch.
        tree: The tree of the merge: what the plans were made of.
        targets: The targets that change, in the order in which they are applied.
        merged: The commit on the base branch that has it; empty unless it is merged.
        moved: What is no longer as in the plan that was shown before, for a person; empty where all of it is.
        notes: What a reader has to know of all of it: a draft, a conflict.
    """

    repository: str
    number: int
    head: str
    base_branch: str
    base: str
    tree: str
    targets: tuple[TargetPlan, ...]
    merged: str = ""
    moved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
