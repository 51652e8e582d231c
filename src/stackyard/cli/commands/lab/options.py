"""From what the user asks for to the options of a lab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pvelab
from stackyard.base.errors import UsageError
from stackyard.base.files import read_text

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.launch import LabRequest

__all__ = ["lab_options"]

_PORT = 8006
_SSH_PORT = 8022


def lab_options(wanted: LabRequest, identity: Path) -> pvelab.Options:
    """Return the options of the lab that the user asks for.

    Args:
        wanted: What the user says.
        identity: Where a lab without data keeps its certificate and host key: clients that noted them would
            refuse a lab that has others after each start.

    Raises:
        UsageError: A list of nodes or a latency cannot be read.
        FileError: The file of a seed cannot be read.
        SeedError: There is no such seed, or its file is wrong.
    """
    port = _PORT if wanted.port is None else wanted.port
    # Someone who takes any port for the one wants no fixed port for the other.
    ssh_port = wanted.ssh_port if wanted.ssh_port is not None else (_SSH_PORT if port else 0)
    return pvelab.Options(
        nodes=None if wanted.nodes is None else _nodes(wanted.nodes),
        bind=wanted.bind or "127.0.0.1",
        port=port,
        ssh_port=ssh_port,
        data=None if wanted.data is None else Path(wanted.data),
        identity=identity if wanted.data is None else None,
        authorized_keys=_keys(wanted.authorized_keys),
        allow_downloads=wanted.allow_downloads,
        speed=pvelab.Speed(wanted.speed or pvelab.Speed.INSTANT),
        latency_s=pvelab.parse_latency(wanted.latency or ""),
        seed=pvelab.load_seed(wanted.seed or "empty"),
        guests=None if wanted.guests is None else pvelab.Kind(wanted.guests),
        expose=_ports(wanted.expose or ""),
    )


def _ports(text: str) -> tuple[int, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not all(name.isdecimal() and 0 < int(name) < 65536 for name in names):
        raise UsageError(f"'{text}' is no list of ports: write numbers with commas between them.")
    return tuple(int(name) for name in names)


def _nodes(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise UsageError(f"'{text}' is no list of nodes: write different names with commas between them.")
    for name in names:
        if not pvelab.is_node_name(name):
            raise UsageError(
                f"'{name}' is no name for a node: use letters and digits, with dashes between them."
            )
    return names


def _keys(path: str | None) -> tuple[str, ...]:
    return () if path is None else tuple(read_text(Path(path)).splitlines())
