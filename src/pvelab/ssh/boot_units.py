"""Services of a node that start when it boots: unit files below /etc/systemd/system that were enabled."""

from __future__ import annotations

import configparser
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pvelab.ssh.system_files import UNITS, read_system_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pvelab.world.world import World

__all__ = ["BootUnit", "disable_unit", "enable_unit", "is_enabled", "list_boot_units"]

_ENABLED = "enabled_units"
_TARGETS = ("multi-user.target", "sysinit.target", "networking.service", "network-pre.target")


@dataclass(frozen=True, slots=True, kw_only=True)
class BootUnit:
    """A service that starts with its node.

    Attributes:
        name: `NAME.service`.
        condition: The path without which it does not start; empty for none.
        command: What it runs.
    """

    name: str
    condition: str
    command: list[str]


def enable_unit(world: World, node: str, name: str) -> str:
    """Let a service start with its node; return why that cannot be, empty if it can."""
    text = read_system_file(world, node, f"{UNITS}/{name}")
    if text is None:
        return f"Unit file {name} does not exist."
    wanted = _parse(text).get("Install", "WantedBy", fallback="").split()
    if not set(wanted).intersection(_TARGETS):
        return f"the lab starts units that are WantedBy one of {', '.join(_TARGETS)}"
    with world.store.transaction():
        world.store.put(_ENABLED, f"{node}|{name}", {"node": node, "unit": name})
    return ""


def disable_unit(world: World, node: str, name: str) -> None:
    """Let a service start with its node no longer."""
    with world.store.transaction():
        world.store.delete(_ENABLED, f"{node}|{name}")


def is_enabled(world: World, node: str, name: str) -> bool:
    """Return whether a service starts with its node."""
    return world.store.get(_ENABLED, f"{node}|{name}") is not None


def list_boot_units(world: World, node: str) -> Iterator[BootUnit]:
    """Return the services that start before the network of a node; one whose file is gone does not."""
    for one in list(world.store.items(_ENABLED).values()):
        text = read_system_file(world, node, f"{UNITS}/{one['unit']}") if one["node"] == node else None
        unit = _parse(text or "")
        if "networking.service" in unit.get("Unit", "Before", fallback="").split():
            yield BootUnit(
                name=str(one["unit"]),
                condition=unit.get("Unit", "ConditionPathExists", fallback=""),
                command=shlex.split(unit.get("Service", "ExecStart", fallback="")),
            )


def _parse(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    # systemd minds the case of its words.
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return parser
