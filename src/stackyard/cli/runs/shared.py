"""The run of `site:shared`: the older name of one hypervisor, or of two, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.path.environment import EnvironmentSource
from stackyard.path.handover import HandedOverError
from stackyard.path.hypervisor import SharedSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

    Work = Callable[[Session, dict[str, Any]], Awaitable[Result]]

__all__ = ["join_results", "run_shared"]


async def run_shared(session: Session, values: dict[str, Any], work: Work, *, is_dry: bool = True) -> Result:
    """Run a command on the hypervisors that have what all envs share.

    One whose objects another takes over first has its turn after that one.

    Args:
        session: The command.
        values: Its options.
        work: Its run on one target.
        is_dry: Whether it changes nothing: then one that waits for another is named, and is no error.

    Raises:
        UsageError: A saved plan is named, and there are two targets.
    """
    environments = EnvironmentSource.find(values["site"], emit=session.emit)
    owners = SharedSource(environments.resolver).list_owners(values["host"])
    if len(owners) == 1:
        return await work(session, values)
    if values.get("out") or values.get("plan_file"):
        names = " and ".join(f"`hypervisor:{one}`" for one in owners)
        raise UsageError(f"A saved plan is that of one target, and `site:shared` is two: {names}.")
    results, waiting = [], []
    for owner in owners:
        try:
            results.append(await work(session, _name(values, owner)))
        except HandedOverError:
            waiting.append(owner)
    for owner in waiting:
        try:
            results.append(await work(session, _name(values, owner)))
        except HandedOverError as err:
            if not is_dry or len(waiting) == len(owners):
                raise
            results.append(_wait(f"hypervisor:{owner}", err))
    return join_results(results)


def _name(values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    return {**values, "target": f"hypervisor:{owner}"}


def _wait(target: str, err: HandedOverError) -> Result:
    def show(writer: TextWriter) -> None:
        writer.line(f"{err.detail} {err.remedy}", style="yellow")

    return Result(document={"target": target, "waits": describe(err)}, show=show)


def join_results(results: Sequence[Result]) -> Result:
    """Return what a human and a program see of several targets."""

    def show(writer: TextWriter) -> None:
        for result in results:
            if result.show is not None:
                writer.line(str(result.document["target"]))
                result.show(writer)

    return Result(
        document={"targets": [dict(result.document) for result in results]},
        show=show,
        status=max(result.status for result in results),
    )
