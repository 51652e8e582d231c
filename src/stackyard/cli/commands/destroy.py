"""`stackyard destroy`: remove what a target has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.completions import complete_targets
from stackyard.cli.confirmation import can_ask
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.manifest_target import find_manifest_name, list_permits, refuse_manifest_options
from stackyard.cli.operator_options import manifest_options, run_options, says_manifest
from stackyard.cli.operators import operate
from stackyard.cli.path_options import permit_options, reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import (
    engine_arguments,
    names_stacks,
    refuse_stack_options,
    select_options,
    selects_stacks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.result import Result

__all__ = ["destroy"]


@click.command("destroy", cls=Command)
@click.argument("target", required=False, shell_complete=complete_targets)
@engine_arguments
@reach_options
@select_options
@permit_options
@click.option(
    "--out",
    metavar="FILE",
    help="With --dry-run: save the plan, encrypted, for `destroy --plan FILE`; `store:` saves it in the "
    "store.",
)
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    help="Destroy by the plan that `destroy --dry-run --out` saved: a file, or `store:ID`.",
)
@manifest_options
@run_options
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy everything in TARGET, a manifest included.

    \b
    stackyard destroy dev --allow-destroy web1
    stackyard destroy manifest:n1-basic -H lab --yes
    stackyard destroy stack:network --allow-destroy terraform_data.dns,module.pools

    Name each guest of an env with --allow-destroy. Without it, the command refuses and lists the guests with
    the command to repeat. For a manifest, the command asks once and destroys everything, including what runs
    inside its nodes. It does not destroy protected guests: remove their protection first.

    Name each resource of a stack with --allow-destroy: by its address, its module, or the name of a Proxmox
    object. Several stacks (--all, --tag, --layer) are destroyed in reverse order. For a stack whose folder
    was removed, the code comes from the last commit that had it.

    At a terminal, the command names what it destroys and asks; --yes skips the question. A plan that was
    saved with --dry-run --out is applied with --plan, as long as everything it was made for is the same.
    `destroy -M NAME` is another spelling of `destroy manifest:NAME`.
    """  # noqa: D301 - click reads the control character
    _check_plan_options(values)
    if names_stacks(values):
        with pause_garbage_collection():
            if selects_stacks(values):
                from stackyard.cli.runs.stacks import many  # lazy: the help needs none of it

                work = many.run_stacks_destroy
            else:
                from stackyard.cli.runs.stacks import one  # lazy: as above

                work = one.run_stack_destroy
        return session.run(work(session, values))
    manifest = find_manifest_name("destroy", values)
    refuse_stack_options(values)
    permits = list_permits(values)
    if says_manifest(values) and permits:
        raise UsageError("-M destroys a manifest as a whole. To name its guests: destroy manifest:NAME.")
    is_planned = bool(values["plan_file"] or values["out"])
    if manifest is not None and not (permits or is_planned) and (_is_whole(values) or can_ask(session)):
        return operate(session, "destroy", manifest)
    refuse_manifest_options(values, is_manifest=manifest is not None)
    with pause_garbage_collection():
        from stackyard.cli.runs.destroy import run_destroy  # lazy: the help needs none of it

    return session.run(run_destroy(session, values))


def _check_plan_options(values: Mapping[str, Any]) -> None:
    """Refuse options that do not fit together.

    Raises:
        UsageError: They do not.
    """
    if values["out"] and not values["dry_run"]:
        raise UsageError("--out saves a plan: give --dry-run with it.")
    if values["plan_file"] and values["dry_run"]:
        raise UsageError("--plan destroys what a saved plan says: --dry-run does not go with it.")
    if (values["out"] or values["plan_file"]) and any(
        values.get(name) for name in ("all_stacks", "changed", "tags", "layers")
    ):
        raise UsageError("--out and --plan are for one target: name it.")


def _is_whole(values: Mapping[str, Any]) -> bool:
    """Return whether a manifest is destroyed as one, and not the guests that --allow-destroy names."""
    return bool(says_manifest(values) or values["yes"] or values["dry_run"])
