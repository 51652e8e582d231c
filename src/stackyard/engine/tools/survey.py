"""Looking at every external program at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.engine.tools.catalogue import CATALOGUE, TOFU, Tool
from stackyard.engine.tools.places import Place, configured_place, places_of
from stackyard.engine.tools.probe import PROBE_TIMEOUT_S, Health, Probe, probe

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.version import Version

__all__ = ["FoundTool", "survey"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """How one external program stands on this machine.

    Attributes:
        name: What we call it.
        health: Whether it can be used.
        needed_for: What needs it, in words.
        minimum: The oldest version that works, where that is known.
        version: Its version as it wrote it, when it did.
        path: The program, when there is one.
        where_found: How it was found: configured, on PATH, or the managed copy.
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
    timeout_s: float = PROBE_TIMEOUT_S,
    tools: tuple[Tool, ...] = CATALOGUE,
) -> tuple[FoundTool, ...]:
    """Ask every program for its version, all at the same time, and return them in the catalogue's order.

    Args:
        configured: The engine that the user chose; when absent, the one that `STACKYARD_TOFU` names.
        timeout_s: How long each program may take to answer before it counts as broken.
        tools: The programs to look at.
    """
    return tuple(await asyncio.gather(*(_look(tool, configured, timeout_s) for tool in tools)))


async def _look(tool: Tool, configured: Path | None, timeout_s: float) -> FoundTool:
    """Look at the places of a tool until one of them has a program that works."""
    places = places_of(tool)
    if tool is TOFU and (chosen := configured_place(configured)):
        # What the user chose is used or refused, never replaced.
        places = (chosen,)
    first_bad: FoundTool | None = None
    for place in places:
        if place.path is None:
            continue
        found = _report(place, await probe(place.path, tool, timeout_s=timeout_s))
        if found.health is Health.OK:
            return found
        first_bad = first_bad or found
    return first_bad or FoundTool(
        name=tool.name,
        health=Health.MISSING,
        needed_for=tool.needed_for,
        minimum=tool.minimum,
        reason=f"Looked at: {', '.join(place.label for place in places)}.",
    )


def _report(place: Place, found: Probe) -> FoundTool:
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
