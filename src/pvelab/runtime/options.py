"""How a lab is to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Speed, Work
from pvelab.seeds import EMPTY, Seed
from stackyard.base import serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pvelab.kubernetes.programs import Programs
    from pvelab.machines.machine import Kind

__all__ = ["Options", "certificate_of", "merge_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a lab is to run.

    Attributes:
        nodes: The names of its nodes, those of the seed if None; a lab that finds data keeps what it had.
        bind: The address to listen on.
        port: The port of the API, 0 for any free one.
        ssh_port: The port of the SSH side, 0 for any free one, None for none.
        data: The folder that keeps everything; None keeps it in memory only.
        identity: The folder that keeps its certificate, SSH host key and login; the data folder if None, and
            without one they are new at each start.
        authorized_keys: Who may log in as root over SSH with a key, beside those of the seed.
        speed: Whether work takes time.
        latency_s: Seconds for single kinds of work.
        allow_downloads: Whether it may fetch URLs of other machines, in place of making stand-ins.
        seed: What a new lab holds.
        password: The password of root@pam in a new lab, in place of the seed's.
        guests: What is inside guests; None: a sandbox where one works, records where not.
        expose: Ports of this machine's loopback that guests reach at the address of their gateway.
        guest_network: The network of vmbr0, in which guests get their addresses; 10.31.0.0/16 if None. Guests
            of one in 127.0.0.0/8 are reached at their own addresses.
        factory_port: The port of the double of the Talos image factory, 0 for any free one, None for none.
        truenas_port: The port of the double of TrueNAS, 0 for any free one, None for none.
        kubernetes: The programs of a real Kubernetes API behind Talos machines; None for the lab's double.
        limits: What clients are granted.
    """

    nodes: tuple[str, ...] | None = None
    bind: str = "127.0.0.1"
    port: int = 0
    ssh_port: int | None = None
    data: Path | None = None
    identity: Path | None = None
    authorized_keys: tuple[str, ...] = ()
    speed: Speed = Speed.INSTANT
    latency_s: Mapping[Work, float] = field(default_factory=dict)
    allow_downloads: bool = False
    seed: Seed = EMPTY
    password: str | None = None
    guests: Kind | None = None
    expose: tuple[int, ...] = ()
    guest_network: str | None = None
    factory_port: int | None = None
    truenas_port: int | None = None
    kubernetes: Programs | None = None
    limits: serving.ServerLimits = field(
        # Uploads are images; the size of everything else is checked where it is read.
        default_factory=lambda: serving.ServerLimits(max_body_bytes=None, max_connections=2048)
    )


def merge_options(options: Options | None, changes: Mapping[str, Any]) -> Options:
    """Return options with single fields in place of theirs."""
    base = options or Options()
    if not changes:
        return base
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    return Options(**{**fields, **changes})


def certificate_of(options: Options) -> serving.Certificate:
    """Return the certificate of a lab: the one that is kept, or a new one.

    Raises:
        FileError: The folder that keeps it cannot be used.
    """
    names = ["localhost", "127.0.0.1", "::1", *([] if _is_wildcard(options.bind) else [options.bind])]
    names += [machine.ip for machine in options.seed.machines.values() if machine.ip]
    folder = options.identity or options.data
    if folder is None:
        return serving.make_certificate(names)
    return serving.read_or_create_certificate(folder / "certificate", names)


def _is_wildcard(bind: str) -> bool:
    return bind in ("", "0.0.0.0", "::")  # noqa: S104 - recognised here, not bound
