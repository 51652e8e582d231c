"""The options that the verbs of `stackyard deployment` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.sources.deployment.settings import ObjectLocation

__all__ = ["place_of", "read_acknowledgements", "store_option", "write_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")


def store_option(function: Function) -> Function:
    """Add the choice of the store."""
    option = click.option(
        "--store",
        metavar="STORE",
        help="s3://bucket/key[?endpoint=URL], a folder, or domains:FOLDER (also: STACKYARD_DEPLOYMENT).",
    )
    return option(function)


def write_options(function: Function) -> Function:
    """Add what every verb takes that writes."""
    options = (
        click.option(
            "--allow-delete",
            metavar="NAME,...",
            multiple=True,
            help="Allow these entries to be removed, as `web` or `containers.web`.",
        ),
        click.option("--accept-renames", is_flag=True, help="Allow guests to get a different key."),
        click.option(
            "--note", default="", metavar="TEXT", help="A note about the purpose, stored with the version."
        ),
        click.option("--dry-run", is_flag=True, help="Show the differences. Write nothing."),
        click.option(
            "--lease-wait",
            type=click.FloatRange(0),
            metavar="SECONDS",
            help="How long to wait for another session that is writing (default: 600).",
        ),
        store_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def place_of(store: str | None) -> ObjectLocation:
    """Return where the object is.

    Raises:
        InvalidInputError: The settings are wrong.
    """
    from stackyard.sources.deployment.settings import find_place  # lazy: pydantic, only when a verb runs

    return find_place(store)


def read_acknowledgements(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a request takes from the options of a write."""
    from stackyard.sources.deployment.write import AllowedRemovals  # lazy: only when something is written

    names = {name.strip() for given in values["allow_delete"] for name in given.split(",") if name.strip()}
    return {
        "acknowledged": AllowedRemovals(deleted=frozenset(names), renames=values["accept_renames"]),
        "note": values["note"],
        "is_dry": values["dry_run"],
        "wait_s": values["lease_wait"],
    }
