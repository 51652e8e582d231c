"""Options of commands that work on stacks too: which stacks, and what is passed on to the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

__all__ = [
    "checkout_option",
    "engine_arguments",
    "names_stacks",
    "note_given_provider",
    "refuse_stack_options",
    "select_options",
    "selects_stacks",
]

Function = TypeVar("Function", bound="Callable[..., Any]")

# A cluster is the stack of the code that is generated for it.
_KINDS = ("stack:", "cluster:")
_SELECTING = {
    "all_stacks": "--all",
    "changed": "--changed",
    "base": "--base",
    "tags": "--tag",
    "layers": "--layer",
}


def select_options(function: Function) -> Function:
    """Add which stacks a command works on, in place of a TARGET."""
    options = (
        click.option(
            "--all",
            "all_stacks",
            is_flag=True,
            help="Work on every stack, in order. With `plan`, `drift` and `apply` of `hypervisor:NAME`: "
            "on the cluster and its nodes.",
        ),
        click.option(
            "--changed", is_flag=True, help="Work on the stacks that read something that changed, in order."
        ),
        click.option(
            "--base",
            metavar="REF",
            help="With --changed: compare with this commit (default: the merge base with the default branch; "
            "on the default branch, what was last applied).",
        ),
        click.option("--tag", "tags", metavar="TAG", multiple=True, help="Work on the stacks with this tag."),
        click.option(
            "--layer", "layers", metavar="LAYER", multiple=True, help="Work on the stacks of this layer."
        ),
        click.option(
            "--jobs",
            type=click.IntRange(1, 256),
            metavar="N",
            help="How many stacks to work on at the same time (default: twice the number of cores).",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


checkout_option = click.option(
    "--allow-dirty",
    "is_dirty_allowed",
    is_flag=True,
    help="Apply stacks from a checkout with changes that are not committed, or behind the default branch.",
)


def engine_arguments(function: Function) -> Function:
    """Add the arguments after `--`."""
    return click.argument("engine_words", metavar="[-- ARGS...]", nargs=-1, type=click.UNPROCESSED)(function)


def selects_stacks(values: MutableMapping[str, Any]) -> bool:
    """Return whether the options select several stacks."""
    return any(values.get(name) for name in _SELECTING)


def names_stacks(values: MutableMapping[str, Any]) -> bool:
    """Return whether a command line is about stacks; an argument after `--` is no target.

    Raises:
        UsageError: A target is named, and stacks are selected too.
    """
    target = values.get("target")
    if target is not None and target.startswith("-"):
        values["engine_words"] = (target, *values.get("engine_words", ()))
        values["target"] = target = None
    note_given_provider(values)
    if selects_stacks(values):
        if target is not None:
            raise UsageError(f"Name the target `{target}`, or select stacks with options, not both.")
        return True
    if target is None:
        return False
    if ":" not in target and _is_bare_cluster(target):
        values["target"] = target = f"cluster:{target}"
    return target.startswith(_KINDS) or (":" not in target and _is_bare_stack(target))


def names_whole_cluster(values: MutableMapping[str, Any]) -> bool:
    """Return whether a command line is about the file of a cluster and those of its nodes.

    Raises:
        UsageError: An option of stacks is given, too.
    """
    if not values["all_stacks"] or not str(values["target"]).startswith("hypervisor:"):
        return False
    given = [option for name, option in _SELECTING.items() if name != "all_stacks" and values.get(name)]
    if given:
        raise UsageError(f"{given[0]} is for stacks: leave it out.")
    refuse_stack_options(values)
    note_given_provider(values)
    return True


def note_given_provider(values: MutableMapping[str, Any]) -> None:
    """Note whether the user named the provider, on the command line or in the environment."""
    context = click.get_current_context()
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    values["is_provider_given"] = context.get_parameter_source("provider") in given


def refuse_stack_options(values: MutableMapping[str, Any]) -> None:
    """Refuse options of stacks for another target.

    Raises:
        UsageError: One is given.
    """
    if values.get("engine_words"):
        raise UsageError("Only stacks pass arguments on to the engine: `stack:NAME -- ARGS`.")
    if values.get("is_dirty_allowed"):
        raise UsageError("--allow-dirty is for stacks: `stack:NAME`.")
    if values.get("target") is None and "manifest" not in values:
        raise UsageError("Name a TARGET, or select stacks with --all, --changed, --tag or --layer.")


def _is_bare_cluster(name: str) -> bool:
    """Return whether a bare name is that of a cluster: there is no site, and no such stack."""
    from stackyard.sources.cluster.names import find_clusters  # lazy: few names are bare
    from stackyard.sources.site.discovery import SiteNotFoundError, find_site  # lazy: as above

    if name not in find_clusters():
        return False
    try:
        find_site()
    except SiteNotFoundError:
        return not _is_bare_stack(name)
    return False


def _is_bare_stack(name: str) -> bool:
    """Return whether a bare name is that of a stack: there is no site, or it has no such target."""
    from stackyard.sources.site.discovery import SiteNotFoundError, find_site  # lazy: few names are bare
    from stackyard.sources.stacks.repository import NoStacksError, find_stacks  # lazy: as above

    try:
        site = find_site()
    except SiteNotFoundError:
        site = None
    try:
        stacks = find_stacks().stacks
    except NoStacksError:
        return False
    if site is None:
        # A name that is none of theirs is still meant as one: the error suggests another.
        return bool(stacks)
    is_in_site = any((site / folder / f"{name}.yaml").is_file() for folder in ("envs", "manifests"))
    return name.partition("@")[0] in stacks and not is_in_site
