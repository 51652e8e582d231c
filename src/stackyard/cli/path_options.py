"""The options that plan, apply, destroy and drift share; `runs.target` makes a run of what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.cli.completions import complete_guests, complete_hosts, complete_targets

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "PROVIDERS",
    "login_options",
    "parallelism_option",
    "permit_options",
    "reach_options",
    "repair_options",
    "target_options",
]

Function = TypeVar("Function", bound="Callable[..., Any]")

# The values of `ProviderChoice`, which is not loaded to show a help.
PROVIDERS = ("builtin", "bpg")


parallelism_option = click.option(
    "--parallelism",
    "--parallel",
    "parallelism",
    type=click.IntRange(1, 256),
    metavar="N",
    help="The number of resources to work on at the same time. --parallel is an alias.",
)


def target_options(function: Function) -> Function:
    """Add the target, and how to reach it."""
    return click.argument("target", shell_complete=complete_targets)(reach_options(function))


def reach_options(function: Function) -> Function:
    """Add how to reach a target."""
    options = (
        click.option(
            "-H",
            "--host",
            metavar="NODE",
            shell_complete=complete_hosts,
            help="The Proxmox VE node to run on, if the target does not name one.",
        ),
        click.option(
            "--site",
            metavar="DIR",
            help="The folder of the site (default: search from the current folder upwards).",
        ),
        click.option(
            "--provider",
            type=click.Choice(PROVIDERS),
            default=PROVIDERS[0],
            envvar="STACKYARD_PROVIDER",
            show_default=True,
            help="The Proxmox provider: the one built into stackyard, or bpg/proxmox from its registry.",
        ),
        parallelism_option,
        click.option(
            "--lock-wait",
            type=click.FloatRange(0),
            metavar="SECONDS",
            help="How long to wait for a state, or a cluster, that another run has locked (default: 600).",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def permit_options(function: Function) -> Function:
    """Add what permits what the guard would refuse."""
    options = (
        _names(
            "--allow-destroy",
            "Allow these guests, files, networks, other objects or addresses to be destroyed or replaced.",
        ),
        _names("--allow-disk-loss", "Allow these guests to lose, shrink or move a disk."),
        _names("--allow-reboot", "Allow these running guests to be stopped or rebooted."),
        _names("--allow-migrate", "Allow these guests to migrate to the node that the input names."),
        _names("--allow-network-reload", "Allow these nodes to reload their network."),
        _names(
            "--allow-management-network",
            "Allow changes that may cut the management address of these nodes, with a way back.",
        ),
        _names("--allow-lockout", "Allow the firewall of these nodes to shut this machine out."),
        click.option(
            "--allow-policy",
            metavar="NAME,...",
            multiple=True,
            help="Allow what policy rules deny with one of these names as `permit`.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def login_options(function: Function) -> Function:
    """Add the login to a cluster, for what no token can do."""
    options = (
        click.option(
            "--login",
            metavar="USER@REALM",
            help="Log in to the hypervisor once, to make its first token and to set passwords. The password "
            "is asked for, or read from STACKYARD_PVE_PASSWORD or --password-file.",
        ),
        click.option("--password-file", metavar="FILE", help="Read the password of --login from a file."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def repair_options(function: Function) -> Function:
    """Add what becomes part of a plan on request."""
    options = (
        click.option(
            "--accept-renames", is_flag=True, help="Plan renamed guests as renames, not as new guests."
        ),
        click.option(
            "--adopt",
            is_flag=True,
            help="Plan to adopt guests, pools and networks that no state manages.",
        ),
        _names("--recreate", "Plan to recreate these guests. Their disks are lost."),
        click.option(
            "--renew-token",
            metavar="USER@REALM!NAME,...",
            multiple=True,
            help="Plan to give these tokens of a hypervisor new secrets. The old ones stop working.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _names(name: str, help: str) -> Callable[[Function], Function]:
    return click.option(name, metavar="NAME,...", multiple=True, shell_complete=complete_guests, help=help)
