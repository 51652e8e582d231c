"""The runs of `stackyard infra plan`, `apply`, `apply-auto` and `destroy`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError, Location, UsageError
from stackyard.cli.runs.stacks.one import run_stack_apply, run_stack_destroy, run_stack_plan
from stackyard.path.clusters.source import CODE_FOLDER
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.names import find_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.cli.result import Result
    from stackyard.cli.session import Session

__all__ = [
    "PlanMissingError",
    "choose_cluster",
    "run_infra_apply",
    "run_infra_apply_auto",
    "run_infra_destroy",
    "run_infra_plan",
]

PLAN_FILE = "tfplan"
_DETAILED = "detailed-exitcode"
_APPROVED = "auto-approve"
_PARALLELISM = "parallelism"


class PlanMissingError(InvalidInputError):
    """There is no saved plan to apply."""

    code = "E-INFRA-PLAN"
    summary = "There is no saved plan"
    default_remedy = "Run `stackyard infra plan` first."


def choose_cluster(name: str | None) -> tuple[str, Path]:
    """Return the cluster that is meant, and its folder: the one that is named, or the only one.

    Raises:
        ClusterNotFoundError: There is none, or there are several and none is named.
    """
    found = find_cluster(None if name is None else name.removeprefix(f"{CLUSTER}:"))
    return found.name, found.folder


def _plan_file(folder: Path) -> str:
    return os.path.relpath(folder / CODE_FOLDER / PLAN_FILE)


async def run_infra_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan the cluster that the options name, and save the plan beside its code."""
    name, folder = choose_cluster(values["cluster"])
    words = tuple(values["engine_words"])
    return await run_stack_plan(
        session,
        {
            **values,
            "target": f"{CLUSTER}:{name}",
            "engine_words": tuple(word for word in words if word.lstrip("-") != _DETAILED),
            "out": _plan_file(folder),
            "detailed_exitcode": any(word.lstrip("-") == _DETAILED for word in words),
        },
    )


async def run_infra_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply the plan that is saved beside the code of a cluster.

    Raises:
        PlanMissingError: There is none.
    """
    name, folder = choose_cluster(values["cluster"])
    plan_file = _plan_file(folder)
    if not (folder / CODE_FOLDER / PLAN_FILE).is_file():
        raise PlanMissingError(f"There is no {plan_file}.", where=Location(plan_file))
    words, parallelism = _read_apply_words(values)
    return await run_stack_apply(
        session,
        {
            **values,
            "target": f"{CLUSTER}:{name}",
            "engine_words": words,
            "parallelism": parallelism,
            "plan_file": plan_file,
            "dry_run": False,
            "yes": True,
        },
    )


def _read_apply_words(values: dict[str, Any]) -> tuple[tuple[str, ...], int | None]:
    """Return the arguments of a plan, and how many resources are worked on at once.

    `-auto-approve` says nothing here: neither verb asks a question.

    Raises:
        UsageError: The number is none.
    """
    parallelism: int | None = values["parallelism"]
    left: list[str] = []
    words = iter(values["engine_words"])
    for word in words:
        name, has_value, value = word.lstrip("-").partition("=")
        if name != _PARALLELISM:
            left.append(word)
            continue
        value = value if has_value else next(words, "")
        if not value.isdecimal() or int(value) < 1:
            raise UsageError(f"`{word}` needs a number from 1: -{_PARALLELISM}=10.")
        parallelism = int(value)
    return tuple(word for word in left if word.lstrip("-") != _APPROVED), parallelism


async def run_infra_apply_auto(session: Session, values: dict[str, Any]) -> Result:
    """Plan a cluster and apply that plan, without a question."""
    name, _ = choose_cluster(values["cluster"])
    words, parallelism = _read_apply_words(values)
    return await run_stack_apply(
        session,
        {
            **values,
            "target": f"{CLUSTER}:{name}",
            "engine_words": words,
            "parallelism": parallelism,
            "plan_file": None,
            "dry_run": False,
            "yes": True,
        },
    )


async def run_infra_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy what a cluster has."""
    name, _ = choose_cluster(values["cluster"])
    return await run_stack_destroy(session, {**values, "target": f"{CLUSTER}:{name}", "dry_run": False})
