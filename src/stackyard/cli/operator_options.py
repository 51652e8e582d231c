"""The options that create, destroy and test share, and the way from them to a request."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.base.errors import UsageError
from stackyard.cli.completions import complete_hosts, complete_manifests
from stackyard.cli.path_options import parallelism_option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.operator.request import VerbRequest

__all__ = [
    "manifest_options",
    "operator_options",
    "place_options",
    "request_of",
    "run_options",
    "says_manifest",
]

Function = TypeVar("Function", bound="Callable[..., Any]")

_PROVIDERS = ("builtin", "bpg")


def manifest_options(function: Function) -> Function:
    """Add which manifest is meant."""
    return _with(
        function,
        click.option(
            "-M",
            "--manifest",
            metavar="NAME",
            shell_complete=complete_manifests,
            help="The name of a manifest of the site.",
        ),
        click.option("--manifest-file", metavar="FILE", help="A manifest file that is not in the site."),
        click.option("--manifest-json", metavar="JSON", help="A manifest as JSON text."),
    )


def place_options(function: Function) -> Function:
    """Add where a manifest is run."""
    return _with(
        function,
        click.option(
            "-H",
            "--host",
            metavar="NODE",
            shell_complete=complete_hosts,
            help="The node for guests that do not name one.",
        ),
        click.option(
            "--site",
            metavar="DIR",
            help="The folder of the site (default: search from the current folder upwards).",
        ),
        click.option(
            "--provider",
            type=click.Choice(_PROVIDERS),
            default=_PROVIDERS[0],
            envvar="STACKYARD_PROVIDER",
            show_default=True,
            help="The Proxmox provider: the one built into stackyard, or bpg/proxmox from its registry.",
        ),
        parallelism_option,
    )


def run_options(function: Function) -> Function:
    """Add how a manifest is run; what the options say is for manifests alone."""
    return _with(
        function,
        click.option("--dry-run", is_flag=True, help="Show what the command would do. Change nothing."),
        click.option(
            "--json-output", is_flag=True, help="Print exactly one JSON object, including for errors."
        ),
        click.option(
            "--depth",
            type=click.IntRange(1),
            metavar="N",
            help="Only the first N levels of nodes, from the host. Destroying a node also destroys what is "
            "inside it.",
        ),
        click.option(
            "--target",
            "targets",
            multiple=True,
            metavar="NODE",
            help="Only this node and the nodes that it needs.",
        ),
        click.option(
            "--vm-id",
            "vm_ids",
            multiple=True,
            metavar="NAME=ID",
            help="The VM ID of a node, instead of the one in the manifest.",
        ),
        click.option(
            "--timeout",
            "timeouts",
            multiple=True,
            metavar="PHASE=SECONDS",
            help="The time limit of a phase: provision, wait_ssh, apply_spec, setup_pve and others.",
        ),
        click.option("--skip-preflight", is_flag=True, help="Skip the preflight checks of the host."),
        click.option(
            "-r",
            "--report-dir",
            metavar="DIR",
            help="The folder for reports (default: `reports` in the site).",
        ),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation."),
    )


def operator_options(function: Function) -> Function:
    """Add everything that create and test take."""
    wait = click.option(
        "--lock-wait",
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="How long to wait for another run on the same manifest (default: 600).",
    )
    return manifest_options(place_options(run_options(wait(function))))


def _with(function: Function, *options: Callable[[Function], Function]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def says_manifest(values: Mapping[str, Any]) -> bool:
    """Return whether a command line names a manifest."""
    return any(values[key] is not None for key in ("manifest", "manifest_file", "manifest_json"))


def request_of(values: Mapping[str, Any]) -> VerbRequest:
    """Return what a command line asks for.

    Raises:
        UsageError: A `--vm-id` is not `NAME=ID`, or a `--timeout` not `PHASE=SECONDS`.
    """
    from stackyard.operator.request import VerbRequest  # lazy: only when a verb runs
    from stackyard.sources.site.timeouts import read_timeouts  # lazy: as above

    request = VerbRequest(
        name=values["manifest"],
        file=values["manifest_file"],
        text=values["manifest_json"],
        host=values["host"],
        site=values["site"],
        provider=values["provider"],
    )
    if "targets" not in values:
        return request
    return dataclasses.replace(
        request,
        depth=values["depth"],
        targets=tuple(values["targets"]),
        vm_ids=_vm_ids(values["vm_ids"]),
        timeouts=read_timeouts(values["timeouts"]),
        parallel=values["parallelism"],
        skip_preflight=values["skip_preflight"],
        report_dir=values["report_dir"],
        lock_wait_s=request.lock_wait_s if values.get("lock_wait") is None else values["lock_wait"],
    )


def _vm_ids(said: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in said:
        name, equals, number = text.partition("=")
        if not (equals and name and number.isascii() and number.isdigit()):
            raise UsageError(
                f"--vm-id is given as NAME=ID, such as `--vm-id edge=99990`, and not as `{text}`."
            )
        found[name] = int(number)
    return found
