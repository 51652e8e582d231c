"""`stackyard deployment`: the one versioned desired state."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["deployment"]

_LATER = {
    "diff": LazyCommand(
        module="stackyard.cli.commands.deployment.diff",
        name="diff",
        help="Show the differences between two versions, guest by guest.",
    ),
    "edit": LazyCommand(
        module="stackyard.cli.commands.deployment.edit",
        name="edit",
        help="Change the object with your editor, with --set, or with --patch.",
    ),
    "explain": LazyCommand(
        module="stackyard.cli.commands.deployment.explain",
        name="explain",
        help="Show every value of guest NAME, and where each comes from.",
    ),
    "get": LazyCommand(
        module="stackyard.cli.commands.deployment.get",
        name="get",
        help="Fetch the current object, and write it to FILE or print it.",
    ),
    "history": LazyCommand(
        module="stackyard.cli.commands.deployment.history",
        name="history",
        help="Show the versions of the object, newest first.",
    ),
    "hook": LazyCommand(
        module="stackyard.cli.commands.deployment.hook",
        name="hook",
        help="Refuse a deployment.json in git, and a terraform.tfvars or *.auto.tfvars beside the object.",
    ),
    "lease": LazyCommand(
        module="stackyard.cli.commands.deployment.lease",
        name="lease",
        help="Manage the lease: which session may write the object.",
    ),
    "put": LazyCommand(
        module="stackyard.cli.commands.deployment.put",
        name="put",
        help="Write FILE as the new version of the object.",
    ),
    "rollback": LazyCommand(
        module="stackyard.cli.commands.deployment.rollback",
        name="rollback",
        help="Restore an earlier VERSION as a new version.",
    ),
    "schema": LazyCommand(
        module="stackyard.cli.commands.deployment.schema",
        name="schema",
        help="Print the JSON Schema of the object, for editors and other programs.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.deployment.show",
        name="show",
        help="Print a VERSION of the object; without VERSION, the current one.",
    ),
    "validate": LazyCommand(
        module="stackyard.cli.commands.deployment.validate",
        name="validate",
        help="Validate FILE, or the current object.",
    ),
}


@group("deployment", later=_LATER)
def deployment() -> None:
    """Manage the deployment object: one versioned desired state with one writer at a time.

    The object is in a store: a file beside the state, or a key of a bucket, where it stays plain JSON.
    deployment.yaml, --store or STACKYARD_DEPLOYMENT names the store. No file on this machine is the object;
    DEPLOYMENT_JSON_PATH names a file that replaces it while there is no store.

    \b
    stackyard deployment get deployment.json
    stackyard deployment edit --set containers.web.cpu_cores=4
    stackyard plan deployment
    stackyard apply deployment
    stackyard deployment history
    """  # noqa: D301 - click reads the control character
