"""The webhook of a project of GitLab that tells us of what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_number, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.transport import Transport

__all__ = ["set_webhook"]

_EVENTS = {
    "push_events": True,
    "merge_requests_events": True,
    "note_events": True,
    "enable_ssl_verification": True,
}


async def set_webhook(
    transport: Transport, project: str, hooks: Sequence[Mapping[str, Any]], url: str, secret: str
) -> bool:
    """Make the webhook that leads to an address, or set it again: GitLab does not show its secret.

    Args:
        transport: The way to the forge.
        project: The path of the project in the interface.
        hooks: The webhooks that it has.
        url: The address.
        secret: What deliveries are to have with them.

    Returns:
        Whether there was no such webhook before, or one that was set up in another way.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    former = [hook for hook in hooks if read_text(hook, "url") == url]
    document = {"url": url, "token": secret, **_EVENTS}
    if not former:
        await transport.send("POST", f"{project}/hooks", document)
        return True
    await transport.send("PUT", f"{project}/hooks/{read_number(former[0], 'id')}", document)
    # One that the lost answer to an earlier request left behind would tell everything twice.
    for hook in former[1:]:
        await transport.send("DELETE", f"{project}/hooks/{read_number(hook, 'id')}")
    is_right = all(former[0].get(name) is value for name, value in _EVENTS.items())
    return len(former) > 1 or not is_right
