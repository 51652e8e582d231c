"""From what the user asks for to the options of a lab."""

from __future__ import annotations

import ipaddress
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pvelab
from stackyard.base.errors import UsageError
from stackyard.base.files import read_text

if TYPE_CHECKING:
    from pvelab.kubernetes.programs import Programs
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
        UsageError: A list of nodes or a latency cannot be read, or a program is missing.
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
        guest_network=None if wanted.guest_network is None else _network(wanted.guest_network),
        factory_port=wanted.factory_port,
        truenas_port=wanted.truenas_port,
        kubernetes=_kubernetes_programs() if wanted.kubernetes == "real" else None,
    )


def _kubernetes_programs() -> Programs:
    from pvelab.kubernetes.programs import Programs  # lazy: only for labs with a real Kubernetes
    from stackyard.engine.tools import managed  # lazy: as above

    found = {
        name: next(iter(managed.copies(name)), None) or shutil.which(name)
        for name in ("kube-apiserver", "etcd")
    }
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise UsageError(
            f"A real Kubernetes needs {' and '.join(missing)}, which {'are' if missing[1:] else 'is'} not"
            " installed: run `stackyard tools install kube-test`, or leave out `--kubernetes real`."
        )
    return Programs(apiserver=Path(str(found["kube-apiserver"])), etcd=Path(str(found["etcd"])))


def _network(text: str) -> str:
    try:
        found = ipaddress.IPv4Network(text)
    except ValueError as err:
        raise UsageError(f"'{text}' is no network: write one as 127.31.0.0/16.") from err
    if not 8 <= found.prefixlen <= 24:
        raise UsageError(f"'{text}' has no place for guests: write a network from /8 to /24.")
    return str(found)


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
