"""`stackyard destroy`: remove what a target or a manifest has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.operator_options import manifest_options, run_options, says_manifest
from stackyard.cli.operators import operate
from stackyard.cli.path_options import permit_options, reach_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["destroy"]


@click.command("destroy", cls=Command)
@click.argument("target", required=False)
@reach_options
@permit_options
@manifest_options
@run_options
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy everything in TARGET, or everything that a manifest (-M) created.

    \b
    stackyard destroy dev --allow-destroy web1
    stackyard destroy -M n1-basic -H lab --yes

    For a TARGET, name each guest with --allow-destroy. Without it, the command refuses and lists the guests
    with the command to repeat. For a manifest, the command asks once and destroys everything, including what
    runs inside its nodes. It does not destroy protected guests: remove their protection first.
    """  # noqa: D301 - click reads the control character
    if says_manifest(values):
        if values["target"] is not None:
            raise UsageError(f"`{values['target']}` and a manifest are named: say one of them.")
        return operate(session, "destroy", values)
    if values["target"] is None:
        raise UsageError("Say what to destroy: a TARGET such as `env:dev`, or a manifest with -M.")
    with pause_garbage_collection():
        from stackyard.cli.runs.destroy import run_destroy  # lazy: the help needs none of it

    return session.run(run_destroy(session, values))
