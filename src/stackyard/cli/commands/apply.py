"""`stackyard apply`: make it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.completions import complete_targets
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.manifest_target import find_manifest_name, refuse_manifest_options
from stackyard.cli.operator_options import manifest_options, run_options
from stackyard.cli.operators import operate
from stackyard.cli.path_options import login_options, permit_options, reach_options, repair_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.shared_target import names_shared
from stackyard.cli.stack_options import (
    checkout_option,
    engine_arguments,
    names_stacks,
    names_whole_cluster,
    refuse_stack_options,
    select_options,
    selects_stacks,
)

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["apply"]


@click.command("apply", cls=Command)
@click.argument("target", required=False, shell_complete=complete_targets)
@engine_arguments
@reach_options
@select_options
@checkout_option
@permit_options
@repair_options
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    help="Apply the plan that `stackyard plan --out` saved: a file, or `store:ID`.",
)
@login_options
@click.option("--no-verify", is_flag=True, help="Do not wait until the guests are up, and configure nothing.")
@manifest_options
@run_options
@pass_session
def apply(session: Session, /, **values: Any) -> Result:
    """Plan TARGET, run the guard, apply exactly that plan, and verify that the guests are up.

    \b
    stackyard apply dev
    stackyard apply manifest:n2-quick -H lab
    stackyard apply --changed

    At a terminal, the command shows the plan and asks before it changes anything. --yes skips the question.
    The command does not ask for a saved plan, or without a terminal.

    A stack is a folder of your own OpenTofu code: `stack:NAME`, or several in the order of their dependencies
    with --all, --changed, --tag or --layer. Arguments after `--` are passed to OpenTofu.

    A manifest is applied at every depth: its guests are created, configured over SSH, and then the guests
    inside its Proxmox nodes. After a failure, the same command continues from what already exists.
    `stackyard create -M NAME` is another spelling of `stackyard apply manifest:NAME`.

    A cluster is `hypervisor:NAME`. If the site has no token for it, --login logs in once, makes the token and
    keeps it in the encrypted secrets. Passwords of users need a login, too: Proxmox lets no token set them.
    `hypervisor:NAME --all` applies the file of a cluster and those of its nodes, in order.

    If the guard refuses the plan, nothing changes. A saved plan applies only if the input, the state, the
    tools and stackyard itself are the same as when the plan was created.
    """  # noqa: D301 - click reads the control character
    if values["login"] and not str(values["target"]).startswith("hypervisor:"):
        raise UsageError("--login is for the target of a cluster or a node: `hypervisor:NAME`.")
    if names_whole_cluster(values):
        return _apply_cluster(session, values)
    if names_stacks(values):
        with pause_garbage_collection():
            if selects_stacks(values):
                from stackyard.cli.runs.stacks import many  # lazy: the help needs none of it

                work = many.run_stacks_apply
            else:
                from stackyard.cli.runs.stacks import one  # lazy: as above

                work = one.run_stack_apply
        return session.run(work(session, values))
    manifest = find_manifest_name("apply", values)
    refuse_stack_options(values)
    if manifest is not None and not (values["plan_file"] or values["no_verify"]):
        return operate(session, "create", manifest)
    if manifest is not None and values["target"] is None:
        raise UsageError("--plan and --no-verify need the manifest as a TARGET: `manifest:NAME`.")
    refuse_manifest_options(values, is_manifest=manifest is not None)
    with pause_garbage_collection():
        from stackyard.cli.runs.apply import run_apply  # lazy: the help needs none of it
        from stackyard.cli.runs.login import log_in_first  # lazy: as above

    if names_shared(values):
        from stackyard.cli.runs.shared import run_shared  # lazy: as above

        return session.run(run_shared(session, values, run_apply, is_dry=values["dry_run"]))
    return session.run(run_apply(session, values, log_in_first(session, values)))


def _apply_cluster(session: Session, values: dict[str, Any]) -> Result:
    """Apply a cluster and its nodes."""
    with pause_garbage_collection():
        from stackyard.cli.runs.hypervisors import run_hypervisors_apply  # lazy: the help needs none of it
        from stackyard.cli.runs.login import log_in_first  # lazy: as above

    return session.run(run_hypervisors_apply(session, values, log_in_first(session, values)))
