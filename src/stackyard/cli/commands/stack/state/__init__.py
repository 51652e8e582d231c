"""`stackyard stack state`: changes of a state that are proposed, approved and then made."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["state"]

_PROPOSE = "stackyard.cli.commands.stack.state.propose"
_REVIEW = "stackyard.cli.commands.stack.state.review"
_LATER = {
    "apply": LazyCommand(
        module="stackyard.cli.commands.stack.state.apply",
        name="apply",
        help="Make a change that was approved, under the lock of the stack.",
    ),
    "approve": LazyCommand(
        module=_REVIEW, name="approve", help="Approve a change that somebody else proposed."
    ),
    "discard": LazyCommand(module=_REVIEW, name="discard", help="Remove changes from the store."),
    "import": LazyCommand(
        module=_PROPOSE, name="import_", help="Propose to import an existing resource into the state."
    ),
    "list": LazyCommand(
        module=_REVIEW, name="list_changes", help="List the changes: proposed, approved or applied."
    ),
    "mv": LazyCommand(
        module=_PROPOSE, name="mv", help="Propose to give a resource or module another address."
    ),
    "replace-provider": LazyCommand(
        module=_PROPOSE, name="replace_provider", help="Propose to let another provider manage resources."
    ),
    "rm": LazyCommand(
        module=_PROPOSE, name="rm", help="Propose to remove resources from the state without destroying them."
    ),
    "rollback": LazyCommand(
        module=_PROPOSE, name="rollback", help="Propose to restore an earlier version of the state."
    ),
    "show": LazyCommand(
        module=_REVIEW, name="show", help="Show a change: what moves, and the plan after it."
    ),
}


@group("state", later=_LATER)
def state() -> None:
    """Propose, approve and apply changes of the state of a stack.

    mv, rm, import, replace-provider and rollback only propose a change: they try it on a private copy of the
    state, plan with that copy, and store the change with that plan. A second person approves it. Then `apply`
    makes the change, if the state is still the version that it was proposed for.

    \b
    stackyard stack state mv stack:onprem/a terraform_data.x module.web.terraform_data.x
    stackyard stack state list                 all changes, with their IDs
    stackyard stack state show ID              what moves, and the plan after it
    stackyard stack state approve ID           by a second person; --alone if you work alone
    stackyard stack state apply ID             make the change

    --out FILE also writes the change to a file. Commit it in a pull request: once it is merged unchanged into
    the default branch, `stackyard stack state apply FILE` needs no other approval.
    """  # noqa: D301 - click reads the control character
