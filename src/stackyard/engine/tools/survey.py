"""Looking at every external program at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.engine.tools.catalogue import CATALOGUE, TOFU, Tool
from stackyard.engine.tools.locations import FoundBy, SearchLocation, find_configured_location, list_locations
from stackyard.engine.tools.probe import PROBE_TIMEOUT_S, Health, Probe, probe

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.version import Version

__all__ = ["FoundTool", "survey"]

# Programs that answer at once, as nearly all do, are not worth a word.
_QUIET_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """The state of one external program on this machine.

    Attributes:
        name: What we call it.
        health: Whether it can be used.
        needed_for: What needs it, in words.
        minimum: The oldest version that works, where that is known.
        version: Its version as it wrote it, when it did.
        path: The program, when there is one.
        where_found: How it was found: configured, on PATH, or the managed copy. A program that the user
            configured and that is not there has this too.
        reason: Why it cannot be used, empty when it can.
    """

    name: str
    health: Health
    needed_for: str
    minimum: Version | None = None
    version: str | None = None
    path: Path | None = None
    where_found: str | None = None
    reason: str = ""


async def survey(
    configured: Path | None = None,
    *,
    emit: events.Emit = events.ignore,
    timeout_s: float = PROBE_TIMEOUT_S,
    tools: tuple[Tool, ...] = CATALOGUE,
) -> tuple[FoundTool, ...]:
    """Ask every program for its version, all at the same time, and return them in the catalogue's order.

    Args:
        configured: The engine that the user chose; when absent, the one that `STACKYARD_TOFU` names.
        emit: Told which programs keep us waiting.
        timeout_s: How long each program may take to answer before it counts as broken.
        tools: The programs to look at.
    """
    places = {tool.name: _list_locations(tool, configured) for tool in tools}
    try:
        # A group: one that is left running when another fails would keep the event loop from its end.
        async with asyncio.TaskGroup() as group:
            asked = {
                tool.name: group.create_task(_look(tool, places[tool.name], timeout_s)) for tool in tools
            }
            group.create_task(_tell_who_is_slow(asked, emit))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tuple(task.result() for task in asked.values())


async def _tell_who_is_slow(asked: dict[str, asyncio.Task[FoundTool]], emit: events.Emit) -> None:
    """Say whom we wait for as long as that is so, once it has become long."""
    _, slow = await asyncio.wait(asked.values(), timeout=_QUIET_S)
    if not slow:
        return
    with events.step(emit, "tools.survey", "Ask each program for its version") as step:
        while slow:
            step.waiting(", ".join(name for name, task in asked.items() if task in slow))
            _, slow = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)


def _list_locations(tool: Tool, configured: Path | None) -> tuple[SearchLocation, ...]:
    # What the user chose is used or refused, never replaced.
    chosen = find_configured_location(configured) if tool is TOFU else None
    return list_locations(tool) if chosen is None else (chosen,)


async def _look(tool: Tool, places: tuple[SearchLocation, ...], timeout_s: float) -> FoundTool:
    """Look at the places of a tool until one of them has a program that works."""
    first_bad: FoundTool | None = None
    for place in places:
        if place.path is None:
            continue
        found = _report(place, await probe(place.path, tool, timeout_s=timeout_s))
        if found.health is Health.OK:
            return found
        first_bad = first_bad or found
    return first_bad or _missing(tool, places)


def _missing(tool: Tool, places: tuple[SearchLocation, ...]) -> FoundTool:
    first = places[0]
    is_chosen = first.where is FoundBy.CONFIGURED
    looked = ", ".join(place.label for place in places)
    return FoundTool(
        name=tool.name,
        health=Health.MISSING,
        needed_for=tool.needed_for,
        minimum=tool.minimum,
        where_found=first.where if is_chosen else None,
        reason=f"There is no program at {first.label}." if is_chosen else f"Looked at: {looked}.",
    )


def _report(place: SearchLocation, found: Probe) -> FoundTool:
    return FoundTool(
        name=place.tool.name,
        health=found.health,
        needed_for=place.tool.needed_for,
        minimum=place.tool.minimum,
        version=found.said.version if found.said else None,
        path=found.path,
        where_found=place.where,
        reason=found.reason,
    )
