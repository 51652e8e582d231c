"""Serving the provider in this process, and what an engine needs to find it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from stackyard.provider.journal import Journal
    from stackyard.provider.schema import Schema

__all__ = ["Options", "Served", "serve"]

# Each engine reads this as an address in its own registry.
_ADDRESS = "bpg/proxmox"
_PROTOCOL = 6
# A state or a file of cloud-init can be larger than the four megabytes that gRPC allows.
_LARGEST_MESSAGE_BYTES = 256 * 1024 * 1024
_GRACE_S = 5.0
_LONGEST_FOLDER_BYTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to serve.

    Attributes:
        environment: Where settings come from that the provider block leaves out (`PROXMOX_VE_ENDPOINT` and
            others, as bpg names them); its values never leave the process.
        journal: The folder where guests are written down before they are made (see `journal`); without one
            a run that is killed cannot find again what it was making.
        state: The name of the state that the engine works on, to tell its guests from those of others.
        folder: Where the engine runs, from which the relative paths of a configuration count; the current
            folder when absent.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    journal: Path | None = None
    state: str = ""
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A provider that answers.

    Attributes:
        reattach: The value of `TF_REATTACH_PROVIDERS` for an engine that is to use it.
        journal: What was made and may not be in the engine's state yet. Call `confirm_all` on it when the
            engine has ended well; what is left in `entries` is taken over by the next run.
        schemas: What its resources look like, by type.
    """

    reattach: str
    journal: Journal
    schemas: Mapping[str, Schema]


@contextlib.asynccontextmanager
async def serve(options: Options | None = None) -> AsyncIterator[Served]:
    """Serve the provider for the length of the block, on a socket that only this user can reach."""
    # Our programs are started by fork and exec at once; gRPC's handlers for forks only get in their way.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    import grpc.aio  # type: ignore[import-untyped]  # lazy: it costs a third of a second

    from stackyard.provider import registry  # lazy: with the protocol's messages, as above
    from stackyard.provider.journal import Journal  # lazy: as above
    from stackyard.provider.plugin import add_plugin_services  # lazy: as above
    from stackyard.provider.servicer import Servicer  # lazy: as above
    from stackyard.provider.session import Session  # lazy: as above

    chosen = options or Options()
    session = Session(Journal(chosen.journal, chosen.state), chosen.folder)
    sizes = [(f"grpc.max_{way}_message_length", _LARGEST_MESSAGE_BYTES) for way in ("send", "receive")]
    server = grpc.aio.server(options=sizes)
    known = registry.load()
    servicer = Servicer(known, session, chosen.environment)
    add_plugin_services(server, servicer)
    with tempfile.TemporaryDirectory(prefix="stackyard-provider-", dir=_short_folder()) as folder:
        path = os.path.join(folder, "socket")
        server.add_insecure_port(f"unix://{path}")
        await server.start()
        try:
            schemas = {name: resource.schema for name, resource in known.resources.items()}
            yield Served(reattach=_reattach(path), journal=session.journal, schemas=schemas)
        finally:
            session.stop()
            await server.stop(_GRACE_S)
            await servicer.finish(_GRACE_S)
            await session.close()


def _short_folder() -> str | None:
    """Return where to make the folder of the socket: its path may have no more than a hundred bytes."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) < _LONGEST_FOLDER_BYTES else "/tmp"  # noqa: S108 - made for us alone


def _reattach(path: str) -> str:
    address: dict[str, Any] = {
        "Protocol": "grpc",
        "ProtocolVersion": _PROTOCOL,
        "Pid": os.getpid(),
        # The engine leaves a provider under test running when it ends.
        "Test": True,
        "Addr": {"Network": "unix", "String": path},
    }
    return json.dumps({_ADDRESS: address})
