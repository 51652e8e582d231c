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
    "discard": LazyCommand(module=_REVIEW, name="discard", help="Remove proposed changes from the store."),
    "import": LazyCommand(
        module=_PROPOSE, name="import_", help="Propose to take an existing resource into the state."
    ),
    "list": LazyCommand(
        module=_REVIEW, name="list_changes", help="List the proposed changes, and how far each is."
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
        module=_REVIEW, name="show", help="Show a proposed change: what moves, and the plan after it."
    ),
}


@group("state", later=_LATER)
def state() -> None:
    """Change the state of a stack by a proposal that a second person approves.

    mv, rm, import, replace-provider and rollback change nothing: they try the change on a private copy of the
    state, plan with that copy, and store a document with what moves and the plan after it. `apply` makes the
    change once it is approved, while the state is still the version that it was proposed for.

    \b
    stackyard stack state mv stack:onprem/a terraform_data.x module.web.terraform_data.x
    stackyard stack state list                 the proposed changes
    stackyard stack state show ID              what moves, and the plan after it
    stackyard stack state approve ID           by a second person; --alone where there is none
    stackyard stack state apply ID             make the change

    With --out FILE the document is also a file. Commit it in a pull request: once the default branch has it
    unchanged, `stackyard stack state apply FILE` needs no other approval.
    """  # noqa: D301 - click reads the control character
