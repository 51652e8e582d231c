"""`stackyard plans`: the saved plans in the store of the site."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["plans"]

_LATER = {
    "discard": LazyCommand(
        module="stackyard.cli.commands.plans.discard",
        name="discard",
        help="Remove saved plans from the store.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.plans.list",
        name="list_saved",
        help="List the saved plans, and show which of them can still be applied.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.plans.show",
        name="show",
        help="Show the changes of a saved plan, with secrets masked.",
    ),
}


@group("plans", later=_LATER)
def plans() -> None:
    """List, show and remove the plans that `stackyard plan --out store:` saved in the store.

    A saved plan is encrypted with the site key. Every machine that has the key can show and apply the plan,
    from any checkout. A plan can be applied only while the input, the version of the state, and the versions
    of stackyard, the engine and the provider are the same as when it was saved.

    \b
    stackyard plan dev --out store:        save a plan
    stackyard plans list                   list saved plans
    stackyard plans show 20261117T1        show one
    stackyard apply dev --plan store:ID    apply it, on any machine
    stackyard plans discard ID             remove it
    """  # noqa: D301 - click reads the control character
