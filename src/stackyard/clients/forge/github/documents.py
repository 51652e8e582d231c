"""What GitHub answers, in the words of every forge."""

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
    "read_check",
    "read_pull",
    "read_review",
    "read_status",
]

# GitHub reports `maintain` as `write`, and `triage` as `read`.
PERMISSIONS = {
    "none": Permission.NONE,
    "read": Permission.READ,
    "write": Permission.WRITE,
    "admin": Permission.ADMIN,
}
_VERDICTS = {
    "APPROVED": ReviewVerdict.APPROVED,
    "CHANGES_REQUESTED": ReviewVerdict.CHANGES_REQUESTED,
    "COMMENTED": ReviewVerdict.COMMENTED,
    "DISMISSED": ReviewVerdict.DISMISSED,
}
_STATES = {state.value: state for state in CommitState}
# GitHub lets a change pass with each of these where the check is required.
_GOOD_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})


def read_pull(document: Mapping[str, Any]) -> PullRequest:
    """Return a pull request; a list of them leaves out whether they can be merged, and by whom they were."""
    state = PullState.OPEN if read_text(document, "state") == "open" else PullState.CLOSED
    is_merged = bool(read_text(document, "merged_at"))
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
        mergeable=_read_mergeable(document) if state is PullState.OPEN else Mergeability.UNKNOWN,
        # That of an open one is a merge that GitHub only tried.
        merge_commit=read_text(document, "merge_commit_sha") if is_merged else "",
        merged_by=read_text(document, "merged_by", "login") if is_merged else "",
        url=read_text(document, "html_url"),
        updated_at=read_text(document, "updated_at"),
    )


def _read_mergeable(document: Mapping[str, Any]) -> Mergeability:
    if document.get("mergeable") is None:
        return Mergeability.UNKNOWN
    return Mergeability.YES if read_flag(document, "mergeable") else Mergeability.NO


def read_changed_file(document: Mapping[str, Any]) -> ChangedFile:
    """Return a file of a pull request."""
    status = read_text(document, "status")
    return ChangedFile(
        path=read_text(document, "filename"),
        former_path=read_text(document, "previous_filename") if status == "renamed" else "",
        is_removed=status == "removed",
    )


def read_review(document: Mapping[str, Any]) -> Review | None:
    """Return a review; None for one that was not sent yet, or whose author is gone."""
    verdict = _VERDICTS.get(read_text(document, "state"))
    author = read_text(document, "user", "login")
    if verdict is None or not author:
        return None
    return Review(
        author=author,
        verdict=verdict,
        commit=read_text(document, "commit_id"),
        submitted_at=read_text(document, "submitted_at"),
    )


def read_status(document: Mapping[str, Any]) -> CommitStatus:
    """Return a status; one in words that we do not know is an error."""
    return CommitStatus(
        context=read_text(document, "context"),
        state=_STATES.get(read_text(document, "state"), CommitState.ERROR),
        description=read_text(document, "description"),
        url=read_text(document, "target_url"),
    )


def read_check(document: Mapping[str, Any]) -> CommitStatus:
    """Return what a check of an app or a workflow says."""
    conclusion = read_text(document, "conclusion")
    state = CommitState.SUCCESS if conclusion in _GOOD_CONCLUSIONS else CommitState.FAILURE
    return CommitStatus(
        context=read_text(document, "name"),
        state=state if read_text(document, "status") == "completed" else CommitState.PENDING,
        description=read_text(document, "output", "title"),
        url=read_text(document, "html_url"),
    )
