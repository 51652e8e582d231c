"""`stackyard state`: the states of OpenTofu, their versions, locks, audit log and moves."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["state"]

_LATER = {
    "audit": LazyCommand(
        module="stackyard.cli.commands.state.audit",
        name="audit",
        help="Verify the audit logs, and show the newest entries of one log.",
    ),
    "backend": LazyCommand(
        module="stackyard.cli.commands.state.backend",
        name="backend",
        help="Write the configuration of the engine's own S3 backend, which needs no service.",
    ),
    "delete": LazyCommand(
        module="stackyard.cli.commands.state.delete",
        name="delete",
        help="Delete a state.",
    ),
    "diff": LazyCommand(
        module="stackyard.cli.commands.state.diff",
        name="diff",
        help="Show the resources, attributes and outputs that differ between two versions.",
    ),
    "forget": LazyCommand(
        module="stackyard.cli.commands.state.forget",
        name="forget",
        help="Remove resources from a state without destroying them.",
    ),
    "freeze": LazyCommand(
        module="stackyard.cli.commands.state.freeze",
        name="freeze",
        help="Block all locks and writes of a state.",
    ),
    "grant": LazyCommand(
        module="stackyard.cli.commands.state.grant",
        name="grant",
        help="Allow one write that breaks a rule, as needed for `tofu state push -force`.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.state.list",
        name="list_states",
        help="Show the states of a store, or those at or below PREFIX.",
    ),
    "locks": LazyCommand(
        module="stackyard.cli.commands.state.locks",
        name="locks",
        help="Show who holds which lock, since when, for what, and who waits for it.",
    ),
    "move": LazyCommand(
        module="stackyard.cli.commands.state.move",
        name="move",
        help="Move a state to another place, and verify that it arrived.",
    ),
    "prune": LazyCommand(
        module="stackyard.cli.commands.state.prune",
        name="prune",
        help="Delete old versions of the states at or below PREFIX; without PREFIX, of all states.",
    ),
    "recover": LazyCommand(
        module="stackyard.cli.commands.state.recover",
        name="recover",
        help="Compare a state that an apply could not store with the stored one, and choose one of them.",
    ),
    "register": LazyCommand(
        module="stackyard.cli.commands.state.register",
        name="register",
        help="Register a state before its first write.",
    ),
    "reseal": LazyCommand(
        module="stackyard.cli.commands.state.reseal",
        name="reseal",
        help="Re-encrypt everything in a store with the first of its keys, while it is in use.",
    ),
    "restore": LazyCommand(
        module="stackyard.cli.commands.state.delete",
        name="restore",
        help="Restore a deleted state.",
    ),
    "rollback": LazyCommand(
        module="stackyard.cli.commands.state.rollback",
        name="rollback",
        help="Restore an earlier version as a new version.",
    ),
    "serve": LazyCommand(
        module="stackyard.cli.commands.state.serve",
        name="serve",
        help="Serve states to OpenTofu and Terraform, with locks, history and fencing.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.state.show",
        name="show",
        help="Show the resources and outputs of a state, without secrets.",
    ),
    "token": LazyCommand(
        module="stackyard.cli.commands.state.token",
        name="token",
        help="Manage the principals of a state service, with their tokens and their rights.",
    ),
    "unfreeze": LazyCommand(
        module="stackyard.cli.commands.state.freeze",
        name="unfreeze",
        help="Allow locks and writes of a state again.",
    ),
    "unlock": LazyCommand(
        module="stackyard.cli.commands.state.unlock",
        name="unlock",
        help="Remove the lock of a run that has died.",
    ),
    "versions": LazyCommand(
        module="stackyard.cli.commands.state.versions",
        name="versions",
        help="Show the versions of a state, newest first.",
    ),
}


@group("state", later=_LATER)
def state() -> None:
    """Manage OpenTofu states: versions, locks, rollback, audit.

    Each run of stackyard keeps its state in the store of the site: by default a file in the folder
    .stackyard/state. These commands work on that store, also while runs use it. --data names another folder,
    --store a bucket, a database or a state service.

    \b
    stackyard state list                       list the states
    stackyard state versions env/dev/pve1      list the versions of a state
    stackyard state diff env/dev/pve1          show what the last apply changed
    stackyard state rollback env/dev/pve1 12   go back to version 12
    stackyard state locks                      show who holds which lock
    """  # noqa: D301 - click reads the control character
