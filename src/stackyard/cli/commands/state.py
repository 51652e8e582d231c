"""`stackyard state`: the states of OpenTofu, their versions, locks, audit log and way to other places."""

from __future__ import annotations

from stackyard.cli.command import Later, group

__all__ = ["state"]

_LATER = {
    "audit": Later(
        module="stackyard.cli.commands.state_audit",
        name="audit",
        help="Show the audit log, and prove that it is whole.",
    ),
    "backend": Later(
        module="stackyard.cli.commands.state_backend",
        name="backend",
        help="Write the settings of the engine's own S3 backend.",
    ),
    "delete": Later(
        module="stackyard.cli.commands.state_delete",
        name="delete",
        help="Delete a state; it can be restored.",
    ),
    "diff": Later(
        module="stackyard.cli.commands.state_diff",
        name="diff",
        help="Show what changed between two versions.",
    ),
    "freeze": Later(
        module="stackyard.cli.commands.state_freeze",
        name="freeze",
        help="Keep everybody from changing a state.",
    ),
    "grant": Later(
        module="stackyard.cli.commands.state_grant",
        name="grant",
        help="Allow one write that breaks a rule.",
    ),
    "list": Later(
        module="stackyard.cli.commands.state_list",
        name="list_states",
        help="Show the states of a store.",
    ),
    "locks": Later(
        module="stackyard.cli.commands.state_locks",
        name="locks",
        help="Show who holds which lock, and who waits.",
    ),
    "move": Later(
        module="stackyard.cli.commands.state_move",
        name="move",
        help="Take states to another place, and prove that they arrived.",
    ),
    "prune": Later(
        module="stackyard.cli.commands.state_prune",
        name="prune",
        help="Drop old versions.",
    ),
    "register": Later(
        module="stackyard.cli.commands.state_register",
        name="register",
        help="Make a state known before its first write.",
    ),
    "reseal": Later(
        module="stackyard.cli.commands.state_reseal",
        name="reseal",
        help="Encrypt a store with its newest key.",
    ),
    "restore": Later(
        module="stackyard.cli.commands.state_delete",
        name="restore",
        help="Undo a deletion.",
    ),
    "rollback": Later(
        module="stackyard.cli.commands.state_rollback",
        name="rollback",
        help="Make an earlier version the current one.",
    ),
    "serve": Later(
        module="stackyard.cli.commands.state_serve",
        name="serve",
        help="Serve states to OpenTofu and Terraform.",
    ),
    "show": Later(
        module="stackyard.cli.commands.state_show",
        name="show",
        help="Show what a state holds, no secret among it.",
    ),
    "token": Later(
        module="stackyard.cli.commands.state_token",
        name="token",
        help="Say who may do what at a service.",
    ),
    "unfreeze": Later(
        module="stackyard.cli.commands.state_freeze",
        name="unfreeze",
        help="Undo a freeze.",
    ),
    "unlock": Later(
        module="stackyard.cli.commands.state_unlock",
        name="unlock",
        help="Take a lock away from a run that is gone.",
    ),
    "versions": Later(
        module="stackyard.cli.commands.state_versions",
        name="versions",
        help="Show what a state held before, the newest first.",
    ),
}


@group("state", later=_LATER)
def state() -> None:
    """Look after the states of OpenTofu: versions, locks, rollback, audit.

    Each run of stackyard keeps its state in a store: by default a file in the folder .stackyard/state of the
    site. The verbs work on that store directly, also while runs use it; --data names another folder, and
    --store a bucket.

    \b
    stackyard state list                       what there is
    stackyard state versions env/dev/pve1      what one of them held before
    stackyard state diff env/dev/pve1          what the last apply changed in it
    stackyard state rollback env/dev/pve1 12   go back
    stackyard state locks                      who holds which lock
    """  # noqa: D301 - click reads the control character
