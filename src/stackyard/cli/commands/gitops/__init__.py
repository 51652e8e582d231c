"""`stackyard gitops`: a pull request shows the plan, and a merge applies exactly that plan."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["gitops"]

_LATER = {
    "apply": LazyCommand(
        module="stackyard.cli.commands.gitops.apply",
        name="apply_pull",
        help="Apply what was reviewed in pull request NUMBER, and nothing else.",
    ),
    "check": LazyCommand(
        module="stackyard.cli.commands.gitops.check",
        name="check",
        help="Check that nothing reaches the base branch but what was planned and reviewed.",
    ),
    "drift": LazyCommand(
        module="stackyard.cli.commands.gitops.drift",
        name="drift",
        help="Compare targets with the base branch, and keep one issue for each that differs.",
    ),
    "init": LazyCommand(
        module="stackyard.cli.commands.gitops.init",
        name="init",
        help="Write the files by which the CI of a forge plans and applies pull requests.",
    ),
    "plan": LazyCommand(
        module="stackyard.cli.commands.gitops.plan",
        name="plan_pull",
        help="Plan the targets that pull request NUMBER changes, and show the plan in one comment.",
    ),
    "report": LazyCommand(
        module="stackyard.cli.commands.gitops.report",
        name="report",
        help="Report newer versions of providers and modules in an issue for each quarter.",
    ),
    "serve": LazyCommand(
        module="stackyard.cli.commands.gitops.serve",
        name="serve",
        help="Plan pull requests when they change, and apply them when they are merged: a server.",
    ),
    "status": LazyCommand(
        module="stackyard.cli.commands.gitops.status",
        name="status",
        help="Show what is known of pull request NUMBER: each target with its plan, and what became of it.",
    ),
    "targets": LazyCommand(
        module="stackyard.cli.commands.gitops.targets",
        name="targets",
        help="List the targets of pull request NUMBER that are to be planned, for jobs of a matrix.",
    ),
}


@group("gitops", later=_LATER)
def gitops() -> None:
    """Plan pull requests, and apply what was reviewed.

    The token of the forge is read from STACKYARD_FORGE_TOKEN. The address, the repository and the kind of the
    forge are taken from the CI that the command runs in, or from options.

    \b
    stackyard gitops plan 12       plan pull request 12, and show the plan there
    stackyard gitops apply 12      once it is merged: apply the plan that was approved
    stackyard gitops status 12     what is known of it
    stackyard gitops check --fix   have the forge require a plan and its approval
    stackyard gitops drift         keep an issue for each target that differs from the base branch
    stackyard gitops serve         do all of it when a webhook of the forge tells
    """  # noqa: D301 - click reads the control character
