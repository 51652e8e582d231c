"""The webhook of a repository of GitHub that tells us of what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_flag, read_number, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.transport import Transport

__all__ = ["set_webhook"]

_EVENTS = ("push", "pull_request", "pull_request_review", "issue_comment")


async def set_webhook(
    transport: Transport, repository: str, hooks: Sequence[Mapping[str, Any]], url: str, secret: str
) -> bool:
    """Make the webhook that leads to an address, or set it again: GitHub does not show its secret.

    Args:
        transport: The way to the forge.
        repository: The path of the repository in the interface.
        hooks: The webhooks that it has.
        url: The address.
        secret: What deliveries are to be signed with.

    Returns:
        Whether there was no such webhook before, or one that was set up in another way.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    former = [hook for hook in hooks if read_text(hook, "config", "url") == url]
    config = {"url": url, "content_type": "json", "secret": secret, "insecure_ssl": "0"}
    document = {"config": config, "events": list(_EVENTS), "active": True}
    if not former:
        # GitHub refuses a second webhook of the same address.
        await transport.send("POST", f"{repository}/hooks", {"name": "web", **document})
        return True
    await transport.send("PATCH", f"{repository}/hooks/{read_number(former[0], 'id')}", document)
    return not _is_right(former[0])


def _is_right(hook: Mapping[str, Any]) -> bool:
    events = set(map(str, hook.get("events") or ()))
    return (
        read_flag(hook, "active")
        and read_text(hook, "config", "content_type") == "json"
        and str(hook["config"].get("insecure_ssl", "0")) == "0"
        and events >= set(_EVENTS)
    )
