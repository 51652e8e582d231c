"""Reading a lab or a real cluster through the client of the Proxmox API, for a copy of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab import exporting
from pvelab.server import facts
from pvelab.server.problems import PveError
from stackyard.cli.commands.lab.instances import Instance
from stackyard.clients import proxmox

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ClusterCopy", "CopyRequest", "read_copy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """What is to be copied: the lab of a name, or the cluster at an address."""

    name: str
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    fingerprint: str | None = None
    insecure: bool = False

    def connection(self) -> proxmox.Connection:
        """Return how to reach it.

        Raises:
            LabDownError: No lab of that name runs.
            EndpointError: The address, the token or the fingerprint has the wrong form.
        """
        if self.url is not None:
            trust = proxmox.Trust(fingerprint=self.fingerprint, verify=not self.insecure)
            return proxmox.Connection(
                endpoint=self.url, credentials=proxmox.Token(text=self.token or ""), trust=trust
            )
        ready = Instance(self.name).require().ready
        return proxmox.Connection(
            endpoint=str(ready["url"]),
            credentials=proxmox.Token(text=str(ready["api_token"])),
            trust=proxmox.Trust(fingerprint=str(ready["fingerprint"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCopy:
    """A copy: the document of a seed, its text, and what is not in it with the reason."""

    document: Mapping[str, Any]
    text: str
    left_out: Mapping[str, str]

    @property
    def guests(self) -> int:
        """How many guests it has."""
        return len(self.document.get("guests", ()))


async def read_copy(wanted: CopyRequest) -> ClusterCopy:
    """Read a cluster and try the copy in a lab that no one sees.

    Raises:
        ProxmoxError: It cannot be reached, or refuses even to tell its nodes and guests.
        SeedError: No lab can hold what it tells.
    """
    connection, declared = wanted.connection(), facts.load()
    async with proxmox.Client(connection) as client:
        refusals: dict[int, proxmox.RefusedError] = {}

        async def get(path: str, params: Mapping[str, Any]) -> Any:
            try:
                return await client.get(path, dict(params))
            except proxmox.RefusedError as err:
                refused = PveError(err.text, status=err.status)
                refusals[id(refused)] = err
                raise refused from err

        source = exporting.Source(get, declared)
        try:
            document = await exporting.export_seed(source)
        except PveError as err:
            raise refusals[id(err)] from err
    kept, refused = await exporting.rehearse(document, declared)
    left_out = {**source.left_out, **refused}
    shown = f"the lab '{wanted.name}'" if wanted.url is None else connection.base_url()
    return ClusterCopy(
        document=kept, left_out=left_out, text=exporting.format_seed(kept, source=shown, left_out=left_out)
    )
