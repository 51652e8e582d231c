"""`stackyard deployment`: the one versioned desired state."""

from __future__ import annotations

from stackyard.cli.command import Later, group

__all__ = ["deployment"]

_LATER = {
    "diff": Later(
        module="stackyard.cli.commands.deployment_diff",
        name="diff",
        help="Show what differs between two versions, guest by guest.",
    ),
    "edit": Later(
        module="stackyard.cli.commands.deployment_edit",
        name="edit",
        help="Change the object: with your editor, with --set, or with --patch.",
    ),
    "explain": Later(
        module="stackyard.cli.commands.deployment_explain",
        name="explain",
        help="Show guest NAME with every value that it gets, and where each came from.",
    ),
    "get": Later(
        module="stackyard.cli.commands.deployment_get",
        name="get",
        help="Fetch the object as it is now, and write it to FILE or print it.",
    ),
    "history": Later(
        module="stackyard.cli.commands.deployment_history",
        name="history",
        help="Show the versions of the object, the newest first.",
    ),
    "hook": Later(
        module="stackyard.cli.commands.deployment_hook",
        name="hook",
        help="Refuse a deployment.json in git, and a terraform.tfvars or *.auto.tfvars beside the object.",
    ),
    "lease": Later(
        module="stackyard.cli.commands.deployment_lease",
        name="lease",
        help="Look after the lease: which session may write the object.",
    ),
    "put": Later(
        module="stackyard.cli.commands.deployment_put",
        name="put",
        help="Make FILE the new version of the object.",
    ),
    "rollback": Later(
        module="stackyard.cli.commands.deployment_rollback",
        name="rollback",
        help="Make an earlier VERSION the current one, as a new version.",
    ),
    "schema": Later(
        module="stackyard.cli.commands.deployment_schema",
        name="schema",
        help="Print the JSON Schema of the object, for editors and other programs.",
    ),
    "show": Later(
        module="stackyard.cli.commands.deployment_show",
        name="show",
        help="Print a VERSION of the object; without one, the current version.",
    ),
    "validate": Later(
        module="stackyard.cli.commands.deployment_validate",
        name="validate",
        help="Hold FILE, or the object as it is now, against everything that it must meet.",
    ),
}


@group("deployment", later=_LATER)
def deployment() -> None:
    """Look after the deployment object: one versioned desired state with one writer at a time.

    It is in a store: a file beside the state, or a key of a bucket, where it stays plain JSON.
    deployment.yaml says which, or --store, or STACKYARD_DEPLOYMENT. Nothing on this machine is the object;
    DEPLOYMENT_JSON_PATH names a file that stands in for it while there is no store.

    \b
    stackyard deployment get deployment.json
    stackyard deployment edit --set containers.web.cpu_cores=4
    stackyard plan deployment
    stackyard apply deployment
    stackyard deployment history
    """  # noqa: D301 - click reads the control character
