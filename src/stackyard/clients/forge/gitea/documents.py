"""What Gitea answers, in the words of every forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_flag, read_number, read_text
from stackyard.clients.forge.model import (
    ChangedFile,
    CommitState,
    CommitStatus,
    Mergeability,
    Permission,
    PullRequest,
    PullState,
    Review,
    ReviewVerdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PERMISSIONS",
    "read_changed_file",
    "read_pull",
    "read_review",
    "read_status",
]

PERMISSIONS = {
    "none": Permission.NONE,
    "read": Permission.READ,
    "write": Permission.WRITE,
    "admin": Permission.ADMIN,
    "owner": Permission.ADMIN,
}
_VERDICTS = {
    "APPROVED": ReviewVerdict.APPROVED,
    "REQUEST_CHANGES": ReviewVerdict.CHANGES_REQUESTED,
    "COMMENT": ReviewVerdict.COMMENTED,
}
_STATES = {
    "pending": CommitState.PENDING,
    "success": CommitState.SUCCESS,
    "skipped": CommitState.SUCCESS,
    "failure": CommitState.FAILURE,
    # Gitea counts it as a failure where it is required.
    "warning": CommitState.FAILURE,
}


def read_pull(document: Mapping[str, Any]) -> PullRequest:
    """Return a pull request."""
    state = PullState.OPEN if read_text(document, "state") == "open" else PullState.CLOSED
    is_merged = read_flag(document, "merged")
    return PullRequest(
        number=read_number(document, "number"),
        title=read_text(document, "title"),
        author=read_text(document, "user", "login"),
        state=PullState.MERGED if is_merged else state,
        is_draft=read_flag(document, "draft"),
        head=read_text(document, "head", "sha"),
        head_branch=read_text(document, "head", "ref"),
        head_repository=read_text(document, "head", "repo", "full_name"),
        base_branch=read_text(document, "base", "ref"),
        base=read_text(document, "base", "sha"),
        repository=read_text(document, "base", "repo", "full_name"),
        merge_base=read_text(document, "merge_base"),
        mergeable=_read_mergeable(document) if state is PullState.OPEN else Mergeability.UNKNOWN,
        merge_commit=read_text(document, "merge_commit_sha") if is_merged else "",
        merged_by=read_text(document, "merged_by", "login") if is_merged else "",
        url=read_text(document, "html_url"),
        updated_at=read_text(document, "updated_at"),
    )


def _read_mergeable(document: Mapping[str, Any]) -> Mergeability:
    if read_flag(document, "mergeable"):
        return Mergeability.YES
    # Gitea says no to every draft, and says no while it is still finding out.
    return Mergeability.UNKNOWN if read_flag(document, "draft") else Mergeability.NO


def read_changed_file(document: Mapping[str, Any]) -> ChangedFile:
    """Return a file of a pull request."""
    return ChangedFile(
        path=read_text(document, "filename"),
        former_path=read_text(document, "previous_filename"),
        is_removed=read_text(document, "status") == "deleted",
    )


def read_review(document: Mapping[str, Any]) -> Review | None:
    """Return a review; None for one that nobody gave yet."""
    verdict = _VERDICTS.get(read_text(document, "state"))
    author = read_text(document, "user", "login")
    if verdict is None or not author:
        return None
    return Review(
        author=author,
        verdict=ReviewVerdict.DISMISSED if read_flag(document, "dismissed") else verdict,
        commit=read_text(document, "commit_id"),
        submitted_at=read_text(document, "submitted_at"),
    )


def read_status(document: Mapping[str, Any]) -> CommitStatus:
    """Return a status; one in words that we do not know is an error."""
    return CommitStatus(
        context=read_text(document, "context"),
        state=_STATES.get(read_text(document, "status"), CommitState.ERROR),
        description=read_text(document, "description"),
        url=read_text(document, "target_url"),
    )
