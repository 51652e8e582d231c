"""`stackyard plans`: the saved plans in the store of the site."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["plans"]

_LATER = {
    "discard": LazyCommand(
        module="stackyard.cli.commands.plans.discard",
        name="discard",
        help="Remove saved plans: each of PLANS is an id or the start of one.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.plans.list",
        name="list_saved",
        help="Show the saved plans, and which of them can still be applied.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.plans.show",
        name="show",
        help="Show what PLAN does, with secrets masked.",
    ),
}


@group("plans", later=_LATER)
def plans() -> None:
    """Look at the plans that `stackyard plan --out store:` saved in the store of the site.

    A saved plan is encrypted with the site's key. Every machine that has the key can show and apply it, from
    any checkout. It applies only while the input, the state, stackyard, the engine and the provider are the
    same as when it was saved.

    \b
    stackyard plan dev --out store:        save a plan
    stackyard plans list                   list saved plans
    stackyard plans show 20261117T1        show one
    stackyard apply dev --plan store:ID    apply it, on any machine
    stackyard plans discard ID             remove it
    """  # noqa: D301 - click reads the control character
