"""`stackyard drift`: what is no longer as it was applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import target_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["drift"]


@click.command("drift", cls=Command)
@target_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there is drift.")
@pass_session
def drift(session: Session, /, **values: Any) -> Result:
    """Show where the cluster differs from the input of TARGET, and list unmanaged guests.

    This changes nothing. `stackyard apply` corrects the drift.
    """
    with pause_garbage_collection():
        from stackyard.cli.runs.drift import run_drift  # lazy: the help needs none of it

    return session.run(run_drift(session, values))
