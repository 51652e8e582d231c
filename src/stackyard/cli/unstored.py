"""States that an apply on this machine could not store: every verb of their site names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.session import Session

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["warn_of_unstored_states"]


def warn_of_unstored_states(base: Path, session: Session | None = None) -> None:
    """Name each state that waits in a file of this machine, once in a command.

    Args:
        base: The folder for what stays on this machine.
        session: The command; the current one when absent.
    """
    from stackyard.path.workspace import list_unstored_states  # lazy: the help of a command needs none of it

    found = list_unstored_states(base)
    session = session or _find_session()
    if not found or session is None:
        return
    from stackyard.base import events  # lazy: few commands have to warn

    for state, path in found.items():
        text = (
            f"{path} holds the state {state} of an earlier apply, which could not be stored."
            f" The next run on its target stores it. `stackyard state recover {state}` compares it with the"
            " stored one."
        )
        session.emit_once(events.LogLine(level=events.LogLevel.WARNING, source="state", text=text))


def _find_session() -> Session | None:
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_object(Session)
