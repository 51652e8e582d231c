"""Reading what the table of the guard asks for: everything at once, and nothing twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.guard.facts import ApiRead, Facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.guard import Cluster

__all__ = ["caller_of", "read_facts"]

# Nothing that is asked here changes between two plans of one run.
_MAX_AGE_S = 30.0
# The proxy of a node has three workers. Each further connection costs a TLS handshake, and helps only where
# the way to the node is long.
_AT_ONCE = 8


async def read_facts(
    client: proxmox.Client, cluster: Cluster, wanted: Iterable[ApiRead], *, caller: str
) -> Facts:
    """Read what is asked for; what Proxmox refuses to tell is kept with its reason.

    Args:
        client: Speaks to the cluster.
        cluster: What the cluster has.
        wanted: What to read.
        caller: The user or token that asks.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    wanted = sorted(wanted)
    turns = asyncio.Semaphore(_AT_ONCE)
    replies = await asyncio.gather(*(_ask(client, question, turns) for question in wanted))
    answers: dict[ApiRead, Any] = {}
    unanswered: dict[ApiRead, str] = {}
    for question, (answer, reason) in zip(wanted, replies, strict=True):
        if reason:
            unanswered[question] = reason
        else:
            answers[question] = answer
    return Facts(cluster=cluster, answers=answers, unanswered=unanswered, caller=caller)


async def _ask(client: proxmox.Client, question: ApiRead, turns: asyncio.Semaphore) -> tuple[Any, str]:
    try:
        async with turns:
            if question.is_pending:
                return await client.get_pending(question.path), ""
            return await client.get(question.path, dict(question.params), max_age_s=_MAX_AGE_S), ""
    except proxmox.RefusedError as err:
        return None, "" if question.is_optional else err.detail


def caller_of(connection: proxmox.Connection) -> str:
    """Return the user or token that a connection speaks for; empty where only a ticket is known."""
    credentials = connection.credentials
    if isinstance(credentials, proxmox.Token):
        return credentials.text.partition("=")[0]
    return credentials.username if isinstance(credentials, proxmox.Login) else ""
