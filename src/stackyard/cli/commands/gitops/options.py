"""The options of the verbs of `stackyard gitops`: which repository on which forge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["forge_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")

_KINDS = ("gitea", "github", "gitlab")


def forge_options(function: Function) -> Function:
    """Add which repository on which forge, and what runs log in with."""
    for option in reversed((*_PLACE, *_RUNS)):
        function = option(function)
    return function


_PLACE = (
    click.option(
        "--forge",
        type=click.Choice(_KINDS),
        envvar="STACKYARD_FORGE",
        help="The kind of the forge; Forgejo is gitea (default: that of the CI).",
    ),
    click.option(
        "--url",
        metavar="URL",
        envvar="STACKYARD_FORGE_URL",
        help="The address of the forge: https://git.example.org (default: that of the CI).",
    ),
    click.option(
        "--repository",
        metavar="OWNER/NAME",
        envvar="STACKYARD_FORGE_REPOSITORY",
        help="The repository (default: that of the CI).",
    ),
    click.option(
        "--ca",
        metavar="FILE",
        envvar="STACKYARD_FORGE_CA",
        help="Certificates that the forge may be signed by, besides those of the system.",
    ),
)
_RUNS = (
    click.option(
        "--credentials",
        metavar="DIR",
        envvar="STACKYARD_GITOPS_CREDENTIALS",
        help="A folder with plan.env and apply.env, and for single targets KIND/NAME/plan.env (default: "
        "the variables that the command is started with).",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1, 64),
        default=4,
        show_default=True,
        metavar="N",
        help="How many targets to plan at the same time.",
    ),
)
