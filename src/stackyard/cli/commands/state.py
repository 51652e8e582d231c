"""`stackyard state`: the states of OpenTofu, their versions, locks, audit log and way to other places."""

from __future__ import annotations

from stackyard.cli.command import Later, group

__all__ = ["state"]

_LATER = {
    "audit": Later(
        module="stackyard.cli.commands.state_audit",
        name="audit",
        help="Check the audit logs, and show the newest entries of one.",
    ),
    "backend": Later(
        module="stackyard.cli.commands.state_backend",
        name="backend",
        help="Write the settings of the engine's own S3 backend, which needs no service.",
    ),
    "delete": Later(
        module="stackyard.cli.commands.state_delete",
        name="delete",
        help="Delete a state.",
    ),
    "diff": Later(
        module="stackyard.cli.commands.state_diff",
        name="diff",
        help="Show the resources, attributes and outputs that differ between two versions.",
    ),
    "forget": Later(
        module="stackyard.cli.commands.state_forget",
        name="forget",
        help="Take resources out of a state; what they stand for stays as it is.",
    ),
    "freeze": Later(
        module="stackyard.cli.commands.state_freeze",
        name="freeze",
        help="Keep everybody from locking and writing a state.",
    ),
    "grant": Later(
        module="stackyard.cli.commands.state_grant",
        name="grant",
        help="Allow one write that breaks a rule, as `tofu state push -force` needs.",
    ),
    "list": Later(
        module="stackyard.cli.commands.state_list",
        name="list_states",
        help="Show the states of a store, or those at or below PREFIX.",
    ),
    "locks": Later(
        module="stackyard.cli.commands.state_locks",
        name="locks",
        help="Show who holds which lock, since when, for what, and who waits for it.",
    ),
    "move": Later(
        module="stackyard.cli.commands.state_move",
        name="move",
        help="Take a state to another place, and prove that it arrived.",
    ),
    "prune": Later(
        module="stackyard.cli.commands.state_prune",
        name="prune",
        help="Drop old versions of the states at or below PREFIX, of all states without one.",
    ),
    "recover": Later(
        module="stackyard.cli.commands.state_recover",
        name="recover",
        help="Compare a state that an apply could not store with the stored one, and take one of the two.",
    ),
    "register": Later(
        module="stackyard.cli.commands.state_register",
        name="register",
        help="Make a state known before its first write.",
    ),
    "reseal": Later(
        module="stackyard.cli.commands.state_reseal",
        name="reseal",
        help="Encrypt everything in a store with the first of its keys, while it is in use.",
    ),
    "restore": Later(
        module="stackyard.cli.commands.state_delete",
        name="restore",
        help="Undo a deletion.",
    ),
    "rollback": Later(
        module="stackyard.cli.commands.state_rollback",
        name="rollback",
        help="Make an earlier version the current one, as a new version.",
    ),
    "serve": Later(
        module="stackyard.cli.commands.state_serve",
        name="serve",
        help="Serve states to OpenTofu and Terraform, with locks, history and fencing.",
    ),
    "show": Later(
        module="stackyard.cli.commands.state_show",
        name="show",
        help="Show what a state holds: its resources and outputs, no secret among them.",
    ),
    "token": Later(
        module="stackyard.cli.commands.state_token",
        name="token",
        help="Say who may do what at a service: principals, each with a token and rights by prefix.",
    ),
    "unfreeze": Later(
        module="stackyard.cli.commands.state_freeze",
        name="unfreeze",
        help="Let runs lock and write a state again.",
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
