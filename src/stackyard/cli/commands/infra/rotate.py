"""`stackyard infra rotate-credentials`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.infra.options import cluster_option
from stackyard.cli.commands.state.store import StoreChoice, store_options
from stackyard.cli.commands.state.words import PERIOD
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["rotate_credentials"]


@click.command("rotate-credentials", cls=Command)
@cluster_option
@reach_options
@click.option(
    "--overlap",
    type=PERIOD,
    metavar="AGE",
    default="0h",
    help="How long the old token stays valid, for other machines: 12h, 1d (default: it ends at once).",
)
@store_options
@pass_session
def rotate_credentials(session: Session, /, choice: StoreChoice, **values: Any) -> Result:
    """Give a cluster a new token of the state service, and end the old one.

    The command runs where the store of the state service can be opened. It adds a new principal with the
    same rights, writes its name and token into the encrypted files of the cluster, reads the state with it,
    and only then ends the old principal. If the command is interrupted, run it again.

    \b
    stackyard infra rotate-credentials
    stackyard infra rotate-credentials --overlap 1d
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.rotate import run_rotation  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_rotation(session, values, choice))
