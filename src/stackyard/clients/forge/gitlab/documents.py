"""What GitLab answers, in the words of every forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_flag, read_number, read_text
from stackyard.clients.forge.model import (
    ChangedFile,
    Comment,
    CommitState,
    CommitStatus,
    ForgeRepository,
    Issue,
    Mergeability,
    Permission,
    PullRequest,
    PullState,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "read_changed_file",
    "read_comment",
    "read_issue",
    "read_permission",
    "read_pull",
    "read_repository",
    "read_status",
    "write_state",
]

_REPORTER, _DEVELOPER, _MAINTAINER = 20, 30, 40
_PULL_STATES = {"opened": PullState.OPEN, "locked": PullState.OPEN, "merged": PullState.MERGED}
# While these are said, it is not known yet whether there are conflicts.
_FINDING_OUT = frozenset({"", "unchecked", "checking", "preparing", "approvals_syncing"})
_STATES = {
    "created": CommitState.PENDING,
    "waiting_for_resource": CommitState.PENDING,
    "preparing": CommitState.PENDING,
    "pending": CommitState.PENDING,
    "running": CommitState.PENDING,
    "manual": CommitState.PENDING,
    "scheduled": CommitState.PENDING,
    "success": CommitState.SUCCESS,
    "skipped": CommitState.SUCCESS,
    "failed": CommitState.FAILURE,
    "canceled": CommitState.FAILURE,
    "canceling": CommitState.FAILURE,
}


def read_repository(document: Mapping[str, Any]) -> ForgeRepository:
    """Return a project."""
    return ForgeRepository(
        name=read_text(document, "path_with_namespace"),
        default_branch=read_text(document, "default_branch"),
        clone_url=read_text(document, "http_url_to_repo"),
        url=read_text(document, "web_url"),
        is_private=read_text(document, "visibility") != "public",
    )


def read_pull(document: Mapping[str, Any], repository: str, head_repository: str) -> PullRequest:
    """Return a merge request.

    Args:
        document: What GitLab answers.
        repository: The project that it is for, whose name GitLab does not say here.
        head_repository: The project that its commits come from; empty where that was deleted.
    """
    state = _PULL_STATES.get(read_text(document, "state"), PullState.CLOSED)
    is_merged = state is PullState.MERGED
    return PullRequest(
        number=read_number(document, "iid"),
        title=read_text(document, "title"),
        author=read_text(document, "author", "username"),
        state=state,
        is_draft=read_flag(document, "draft"),
        head=read_text(document, "sha"),
        head_branch=read_text(document, "source_branch"),
        head_repository=head_repository,
        base_branch=read_text(document, "target_branch"),
        base=read_text(document, "diff_refs", "start_sha"),
        repository=repository,
        mergeable=_read_mergeable(document) if state is PullState.OPEN else Mergeability.UNKNOWN,
        merge_commit=_read_merge_commit(document) if is_merged else "",
        merged_by=read_text(document, "merge_user", "username") if is_merged else "",
        url=read_text(document, "web_url"),
        updated_at=read_text(document, "updated_at"),
    )


def _read_mergeable(document: Mapping[str, Any]) -> Mergeability:
    if read_flag(document, "has_conflicts"):
        return Mergeability.NO
    is_open_question = read_text(document, "detailed_merge_status") in _FINDING_OUT
    return Mergeability.UNKNOWN if is_open_question else Mergeability.YES


def _read_merge_commit(document: Mapping[str, Any]) -> str:
    """Return the commit on the base branch: of a merge, of a squash, or its own where that was moved on."""
    names = ("merge_commit_sha", "squash_commit_sha", "sha")
    return next((sha for name in names if (sha := read_text(document, name))), "")


def read_changed_file(document: Mapping[str, Any]) -> ChangedFile:
    """Return a file of a merge request."""
    return ChangedFile(
        path=read_text(document, "new_path"),
        former_path=read_text(document, "old_path") if read_flag(document, "renamed_file") else "",
        is_removed=read_flag(document, "deleted_file"),
    )


def read_comment(document: Mapping[str, Any], pull_url: str) -> Comment:
    """Return a note."""
    number = read_number(document, "id")
    return Comment(
        id=number,
        author=read_text(document, "author", "username"),
        body=read_text(document, "body"),
        url=f"{pull_url}#note_{number}",
        created_at=read_text(document, "created_at"),
        updated_at=read_text(document, "updated_at"),
    )


def read_status(document: Mapping[str, Any]) -> CommitStatus:
    """Return a status; one in words that we do not know is an error."""
    return CommitStatus(
        context=read_text(document, "name"),
        state=_STATES.get(read_text(document, "status"), CommitState.ERROR),
        description=read_text(document, "description"),
        url=read_text(document, "target_url"),
    )


def write_state(state: CommitState) -> str:
    """Return what GitLab calls a state; it knows no errors."""
    return "failed" if state in (CommitState.FAILURE, CommitState.ERROR) else state.value


def read_issue(document: Mapping[str, Any]) -> Issue:
    """Return an issue."""
    return Issue(
        number=read_number(document, "iid"),
        title=read_text(document, "title"),
        body=read_text(document, "description"),
        is_open=read_text(document, "state") == "opened",
        author=read_text(document, "author", "username"),
        url=read_text(document, "web_url"),
    )


def read_permission(document: Mapping[str, Any]) -> Permission:
    """Return what a member may do: guests do not read the code of a private project."""
    level = read_number(document, "access_level")
    if read_text(document, "state") not in ("", "active") or level < _REPORTER:
        return Permission.NONE
    if level < _DEVELOPER:
        return Permission.READ
    return Permission.WRITE if level < _MAINTAINER else Permission.ADMIN
