"""`stackyard import`: guests that are already there, and the cluster itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.completions import complete_targets
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import names_stacks, refuse_stack_options

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["import_guests"]


@click.command("import", cls=Command)
@click.argument("target", shell_complete=complete_targets)
@click.argument("engine_words", metavar="[ADDRESS ID]...", nargs=-1)
@reach_options
@click.option(
    "--node",
    "nodes",
    metavar="NODE,...",
    multiple=True,
    help="Only guests on these nodes; for a hypervisor, the node.",
)
@click.option(
    "--filter",
    "filters",
    metavar="EXPR",
    multiple=True,
    help="Only guests that match: a name with * and ?, a VM ID or range, tag=, pool=, type=vm|ct, "
    "node=. Commas separate alternatives. With several filters, a guest must match all of them.",
)
@click.option(
    "--from-state",
    "from_states",
    metavar="FILE",
    multiple=True,
    help="Import only the guests that this OpenTofu or Terraform state file has, and remove them from it.",
)
@click.option(
    "--leave",
    metavar="KEY,...",
    multiple=True,
    help="Configuration keys that the site cannot express and that stay unchanged; for a hypervisor, "
    "sections and objects that stay unmanaged (`firewall`, `storages.nas`).",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="For a hypervisor: write the file of the cluster, and one for each of its nodes.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check that the import would work and show what it would write. Write nothing.",
)
@pass_session
def import_guests(session: Session, /, **values: Any) -> Result:
    """Import existing guests: write them into TARGET (`env:home`) and its state.

    Without a filter, this imports all unmanaged guests of the cluster. It changes nothing on the cluster. The
    plan after the import is empty: the command checks this in a separate state before it writes anything, and
    again at the end. If the site cannot express a setting of a guest, the command writes nothing and lists
    all such settings.

    If the env does not exist, the command creates it: `stackyard import env:home -H pve1`.

    A guest has one owner. With --from-state, the guests leave the state of the configuration that managed
    them: `stackyard import env:home -H pve1 --from-state ../old/terraform.tfstate`.

    The cluster itself is imported into a file of hypervisors/, with its storages, users, networks, firewall
    and all else: `stackyard import hypervisor:home --all`, or `stackyard import hypervisor:pve1 --node pve1`
    for one node. What cannot be read, such as passwords, is left out and listed.

    Into a stack, name the address of each block and the ID of the resource:
    `stackyard import stack:network proxmox_virtual_environment_pool.lab lab`.
    """
    if names_stacks(values):
        with pause_garbage_collection():
            from stackyard.cli.runs.stacks.state import run_stack_import  # lazy: the help needs none of it

        return session.run(run_stack_import(session, values))
    refuse_stack_options(values)
    if values["target"].partition(":")[0] == "hypervisor":
        with pause_garbage_collection():
            from stackyard.cli.runs.import_hypervisor import run_import_hypervisor  # lazy: as above

        return session.run(run_import_hypervisor(session, values))
    with pause_garbage_collection():
        from stackyard.cli.runs.import_guests import run_import  # lazy: the help needs none of it

    return session.run(run_import(session, values))
