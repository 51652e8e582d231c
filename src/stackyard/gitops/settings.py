"""How pull requests are planned and applied: `gitops` in the `stackyard.yaml` of the base branch.

Nothing of a pull request is asked: it cannot loosen the rules that it is judged by.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.clients.forge.model import Permission
from stackyard.clients.git.compare import Comparison

if TYPE_CHECKING:
    from stackyard.gitops.checkout import Checkouts
    from stackyard.sources.site.entities.gitops import GitopsFile, GitopsRules

__all__ = ["GitopsSettings", "GitopsSettingsError", "Requirements", "read_settings"]

_FILE = "stackyard.yaml"
_RIGHTS = {"write": Permission.WRITE, "admin": Permission.ADMIN}


class GitopsSettingsError(InvalidInputError):
    """The base branch has a stackyard.yaml that is not valid, so that nobody knows its rules."""

    code = "E-GITOPS-SETTINGS"
    summary = "The rules for pull requests cannot be read"
    default_remedy = "Correct stackyard.yaml on the base branch; nothing is planned or applied before."


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What has to be there before a target is applied.

    Attributes:
        approvals: How many people besides the author have to approve the plan that is shown.
        owners: One of the approvals has to come from one of these: logins, or teams as `ORG/TEAM`.
        checks: Statuses of the commit that have to be well.
        is_up_to_date: Whether the branch has to contain the last commit of the base branch.
    """

    approvals: int = 1
    owners: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    is_up_to_date: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsSettings:
    """How pull requests into a branch are planned and applied.

    Attributes:
        is_before_merge: Whether they are applied before they are merged, and not after it.
        plans_drafts: Whether those that are not ready are planned.
        plans_forks: Whether those from forks are planned, without state and secrets.
        allow_destroy: What somebody must be allowed to acknowledge a destruction.
        allow_code: What somebody must be allowed to allow code that could do more than plan.
        requirements: What targets require.
        targets: By a glob of targets, what some of them require; later ones win.
    """

    is_before_merge: bool = False
    plans_drafts: bool = False
    plans_forks: bool = False
    allow_destroy: Permission = Permission.WRITE
    allow_code: Permission = Permission.ADMIN
    requirements: Requirements = Requirements()
    targets: tuple[tuple[str, GitopsRules], ...] = ()

    def find_requirements(self, target: str) -> Requirements:
        """Return what a target requires."""
        found = self.requirements
        for pattern, rules in self.targets:
            if fnmatch.fnmatchcase(target, pattern):
                found = _change(found, rules)
        return found


def _change(before: Requirements, said: GitopsRules) -> Requirements:
    """Return requirements with those of a file in place of them, where it has any."""
    return replace(
        before,
        approvals=before.approvals if said.approvals is None else said.approvals,
        owners=before.owners if said.owners is None else tuple(said.owners),
        checks=before.checks if said.checks is None else tuple(said.checks),
        is_up_to_date=before.is_up_to_date if said.up_to_date is None else said.up_to_date,
    )


async def read_settings(checkouts: Checkouts, commit: str) -> GitopsSettings:
    """Return what a commit of the base branch says.

    Args:
        checkouts: The commits of the repository.
        commit: The commit, which was fetched.

    Raises:
        GitopsSettingsError: Its stackyard.yaml is not valid.
        GitError: git cannot read it.
    """
    content = await Comparison(top=checkouts.mirror).read_file(commit, _FILE)
    if content is None or not content.strip():
        return GitopsSettings()
    from stackyard.sources.site.document import EMPTY_FILE, parse_document  # lazy: pydantic
    from stackyard.sources.site.entities.stacks import RepositoryFile  # lazy: as above
    from stackyard.sources.site.shape import validate  # lazy: as above

    found = Diagnostics()
    document = parse_document(content.decode("utf-8", "replace"), _FILE, found)
    if document is None and [finding.kind for finding in found.errors] == [EMPTY_FILE]:
        return GitopsSettings()
    file = None if document is None else validate(RepositoryFile, document, found)
    if file is None or found.errors:
        raise GitopsSettingsError(
            f"{_FILE} at {commit[:12]} is not valid: {'; '.join(one.detail for one in found.errors[:5])}"
        )
    return GitopsSettings() if file.gitops is None else _settings_of(file.gitops)


def _settings_of(said: GitopsFile) -> GitopsSettings:
    return GitopsSettings(
        is_before_merge=said.apply == "before-merge",
        plans_drafts=said.drafts,
        plans_forks=said.forks,
        allow_destroy=_RIGHTS[said.allow_destroy],
        allow_code=_RIGHTS[said.allow_code],
        requirements=_change(Requirements(), said),
        targets=tuple((one.match, one) for one in said.targets),
    )
