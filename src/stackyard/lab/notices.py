"""Things that somebody wants to be told: a node that is fenced, a job that failed.

A document `notices/<number>` waits to be sent to whom the matchers of notifications say: `severity`, `title`,
`message`, `time` and the `fields` that matchers look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.store import Store

__all__ = ["NOTICES", "announce"]

NOTICES = "notices"


def announce(
    store: Store, moment: float, severity: str, text: tuple[str, str], fields: Mapping[str, str]
) -> None:
    """Leave a notice to be sent, in the running transaction.

    Args:
        store: The documents.
        moment: When it happened.
        severity: `info`, `notice`, `warning` or `error`.
        text: The title and the message.
        fields: What matchers look at: `type`, `hostname`, `job-id`.
    """
    number = max((int(key) for key in store.items(NOTICES)), default=0) + 1
    title, message = text
    notice = {"severity": severity, "title": title, "message": message, "time": int(moment)}
    store.put(NOTICES, str(number), {**notice, "fields": dict(fields)})
