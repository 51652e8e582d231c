"""Reading a delivery of a webhook: who sent it is proven before anything in it is read.

Gitea and GitHub sign what they send with a secret that only they and we know. GitLab sends the secret itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.clients.forge.answers import as_object
from stackyard.clients.forge.failures import ForgeAnswerError, WebhookForgedError, WebhookRefusedError
from stackyard.clients.forge.model import EventKind, ForgeKind, WebhookEvent
from stackyard.clients.forge.webhook_bodies import read_gitlab_event, read_named_event

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LARGEST_WEBHOOK_BYTES", "read_webhook"]

# GitHub sends nothing larger.
LARGEST_WEBHOOK_BYTES = 25 * 2**20
_DELIVERY = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headers:
    """What a forge calls its headers; the first name that is there counts.

    Attributes:
        event: What it tells of.
        delivery: What it calls this delivery.
        proof: The signature, or the secret itself.
    """

    event: tuple[str, ...]
    delivery: tuple[str, ...]
    proof: tuple[str, ...]


_HEADERS = {
    ForgeKind.GITEA: _Headers(
        event=("x-gitea-event", "x-forgejo-event"),
        delivery=("x-gitea-delivery", "x-forgejo-delivery"),
        proof=("x-gitea-signature", "x-forgejo-signature"),
    ),
    ForgeKind.GITHUB: _Headers(
        event=("x-github-event",), delivery=("x-github-delivery",), proof=("x-hub-signature-256",)
    ),
    ForgeKind.GITLAB: _Headers(
        event=("x-gitlab-event",),
        # The first stays the same when GitLab sends a delivery again.
        delivery=("idempotency-key", "x-gitlab-event-uuid"),
        proof=("x-gitlab-token",),
    ),
}


def read_webhook(kind: ForgeKind, headers: Mapping[str, str], body: bytes, secret: str) -> WebhookEvent:
    """Return what a delivery tells, once it is proven that it is from the forge.

    Args:
        kind: Which forge it should be from; headers that name another one are not looked at.
        headers: The headers of the request.
        body: Its body, as it came.
        secret: What the forge and we know.

    Raises:
        WebhookForgedError: It is not proven to be from the forge.
        WebhookRefusedError: It is cut off, too large or not understood.
    """
    if not secret:
        raise WebhookRefusedError(
            "This server has no secret for webhooks: everybody could forge one.",
            remedy="Give the webhook and this server the same secret.",
        )
    if len(body) > LARGEST_WEBHOOK_BYTES:
        raise WebhookRefusedError(f"The delivery is larger than {LARGEST_WEBHOOK_BYTES} bytes.")
    known = _collect_headers(headers)
    names = _HEADERS[kind]
    _check_proof(kind, _find(known, names.proof), body, secret)
    length = known.get("content-length", "")
    if length.isdecimal() and int(length) != len(body):
        raise WebhookRefusedError(f"The delivery was cut off: {len(body)} bytes of {int(length)}.")
    event = _find(known, names.event)
    if not event:
        raise WebhookRefusedError("The delivery does not say what it tells of.")
    delivery = _find(known, names.delivery) or _name_delivery(kind, event, body)
    if not _DELIVERY.fullmatch(delivery):
        raise WebhookRefusedError("The delivery has no name by which it could be told from others.")
    document = _parse(known, body)
    try:
        if kind is ForgeKind.GITLAB:
            return read_gitlab_event(delivery, event, document)
        return read_named_event(delivery, _EVENTS[kind].get(event, EventKind.OTHER), document)
    except ForgeAnswerError as err:
        raise WebhookRefusedError(f"The delivery is not understood: {err.detail}") from err


_EVENTS: Mapping[ForgeKind, Mapping[str, EventKind]] = {
    ForgeKind.GITEA: {
        "push": EventKind.PUSH,
        "pull_request": EventKind.PULL_REQUEST,
        "pull_request_approved": EventKind.REVIEW,
        "pull_request_rejected": EventKind.REVIEW,
        # A review that says neither yes nor no; what is written below a pull request is `issue_comment`.
        "pull_request_comment": EventKind.REVIEW,
        "issue_comment": EventKind.COMMENT,
    },
    ForgeKind.GITHUB: {
        "push": EventKind.PUSH,
        "pull_request": EventKind.PULL_REQUEST,
        "pull_request_review": EventKind.REVIEW,
        "issue_comment": EventKind.COMMENT,
        "ping": EventKind.PING,
    },
}


def _collect_headers(headers: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        if key in found and key.startswith(("x-", "content-", "idempotency-")):
            raise WebhookRefusedError("The delivery has a header twice.")
        # What was no text in the header is not one that proves anything.
        found[key] = value.encode("utf-8", "replace").decode()
    return found


def _find(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((headers[name].strip() for name in names if headers.get(name, "").strip()), "")


def _check_proof(kind: ForgeKind, proof: str, body: bytes, secret: str) -> None:
    if not proof:
        raise WebhookForgedError("The delivery has no signature.")
    if kind is ForgeKind.GITLAB:
        expected = secret
    else:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        expected = f"sha256={digest}" if kind is ForgeKind.GITHUB else digest
    # In a time that says nothing of how much of it is right.
    if not hmac.compare_digest(proof.encode(), expected.encode()):
        raise WebhookForgedError("The signature of the delivery is not made with the secret of this server.")


def _name_delivery(kind: ForgeKind, event: str, body: bytes) -> str:
    """Return a name for what GitLab before 17.4 sends without one."""
    if kind is not ForgeKind.GITLAB:
        return ""
    return hashlib.sha256(event.encode() + b"\0" + body).hexdigest()


def _parse(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    sent_as = headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent_as != "application/json":
        raise WebhookRefusedError(
            "The delivery is not sent as application/json.",
            remedy="Choose application/json as the content type of the webhook.",
        )
    try:
        return as_object(parse_json(body), "the delivery")
    except (JsonError, ForgeAnswerError):
        raise WebhookRefusedError("The delivery is not a whole object of JSON.") from None
