"""Choosing the engine: the configured program, `tofu` on PATH, the managed copy, `terraform` on PATH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.engine.tools.catalogue import TERRAFORM, TOFU
from stackyard.engine.tools.locations import (
    TOFU_VARIABLE,
    FoundBy,
    SearchLocation,
    find_configured_location,
    list_locations,
)
from stackyard.engine.tools.probe import PROBE_TIMEOUT_S, Health, probe
from stackyard.engine.version import Engine, EngineBrokenError, EngineTooOldError, Flavour, Version

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.tools.catalogue import VersionOutput

__all__ = ["EngineMissingError", "FoundEngine", "SkippedLocation", "find_engine"]


class EngineMissingError(StackyardError):
    """No program that can plan and apply was found; the text lists each place and what is wrong there."""

    code = "E-ENGINE-MISSING"
    summary = "There is no OpenTofu or Terraform to work with"
    default_remedy = "Run `stackyard tools install tofu`."


_TOOLS = {None: (TOFU, TERRAFORM), Flavour.TOFU: (TOFU,), Flavour.TERRAFORM: (TERRAFORM,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedLocation:
    """A place that came before the one chosen, or was looked at in vain.

    Attributes:
        label: The place in words.
        health: Missing, too old or broken.
        reason: Why its program was not taken.
    """

    label: str
    health: Health
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEngine:
    """The engine to use.

    Attributes:
        engine: The program, which of the two it is, and its version.
        where_found: How it was found.
        passed_over: The better places, and why they did not do.
    """

    engine: Engine
    where_found: FoundBy
    passed_over: tuple[SkippedLocation, ...]


async def find_engine(
    configured: Path | None = None, *, only: Flavour | None = None, timeout_s: float = PROBE_TIMEOUT_S
) -> FoundEngine:
    """Return the first engine that works.

    Args:
        configured: The program that the user chose; when absent, the one that `STACKYARD_TOFU` names.
        only: The one of the two that is wanted, where that matters.
        timeout_s: How long each program may take to say its version.

    Raises:
        EngineMissingError: There is none, or the one that the user chose is not there.
        EngineTooOldError: The one that the user chose is too old.
        EngineBrokenError: The one that the user chose does not work.
    """
    if chosen := find_configured_location(configured):
        found_engine = await _take_configured(chosen, timeout_s)
        if only in (None, found_engine.engine.flavour):
            return found_engine
    passed_over: list[SkippedLocation] = []
    for place in (place for tool in _TOOLS[only] for place in list_locations(tool)):
        if place.path is None:
            passed_over.append(SkippedLocation(label=place.label, health=Health.MISSING, reason="not there."))
            continue
        found = await probe(place.path, place.tool, timeout_s=timeout_s)
        if found.health is Health.OK and found.said is not None:
            return _make_found_engine(found.path, found.said, place, tuple(passed_over))
        label = place.label if place.where is FoundBy.MANAGED else f"{place.label} ({place.path})"
        passed_over.append(SkippedLocation(label=label, health=found.health, reason=found.reason))
    looked = "\n".join(f"- {place.label}: {place.reason}" for place in passed_over)
    raise EngineMissingError(f"Looked at:\n{looked}")


async def _take_configured(place: SearchLocation, timeout_s: float) -> FoundEngine:
    """Return the engine that the user chose; when it does not do, another one would be a surprise."""
    remedy = f"Correct the path (unset {TOFU_VARIABLE} to use what is on PATH), or install that program."
    if place.path is None:
        raise EngineMissingError(f"There is no program at {place.label}.", remedy=remedy)
    found = await probe(place.path, place.tool, timeout_s=timeout_s)
    if found.health is Health.TOO_OLD:
        raise EngineTooOldError(f"{place.label} cannot be used: {found.reason}")
    if found.said is None:
        raise EngineBrokenError(f"{place.label} cannot be used: {found.reason}")
    return _make_found_engine(found.path, found.said, place)


def _make_found_engine(
    path: Path, said: VersionOutput, place: SearchLocation, passed_over: tuple[SkippedLocation, ...] = ()
) -> FoundEngine:
    engine = Engine(path=path, flavour=Flavour(said.product), version=Version.parse(said.version))
    return FoundEngine(engine=engine, where_found=place.where, passed_over=passed_over)
