"""What `stackyard.yaml` says about pull requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ["GitopsFile", "GitopsRules", "GitopsTargetRules"]

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$")]
# A login, or ORG/TEAM.
Person = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*$", max_length=255)]
Right = Literal["write", "admin"]


class GitopsRules(BaseModel):
    """What has to be there before a target is applied."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # How many people besides the author have to approve the plan that is shown.
    approvals: Annotated[int, Field(ge=0, le=20)] | None = None
    # One of the approvals has to come from one of these: logins, or teams as ORG/TEAM.
    owners: list[Person] | None = None
    # Statuses of the commit that have to be well, besides our own.
    checks: list[Text] | None = None
    # Whether the branch has to contain the last commit of the base branch.
    up_to_date: bool | None = None


class GitopsTargetRules(GitopsRules):
    """What some targets require; what it leaves out is as for all."""

    # A glob of targets: `stack:prod/*`.
    match: Text


class GitopsFile(GitopsRules):
    """How pull requests are planned and applied; only what the base branch says counts."""

    # When what was reviewed is applied.
    apply: Literal["after-merge", "before-merge"] = "after-merge"
    # Whether pull requests that are not ready are planned.
    drafts: bool = False
    # Whether pull requests from forks are planned, without state and secrets.
    forks: bool = False
    # Who may acknowledge a destruction, and who may allow code that could do more than plan.
    allow_destroy: Right = "write"
    allow_code: Right = "admin"
    # Rules for some targets, from the first that fits to the last; later ones win.
    targets: list[GitopsTargetRules] = Field(default_factory=list)
