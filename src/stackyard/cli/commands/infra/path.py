"""`stackyard infra plan`, `apply`, `apply-auto` and `destroy`: with lock, guard and saved plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.commands.infra.options import ENGINE_SETTINGS, EngineCommand, run_options
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["apply", "apply_auto", "destroy", "plan"]


@click.command("plan", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@permit_options
@pass_session
def plan(session: Session, /, **values: Any) -> Result:
    """Show what would change and what the guard refuses, and save the plan, encrypted, as `tfplan`.

    \b
    stackyard infra plan
    stackyard infra plan -detailed-exitcode        exit with status 2 if there are changes
    stackyard infra plan -target='proxmox_virtual_environment_vm.talos_node["k8s-0"]'

    `stackyard infra apply` applies exactly this plan. Arguments that would bypass the lock, the store or the
    guard are refused.
    """  # noqa: D301 - click reads the control character
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.infra import run_infra_plan  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_infra_plan(session, values))


@click.command("apply", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@permit_options
@click.option("--no-verify", is_flag=True, help="Do not wait until the VMs are up.")
@pass_session
def apply(session: Session, /, **values: Any) -> Result:
    """Apply the plan that `stackyard infra plan` saved as `tfplan`, and nothing else.

    If something has changed since, the plan is refused: plan again. The guard checks it once more; name what
    may be destroyed with --allow-destroy.
    """
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.infra import run_infra_apply  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_infra_apply(session, values))


@click.command("apply-auto", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@permit_options
@click.option("--no-verify", is_flag=True, help="Do not wait until the VMs are up.")
@pass_session
def apply_auto(session: Session, /, **values: Any) -> Result:
    """Plan and apply at once, without a question; what the guard refuses still needs its option."""
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.infra import run_infra_apply_auto  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_infra_apply_auto(session, values))


@click.command("destroy", cls=EngineCommand, context_settings=ENGINE_SETTINGS)
@run_options
@permit_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy everything that the infrastructure of a cluster has: VMs, their disks, and images.

    Name each VM with --allow-destroy. Without it, the command refuses and prints the command to repeat.
    """
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.infra import run_infra_destroy  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_infra_destroy(session, values))
