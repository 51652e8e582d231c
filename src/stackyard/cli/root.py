"""The root of the command line: every noun and verb, none of them loaded yet."""

from __future__ import annotations

import click

import stackyard
from stackyard.cli.command import Answer, Group, Later
from stackyard.cli.result import Result

__all__ = ["root"]

_COMMANDS = {
    "completion": Later(
        module="stackyard.cli.commands.completion",
        name="completion",
        help="Print the completion script of a shell.",
    ),
    "lab": Later(
        module="stackyard.cli.commands.lab",
        name="lab",
        help="Run a Proxmox VE API without hardware, to try and test things on.",
    ),
    "tools": Later(
        module="stackyard.cli.commands.tools",
        name="tools",
        help="Show and install the programs that stackyard drives.",
    ),
}


def _show_version(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    del param
    if is_wanted and not ctx.resilient_parsing:
        version = stackyard.__version__
        document = {"name": "stackyard", "version": version}
        raise Answer(Result(document=document, show=lambda paper: paper.line(f"stackyard {version}")))


@click.group(cls=Group, later=_COMMANDS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
def root() -> None:
    """Run Proxmox VE infrastructure as code through OpenTofu.

    Exit status: 0 done, 1 failed or refused, 2 changes (only with --detailed-exitcode), 64 wrong usage,
    65 invalid input, 69 a service cannot be reached, 75 a lock was not obtained in time, 130 interrupted.
    """
