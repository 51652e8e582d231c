"""`stackyard stack state mv|rm|import|replace-provider|rollback`: proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.cli.command import Command
from stackyard.cli.completions import complete_stacks
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.result import Result

__all__ = ["import_", "mv", "replace_provider", "rm", "rollback"]

Function = TypeVar("Function", bound="Callable[..., Any]")


def _proposal(function: Function) -> Function:
    """Add the stack before the other arguments, and the options that all proposals have."""
    out = click.option(
        "--out",
        metavar="FILE",
        help="Also write the change to a file: JSON if it ends with .json, else YAML.",
    )
    decorated: Any = pass_session(reach_options(out(function)))
    return click.argument("target", metavar="STACK", shell_complete=complete_stacks)(decorated)  # type: ignore[no-any-return]


def _propose(session: Session, values: dict[str, Any], verb: str, *words: str) -> Result:
    from stackyard.cli.runs.stacks.state_change import run_state_propose  # lazy: the help needs none of it
    from stackyard.path.stacks.state_change.operation import StateVerb  # lazy: as above

    note_given_provider(values)
    return session.run(run_state_propose(session, values, StateVerb(verb), words))


@click.command("mv", cls=Command)
@_proposal
@click.argument("source")
@click.argument("destination")
def mv(session: Session, /, source: str, destination: str, **values: Any) -> Result:
    """Propose to give a resource or module another address.

    \b
    stackyard stack state mv stack:onprem/a 'terraform_data.vm["old"]' 'terraform_data.vm["new"]'

    The state stays as it is: the change is stored, with the plan after it. Often a `moved` block in the code
    is enough, which needs no change of the state.
    """  # noqa: D301 - click reads the control character
    return _propose(session, values, "mv", source, destination)


@click.command("rm", cls=Command)
@_proposal
@click.argument("addresses", nargs=-1, required=True)
def rm(session: Session, /, addresses: tuple[str, ...], **values: Any) -> Result:
    """Propose to remove resources from the state without destroying them.

    \b
    stackyard stack state rm stack:onprem/a terraform_data.old

    The resources themselves stay, and nothing manages them any more. The state stays as it is for now: the
    change is stored, with the plan after it.
    """  # noqa: D301 - click reads the control character
    return _propose(session, values, "rm", *addresses)


@click.command("import", cls=Command)
@_proposal
@click.argument("address")
@click.argument("resource_id", metavar="ID")
def import_(session: Session, /, address: str, resource_id: str, **values: Any) -> Result:
    """Propose to import an existing resource into the state.

    \b
    stackyard stack state import stack:onprem/a terraform_data.found its-id

    The address is that of a block in the code. The state stays as it is for now: the change is stored, with
    the plan after it. The resource is read again when the change is applied. `stackyard import` imports at
    once.
    """  # noqa: D301 - click reads the control character
    return _propose(session, values, "import", address, resource_id)


@click.command("replace-provider", cls=Command)
@_proposal
@click.argument("source", metavar="FROM")
@click.argument("destination", metavar="TO")
def replace_provider(session: Session, /, source: str, destination: str, **values: Any) -> Result:
    """Propose to let another provider manage resources.

    \b
    stackyard stack state replace-provider stack:onprem/a registry.terraform.io/bpg/proxmox bpg/proxmox

    The state stays as it is for now: the change is stored, with the plan after it.
    """  # noqa: D301 - click reads the control character
    return _propose(session, values, "replace-provider", source, destination)


@click.command("rollback", cls=Command)
@_proposal
@click.argument("version")
def rollback(session: Session, /, version: str, **values: Any) -> Result:
    """Propose to restore an earlier version of the state.

    \b
    stackyard stack state rollback stack:onprem/a 12

    For a state in the store of stackyard, VERSION is a number that `stackyard state versions` lists. For any
    other backend, it is the ID of an applied change: the state from before that change is restored. The state
    stays as it is for now: the change is stored, with the plan after it.
    """  # noqa: D301 - click reads the control character
    return _propose(session, values, "rollback", version)
