"""`stackyard stack upgrade`: newer versions of providers and modules, reported or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.completions import complete_stacks
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import select_options, selects_stacks

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["upgrade"]


@click.command("upgrade", cls=Command)
@click.argument("names", metavar="[STACK]...", nargs=-1, shell_complete=complete_stacks)
@select_options
@click.option("--report", "is_report", is_flag=True, help="Only report newer versions (the default).")
@click.option(
    "--write",
    "is_write",
    is_flag=True,
    help="Raise constraints within the same major version, and update the lock files.",
)
@click.option(
    "--major",
    "is_major",
    is_flag=True,
    help="With --write: take new major versions too, first in stacks with `critical: false`.",
)
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    help="Only this provider or module (`hashicorp/aws` or `aws`); repeatable.",
)
@click.option(
    "--platform",
    "platforms",
    metavar="OS_ARCH",
    multiple=True,
    help="With --write: a platform to lock providers for; repeatable (default: linux, darwin and windows on "
    "amd64 and arm64).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="How to show the report.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if the report has a newer version.")
@pass_session
def upgrade(session: Session, /, **values: Any) -> Result:
    """Report newer versions of providers and modules, or write them into code and lock files.

    \b
    stackyard stack upgrade                            every stack
    stackyard stack upgrade --format markdown          the same, for a review
    stackyard stack upgrade onprem/web --write         newest patch and minor versions
    stackyard stack upgrade --write --major --only aws the next major version of one provider

    Versions come from where OpenTofu would install them: registries, network mirrors, folders and OCI
    registries, as its settings file says. If one of them does not answer, its versions are "not known", with
    the reason. Before 1.0, a new minor version counts as a major one.

    --write raises `~>` constraints and the versions of modules, and lets OpenTofu compute the checksums for
    all platforms. It changes files only: review and commit them. If a stack cannot be upgraded, its files
    stay unchanged, and the others are written. A constraint in a local module is raised only if all stacks
    that call the module are selected.

    --major also takes new major versions. Stacks with `critical: false` in stack.yaml may take them at once.
    A critical stack is refused until such a stack was applied with the same major version.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.stacks.upgrade import upgrade_stacks  # lazy: the help needs none of it

    _check(values)
    return session.run(upgrade_stacks(session, values))


def _check(values: dict[str, Any]) -> None:
    if values["is_report"] and values["is_write"]:
        raise UsageError("Give --report or --write, not both.")
    for option, key in (("--major", "is_major"), ("--platform", "platforms")):
        if values[key] and not values["is_write"]:
            raise UsageError(f"{option} works only with --write.")
    if values["is_write"] and (values["form"] != "text" or values["detailed_exitcode"]):
        raise UsageError("--format and --detailed-exitcode do not work with --write.")
    if values["names"] and selects_stacks(values):
        raise UsageError("Name the stacks, or select them with options, not both.")
    for one in values["platforms"]:
        system, _, architecture = one.partition("_")
        if not (system.isalnum() and architecture.isalnum() and one.isascii()):
            raise UsageError(f"`{one}` is not a platform such as linux_amd64.")
    if not values["names"] and not selects_stacks(values):
        values["all_stacks"] = True
