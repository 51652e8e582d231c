"""The webhook of a repository of Gitea that tells us of what happens."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import read_flag, read_number, read_text
from stackyard.clients.forge.failures import ForgeNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.forge.transport import Transport

__all__ = ["replace_webhook"]

# `pull_request_only` is `pull_request` without its assignees, labels and milestones.
_ASKED = (
    "push",
    "pull_request_only",
    "pull_request_sync",
    "pull_request_comment",
    "pull_request_review",
    "issue_comment",
)
_LISTED = frozenset({"push", "pull_request", "pull_request_sync", "pull_request_comment", "issue_comment"})


async def replace_webhook(transport: Transport, repository: str, url: str, secret: str) -> bool:
    """Make a webhook, and remove the ones before it that lead to the same address.

    Gitea neither shows the secret of a webhook nor lets it be changed. The new one is there before the old
    one goes, so that nothing is missed.

    Returns:
        Whether there was no such webhook before, or one that was set up in another way.

    Raises:
        ForgeError: There is no answer, or it is an error.
    """
    hooks = await transport.collect(f"{repository}/hooks")
    former = [hook for hook in hooks if read_text(hook, "config", "url") == url]
    made = {
        "type": "gitea",
        "config": {"url": url, "content_type": "json", "secret": secret},
        "events": list(_ASKED),
        "active": True,
    }
    # A second one of these would do no harm: the next call removes it.
    await transport.send("POST", f"{repository}/hooks", made, is_repeatable=True)
    for hook in former:
        with contextlib.suppress(ForgeNotFoundError):
            await transport.send("DELETE", f"{repository}/hooks/{read_number(hook, 'id')}")
    return len(former) != 1 or not _is_right(former[0])


def _is_right(hook: Mapping[str, Any]) -> bool:
    events = set(map(str, hook.get("events") or ()))
    return (
        read_flag(hook, "active")
        and read_text(hook, "config", "content_type") == "json"
        and not read_text(hook, "branch_filter").strip("*")
        and events >= _LISTED
        and any(event.startswith("pull_request_review") for event in events)
    )
