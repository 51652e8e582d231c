"""What the deliveries of webhooks say, in the words of every forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_number, read_object, read_text
from stackyard.clients.forge.failures import ForgeAnswerError
from stackyard.clients.forge.model import EventKind, WebhookEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_gitlab_event", "read_named_event"]

_BRANCH = "refs/heads/"
_APPROVALS = frozenset({"approved", "approval", "unapproved", "unapproval"})


def read_named_event(delivery: str, kind: EventKind, document: Mapping[str, Any]) -> WebhookEvent:
    """Return what Gitea or GitHub tells.

    Args:
        delivery: What the forge calls the delivery.
        kind: What its header says that it tells of.
        document: The delivery.

    Raises:
        ForgeAnswerError: Something in it has another type.
    """
    number, branch, commit, comment = 0, "", "", 0
    if kind is EventKind.PUSH:
        branch = _read_branch(document)
        kind = kind if branch else EventKind.OTHER
        commit = _read_after(document)
    elif kind in (EventKind.PULL_REQUEST, EventKind.REVIEW):
        number = read_number(document, "pull_request", "number")
        commit = read_text(document, "pull_request", "head", "sha")
    elif kind is EventKind.COMMENT:
        number = read_number(document, "issue", "number")
        comment = read_number(document, "comment", "id")
    repository = read_text(document, "repository", "full_name")
    _check(kind, repository, number)
    return WebhookEvent(
        delivery=delivery,
        kind=kind,
        repository=repository,
        action=read_text(document, "action"),
        number=number,
        branch=branch,
        commit=commit,
        comment=comment,
        author=read_text(document, "sender", "login"),
    )


def read_gitlab_event(delivery: str, event: str, document: Mapping[str, Any]) -> WebhookEvent:
    """Return what GitLab tells.

    Args:
        delivery: What the forge calls the delivery.
        event: What its header says that it tells of.
        document: The delivery.

    Raises:
        ForgeAnswerError: Something in it has another type.
    """
    about = read_object(document, "object_attributes")
    kind, number, branch, commit, comment = EventKind.OTHER, 0, "", "", 0
    if event == "Push Hook" and (branch := _read_branch(document)):
        kind, commit = EventKind.PUSH, _read_after(document)
    elif event == "Merge Request Hook":
        is_review = read_text(about, "action") in _APPROVALS
        kind = EventKind.REVIEW if is_review else EventKind.PULL_REQUEST
        number, commit = read_number(about, "iid"), read_text(about, "last_commit", "id")
    elif event in ("Note Hook", "Confidential Note Hook"):
        kind, number, comment = _read_note(document, about)
    repository = read_text(document, "project", "path_with_namespace")
    _check(kind, repository, number)
    return WebhookEvent(
        delivery=delivery,
        kind=kind,
        repository=repository,
        action=read_text(about, "action"),
        number=number,
        branch=branch,
        commit=commit,
        comment=comment,
        author=read_text(document, "user", "username") or read_text(document, "user_username"),
    )


def _check(kind: EventKind, repository: str, number: int) -> None:
    if kind in (EventKind.OTHER, EventKind.PING):
        return
    if not repository or (kind is not EventKind.PUSH and number < 1):
        raise ForgeAnswerError(f"it tells of a {kind.value}, and not which.")


def _read_note(document: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[EventKind, int, int]:
    """Return the kind, the number and the comment: what is said of a commit or a snippet is of no use."""
    places = {"MergeRequest": "merge_request", "Issue": "issue"}
    place = places.get(read_text(about, "noteable_type"))
    if place is None:
        return EventKind.OTHER, 0, 0
    return EventKind.COMMENT, read_number(document, place, "iid"), read_number(about, "id")


def _read_branch(document: Mapping[str, Any]) -> str:
    ref = read_text(document, "ref")
    return ref.removeprefix(_BRANCH) if ref.startswith(_BRANCH) else ""


def _read_after(document: Mapping[str, Any]) -> str:
    """Return the commit that a push brought; empty where it removed the branch."""
    commit = read_text(document, "after")
    return commit if commit.strip("0") else ""
