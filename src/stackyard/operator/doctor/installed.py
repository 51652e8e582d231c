"""What is installed on this machine: stackyard itself, Python, the engine, and other programs."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import sys
from typing import TYPE_CHECKING

import stackyard
from stackyard.base import extras
from stackyard.engine.tools.install import DEFAULT_TOFU_VERSION
from stackyard.engine.tools.probe import Health
from stackyard.engine.tools.survey import survey
from stackyard.operator.doctor.model import DoctorRow, RowStatus
from stackyard.path.settings import ProviderChoice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.tools.survey import FoundTool

__all__ = ["look_at_programs", "look_at_python", "look_at_stackyard"]

_AREA = "installed"
_ENGINES = ("tofu", "terraform")
_INSTALL_TOFU = "Install OpenTofu: stackyard tools install tofu"
_PROVIDER = "STACKYARD_PROVIDER"
# The last day with security fixes, by the minor version of Python 3 (PEP 664, 693, 719, 745).
_PYTHON_ENDS = {
    11: datetime.date(2027, 10, 31),
    12: datetime.date(2028, 10, 31),
    13: datetime.date(2029, 10, 31),
    14: datetime.date(2030, 10, 31),
}
_SOON = datetime.timedelta(days=180)


def look_at_stackyard() -> list[DoctorRow]:
    """Return the version, how it was installed, its extras and its provider."""
    by = extras.how_installed()
    rows = [
        DoctorRow(
            area=_AREA,
            name="stackyard",
            seen=f"{stackyard.__version__}, installed by {by.value} in {sys.prefix}",
        )
    ]
    for name, (purpose, _) in extras.EXTRAS.items():
        seen = "installed" if extras.is_there(name) else f"not installed (for {purpose})"
        rows.append(DoctorRow(area=_AREA, name=f"extra {name}", seen=seen))
    return [*rows, _provider(os.environ)]


def look_at_python(
    version: tuple[int, int] = sys.version_info[:2], today: datetime.date | None = None
) -> DoctorRow:
    """Return the version of Python, and whether it soon gets no more security fixes."""
    seen = f"{platform.python_version()} ({sys.executable})"
    ends = _PYTHON_ENDS.get(version[1])
    left = None if ends is None else ends - (today or datetime.datetime.now(datetime.UTC).date())
    if left is None or left > _SOON:
        return DoctorRow(area=_AREA, name="python", seen=seen)
    when = "has had no security fixes since" if left.days < 0 else "gets no security fixes after"
    return DoctorRow(
        area=_AREA,
        name="python",
        seen=f"{seen}; Python {version[0]}.{version[1]} {when} {ends}",
        status=RowStatus.WARNING,
        remedy="Install stackyard with a newer Python.",
    )


async def look_at_programs(timeout_s: float) -> list[DoctorRow]:
    """Return the engine, and the programs that only some verbs need."""
    found = {tool.name: tool for tool in await survey(timeout_s=timeout_s)}
    others = [_program(tool) for name, tool in found.items() if name not in _ENGINES]
    return [_engine(found), *others, *_sandbox()]


def _engine(found: Mapping[str, FoundTool]) -> DoctorRow:
    tofu, terraform = (found[name] for name in _ENGINES)
    for tool in (tofu, terraform):
        # One that was chosen is used or refused, never replaced.
        if tool.health is Health.OK:
            label = "OpenTofu" if tool is tofu else "Terraform"
            seen = f"{label} {tool.version} ({tool.path}); tested with OpenTofu {DEFAULT_TOFU_VERSION}"
            return DoctorRow(area=_AREA, name="engine", seen=seen)
        if tool.where_found is not None and tool.health is not Health.MISSING:
            break
    bad = tofu if tofu.path is not None or tofu.where_found is not None else terraform
    if bad.path is None and bad.where_found is None:
        return _bad_engine("neither OpenTofu nor Terraform is installed")
    oldest = f"; {bad.minimum} or newer works" if bad.health is Health.TOO_OLD else ""
    return _bad_engine(
        f"{bad.path or bad.name} {bad.version or ''} is {bad.health.value}{oldest}. {bad.reason}"
    )


def _bad_engine(seen: str) -> DoctorRow:
    return DoctorRow(
        area=_AREA, name="engine", seen=seen.strip(), status=RowStatus.PROBLEM, remedy=_INSTALL_TOFU
    )


def _program(tool: FoundTool) -> DoctorRow:
    match tool.health:
        case Health.OK:
            return DoctorRow(area=_AREA, name=tool.name, seen=f"{tool.version} ({tool.path})")
        case Health.MISSING:
            return DoctorRow(area=_AREA, name=tool.name, seen=f"not installed (for {tool.needed_for})")
        case _:
            oldest = "" if tool.minimum is None else f" {tool.minimum} or newer works."
            return DoctorRow(
                area=_AREA,
                name=tool.name,
                seen=f"{tool.path} is {tool.health.value}: {tool.reason or tool.version}",
                status=RowStatus.WARNING,
                remedy=f"Install it again, or take it off PATH.{oldest} It is for {tool.needed_for}.",
            )


def _sandbox() -> Iterator[DoctorRow]:
    path = shutil.which("bwrap")
    seen = path or "not installed (for programs inside guests of the lab)"
    yield DoctorRow(area=_AREA, name="bubblewrap", seen=seen)


def _provider(environ: Mapping[str, str]) -> DoctorRow:
    said = environ.get(_PROVIDER, "") or ProviderChoice.BUILT_IN.value
    known = [one.value for one in ProviderChoice]
    if said in known:
        chosen = f"{said} ({_PROVIDER})" if environ.get(_PROVIDER) else f"{said}, needs no download"
        return DoctorRow(area=_AREA, name="provider", seen=chosen)
    return DoctorRow(
        area=_AREA,
        name="provider",
        seen=f"{_PROVIDER} names {said!r}, which is none",
        status=RowStatus.PROBLEM,
        remedy=f"Set {_PROVIDER} to one of {', '.join(known)}, or unset it.",
    )
