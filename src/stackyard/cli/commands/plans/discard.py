"""`stackyard plans discard`: saved plans that no one will apply."""

from __future__ import annotations

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.plans.stored import open_store, site_option
from stackyard.cli.result import Result

__all__ = ["discard"]


@click.command("discard", cls=Command)
@click.argument("plans", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Remove every saved plan of the site.")
@site_option
def discard(plans: tuple[str, ...], is_all: bool, site: str | None) -> Result:
    """Remove saved plans from the store.

    Each of PLANS is an id, or the start of one. Guests and states are not changed.
    """
    from stackyard.path.saved_plans import find_plan, list_plans  # lazy: only when this verb runs

    if bool(plans) == is_all:
        raise UsageError("Name the plans to remove, or give --all.")
    with open_store(site) as opened:
        objects = opened.objects
        found = list(list_plans(objects)) if is_all else [find_plan(objects, plan) for plan in plans]
        for one in found:
            objects.delete(one.key)
    ids = [one.id for one in found]
    text = f"Removed: {', '.join(ids)}." if ids else "No plans are saved in the store."
    return Result(document={"discarded": ids}, show=lambda writer: writer.line(text))
