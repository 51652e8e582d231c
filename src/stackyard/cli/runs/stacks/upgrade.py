"""The run of `stackyard stack upgrade`."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events, process
from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.selection import applied_commits, match_stacks, read_applied, select_stacks
from stackyard.cli.runs.stacks.upgrade_view import (
    report_document,
    show_report,
    show_written,
    written_document,
)
from stackyard.engine.tools.find import EngineMissingError
from stackyard.engine.version import Flavour
from stackyard.path.stacks.engines import Engines
from stackyard.path.stacks.environment import find_cli_config
from stackyard.sources.stacks.kinds import KIND
from stackyard.sources.stacks.repository import find_stacks
from stackyard.sources.stacks.store import store_of
from stackyard.upgrades.cli_config import read_cli_config
from stackyard.upgrades.fetch import open_fetcher
from stackyard.upgrades.locking import PLATFORMS, Locker
from stackyard.upgrades.majors import open_gate
from stackyard.upgrades.plan_writes import plan_writes
from stackyard.upgrades.report import build_report
from stackyard.upgrades.sources import Sources
from stackyard.upgrades.write import write_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.session import Session
    from stackyard.engine.version import Engine
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.upgrades.majors import MajorGate
    from stackyard.upgrades.report import UpgradeRow

__all__ = ["upgrade_stacks"]

_AT_ONCE = 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selected:
    """The stacks of a command.

    Attributes:
        repository: All stacks.
        names: The selected ones, sorted.
        engines: Finds their engines.
    """

    repository: StackRepository
    names: tuple[str, ...]
    engines: Engines

    async def flavour(self, name: str) -> Flavour:
        """Return which engine a stack has; a report needs none to be installed."""
        named = self.repository.stacks[name].settings.engine
        if named is not None:
            return Flavour(named)
        with contextlib.suppress(EngineMissingError):
            return (await self.engines.get(None)).flavour
        return Flavour.TOFU


async def upgrade_stacks(session: Session, values: dict[str, Any]) -> Result:
    """Report newer versions, or write them."""
    selected = await _select(values)
    config = read_cli_config(find_cli_config())
    flavours = {name: await selected.flavour(name) for name in selected.repository.stacks}
    async with open_fetcher() as fetcher:
        known = {one: Sources(fetcher, config, one) for one in set(flavours.values())}
        sources = {name: known[flavours[name]] for name in selected.names}
        stacks = [selected.repository.stacks[name] for name in selected.names]
        with events.step(session.emit, "versions", "Asking for versions"):
            rows = await build_report(selected.repository, stacks, sources, frozenset(values["only"]))
        _require_only(rows, values["only"])
        if not values["is_write"]:
            return _report(selected.repository, rows, values)
        gate = await _gate(selected.repository, flavours) if values["is_major"] else None
        return await _write(session, selected, rows, gate, values)


async def _select(values: dict[str, Any]) -> _Selected:
    repository = find_stacks()
    if values["names"]:
        found = (repository.find(name.removeprefix(f"{KIND}:")).name for name in values["names"])
        names = tuple(sorted(set(found)))
    else:
        chosen: Sequence[str] = match_stacks(repository, values)
        if values["changed"]:
            chosen = (await select_stacks(repository, store_of(repository), values)).names
        names = tuple(sorted(name for name in chosen if name in repository.stacks))
    return _Selected(repository=repository, names=names, engines=Engines())


def _require_only(rows: Sequence[UpgradeRow], only: tuple[str, ...]) -> None:
    if only and not rows:
        raise UsageError(f"No selected stack uses {', '.join(f'`{one}`' for one in only)}.")


def _report(repository: StackRepository, rows: Sequence[UpgradeRow], values: dict[str, Any]) -> Result:
    is_newer = any(row.newer for row in rows)
    status = ExitStatus.CHANGES if is_newer and values["detailed_exitcode"] else ExitStatus.DONE
    if repository.broken and not values["names"]:
        status = ExitStatus.INVALID
    return Result(
        document=report_document(repository, rows),
        show=lambda writer: show_report(writer, repository, rows, values["form"]),
        status=status,
    )


async def _gate(repository: StackRepository, flavours: dict[str, Flavour]) -> MajorGate:
    return await open_gate(repository, applied_commits(read_applied(store_of(repository))), flavours)


async def _write(
    session: Session,
    selected: _Selected,
    rows: Sequence[UpgradeRow],
    gate: MajorGate | None,
    values: dict[str, Any],
) -> Result:
    repository = selected.repository
    plan = plan_writes(repository, rows, gate)
    engines: dict[str, Engine] = {}
    for unit in plan.units:
        for name in unit.stacks:
            engines[name] = await selected.engines.get(repository.stacks[name].settings.engine)
    locker = Locker(platforms=values["platforms"] or PLATFORMS)
    with process.watch_ends():
        outcomes = await write_units(
            plan.units, repository, engines, locker, parallel=values["jobs"] or _AT_ONCE, emit=session.emit
        )
    is_refused = any(one.is_major and one.row.stack in selected.names for one in plan.held)
    has_failed = any(one.error is not None for one in outcomes) or any(row.is_unknown for row in rows)
    is_named = bool(values["names"]) and gate is not None
    status = ExitStatus.INVALID if repository.broken and not values["names"] else ExitStatus.DONE
    if has_failed or (is_refused and is_named):
        status = ExitStatus.FAILED
    return Result(
        document=written_document(repository, rows, outcomes, plan.held),
        show=lambda writer: show_written(writer, repository, rows, outcomes, plan.held),
        status=status,
    )
